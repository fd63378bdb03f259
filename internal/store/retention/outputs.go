package retention

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

// Output is content that was printed: more than a fact holds, or than a model is
// shown.
type Output struct {
	Digest   belay.Digest `json:"digest"`
	Bytes    int64        `json:"bytes"`
	Recorded time.Time    `json:"recorded"` // last, by any session
	Named    []Naming     `json:"named"`    // by session, in the order of the log
}

// Naming is a session that names an output, with what it knows of the output's
// origin.
type Naming struct {
	Session  belay.SessionID `json:"session"`
	Owner    string          `json:"owner"` // process, tool
	Tool     string          `json:"tool,omitempty"`
	Call     belay.CallID    `json:"call,omitempty"`
	Process  belay.ProcessID `json:"process,omitempty"`
	Recorded time.Time       `json:"recorded"` // last
	Expired  *Expired        `json:"expired,omitempty"`
}

// Expired means that an output expired in a session.
type Expired struct {
	When   time.Time `json:"when"`
	Reason string    `json:"reason"` // retention, asked
	Why    string    `json:"why,omitempty"`
	By     string    `json:"by,omitempty"`
}

// Gone reports whether every session that names the output has let it go.
func (o *Output) Gone() bool {
	return !slices.ContainsFunc(o.Named, func(n Naming) bool { return n.Expired == nil })
}

// Source is where facts are read.
type Source interface {
	Scan(ctx context.Context, after store.Position) iter.Seq2[store.Record, error]
	Window(ctx context.Context, w store.Window) iter.Seq2[store.Record, error]
}

// List are the outputs that facts name, the one that was recorded longest ago
// first: of a session, or of all. It reads all their facts.
func List(ctx context.Context, src Source, session belay.SessionID) ([]Output, error) {
	facts := src.Scan(ctx, 0)
	if session != "" {
		facts = src.Window(ctx, store.Window{Session: session})
	}
	l := list{all: map[belay.Digest]*Output{}}
	for r, err := range facts {
		if err != nil {
			return nil, err
		}
		l.fold(&r.Event)
	}
	all := make([]Output, 0, len(l.all))
	for _, o := range l.all {
		all = append(all, *o)
	}
	slices.SortFunc(all, func(a, b Output) int { return cmp.Or(a.Recorded.Compare(b.Recorded), cmp.Compare(a.Digest, b.Digest)) })
	return all, nil
}

// Gently is a source for readers without haste. Its Scan rests after each
// thousand facts, nine times as long as they took, so it needs a tenth of a
// processor at most.
func Gently(src Source) Source { return gentle{src} }

type gentle struct{ Source }

const (
	breath = 1000 // facts between two rests
	share  = 9    // how many times as long as the work a rest is
)

func (g gentle) Scan(ctx context.Context, after store.Position) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		n, begun := 0, time.Now()
		for r, err := range g.Source.Scan(ctx, after) {
			if !yield(r, err) {
				return
			}
			if n++; n%breath > 0 {
				continue
			}
			if err := rest(ctx, share*time.Since(begun)); err != nil {
				yield(store.Record{}, err)
				return
			}
			begun = time.Now()
		}
	}
}

func rest(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

type list struct{ all map[belay.Digest]*Output }

func (l *list) fold(e *event.Envelope) {
	if p, ok := e.Data.(event.OutputExpired); ok {
		if n := l.naming(p.Digest, e.IDs.Session); n != nil {
			n.Expired = &Expired{When: e.Time, Reason: p.Reason, Why: p.Why, By: p.By}
		}
		return
	}
	_, outputs := event.WithoutOutputs(e.Data)
	for _, ref := range outputs {
		l.named(ref, e)
	}
}

func (l *list) naming(d belay.Digest, s belay.SessionID) *Naming {
	o := l.all[d]
	if o == nil {
		return nil
	}
	i := slices.IndexFunc(o.Named, func(n Naming) bool { return n.Session == s })
	if i < 0 {
		return nil
	}
	return &o.Named[i]
}

// named takes a fact that names an output: several name the same one, and each
// knows something else of it. What is printed again after it expired is there again.
func (l *list) named(ref belay.Ref, e *event.Envelope) {
	o := l.all[ref.Digest]
	if o == nil {
		o = &Output{Digest: ref.Digest, Bytes: ref.Size}
		l.all[ref.Digest] = o
	}
	n := l.naming(ref.Digest, e.IDs.Session)
	if n == nil {
		o.Named = append(o.Named, Naming{Session: e.IDs.Session, Owner: "tool"})
		n = &o.Named[len(o.Named)-1]
	}
	n.Expired = nil
	n.Call, n.Process = cmp.Or(e.IDs.Call, n.Call), cmp.Or(e.IDs.Process, n.Process)
	if n.Recorded = e.Time; e.Time.After(o.Recorded) {
		o.Recorded = e.Time
	}
	switch p := e.Data.(type) {
	case event.OutputSpilled:
		n.Owner = p.Owner
	case event.ProcessOutput, event.ProcessCompleted, event.ProcessTerminated:
		n.Owner = "process"
	case event.ToolResult:
		n.Tool = p.Name
	case event.ToolFailed:
		n.Tool = p.Name
	}
}
