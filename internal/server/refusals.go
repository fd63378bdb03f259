package server

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
)

// How long refused requests are added up before they are recorded: those without
// a good token, and those of known accounts.
const (
	strangersEvery = time.Second
	readersEvery   = time.Minute
)

// maxTallies bounds the kinds that are added up at a time.
const maxTallies = 512

// kind is what refused requests have in common that are recorded together. The
// principal and the class are empty for strangers, who can choose both.
type kind struct {
	principal, class string
	code             belay.Code
}

// tally adds up refusals of a kind. The first is recorded at once; those that
// come until its interval is over are recorded together then.
type tally struct {
	kind
	last  entry // as it is recorded with the number
	every time.Duration
	begun time.Time // of the interval
	since int       // that aren't recorded yet
}

// entry collects what isn't recorded yet.
func (t *tally) entry() entry {
	e := t.last
	e.count = t.since
	return e
}

// refusals are the tallies of an auditor. A client that polls what it may not
// read, or one that tries tokens, doesn't fill the log.
type refusals struct {
	mu    sync.Mutex
	all   map[kind]*tally
	begun chan struct{} // holds one: there is another tally
}

func newRefusals() refusals {
	return refusals{all: map[kind]*tally{}, begun: make(chan struct{}, 1)}
}

// take adds a refusal to its tally and returns what is to be recorded at once.
func (r *refusals) take(e entry, k kind, every time.Duration) (now []entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	together := e
	together.command = cmp.Or(k.class, e.command)
	if t := r.all[k]; t != nil {
		t.last, t.since = together, t.since+1
		return nil
	}
	if len(r.all) >= maxTallies {
		now = r.drop()
	}
	r.all[k] = &tally{kind: k, last: together, every: every, begun: e.at}
	select {
	case r.begun <- struct{}{}:
	default:
	}
	return append(now, e)
}

// drop makes room for a tally: the oldest goes, and what it has is to be recorded.
func (r *refusals) drop() []entry {
	var oldest *tally
	for _, t := range r.all {
		if oldest == nil || t.begun.Before(oldest.begun) {
			oldest = t
		}
	}
	delete(r.all, oldest.kind)
	if oldest.since == 0 {
		return nil
	}
	return []entry{oldest.entry()}
}

// due takes what tallies have whose interval is over, oldest first, and begins
// their next one. Those that have nothing are forgotten.
func (r *refusals) due(now time.Time, all bool) (due []tally) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.all {
		switch {
		case !all && now.Sub(t.begun) < t.every:
		case t.since == 0:
			delete(r.all, t.kind)
		default:
			due = append(due, *t)
			t.since, t.begun = 0, now
		}
	}
	slices.SortFunc(due, func(x, y tally) int { return x.last.at.Compare(y.last.at) })
	return due
}

// back gives back what couldn't be recorded.
func (r *refusals) back(due []tally) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, was := range due {
		if t := r.all[was.kind]; t != nil {
			t.since += was.since
			continue
		}
		r.all[was.kind] = &was
	}
}

// next is when the first interval is over; zero is never.
func (r *refusals) next() (at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.all {
		if end := t.begun.Add(t.every); at.IsZero() || end.Before(at) {
			at = end
		}
	}
	return at
}

// refusal records that a request was refused, perhaps together with others. It
// doesn't fail: the client learns nothing of the record.
func (a *auditor) refusal(ctx context.Context, e entry, k kind, every time.Duration) {
	for _, e := range a.refused.take(e, k, every) {
		if err := a.record(ctx, e); err != nil {
			a.log.Warn("audit", "error", err.Error())
		}
	}
}

// stranger is refusal for a request without a good token.
func (a *auditor) stranger(ctx context.Context, e entry) {
	a.refusal(ctx, e, kind{code: e.code}, strangersEvery)
}

// reader is refusal for a known account that reads a class of things.
func (a *auditor) reader(ctx context.Context, e entry, class string) {
	a.refusal(ctx, e, kind{e.principal, class, e.code}, readersEvery)
}

// readOf is the class of what a request reads: a route, or the name of a command
// that changes nothing. It is empty when the request would change something.
func (s *Server) readOf(r *http.Request) string {
	if r.Method != http.MethodPost {
		return r.Pattern
	}
	if c := app.Find(s.c.Commands, r.PathValue("name")); c != nil && !c.Mutates {
		return c.Name
	}
	return ""
}
