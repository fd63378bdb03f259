//go:build unix

package exec

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/belay-run/belay/internal/tool"
)

// maxTold bounds a line of progress, in bytes. A longer one is output.
const maxTold = 1 << 10

// toldLines takes the lines out of an output by which a program tells how far it is:
// PREFIX DONE TOTAL TEXT, with whole numbers. A line that isn't of this form is output.
type toldLines struct {
	to     io.Writer
	sink   tool.Sink
	prefix string

	mu     sync.Mutex
	held   []byte // the beginning of a line that may be one of progress
	inside bool   // of a line that isn't
}

// Write implements io.Writer.
func (t *toldLines) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []byte
	for rest := p; len(rest) > 0; {
		end := bytes.IndexByte(rest, '\n') + 1
		piece := rest
		if end > 0 {
			piece = rest[:end]
		}
		rest = rest[len(piece):]
		switch {
		case t.inside:
			out = append(out, piece...)
		default:
			t.held = append(t.held, piece...)
			if end > 0 && t.tells() {
				t.held = t.held[:0]
			} else if end > 0 || !t.may() {
				out, t.held = append(out, t.held...), t.held[:0]
				t.inside = true
			}
		}
		if end > 0 {
			t.inside = false
		}
	}
	if len(out) > 0 {
		if _, err := t.to.Write(out); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// may reports whether what is held can become a line of progress.
func (t *toldLines) may() bool {
	n := min(len(t.held), len(t.prefix))
	return string(t.held[:n]) == t.prefix[:n] && len(t.held) <= maxTold
}

// tells passes on the line that is held; false: it isn't one of progress.
func (t *toldLines) tells() bool {
	rest, ok := strings.CutPrefix(strings.TrimRight(string(t.held), "\r\n"), t.prefix+" ")
	if !ok || len(t.held) > maxTold {
		return false
	}
	first, rest, _ := strings.Cut(rest, " ")
	second, text, _ := strings.Cut(rest, " ")
	done, err := strconv.ParseInt(first, 10, 64)
	if err != nil || done < 0 {
		return false
	}
	total, err := strconv.ParseInt(second, 10, 64)
	if err != nil || total < 0 {
		return false
	}
	t.sink.Progress(tool.Progress{Done: done, Total: total, Text: text})
	return true
}

// flush writes the beginning of a last line that has no end.
func (t *toldLines) flush() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.held) > 0 && !t.tells() {
		t.to.Write(t.held) //nolint:errcheck // the output notes why it can't be kept
	}
	t.held = nil
}
