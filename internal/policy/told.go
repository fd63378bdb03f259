package policy

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/belay-run/belay"
)

// Told is what a program that failed says a boundary stopped: an operation and
// its target. A program can say anything, so what it says is a reason to ask
// about, never one to allow; and what the boundary allows it didn't stop.
func Told(said, workspace, dir string, b belay.Boundary) (op, target string, ok bool) {
	if b.Name == belay.BoundaryFull {
		return "", "", false
	}
	if len(said) > maxSaid {
		said = said[len(said)-maxSaid:]
	}
	for line := range strings.Lines(said) {
		low := strings.ToLower(line)
		if len(line) > maxLine {
			continue
		}
		if op, target, ok = toldFile(strings.TrimSpace(line), low, workspace, dir, b); ok {
			return op, target, true
		}
		if target, ok = toldHost(low); ok && b.Network != belay.NetworkFull {
			return OpConnect, target, true
		}
	}
	return "", "", false
}

const (
	maxSaid = 64 << 10 // bytes of an output that are read for it
	maxLine = 4 << 10  // longer lines are data
)

// Texts of EROFS, EACCES and EPERM, in the order they are looked for.
var (
	readOnlyTexts = []string{"read-only file system", "erofs"}
	deniedTexts   = []string{"permission denied", "operation not permitted", "eacces", "eperm"}
)

// toldFile reads a line about a file.
func toldFile(line, low, workspace, dir string, b belay.Boundary) (op, target string, ok bool) {
	says := func(text string) bool { return strings.Contains(low, text) }
	strict := slices.ContainsFunc(readOnlyTexts, says)
	if !strict && !slices.ContainsFunc(deniedTexts, says) {
		return "", "", false
	}
	for _, p := range pathsIn(line) {
		if !path.IsAbs(p) {
			p = path.Join(dir, p)
		}
		p = path.Clean(p)
		op := OpWrite
		if !strict && reads(low) {
			op = OpRead
		}
		if stops(op, p, workspace, b) {
			return op, p, true
		}
	}
	return "", "", false
}

// stops tells whether a boundary doesn't allow an operation on a path.
func stops(op, p, workspace string, b belay.Boundary) bool {
	within := func(places []string) bool {
		return slices.ContainsFunc(places, func(q string) bool { return below(p, q) })
	}
	switch {
	case p == "/" || strings.HasPrefix(p, "/dev/") || strings.HasPrefix(p, "/proc/"):
		return false
	case within(b.Write):
		return false
	case op == OpRead:
		return !below(p, workspace) && !within(b.Read)
	case below(p, workspace):
		return b.Name == belay.BoundaryReadOnly || obeyed(p, workspace)
	}
	return true
}

// readWords are how programs say that they meant to read.
var readWords = []string{"cannot open directory", "cannot access", "for reading", "cat: ", "ls: ", "head: ", "tail: ", "grep: ", "find: ", "scandir", "could not read", "cannot read", "can't read", "error reading", "fopen"}

func reads(low string) bool {
	return slices.ContainsFunc(readWords, func(w string) bool { return strings.Contains(low, w) })
}

// inQuotes and bare are how a line names a file: in quotes, or as a word that
// begins like a path and ends before a blank or a colon.
var (
	inQuotes = lazy[regexp.Regexp]{make: func() *regexp.Regexp {
		return regexp.MustCompile(`'([^'\n]+)'|"([^"\n]+)"|‘([^’\n]+)’|` + "`([^'`\n]+)['`]")
	}}
	bare = lazy[regexp.Regexp]{make: func() *regexp.Regexp {
		return regexp.MustCompile(`(?:^|[\s:(=])(/[^\s:'"‘’]+|\.\.?/[^\s:'"‘’]+)`)
	}}
)

// pathsIn are the files that a line names, those in quotes first.
func pathsIn(line string) (out []string) {
	for _, m := range inQuotes.get().FindAllStringSubmatch(line, 8) {
		if p := strings.Join(m[1:], ""); strings.Contains(p, "/") || !strings.ContainsAny(p, " ,") {
			out = append(out, p)
		}
	}
	for _, m := range bare.get().FindAllStringSubmatch(line, 8) {
		out = append(out, strings.TrimRight(m[1], ".,;)"))
	}
	return out
}

// hostForms are how programs say that the network isn't there; the first group
// is the host, where they name it.
var hostForms = lazy[[]*regexp.Regexp]{make: func() *[]*regexp.Regexp {
	forms := []*regexp.Regexp{}
	for _, f := range []string{
		`could not resolve host:? ?'?([a-z0-9.-]+)?`, `getaddrinfo (?:eai_again|enotfound|failed)[: ]*([a-z0-9.-]+)?`, `lookup ([a-z0-9.-]+).*(?:no such host|connection refused|unreachable|server misbehaving|i/o timeout|try again)`,
		`unable to resolve host address '?([a-z0-9.-]+)`, `temporary failure (?:in name resolution|resolving '?([a-z0-9.-]+))`, `name or service not known`, `network is unreachable`, `enetunreach`,
		`failed to resolve '([a-z0-9.-]+)'`, `socket: operation not permitted`,
	} {
		forms = append(forms, regexp.MustCompile(f))
	}
	return &forms
}}

// toldHost reads a line about the network.
func toldHost(low string) (host string, ok bool) {
	for _, f := range *hostForms.get() {
		if m := f.FindStringSubmatch(low); m != nil {
			if len(m) > 1 {
				host = strings.Trim(m[1], ".")
			}
			return host, true
		}
	}
	return "", false
}
