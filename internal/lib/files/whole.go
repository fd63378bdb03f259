package files

import (
	"bufio"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"syscall"

	"github.com/belay-run/belay"
)

// Unfinished begins the names of files that aren't whole yet. One that a crash
// has left may be removed.
const Unfinished = ".belay-unfinished-"

// WriteWhole lets write fill a new file, and gives it its name when it is
// durable. Until then the name keeps its old content; after an error too, unless
// only the rename couldn't be made durable.
func WriteWhole(sys FS, path string, write func(io.Writer) error) (err error) {
	dir := filepath.Dir(path)
	temp := filepath.Join(dir, Unfinished+rand.Text())
	f, err := sys.Create(temp)
	if err != nil {
		return failed(path, err)
	}
	buf := bufio.NewWriterSize(named{f, path}, 64<<10)
	if err = write(buf); err == nil {
		err = buf.Flush()
	}
	if err == nil {
		err = failed(path, f.Sync())
	}
	if e := f.Close(); err == nil {
		err = failed(path, e)
	}
	if err == nil {
		err = failed(path, sys.Rename(temp, path))
	}
	if err != nil {
		return errors.Join(err, discard(sys, temp))
	}
	return failed(path, sys.SyncDir(dir))
}

// named says of a failed write which file it was for.
type named struct {
	w    io.Writer
	path string
}

func (n named) Write(p []byte) (int, error) {
	k, err := n.w.Write(p)
	return k, failed(n.path, err)
}

func discard(sys FS, temp string) error {
	err := sys.Remove(temp)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return belay.Errorf(belay.CodeInternal, "the unfinished file can't be removed").At(temp).WithHint("remove it").Wrap(err)
}

// failed gives an error that has no code yet the one of a file that can't be
// written.
func failed(path string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*belay.Error](err); ok {
		return err
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return belay.Errorf(belay.CodeDiskFull, "there is no space left for the file").At(path).WithHint("free some space, or name another place").Wrap(err)
	}
	return belay.Errorf(belay.CodeNotWritten, "the file can't be written").At(path).WithHint("name another place").Wrap(err)
}
