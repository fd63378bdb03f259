package shell

import (
	"path"
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/workspace/protected"
)

// reads notes that a word is read as a path. Reading is harmless but where keys
// are kept and where reading alone does something.
func (r *reader) reads(t *Command, w word, sc *scope) {
	t.raise(ReadOnly, "")
	if w.lit && w.text == "-" {
		return
	}
	if strings.Contains(w.text, "://") {
		t.raise(Network, "it may connect to "+clip(w.src))
	}
	names, known := sc.places(w)
	sc.through(t, w)
	if !known && !w.lit {
		names = sc.folder(w)
	}
	if !known || w.glob {
		t.escapes(secretPattern(w))
	}
	if !known {
		t.unsure = true
	}
	if !known && w.text == "" {
		return
	}
	for _, p := range names {
		t.Reads = append(t.Reads, p)
		t.escapes(Secret(p))
	}
	if !known {
		t.escapes(Secret(path.Clean("/" + w.text)))
	}
}

// writes notes that a word is written as a path.
func (r *reader) writes(t *Command, w word, sc *scope) { r.changes(t, w, sc, WriteWorkspace, "") }

// removes notes that what a word names is removed or overwritten for good.
func (r *reader) removes(t *Command, w word, sc *scope) {
	r.changes(t, w, sc, Destructive, "what it removes isn't kept")
}

func (r *reader) changes(t *Command, w word, sc *scope, c Class, why string) {
	names, known := sc.places(w)
	sc.through(t, w)
	if !known || crosses(w.text) {
		t.raise(EscapeAttempt, "it writes to "+clip(w.src)+", and nobody can tell where that is")
	}
	for _, p := range names {
		if harmlessDevice(p) || strings.HasPrefix(p, "/dev/tcp/") || strings.HasPrefix(p, "/dev/udp/") {
			continue
		}
		t.Writes = append(t.Writes, p)
		switch {
		case r.o.Workspace == "" || !within(p, r.o.Workspace):
			t.raise(EscapeAttempt, p+" is outside the workspace")
		case isProtected(p[len(r.o.Workspace):]):
			t.raise(EscapeAttempt, whyProtected(p, p[len(r.o.Workspace):]))
		case p == r.o.Workspace && c == Destructive:
			t.raise(Destructive, "it removes the whole workspace")
		case why == "":
			t.raise(c, "it writes "+p)
		default:
			t.raise(c, why)
		}
	}
}

// places are the paths that a word may name. A pattern stays in the directory
// that it names as long as no part of it can match "..": the paths are the
// pattern then. Not known is a path of which too little is written down.
func (s *scope) places(w word) (list []string, known bool) {
	if !w.lit && !w.glob || w.lit && w.text == "" {
		return nil, false
	}
	if w.glob && climbs(w.text) {
		return nil, false
	}
	if strings.HasPrefix(w.text, "/") {
		return []string{device(path.Clean(w.text))}, true
	}
	if !s.dirs.known {
		return nil, false
	}
	for _, d := range s.dirs.list {
		list = append(list, path.Join(d, w.text))
	}
	return list, true
}

// folder is the folder of a path of which only the beginning is written down.
func (s *scope) folder(w word) []string {
	i := strings.LastIndexByte(w.text, '/')
	if i < 0 {
		return nil
	}
	names, _ := s.places(literal(w.text[:i+1]))
	return names
}

// through notes a path that goes up, as it is spelled. The system goes up from
// where a link has led, and a text goes up from the link.
func (s *scope) through(t *Command, w word) {
	if !w.lit && !w.glob || !strings.Contains(w.text, "..") || !slices.Contains(strings.Split(w.text, "/"), "..") {
		return
	}
	if strings.HasPrefix(w.text, "/") {
		t.Through = append(t.Through, w.text)
		return
	}
	for _, d := range s.dirs.list {
		t.Through = append(t.Through, d+"/"+w.text)
	}
}

// crosses reports whether a path goes down and up again: where that leads depends
// on links.
func crosses(p string) bool {
	down := false
	for part := range strings.SplitSeq(p, "/") {
		if part == ".." && down {
			return true
		}
		down = down || part != "" && part != "." && part != ".."
	}
	return false
}

