package policy

import (
	"path"
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/policy/shell"
)

// Places that rules know by name. They are compared without regard to case:
// many file systems are.

// harmlessPlaces may be read without asking: the system's programs and devices.
var harmlessPlaces = []string{"/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/", "/opt/"}

var harmlessFiles = []string{"/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/fd/63", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "-", "/etc/os-release", "/etc/hostname",
	"/proc/cpuinfo", "/proc/meminfo", "/proc/version", "/proc/uptime", "/proc/loadavg", "/usr", "/bin", "/lib", "/"}

// Secret reports whether a path is one that usually holds a secret.
func Secret(p string) bool {
	if p == "" || len(p) > 4096 {
		return false
	}
	if i := strings.LastIndexByte(p, '='); i >= 0 { // --file=.env
		p = p[i+1:]
	}
	p = strings.TrimPrefix(p, "@") // curl -d @.env
	return shell.Secret(path.Clean(p)) != ""
}

// maybeSecret is Secret for a path of a command, which may be a pattern: one
// that doesn't say how the names end can fit a secret's.
func maybeSecret(p string) bool {
	dir, name := path.Split(p)
	if i := strings.LastIndexAny(name, "*?]"); i >= 0 {
		if rest := name[i+1:]; strings.Contains(rest, ".") {
			return Secret(dir + "x" + rest)
		}
		return true
	}
	return Secret(p)
}

// namesSecret reports whether an argument of a command may be a secret's path.
// One that isn't literal may be any path; with careful it counts as a secret's.
func namesSecret(c *Command, careful bool) bool {
	for i, a := range c.Args {
		switch {
		case c.Literal(i):
			if Secret(a) {
				return true
			}
		case maybeSecret(a), careful && strings.ContainsAny(a, "$`"):
			return true
		}
	}
	return false
}

// harmless reports whether reading a file says nothing about its user.
func harmless(p string) bool {
	p = path.Clean(p)
	return slices.Contains(harmlessFiles, p) || slices.ContainsFunc(harmlessPlaces, func(d string) bool { return strings.HasPrefix(p, d) })
}

// sink reports whether writing there changes nothing.
func sink(p string) bool {
	switch path.Clean(p) {
	case "/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/full":
		return true
	}
	return false
}

// showsSecrets reports whether a command prints variables or keys that it isn't
// told by name as a file.
func showsSecrets(c *Command) bool {
	switch path.Base(c.Name) {
	case "env", "printenv", "set", "export", "declare":
		return !slices.ContainsFunc(c.Args, func(a string) bool { return !strings.HasPrefix(a, "-") && !strings.Contains(a, "=") }) || path.Base(c.Name) == "printenv"
	case "pass", "gpg", "secret-tool", "security", "keyctl", "vault", "op":
		return true
	}
	return false
}
