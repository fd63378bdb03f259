//go:build unix

package exec

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/process"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/file"
)

// output takes what a process prints. What the model reads of it is as a
// terminal would show it; what is kept is kept byte for byte.
type output struct {
	sink    tool.Sink
	clean   io.WriteCloser // in front of all that takes it
	most    int            // bytes of it that are shown
	limit   int64          // bytes it may have; what ends the process is called then
	enough  func()
	keeps   outputSink
	live    *process.Preview // of what is shown
	plain   process.TerminalText
	start   []byte // how it begins, to tell what it is
	rest    []byte // beginning of a character that progress hasn't shown yet
	shown   int    // bytes of progress
	came    int64  // bytes that came before what progress shows next
	painted time.Time

	mu   sync.Mutex
	n    int64         // bytes so far
	ends int64         // lines that have ended
	open bool          // the last one hasn't
	last time.Time     // when something came
	more chan struct{} // closed and replaced when something comes
	err  error
}

// outputSink keeps an output, in one of two ways: whole, for a process that ends
// with its call; in pieces, for one that may outlive it.
type outputSink interface {
	// take keeps what came.
	take(b []byte) error
	// due records what came if enough time has passed since it last did.
	due() error
	// finish keeps what isn't yet. ref is the whole, when that is one content
	// and more than is shown; note says where all of it is.
	finish(media string, shownWhole bool) (ref *belay.Ref, note string, err error)
	// close gives back what finish didn't keep.
	close()
}

// A live view gets everything at first; of a flood, samples.
const (
	progressFree  = 64 << 10
	progressPause = 100 * time.Millisecond
)

// sample is how much of an output tells what it is.
const sample = 4 << 10

func newOutput(s tool.Sink, most int) *output {
	if most <= 0 {
		most = head + tail
	}
	o := &output{sink: s, most: most, live: &process.Preview{Head: most - most/2, Tail: most / 2}, last: time.Now(), more: make(chan struct{})}
	o.plain.Dst, o.clean = o.live, s.Scrub(cleaned{o})
	return o
}

// Write takes p or fails for good.
func (o *output) Write(p []byte) (int, error) {
	if k := min(sample-len(o.start), len(p)); k > 0 {
		o.start = append(o.start, p[:k]...)
	}
	o.mu.Lock()
	o.n += int64(len(p))
	o.ends += int64(bytes.Count(p, []byte("\n")))
	o.open = len(p) > 0 && p[len(p)-1] != '\n'
	over := o.limit > 0 && o.n > o.limit
	o.mu.Unlock()
	var err error
	if over {
		o.enough()
	} else {
		_, err = o.clean.Write(p)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last = time.Now()
	close(o.more)
	o.more = make(chan struct{})
	if err == nil {
		err = o.err
	}
	if err != nil && !over {
		return 0, err
	}
	return len(p), nil
}

// cleaned is where an output goes without secrets.
type cleaned struct{ *output }

func (o cleaned) Write(p []byte) (int, error) {
	o.plain.Write(p) //nolint:errcheck // a preview takes everything
	o.progress(p)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = o.keeps.take(p)
	}
	return len(p), o.err
}

// printed is how many lines came.
func (o *output) printed() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open {
		return o.ends + 1
	}
	return o.ends
}

// next is closed when more comes.
func (o *output) next() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.more
}

// fail notes why the output can't be kept.
func (o *output) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = err
	}
}

// quiet is when something came last.
func (o *output) quiet() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.last
}

// progress shows p to whoever watches, whole characters at a time.
func (o *output) progress(p []byte) {
	if o.shown > progressFree && time.Since(o.painted) < progressPause {
		o.rest = o.rest[:0]
		o.came += int64(len(p))
		return
	}
	o.shown += len(p)
	o.painted = time.Now()
	o.rest = append(o.rest, p...)
	whole := process.WholeRunes(o.rest)
	if whole > 0 {
		text := display(o.rest[:whole])
		o.sink.Print(o.came, text)
		o.came += int64(len(text))
	}
	o.rest = append(o.rest[:0], o.rest[whole:]...)
}

// finish is the output as the model reads it, once all of it has come: the
// whole, or its beginning, its end and where the whole is. It records what was
// kept elsewhere and what isn't shown.
func (o *output) finish() (*belay.Ref, string, error) {
	o.clean.Close() //nolint:errcheck // what can't be kept is in err
	o.plain.Flush() //nolint:errcheck // a preview takes everything
	binary, media := process.Binary(o.start), "text/plain"
	if binary {
		media = "application/octet-stream"
	}
	first, left, last := o.live.Parts()
	var ref *belay.Ref
	note := "not kept"
	if o.err == nil {
		ref, note, o.err = o.keeps.finish(media, !binary && left == 0)
	}
	if ref != nil {
		o.sink.Fact(event.OutputSpilled{Owner: "process", Bytes: ref.Size, Ref: ref})
	}
	switch {
	case binary:
		o.sink.Fact(event.OutputTruncated{Bytes: o.n, Ref: ref})
		return ref, fmt.Sprintf("[%s, not shown: %d bytes, %s]\n", file.TypeOf(o.start), o.n, note), o.err
	case left == 0:
		return ref, display(append(first, last...)), o.err
	}
	o.sink.Fact(event.OutputTruncated{Bytes: o.n, Shown: int64(len(first) + len(last)), Ref: ref})
	return ref, closed(display(first)) + fmt.Sprintf("[%d bytes left out here; %s]\n", left, note) + display(last), o.err
}

// display is output as text.
func display(b []byte) string {
	return strings.ReplaceAll(strings.ToValidUTF8(string(b), "\ufffd"), "\x00", "\ufffd")
}

// singleOutput keeps an output as one content. As long as it can be shown whole it is
// held here; beyond that all of it flows into the store.
type singleOutput struct {
	sink  tool.Sink
	most  int
	early []byte // what came before there was a blob
	blob  tool.OutputWriter
	trail *chunkedOutput // what is recorded of it before it has ended
}

func (w *singleOutput) take(b []byte) error {
	w.trail.take(b) //nolint:errcheck // a trail that fails takes nothing away
	if w.blob == nil && len(w.early)+len(b) <= w.most {
		w.early = append(w.early, b...)
		return nil
	}
	if err := w.spill("text/plain"); err != nil {
		return err
	}
	_, err := w.blob.Write(b)
	return err
}

// due is for the trail, and no reason to fail: the whole is kept at the end.
func (w *singleOutput) due() error {
	w.trail.due() //nolint:errcheck // as take says
	return nil
}

// spill moves what is held here into the store.
func (w *singleOutput) spill(media string) (err error) {
	if w.blob != nil {
		return nil
	}
	if w.blob, err = w.sink.Output(media); err != nil {
		return err
	}
	_, err = w.blob.Write(w.early)
	w.early = nil
	return err
}

func (w *singleOutput) finish(media string, shownWhole bool) (*belay.Ref, string, error) {
	if w.blob == nil {
		if shownWhole {
			w.trail.rest()
			return nil, "", nil
		}
		if err := w.spill(media); err != nil {
			return nil, "not kept", err
		}
	}
	ref, err := w.blob.Commit()
	if err != nil {
		return nil, "not kept", err
	}
	return &ref, fmt.Sprintf("the whole output of %d bytes is %s", ref.Size, ref.Digest), nil
}

func (w *singleOutput) close() {
	if w.blob != nil {
		w.blob.Close() //nolint:errcheck // nothing is lost by it
	}
}
