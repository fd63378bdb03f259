package sqlite

import (
	"io"
	"os"
)

// FS is how files beside the database are written. Tests give one whose N-th
// operation fails.
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

// Disk is the system's file system.
type Disk struct{}

var _ FS = Disk{}

func (Disk) Mkdir(path string) error {
	if err := os.Mkdir(path, 0o700); err != nil && !os.IsExist(err) {
		return err
	}
	return nil
}

func (Disk) Create(path string) (File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
}

func (Disk) Rename(oldpath, newpath string) error { return os.Rename(oldpath, newpath) }
func (Disk) Remove(path string) error             { return os.Remove(path) }

func (Disk) SyncDir(path string) error {
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
