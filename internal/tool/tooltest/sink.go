// Package tooltest is what tests of tools stand on: a sink in memory, a
// workspace on disk, and the laws that every tool keeps.
package tooltest

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/tool"
)

var _ tool.Sink = (*Sink)(nil)

// Sink takes what a call produces and keeps it in memory. The zero value is
// ready. It may be used from several goroutines.
type Sink struct {
	// OnFact, if set, is called with each fact before it is recorded. Set it
	// before the call.
	OnFact func(event.Payload)
	// Refuse, if set, is the error of everything that stores content.
	Refuse error
	// Secrets maps marks to what they stand for wherever it is.
	Secrets map[string]string

	mu       sync.Mutex
	facts    []event.Payload
	told     []tool.Progress
	kept     map[belay.Digest][]byte
	progress strings.Builder
	open     int
}

// Fact records a fact.
func (s *Sink) Fact(p event.Payload) {
	if s.OnFact != nil {
		s.OnFact(p)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.facts = append(s.facts, p)
}

// Durable is Fact.
func (s *Sink) Durable(p event.Payload) error {
	s.Fact(p)
	return nil
}

// Facts are the facts so far, in order.
func (s *Sink) Facts() []event.Payload {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.facts)
}

// Keep stores content.
func (s *Sink) Keep(content []byte, media string) (belay.Ref, error) {
	if s.Refuse != nil {
		return belay.Ref{}, s.Refuse
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil {
		s.kept = map[belay.Digest][]byte{}
	}
	ref := belay.Ref{Digest: belay.DigestOf(content), Size: int64(len(content)), Media: media}
	s.kept[ref.Digest] = bytes.Clone(content)
	return ref, nil
}

// Scrub knows no secrets.
func (s *Sink) Scrub(w io.Writer) io.WriteCloser { return open{w} }

type open struct{ io.Writer }

func (open) Close() error { return nil }

// Cut knows no secrets.
func (s *Sink) Cut(content []byte) func(from, to int) []byte {
	return func(from, to int) []byte { return content[from:to] }
}

// Restore puts the values of Secrets that a content has where their marks stand.
func (s *Sink) Restore(text string, content []byte) (restored, unknown string) {
	for mark, value := range s.Secrets {
		if !strings.Contains(text, mark) {
			continue
		}
		if !bytes.Contains(content, []byte(value)) {
			return text, mark
		}
		text = strings.ReplaceAll(text, mark, value)
	}
	return text, ""
}

// Kept reads content back.
func (s *Sink) Kept(d belay.Digest) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.kept[d]
	if !ok {
		return nil, errors.New("not kept: " + string(d))
	}
	return bytes.Clone(b), nil
}

// Part reads a part of content.
func (s *Sink) Part(d belay.Digest, offset, n int64) ([]byte, error) {
	b, err := s.Kept(d)
	if err != nil {
		return nil, err
	}
	b = b[min(offset, int64(len(b))):]
	return b[:min(n, int64(len(b)))], nil
}

// Forget drops everything that is kept.
func (s *Sink) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = nil
}

// Progress records how far a call is.
func (s *Sink) Progress(p tool.Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, p)
}

// Told is the progress so far, in order.
func (s *Sink) Told() []tool.Progress {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.told)
}

// Print records text that is shown.
func (s *Sink) Print(_ int64, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progress.WriteString(text)
}

// Shown is the text that was shown.
func (s *Sink) Shown() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.progress.String()
}

// Output streams content into the sink.
func (s *Sink) Output(media string) (tool.OutputWriter, error) {
	if s.Refuse != nil {
		return nil, s.Refuse
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open++
	return &output{sink: s, media: media}, nil
}

// Open is how many outputs were not closed.
func (s *Sink) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

type output struct {
	sink   *Sink
	media  string
	buf    bytes.Buffer
	closed bool
}

func (o *output) Write(p []byte) (int, error) {
	if o.sink.Refuse != nil {
		return 0, o.sink.Refuse
	}
	return o.buf.Write(p)
}

func (o *output) Commit() (belay.Ref, error) { return o.sink.Keep(o.buf.Bytes(), o.media) }

func (o *output) Close() error {
	o.sink.mu.Lock()
	defer o.sink.mu.Unlock()
	if !o.closed {
		o.sink.open--
		o.closed = true
	}
	return nil
}
