//go:build linux

package script

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"github.com/belay-run/belay/internal/testkit/needs"
)

// TestDisk plays the stories of disk/ with the store on a small disk of its own,
// which BELAY_STORE names. The command disk fills it, makes it read-only, or makes
// it usable again.
// Guarantee: S70.
func TestDisk(t *testing.T) {
	needs.Root(t)
	p := params("disk")
	setup := p.Setup
	p.Setup = func(e *testscript.Env) error {
		if err := setup(e); err != nil {
			return err
		}
		dir := filepath.Join(e.WorkDir, "disk")
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=16m")
		needs.Facility(t, "mount", err == nil, fmt.Sprint(err))
		e.Defer(func() { unix.Unmount(dir, unix.MNT_DETACH) }) //nolint:errcheck // what is left is gone with the process
		e.Setenv("DISK", dir)
		e.Setenv("BELAY_STORE", filepath.Join(dir, "store"))
		return nil
	}
	p.Cmds["disk"] = disk
	testscript.Run(t, p)
}

func disk(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: disk full|read-only|usable")
	}
	dir := ts.Getenv("DISK")
	filler := filepath.Join(dir, "filler")
	switch args[0] {
	case "full":
		f, err := os.Create(filler)
		ts.Check(err)
		for b := make([]byte, 1<<12); err == nil; {
			_, err = f.Write(b)
		}
		ts.Check(f.Close())
	case "read-only":
		ts.Check(unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	case "usable":
		ts.Check(unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, ""))
		ts.Check(os.RemoveAll(filler))
	}
}
