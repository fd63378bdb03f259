package files

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/belay-run/belay"
)

// ReadUpTo returns what a file holds; more than limit bytes are belay.CodeTooLarge.
func ReadUpTo(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = belay.Errorf(belay.CodeTooLarge, "it is larger than %d KiB", limit>>10)
	}
	return b, err
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
