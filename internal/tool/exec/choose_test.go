//go:build unix

package exec

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/testkit/needs"
)

// TestAShellIsTakenOnlyWhereItsOwnerPutIt lays a program out in several ways below
// a folder.
// Guarantee: G86.
func TestAShellIsTakenOnlyWhereItsOwnerPutIt(t *testing.T) {
	me := uint32(os.Getuid())
	for _, c := range []struct {
		name string
		make string // lines: dir PATH MODE, file PATH MODE, link PATH TARGET
		want string // below the folder; empty: refused
	}{
		{"a program", "dir bin 755|file bin/bash 755", "bin/bash"},
		{"a link beside it", "dir bin 755|file bin/bash5 755|link bin/bash bash5", "bin/bash5"},
		{"a folder that is a link", "dir usr 755|dir usr/bin 755|file usr/bin/bash 755|link bin usr/bin", "usr/bin/bash"},
		{"a link that goes up", "dir bin 755|dir alt 755|file alt/bash 755|link bin/bash ../alt/bash", "alt/bash"},
		{"nothing there", "dir bin 755", ""},
		{"a folder", "dir bin 755|dir bin/bash 755", ""},
		{"not to be run", "dir bin 755|file bin/bash 644", ""},
		{"a file that a group writes", "dir bin 755|file bin/bash 775", ""},
		{"a file that everybody writes", "dir bin 755|file bin/bash 757", ""},
		{"a folder that a group writes", "dir bin 775|file bin/bash 755", ""},
		{"a folder that everybody writes", "dir bin 1777|file bin/bash 755", ""},
		{"a link into a folder that others write", "dir bin 755|dir alt 777|file alt/bash 755|link bin/bash ../alt/bash", ""},
		{"a link through a folder that others write", "dir bin 755|dir alt 777|dir real 755|file real/bash 755|link alt/bash ../real/bash|link bin/bash ../alt/bash", ""},
		{"a circle", "dir bin 755|link bin/bash bash", ""},
		{"a link to nothing", "dir bin 755|link bin/bash gone", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			base := t.TempDir()
			lay(t, base, c.make)
			got, ok := ownedBy(me, base, "bin/bash")
			if want := filepath.Join(base, c.want); ok != (c.want != "") || ok && got != want {
				t.Errorf("%s %v, want %s", got, ok, c.want)
			}
			if _, ok := ownedBy(me+1, base, "bin/bash"); ok {
				t.Error("somebody else's is taken")
			}
		})
	}
}

func lay(t *testing.T, base, lines string) {
	t.Helper()
	for line := range strings.SplitSeq(lines, "|") {
		f := strings.Fields(line)
		at := filepath.Join(base, f[1])
		var err error
		switch f[0] {
		case "dir":
			err = os.Mkdir(at, 0o700)
		case "file":
			err = os.WriteFile(at, []byte("#!/bin/sh\n"), 0o700)
		case "link":
			err = os.Symlink(f[2], at)
		}
		if err == nil && f[0] != "link" {
			mode := os.FileMode(0)
			for _, d := range f[2] {
				mode = mode<<3 | os.FileMode(d-'0')
			}
			if mode&0o1000 != 0 {
				mode = mode&0o777 | os.ModeSticky
			}
			err = os.Chmod(at, mode)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestTheShellOfASessionIsRoots: what this machine gives is a path that root put there.
func TestTheShellOfASessionIsRoots(t *testing.T) {
	s := OfSession()
	needs.Facility(t, "bash", s.Dialect == "bash", "no bash that only root can change: "+s.Path)
	if real, ok := ownedBy(0, "/", s.Path); !ok || real != s.Path {
		t.Errorf("%s leads to %s, %v", s.Path, real, ok)
	}
}
