package secret

import "io"

// Writer scrubs what flows through it, also a value that comes in pieces. It
// holds back no more than what may be the beginning of a value. It belongs to
// one goroutine; values added to the scrubber later count from then on.
type Writer struct {
	s    *Scrubber
	dst  io.Writer
	held []byte
	err  error
}

// Writer makes a writer in front of dst. Close writes what is held back; it
// doesn't close dst.
func (s *Scrubber) Writer(dst io.Writer) *Writer { return &Writer{s: s, dst: dst} }

// Write takes all of p or fails for good.
func (w *Writer) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	t := w.s.search.Load()
	if t == nil && len(w.held) == 0 {
		_, w.err = w.dst.Write(p)
	} else {
		w.held = append(w.held, p...)
		w.flush(t, false)
	}
	if w.err != nil {
		return 0, w.err
	}
	return len(p), nil
}

// Close writes what is held back.
func (w *Writer) Close() error {
	if w.err == nil {
		w.flush(w.s.search.Load(), true)
	}
	return w.err
}

// flush writes what can't change any more.
func (w *Writer) flush(t *search, all bool) {
	b, from := w.held, 0
	var out []byte
	for t != nil {
		open := len(b)
		if !all {
			open = t.open(b, from)
		}
		at, f := t.next(b, from)
		if f == nil || at >= open {
			out = append(out, b[from:open]...)
			from = open
			break
		}
		out = append(append(out, b[from:at]...), f.mark...)
		from = at + len(f.text)
	}
	if t == nil {
		out, from = b, len(b)
	}
	if len(out) > 0 {
		_, w.err = w.dst.Write(out)
	}
	w.held = append(w.held[:0], b[from:]...)
}
