package secret

import "io"

// Writer scrubs what flows through it, also a value that comes in pieces. It
// holds back no more than what may be the beginning of a value. It belongs to
// one goroutine; values added to the scrubber later count from then on.
type Writer struct {
	s     *Scrubber
	held  []byte
	known filter
	taken Taken
}

// Writer makes a writer in front of dst. Close writes what is held back; it
// doesn't close dst.
func (s *Scrubber) Writer(dst io.Writer) *Writer {
	w := &Writer{s: s}
	w.known = filter{s: s, dst: dst, taken: &w.taken, first: true}
	return w
}

// Write takes all of p or fails for good.
func (w *Writer) Write(p []byte) (int, error) {
	if w.known.err != nil {
		return 0, w.known.err
	}
	t := w.s.search.Load()
	if t == nil && len(w.held) == 0 {
		w.known.take(p, false)
	} else {
		w.held = append(w.held, p...)
		w.flush(t, false)
	}
	if w.known.err != nil {
		return 0, w.known.err
	}
	return len(p), nil
}

// Close writes what is held back.
func (w *Writer) Close() error {
	if w.known.err == nil {
		w.flush(w.s.search.Load(), true)
	}
	return w.known.err
}

// Taken is what was taken out so far.
func (w *Writer) Taken() Taken { return w.taken }

// flush passes on what can't change any more.
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
		w.taken.add(registered)
	}
	if t == nil {
		out, from = b, len(b)
	}
	if all || len(out) > 0 {
		w.known.take(out, all)
	}
	w.held = append(w.held[:0], b[from:]...)
}

// filter takes values in known forms out of what flows through it.
type filter struct {
	s     *Scrubber
	dst   io.Writer
	buf   []byte
	sent  int  // of buf
	first bool // nothing was before buf
	taken *Taken
	err   error
}

// take passes on what can't change any more of what came and of p; whole says
// that nothing follows.
func (f *filter) take(p []byte, whole bool) {
	known := f.s.known.Load()
	if known == nil && len(f.buf) == 0 {
		if f.first = f.first && len(p) == 0; len(p) > 0 {
			_, f.err = f.dst.Write(p)
		}
		return
	}
	f.buf = append(f.buf, p...)
	l := looked{open: len(f.buf), held: len(f.buf), keep: len(f.buf)}
	if known != nil {
		l = known.look(f.buf, f.first, whole)
	}
	out, at := l.without(f.s, f.buf, f.sent, f.taken)
	if len(out) > 0 {
		_, f.err = f.dst.Write(out)
	}
	if keep := min(l.keep, at); keep > 0 {
		f.buf, at, f.first = append(f.buf[:0], f.buf[keep:]...), at-keep, false
	}
	f.sent = at
}

// without is the text from a place on as far as it may be shown, and where that
// ends.
func (l looked) without(s *Scrubber, b []byte, at int, taken *Taken) (out []byte, end int) {
	for _, h := range l.spans {
		if h.to <= at || h.from >= l.held {
			continue
		}
		from := max(h.from, at)
		out = append(append(out, b[at:from]...), s.mark(h.form, b[from:h.to])...)
		at = h.to
		taken.add(forms[h.form].name)
	}
	if at < l.held {
		out, at = append(out, b[at:l.held]...), l.held
	}
	return out, at
}
