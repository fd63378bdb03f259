package sandbox

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/belay-run/belay"
)

// seatbelt is what a profile of macOS's sandbox is made of: files and folders,
// each with what is below it. All are absolute, without links and dots.
type seatbelt struct {
	write   []string // that can be written
	private []string // that aren't shown
	read    []string // shown though something private holds them
	guarded []string // that can't be changed, though something that can be written holds them
	pinned  []string // folders between the two, which can't be moved away
	hidden  []string // not shown, whatever else holds
}

// seatbeltOf is what a boundary lets a program do around a workspace. Links are
// followed; what isn't there, and is to be written, is an error. scratch is the
// program's own.
func seatbeltOf(b belay.Boundary, o Options, scratch string) (s seatbelt, err error) {
	s.write = []string{scratch}
	if b.Name != belay.BoundaryReadOnly && b.Name != "" {
		s.write = append(s.write, o.Workspace)
	}
	more, err := writable(b)
	if err != nil {
		return s, err
	}
	s.write = append(s.write, more...)
	s.read = []string{o.Workspace}
	s.private = realOnes([]string{"/Users", "/home", "/root", o.Home})
	s.hidden = realOnes(o.Hidden)
	if o.Home != "" {
		for _, t := range toolchains {
			s.read = append(s.read, realOnes([]string{filepath.Join(o.Home, t)})...)
		}
		for _, n := range secrets {
			s.hidden = append(s.hidden, realOnes([]string{filepath.Join(o.Home, n)})...)
		}
	}
	s.read = append(s.read, realOnes(b.Read)...)
	if o.Protected == nil {
		return s, nil
	}
	left := leftBy(b)
	for _, n := range rootNames { // the missing ones too: a profile speaks of names
		if full := filepath.Join(o.Workspace, n); o.Protected("/"+n) && !left(full) && !isRepository(full) {
			s.guarded = append(s.guarded, full)
		}
	}
	for _, w := range s.write {
		found, err := protectedIn(w, o.Protected, left)
		if err != nil {
			return s, err
		}
		s.guarded = append(s.guarded, found...)
	}
	s.guarded = topmost(s.guarded)
	s.pinned = pins(s.guarded, s.write)
	return s, nil
}

// realOnes are the paths that are there, without links.
func realOnes(paths []string) (all []string) {
	for _, p := range paths {
		if p == "" {
			continue
		}
		if real, err := filepath.EvalSymlinks(p); err == nil && real != "/" {
			all = append(all, real)
		}
	}
	return all
}

// The parts of a profile that are the same for all: of two rules that match the
// last one counts, so that the order is the meaning.
const (
	seatbeltHead = `(version 1)
(deny default)
(allow process-exec)
(allow process-fork)
(allow process-info* (target same-sandbox))
(allow signal (target same-sandbox))
(allow sysctl-read)
(allow ipc-posix-sem)
(allow pseudo-tty)
(allow mach-lookup
  (global-name "com.apple.system.logger")
  (global-name "com.apple.system.notification_center")
  (global-name "com.apple.system.opendirectoryd.libinfo"))
(allow file-read*)
`
	seatbeltDevices = `(allow file-write-data file-ioctl
  (literal "/dev/null")
  (literal "/dev/zero")
  (literal "/dev/dtracehelper")
  (literal "/dev/tty")
  (literal "/dev/ptmx"))
`
	seatbeltNetwork = `(allow network*)
(allow system-socket)
(allow mach-lookup
  (global-name "com.apple.dnssd.service")
  (global-name "com.apple.SystemConfiguration.configd")
  (global-name "com.apple.trustd.agent"))
`
)

// profile is the text of a profile that allows what b does, and no more than
// that. What the system can't do is an error: a list of hosts, limits that aren't
// defaults, and paths that can't be written without a doubt.
func (s seatbelt) profile(b belay.Boundary) (string, error) {
	l := b.Limits
	l.Output, l.TotalCPU, l.TotalWritten, l.TotalTime = 0, 0, 0, 0 // the runtime counts these itself
	l.SessionCPU, l.SessionWritten, l.SessionTime = 0, 0, 0
	switch {
	case b.Name == belay.BoundaryFull:
		return "", belay.Errorf(belay.CodeBadBoundary, "boundary full has no profile: nothing is confined")
	case b.Network == belay.NetworkHosts:
		return "", belay.Errorf(belay.CodeNotConfined, "boundary %q wants a list of hosts, and seatbelt has no way to it", b.Name).WithHint("network none or full")
	case demanded(l) || l.FileSize > 0 || l.Disk > 0 || l.CPU > 0 || l.Wall > 0 || l.OpenFiles > 0:
		return "", belay.Errorf(belay.CodeNotConfined, "boundary %q has limits, and seatbelt holds none", b.Name).WithHint("a boundary without limits; output, total_… and session_… are counted everywhere")
	case slices.Contains(s.write, "/"):
		return "", belay.Errorf(belay.CodeBadBoundary, "boundary %q lets write everything", b.Name).WithHint("boundary full is the one without walls")
	}
	t := sbpl{}
	t.WriteString(seatbeltHead)
	t.rule("deny file-read*", "subpath", s.private)
	t.WriteString("(allow file-read-metadata)\n") // else no path through a private folder can be looked up
	t.rule("allow file-read*", "subpath", slices.Concat(s.read, s.write))
	t.rule("allow file-write*", "subpath", s.write)
	t.WriteString(seatbeltDevices)
	if b.Network == belay.NetworkFull {
		t.WriteString(seatbeltNetwork)
	}
	t.rule("deny file-write*", "subpath", s.guarded)
	t.rule("deny file-write-unlink", "literal", slices.Concat(s.pinned, s.write)) // else what is guarded goes with the folder it is in
	t.rule("deny file-read* file-write*", "subpath", s.hidden)
	return t.String(), t.err
}

// sbpl is a text in the language of profiles, which is being written.
type sbpl struct {
	strings.Builder
	err error // the first path that can't be written
}

// rule writes a rule about paths, or nothing without any: a rule that names none
// is about all.
func (t *sbpl) rule(what, filter string, paths []string) {
	if len(paths) == 0 {
		return
	}
	t.WriteString("(" + what)
	for _, p := range paths {
		text, err := quoted(p)
		if t.err == nil {
			t.err = err
		}
		t.WriteString("\n  (" + filter + " " + text + ")")
	}
	t.WriteString(")\n")
}

// quoted is a path as a string of the language, which knows quotes and
// backslashes. Its treatment of control characters isn't documented, so a path that
// has them is an error, and so is one that isn't the only name of its file.
func quoted(p string) (string, error) {
	if !path.IsAbs(p) || path.Clean(p) != p || !utf8.ValidString(p) || strings.ContainsFunc(p, unicode.IsControl) {
		return "", belay.Errorf(belay.CodeBadBoundary, "path %q can't stand in a profile", p).WithHint("an absolute path of printable characters, without . and ..")
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(p) + `"`, nil
}
