package read

import (
	"bytes"
	"errors"
	"io"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app/input"
)

const (
	maxFind  = 200
	findPart = 64 << 10 // is looked at together
)

// Findable refuses a text that is too long to be looked for.
func Findable(field, text string) error {
	if len(text) <= maxFind {
		return nil
	}
	return input.At(field, belay.Errorf(belay.CodeTooLarge, "the text has %d bytes; at most %d are looked for", len(text), maxFind).WithHint("look for a part of it"))
}

// Find looks for a text in what r reads, which begins at an offset. It returns where the
// text is and where its line begins; -1: nowhere. The case of a to z doesn't matter.
func Find(r io.Reader, text string, offset int64) (found, line int64, err error) {
	want := lower([]byte(text))
	buf, at := make([]byte, 0, findPart+maxFind), offset // at: of buf
	line = offset
	for {
		n, err := io.ReadFull(r, buf[len(buf):min(len(buf)+findPart, cap(buf))])
		buf = buf[:len(buf)+n]
		if i := bytes.Index(lower(buf), want); i >= 0 {
			if nl := bytes.LastIndexByte(buf[:i], '\n'); nl >= 0 {
				line = at + int64(nl) + 1
			}
			return at + int64(i), line, nil
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return -1, line, nil
		}
		if err != nil {
			return -1, line, err
		}
		kept := min(len(buf), len(want)-1)
		if nl := bytes.LastIndexByte(buf[:len(buf)-kept], '\n'); nl >= 0 {
			line = at + int64(nl) + 1
		}
		at += int64(len(buf) - kept)
		buf = buf[:copy(buf, buf[len(buf)-kept:])]
	}
}

// lower is a text in lower case as far as it is ASCII: each byte stays in its place.
func lower(b []byte) []byte {
	out := bytes.Clone(b)
	for i, c := range out {
		if 'A' <= c && c <= 'Z' {
			out[i] = c + 'a' - 'A'
		}
	}
	return out
}