// climbs reports whether a part of a pattern could match "..", or a protected
// name that it doesn't spell out.
func climbs(pattern string) bool {
	for part := range strings.SplitSeq(pattern, "/") {
		if !strings.ContainsAny(part, "*?[") {
			continue
		}
		if part[0] == '.' || part[0] == '[' || part[0] == '?' && len(part) < 3 {
			return true
		}
	}
	return false
}

// device shortens the ways to name an open file.
func device(p string) string {
	switch {
	case p == "/proc/self/fd/1" || p == "/dev/fd/1":
		return "/dev/stdout"
	case p == "/proc/self/fd/2" || p == "/dev/fd/2":
		return "/dev/stderr"
	}
	return p
}

var devices = [...]string{"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero", "/dev/full", "/dev/fd/63"}

func harmlessDevice(p string) bool { return slices.Contains(devices[:], p) }

// within reports whether a path is a directory or below it.
func within(p, dir string) bool {
	return p == dir || strings.HasPrefix(p, dir) && (dir == "/" || p[len(dir)] == '/')
}

// isProtected reports whether a path below the workspace must not change unasked.
func isProtected(rel string) bool {
	_, ok := protected.Of(rel)
	return ok
}

func whyProtected(p, rel string) string {
	e, _ := protected.Of(rel)
	return p + " is protected: " + e.Why
}

// secretPattern says why reading what a word that isn't literal may name isn't
// harmless, as far as it is written down.
func secretPattern(w word) string {
	if why := Secret(strings.Trim(w.src, `"`)); why != "" {
		return why
	}
	if w.glob && fitsSecret(w.text) {
		return clip(w.src) + " may name a place where keys are kept"
	}
	return ""
}

// fitsSecret reports whether a pattern can match the name of a place where secrets
// are kept that begins with a dot. What other names fit only the file system knows.
func fitsSecret(pattern string) bool {
	parts := strings.Split(pattern, "/")
	for _, name := range protected.SecretNames() {
		want := strings.Split(name, "/")
		for i := 0; i+len(want) <= len(parts); i++ {
			hit := true
			for j, part := range want {
				ok, err := path.Match(parts[i+j], part)
				hit = hit && ok && err == nil && (part[0] != '.' || parts[i+j] != "" && strings.IndexByte(".[", parts[i+j][0]) >= 0)
			}
			if hit {
				return true
			}
		}
	}
	return false
}

// fitsName reports whether a pattern can match a name.
func fitsName(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok || err != nil
}

// Secret says why reading a path isn't harmless, or nothing: it is where keys are
// kept.
func Secret(p string) string {
	switch {
	case p == "/etc/shadow" || p == "/etc/gshadow" || p == "/etc/sudoers" || strings.HasPrefix(p, "/etc/sudoers.d") || strings.HasPrefix(p, "/etc/ssh/ssh_host"):
		return p + " holds the system's secrets"
	case strings.HasPrefix(p, "/proc/") && strings.ContainsAny(path.Base(p), "*?[") && (fitsName(path.Base(p), "environ") || fitsName(path.Base(p), "mem")):
		return p + " may show the variables of a process"
	case strings.HasPrefix(p, "/proc/") && (strings.HasSuffix(p, "/environ") || strings.HasSuffix(p, "/mem") || strings.Contains(p, "/root") || strings.Contains(p, "/cwd/")):
		return p + " shows what belongs to a process"
	case strings.HasPrefix(p, "/dev/sd") || strings.HasPrefix(p, "/dev/nvme") || strings.HasPrefix(p, "/dev/vd") || p == "/dev/mem" || p == "/dev/kmem" || p == "/proc/kcore":
		return p + " is a device"
	case strings.HasPrefix(p, "/var/run/secrets") || strings.HasPrefix(p, "/run/secrets") || p == "/var/run/docker.sock" || p == "/run/docker.sock":
		return p + " is where keys are kept"
	}
	if why := protected.Secret(p); why != "" {
		return p + " " + why
	}
	return ""
}
