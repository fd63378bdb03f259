package command

import (
	"errors"
	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/lib/files"
	"io"
	"os"
)

// File is a file that can be read more than once.
type File struct {
	*os.File
	Label string // as the user named it
	Size  int64
	temp  bool
}

// OpenFile opens a file; standard input is put into a file first, because
// everything is read to its end before anything is kept.
func OpenFile(a *Program, name string) (*File, error) {
	if name == "-" {
		return spool(&a.Env)
	}
	f, err := os.Open(a.Environment().Abs(name))
	if err != nil {
		return nil, belay.Errorf(belay.CodeUsage, "%s", files.Reason(err)).At(name).WithHint("belay import FILE, a file that you can read")
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = belay.Errorf(belay.CodeUsage, "it is no regular file").At(name).WithHint("belay import - <FILE")
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &File{Label: name, File: f, Size: info.Size()}, nil
}

func spool(e *term.Env) (*File, error) {
	if e.In == nil || e.IsTerminal(e.In) {
		return nil, belay.Errorf(belay.CodeUsage, "nothing is there to read").At("standard input").WithHint("belay import FILE")
	}
	t, err := os.CreateTemp("", "belay-import-")
	if err != nil {
		return nil, err
	}
	f := &File{Label: "standard input", File: t, temp: true}
	if f.Size, err = io.Copy(t, e.In); err != nil {
		return nil, errors.Join(belay.Errorf(belay.CodeUsage, "it can't be read: %s", files.Reason(err)).At("standard input").WithHint("belay import FILE reads a file"), f.Close())
	}
	return f, nil
}

// Close closes it, and removes what was put into a file.
func (f *File) Close() error {
	err := f.File.Close()
	if f.temp {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}
