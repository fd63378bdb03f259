//go:build unix

package shell

import (
	"fmt"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/process"
	"github.com/belay-run/belay/internal/tool"
)

// output takes what a process prints. As long as it can be shown whole it is
// held here; beyond that all of it flows into the store, byte for byte.
type output struct {
	sink    tool.Sink
	preview process.Preview
	early   []byte // what came before there was a blob
	blob    tool.OutputWriter
	err     error
	rest    []byte // beginning of a character that progress hasn't shown yet
	shown   int    // bytes of progress
	last    time.Time
}

// Somebody who watches sees everything at first; of a flood, samples.
const (
	progressFree  = 64 << 10
	progressPause = 100 * time.Millisecond
)

func newOutput(s tool.Sink, most int) *output {
	if most <= 0 {
		most = head + tail
	}
	return &output{sink: s, preview: process.Preview{Head: most - most/2, Tail: most / 2}}
}

// Write takes p or fails for good.
func (o *output) Write(p []byte) (int, error) {
	o.preview.Write(p) //nolint:errcheck // it never fails
	o.progress(p)
	if o.err == nil {
		o.err = o.store(p)
	}
	if o.err != nil {
		return 0, o.err
	}
	return len(p), nil
}

func (o *output) store(p []byte) error {
	if o.blob == nil {
		if len(o.early)+len(p) <= o.preview.Head+o.preview.Tail {
			o.early = append(o.early, p...)
			return nil
		}
		var err error
		if o.blob, err = o.sink.Output("text/plain"); err != nil {
			return err
		}
		if _, err := o.blob.Write(o.early); err != nil {
			return err
		}
		o.early = nil
	}
	_, err := o.blob.Write(p)
	return err
}

// progress shows p to whoever watches, whole characters at a time.
func (o *output) progress(p []byte) {
	if o.shown > progressFree && time.Since(o.last) < progressPause {
		o.rest = o.rest[:0]
		return
	}
	o.shown += len(p)
	o.last = time.Now()
	o.rest = append(o.rest, p...)
	whole := process.WholeRunes(o.rest)
	if whole > 0 {
		o.sink.Progress(display(o.rest[:whole]))
	}
	o.rest = append(o.rest[:0], o.rest[whole:]...)
}

// finish is the output as the model reads it, and the whole of it when that is
// more. Bytes that are no UTF-8 are replaced for reading only.
func (o *output) finish() (*belay.Ref, string, error) {
	if o.blob == nil || o.err != nil {
		first, left, last := o.preview.Parts()
		if left == 0 {
			return nil, display(append(first, last...)), o.err
		}
		return nil, closed(display(first)) + fmt.Sprintf("[%d bytes left out and not kept]\n", left) + display(last), o.err
	}
	ref, err := o.blob.Commit()
	if err != nil {
		o.err = err
		return o.finish()
	}
	first, left, last := o.preview.Parts()
	note := fmt.Sprintf("[%d bytes left out here; the whole output of %d bytes is %s]\n", left, ref.Size, ref.Digest)
	return &ref, closed(display(first)) + note + display(last), nil
}

// close gives back what finish didn't commit.
func (o *output) close() {
	if o.blob != nil {
		o.blob.Close() //nolint:errcheck // nothing is lost by it
	}
}

// display is output as text.
func display(b []byte) string {
	return strings.ReplaceAll(strings.ToValidUTF8(string(b), "\ufffd"), "\x00", "\ufffd")
}
