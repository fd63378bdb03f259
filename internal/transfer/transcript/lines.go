package transcript

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
)

// Bounds of a file, so that a made-up one costs little.
const (
	maxLine  = 64 << 20 // bytes: pictures are in the lines
	maxLines = 5_000_000
)

// lines reads the lines of a file, in order or by where they are.
type lines struct {
	ctx  context.Context
	file io.ReaderAt
	size int64
}

// span is where a line is.
type span struct {
	number int // from 1
	at     int64
	length int
}

// each hands over every line that has something in it.
func (l *lines) each(take func(at span, raw []byte) error) error {
	in := bufio.NewReaderSize(io.NewSectionReader(l.file, 0, l.size), 64<<10)
	var buf []byte
	var at int64
	for n := 1; ; n++ {
		if err := l.ctx.Err(); err != nil {
			return err
		}
		buf = buf[:0]
		for {
			part, err := in.ReadSlice('\n')
			if buf = append(buf, part...); len(buf) > maxLine {
				return bad(n, "it has more than %d MiB", maxLine>>20)
			}
			if err == nil || errors.Is(err, io.EOF) {
				break
			}
			if !errors.Is(err, bufio.ErrBufferFull) {
				return bad(n, "it can't be read").Wrap(err)
			}
		}
		if len(buf) == 0 {
			return nil
		}
		if n > maxLines {
			return bad(n, "the file has more lines than that")
		}
		if raw := content(n, buf); len(raw) > 0 {
			if err := take(span{n, at, len(buf)}, raw); err != nil {
				return err
			}
		}
		at += int64(len(buf))
	}
}

// content is what is in a line; the first may begin with a mark of its encoding.
func content(number int, raw []byte) []byte {
	if number == 1 {
		raw = bytes.TrimPrefix(bytes.TrimSpace(raw), []byte("\xef\xbb\xbf"))
	}
	return bytes.TrimSpace(raw)
}

// read reads a line again.
func (l *lines) read(s span, v any) error {
	if err := l.ctx.Err(); err != nil {
		return err
	}
	raw := make([]byte, s.length)
	if _, err := l.file.ReadAt(raw, s.at); err != nil && !errors.Is(err, io.EOF) {
		return bad(s.number, "it can't be read again").Wrap(err)
	}
	if err := decode(content(s.number, raw), v); err != nil {
		return bad(s.number, "it changed while the file was read").Wrap(err)
	}
	return nil
}

// Detect recognizes the format of a transcript by its first lines; empty when it
// is none.
func Detect(ctx context.Context, file io.ReaderAt, size int64) Format {
	l := &lines{ctx: ctx, file: file, size: size}
	found := Format("")
	enough := errors.New("enough")
	seen := 0
	_ = l.each(func(_ span, raw []byte) error {
		var head struct {
			Format, Type, ID, SessionID, UUID, LeafUUID string
			Message                                     json.RawMessage
		}
		if decode(raw, &head) == nil {
			switch {
			case head.Format == ownFormat:
				found = Own
			case head.Type == "session" && head.ID != "" && seen == 0:
				found = OpenClaw
			case head.Type != "" && (head.SessionID != "" && (head.UUID != "" || head.Message != nil) || head.Type == "summary" && head.LeafUUID != ""):
				found = Claude
			}
		}
		if seen++; found != "" || seen == 50 {
			return enough
		}
		return nil
	})
	return found
}

func itoa(n int) string { return strconv.Itoa(n) }
