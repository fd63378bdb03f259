//go:build unix

package exec

import (
	"cmp"
	"fmt"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/tool"
)

// chunkedOutput keeps an output piece by piece, each a fact, so that nothing of it is
// lost when the runtime dies but what came after the last one.
type chunkedOutput struct {
	sink tool.Sink
	id   belay.ProcessID

	mu   sync.Mutex
	done []piece
	wait []byte // what is no piece yet
	at   int64  // where wait begins
	when time.Time
	gap  time.Duration // until the next piece

	// room bounds what waits for the next piece of a trail: of more the end is
	// kept, and the piece's offset says what is left out. 0: nothing is left out.
	room int
}

// piece is a part of an output that is kept.
type piece struct {
	offset, size int64
	text         string
	ref          *belay.Ref
	let          *event.OutputExpired // it is kept no more
	when         time.Time            // since when
}

const (
	shortPiece = 4 << 10 // bytes of a piece that a fact holds itself
	longPiece  = 1 << 20 // and that nothing waits any longer with
	firstGap   = 2 * time.Second
	lastGap    = time.Minute // of a process that prints and prints
	trailRoom  = 64 << 10    // bytes between two pieces of a trail
)

// newTrail records an output that is kept whole when it has ended, so that
// something of it is there when the runtime dies before.
func newTrail(s tool.Sink, id belay.ProcessID) *chunkedOutput {
	p := newPieces(s, id)
	p.room = trailRoom
	return p
}

func newPieces(s tool.Sink, id belay.ProcessID) *chunkedOutput {
	return &chunkedOutput{sink: s, id: id, when: time.Now(), gap: firstGap}
}

func (p *chunkedOutput) take(b []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wait = append(p.wait, b...)
	switch {
	case p.room > 0:
		if len(p.wait) > 2*p.room { // not with each byte
			p.cut()
		}
		return nil
	case len(p.wait) < longPiece:
		return nil
	}
	return p.put()
}

// cut leaves out what a trail has no room for.
func (p *chunkedOutput) cut() {
	if over := len(p.wait) - p.room; p.room > 0 && over > 0 {
		p.wait = append(p.wait[:0], p.wait[over:]...)
		p.at += int64(over)
	}
}

// due makes a piece of what waits if it waited long enough. The gaps grow: a
// process that prints for hours shall not fill the log.
func (p *chunkedOutput) due() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.wait) == 0 || time.Since(p.when) < p.gap && (p.room > 0 || len(p.wait) < shortPiece) {
		return nil
	}
	p.gap = min(p.gap*5/4, lastGap)
	return p.put()
}

// put makes a piece of what waits.
func (p *chunkedOutput) put() error {
	p.when = time.Now()
	if p.cut(); len(p.wait) == 0 {
		return nil
	}
	fact := event.ProcessOutput{Name: "stdout", Offset: p.at}
	if len(p.wait) <= shortPiece && utf8.Valid(p.wait) && event.TextLen(string(p.wait)) <= 2*shortPiece {
		fact.Text = string(p.wait)
	} else {
		ref, err := p.sink.Keep(p.wait, "application/octet-stream")
		if err != nil {
			return err
		}
		fact.Ref = &ref
	}
	p.done = append(p.done, pieceOf(fact))
	p.at += int64(len(p.wait))
	p.wait = p.wait[:0]
	p.sink.Fact(fact)
	return nil
}

// expired is the failure of reading output that was deleted, by retention or on
// request.
func (p *piece) expired() error {
	why := cmp.Or(p.let.Why, p.let.Reason)
	if p.let.By != "" {
		why += ", by " + p.let.By
	}
	return tool.Failf(tool.NotFound, CodeExpired, "bytes %d to %d of the output expired on %s: %s", p.offset, p.offset+p.size, p.when.UTC().Format("2006-01-02 15:04 UTC"), why).
		WithHint("what the model was shown of it is in the conversation; run the program again if the rest is needed")
}

func pieceOf(f event.ProcessOutput) piece {
	p := piece{offset: f.Offset, size: int64(len(f.Text)), text: f.Text, ref: f.Ref}
	if f.Ref != nil {
		p.size = f.Ref.Size
	}
	return p
}

func (p *chunkedOutput) finish(string, bool) (*belay.Ref, string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.put(); err != nil {
		return nil, "not kept", err
	}
	return nil, fmt.Sprintf("process reads all %d bytes of %s by offset", p.at, p.id), nil
}

func (p *chunkedOutput) close() {}

// rest makes what a trail has begun the whole output, when no content is.
func (p *chunkedOutput) rest() {
	p.mu.Lock()
	begun := len(p.done) > 0
	p.mu.Unlock()
	if begun {
		p.finish("", true) //nolint:errcheck // the call's result has it
	}
}

// window is up to n bytes of the output from an offset on, and how many there
// are so far.
func (p *chunkedOutput) window(offset int64, n int) ([]byte, int64, error) {
	p.mu.Lock()
	done, at := p.done, p.at
	total := at + int64(len(p.wait))
	var rest []byte
	if from := max(offset, at); from < total {
		rest = append(rest, p.wait[from-at:min(from-at+int64(n), total-at)]...)
	}
	p.mu.Unlock()
	if offset >= at {
		return rest, total, nil
	}
	b, _, err := windowOf(p.sink.Part, done, offset, n)
	if err != nil {
		return nil, total, err
	}
	if offset+int64(len(b)) == at {
		b = append(b, rest[:min(n-len(b), len(rest))]...)
	}
	return b, total, nil
}

// windowOf is up to n bytes from an offset on of what is kept in pieces, and where
// they begin: later than asked for where a trail has left something out.
func windowOf(read func(d belay.Digest, offset, n int64) ([]byte, error), all []piece, offset int64, n int) (b []byte, at int64, err error) {
	at = offset
	for _, p := range all {
		from := at + int64(len(b)) - p.offset
		if from < 0 && len(b) > 0 {
			break
		}
		if from < 0 {
			at, from = p.offset, 0
		}
		if from >= p.size || len(b) >= n {
			continue
		}
		if p.ref == nil {
			text := p.text[from:]
			b = append(b, text[:min(n-len(b), len(text))]...)
			continue
		}
		if p.let != nil {
			return nil, at, p.expired()
		}
		part, err := read(p.ref.Digest, from, int64(n-len(b)))
		if err != nil {
			return nil, at, err
		}
		b = append(b, part...)
	}
	return b, at, nil
}
