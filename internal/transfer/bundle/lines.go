package bundle

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"

	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/store"
)

func unread(where string, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return bad(where, "it can't be read").Wrap(err)
}

// eachLine hands over the lines of a member and holds them against its
// description.
func eachLine(ctx context.Context, in io.Reader, name string, want Lines, limit int, take func([]byte) error) error {
	sum := sha256.New()
	got := Lines{}
	in = io.TeeReader(files.WithContext(ctx, in), sum)
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 64<<10), limit)
	lines.Split(wholeLines)
	for lines.Scan() {
		got.Count++
		got.Size += int64(len(lines.Bytes())) + 1
		if err := take(lines.Bytes()); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return unread(name, err)
	}
	if got.Digest = store.DigestFrom(sum.Sum(nil)); got != want {
		return bad(name, "it isn't what the manifest describes")
	}
	return nil
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
