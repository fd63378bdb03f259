//go:build unix

package search

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"testing/iotest"

	"github.com/belay-run/belay/internal/workspace/fswalk"
)

// Scan shows every match in a text, read in pieces of some bytes; 0 is at once.
func Scan(pattern string, literal, fold bool, before, after int, text []byte, piece int) (shown string, matches int, err error) {
	m, err := newMatcher(pattern, literal, fold)
	if err != nil {
		return "", 0, err
	}
	s := newScanner(order{m: m, mode: modeContent, before: before, after: after, most: 1 << 30, room: 1 << 40})
	var r result
	var in io.Reader = bytes.NewReader(text)
	if piece > 0 {
		s.in, in = bufio.NewReaderSize(nil, piece), iotest.OneByteReader(in)
	}
	s.reader(in, &r)
	return string(r.text), r.matches, r.err
}

// Everything searches all files below a folder and writes all matches.
func Everything(ctx context.Context, dir, pattern string, fold bool, out io.Writer) (matches int, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return 0, err
	}
	defer root.Close()
	m, err := newMatcher(pattern, false, fold)
	if err != nil {
		return 0, err
	}
	s := newScanner(order{m: m, mode: modeContent, most: 1 << 30, room: 1 << 40})
	_, err = fswalk.Walk(ctx, root, ".", fswalk.Options{Hidden: true, Ignored: true}, func(e fswalk.Entry) error {
		if !e.Type.IsRegular() {
			return nil
		}
		r := s.file(e)
		matches += r.matches
		if len(r.text) > 0 {
			io.WriteString(out, r.path+"\n")
			out.Write(r.text)
		}
		return nil
	})
	return matches, err
}
