package bundle

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"iter"

	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/store"
)

func unread(where string, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return bad(where, "it can't be read").Wrap(err)
}

// eachLine yields the lines of a member, and an error at their end if they aren't
// what its description says.
func eachLine(ctx context.Context, in io.Reader, name string, want Lines, limit int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		sum := sha256.New()
		got := Lines{}
		lines := bufio.NewScanner(io.TeeReader(files.WithContext(ctx, in), sum))
		lines.Buffer(make([]byte, 0, 64<<10), limit)
		lines.Split(wholeLines)
		for lines.Scan() {
			got.Count++
			got.Size += int64(len(lines.Bytes())) + 1
			if !yield(lines.Bytes(), nil) {
				return
			}
		}
		got.Digest = store.DigestFrom(sum.Sum(nil))
		if err := lines.Err(); err != nil {
			yield(nil, unread(name, err))
		} else if got != want {
			yield(nil, bad(name, "it isn't what the manifest describes"))
		}
	}
}

// wholeLines splits at line ends and refuses a last line without one.
func wholeLines(data []byte, atEOF bool) (int, []byte, error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF && len(data) > 0 {
		return 0, nil, errors.New("the last line is cut off")
	}
	return 0, nil, nil
}
