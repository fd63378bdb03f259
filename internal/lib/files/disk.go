// Package files reads files of a bounded size, and writes files that must be there
// whole or not at all. It promises that a file larger than its reader expects is
// refused and not cut, that a name never refers to half a file, whenever the
// process or the disk fails, and that the caller learns of every failure.
package files

import (
	"io"
	"os"
)

// FS is what writing a file needs. Tests give one whose N-th operation fails.
type FS interface {
	Mkdir(path string) error              // makes one directory; no error when it is there
	Create(path string) (File, error)     // a new file; an error when the name is taken
	Rename(oldpath, newpath string) error // replaces what is there
	Remove(path string) error
	SyncDir(path string) error // makes what was created and renamed in it durable
}

// File is a file that is being written.
type File interface {
	io.Writer
	Sync() error
	Close() error
}

// System is the system's file system.
type System struct{}

var _ FS = System{}

// Mkdir makes a directory that only its owner may enter.
func (System) Mkdir(path string) error {
	if err := os.Mkdir(path, 0o700); err != nil && !os.IsExist(err) {
		return err
	}
	return nil
}

// Create makes a file that only its owner may read.
func (System) Create(path string) (File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
}

// Rename gives a file another name.
func (System) Rename(oldpath, newpath string) error { return os.Rename(oldpath, newpath) }

// Remove removes a file.
func (System) Remove(path string) error { return os.Remove(path) }

// SyncDir syncs a directory.
func (System) SyncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	err = d.Sync()
	if e := d.Close(); err == nil {
		err = e
	}
	return err
}
