// Package failfs has a file system that fails when a test wants it to.
package failfs

import (
	"github.com/belay-run/belay/internal/lib/files"
)

// Failing is the system's file system, whose At-th operation fails with Err. A
// write that fails has written half, as a full disk would.
type Failing struct {
	files.System
	At  int
	Err error

	N       int    // operations so far
	Hit     bool   // one failed
	Op      string // that was this one
	Renamed bool
	Ops     []string // all of them, in order
}

var _ files.FS = (*Failing)(nil)

func (f *Failing) fails(op string) error {
	f.Ops = append(f.Ops, op)
	if f.N++; f.N != f.At {
		return nil
	}
	f.Hit, f.Op = true, op
	return f.Err
}

// Create fails or makes a file that may.
func (f *Failing) Create(path string) (files.File, error) {
	if err := f.fails("create"); err != nil {
		return nil, err
	}
	file, err := f.System.Create(path)
	return &failingFile{file, f}, err
}

// Rename fails or renames.
func (f *Failing) Rename(from, to string) error {
	if err := f.fails("rename"); err != nil {
		return err
	}
	f.Renamed = true
	return f.System.Rename(from, to)
}

// Remove fails or removes.
func (f *Failing) Remove(path string) error {
	if err := f.fails("remove"); err != nil {
		return err
	}
	return f.System.Remove(path)
}

// SyncDir fails or syncs.
func (f *Failing) SyncDir(path string) error {
	if err := f.fails("sync directory"); err != nil {
		return err
	}
	return f.System.SyncDir(path)
}

type failingFile struct {
	files.File
	f *Failing
}

func (w *failingFile) Write(p []byte) (int, error) {
	if err := w.f.fails("write"); err != nil {
		n, _ := w.File.Write(p[:len(p)/2])
		return n, err
	}
	return w.File.Write(p)
}

func (w *failingFile) Sync() error {
	if err := w.f.fails("sync"); err != nil {
		return err
	}
	return w.File.Sync()
}

func (w *failingFile) Close() error {
	err := w.File.Close()
	if e := w.f.fails("close"); e != nil {
		return e
	}
	return err
}
