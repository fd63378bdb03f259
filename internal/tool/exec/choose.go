//go:build unix

package exec

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/belay-run/belay"
)

// OfSession is the shell that the command lines of a new session run in: bash,
// where it lies so that only root can have put it there, else sh. Every session
// that is created asks here; afterwards its shell is what was recorded.
func OfSession() *belay.Shell {
	for _, dir := range [...]string{"/bin", "/usr/bin", "/usr/local/bin", "/run/current-system/sw/bin"} {
		if real, ok := ownedBy(0, "/", dir+"/bash"); ok {
			return &belay.Shell{Path: real, Dialect: "bash"}
		}
	}
	return &belay.Shell{Path: "/bin/sh", Dialect: "sh"}
}

// ownedBy returns where a path below a folder leads, if it leads to a program,
// and only an owner can change the program, or a folder or link on the way. The
// folder itself is trusted.
func ownedBy(owner uint32, base, path string) (real string, ok bool) {
	real = base
	todo := strings.Split(path, "/")
	for links := 0; len(todo) > 0; {
		name := todo[0]
		todo = todo[1:]
		if name == ".." {
			real = filepath.Dir(real)
		}
		if name == "" || name == "." || name == ".." {
			continue
		}
		next := filepath.Join(real, name)
		info, err := os.Lstat(next)
		if err != nil {
			return "", false
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		switch {
		case !ok || st.Uid != owner:
			return "", false
		case info.Mode()&os.ModeSymlink != 0:
			to, err := os.Readlink(next)
			if links++; err != nil || links > 32 {
				return "", false
			}
			if filepath.IsAbs(to) {
				real = "/"
			}
			todo = append(strings.Split(to, "/"), todo...)
		case info.Mode().Perm()&0o022 != 0:
			return "", false
		default:
			real = next
		}
	}
	info, err := os.Stat(real)
	return real, err == nil && info.Mode().IsRegular() && info.Mode().Perm()&1 != 0
}

// commandLine starts a session's shell with a line: without the files that it
// would read first. A session that has none recorded runs sh.
func commandLine(s *belay.Shell, line string) []string {
	switch {
	case s == nil:
		return []string{"/bin/sh", "-c", line}
	case s.Dialect == "bash":
		return []string{s.Path, "--norc", "--noprofile", "-c", line}
	}
	return []string{s.Path, "-c", line}
}
