//go:build unix

package files

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/belay-run/belay"
)

// ReadUpTo returns what a regular file holds; more than limit bytes are
// belay.CodeTooLarge.
func ReadUpTo(path string, limit int64) ([]byte, error) { return readUpTo(system{}, path, limit) }

// ReadIn is ReadUpTo for a file of a folder.
func ReadIn(root *os.Root, name string, limit int64) ([]byte, error) {
	return readUpTo(root, name, limit)
}

func readUpTo(in opener, name string, limit int64) ([]byte, error) {
	f, _, err := open(in, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return UpTo(f, limit)
}

// ReadGiven is ReadUpTo for a path that a person gave, which may be a pipe's.
func ReadGiven(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return UpTo(f, limit)
}

// UpTo is ReadUpTo for what was opened.
func UpTo(r io.Reader, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = belay.Errorf(belay.CodeTooLarge, "it is larger than %d KiB", limit>>10)
	}
	return b, err
}

// ReadPrivate is ReadUpTo for a file that only its owner may read or change. All
// errors but that there is none have the code.
func ReadPrivate(path string, limit int64, code belay.Code) (b []byte, err error) {
	f, info, err := Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err == nil {
		defer f.Close()
		if info.Mode().Perm()&0o077 != 0 {
			return nil, belay.Errorf(code, "others may read or change it (mode %04o)", info.Mode().Perm()).At(path).WithHint("chmod 600 %s", path)
		}
	}
	if err == nil {
		b, err = UpTo(f, limit)
	}
	if err != nil {
		return nil, belay.Errorf(code, "it can't be read").At(path).Wrap(err).WithHint("the file must be yours: ls -l %s", path)
	}
	return b, nil
}

// WithContext is a reader that ends with the context.
func WithContext(ctx context.Context, r io.Reader) io.Reader { return bounded{ctx, r} }

type bounded struct {
	ctx context.Context
	r   io.Reader
}

func (b bounded) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	return b.r.Read(p)
}

// Reason is an error without the operation and the path, which are said already.
func Reason(err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err.Error()
	}
	return err.Error()
}
