package storetest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

// plain is what a store is, without anything that makes it one: slices and maps.
type plain struct {
	log    []string // "stream text", of all streams
	epoch  map[belay.SessionID]int64
	owned  map[belay.SessionID]bool
	texts  map[belay.StreamID][]string
	inbox  map[belay.StreamID][]belay.CommandID
	bodies map[belay.CommandID]string
	keys   map[string]bool
	lanes  map[belay.StreamID]bool
	known  map[belay.SessionID]bool // something was written about it
	gone   map[belay.SessionID]bool // deleted
}

// model runs random operations against the store and the plain model.
func model(t *testing.T, c Config) {
	rapid.Check(t, func(r *rapid.T) {
		env := newEnv()
		s := c.Open(t, env)
		l := &lab{tester: r, t: t, Store: s, env: env, c: c}
		defer func() { l.must(l.Store.Close()) }()
		p := &plain{
			epoch: map[belay.SessionID]int64{}, owned: map[belay.SessionID]bool{}, texts: map[belay.StreamID][]string{},
			inbox: map[belay.StreamID][]belay.CommandID{}, bodies: map[belay.CommandID]string{}, keys: map[string]bool{},
			lanes: map[belay.StreamID]bool{}, known: map[belay.SessionID]bool{}, gone: map[belay.SessionID]bool{},
		}
		for range rapid.IntRange(1, 40).Draw(r, "operations") {
			name := rapid.SampledFrom([]string{"a", "b"}).Draw(r, "stream")
			b := &store.Batch{Session: belay.SessionID("sess_" + name), Stream: belay.ThreadID("thr_" + name).Stream()}
			switch rapid.SampledFrom([]string{"claim", "found", "append", "append", "append", "enqueue", "release", "reopen", "delete"}).Draw(r, "operation") {
			case "claim":
				p.claim(l, b)
			case "found":
				p.found(l, r, b)
			case "append":
				p.append(l, r, b)
			case "enqueue":
				p.enqueue(l, r, b)
			case "release":
				l.must(l.Release(l.Context(), b.Session, p.epoch[b.Session]))
				p.owned[b.Session] = false
			case "delete":
				p.remove(l, b)
			case "reopen":
				l.must(l.Store.Close())
				l.Store = c.Again(t, env, l.Store)
				clear(p.owned)
			}
		}
		p.compare(l)
	})
}

func (p *plain) claim(l *lab, b *store.Batch) {
	epoch, err := l.Claim(l.Context(), b.Session, owner("x"), time.Hour)
	if p.gone[b.Session] {
		l.code(err, belay.CodeDeleted)
		return
	}
	l.must(err)
	p.known[b.Session] = true
	if epoch != p.epoch[b.Session]+1 {
		l.Fatalf("epoch: got %d, want %d", epoch, p.epoch[b.Session]+1)
	}
	p.epoch[b.Session], p.owned[b.Session] = epoch, true
}

func (p *plain) found(l *lab, r *rapid.T, b *store.Batch) {
	id := belay.CommandID(rapid.SampledFrom([]string{"c1", "c2", "c3", "c4"}).Draw(r, "id"))
	b.Lane.Runnable = rapid.Bool().Draw(r, "runnable")
	b.Events, b.Consumed = []event.Envelope{l.fact(b, "first")}, []belay.CommandID{id}
	b.Claim, b.Epoch, b.Sends = &store.Claim{Owner: owner("x")}, 1, []belay.Order{l.order(string(id), b, "x")}
	_, err := l.Append(l.Context(), *b)
	switch known := p.bodies[id]; {
	case len(p.texts[b.Stream]) > 0:
		l.is(err, store.ErrConflict)
		return
	case known != "" && known != string(b.Stream)+"x":
		l.code(err, belay.CodeIDConflict)
		return
	case known != "" || p.epoch[b.Session] > 0 && !p.gone[b.Session]:
		l.is(err, store.ErrConflict)
		return
	case p.gone[b.Session]:
		if err == nil {
			l.Fatal("a deleted session began")
		}
		return
	}
	l.must(err)
	p.known[b.Session], p.epoch[b.Session], p.bodies[id] = true, 1, string(b.Stream)+"x"
	p.log = append(p.log, string(b.Stream)+" first")
	p.texts[b.Stream], p.lanes[b.Stream] = []string{"first"}, b.Lane.Runnable
}

func (p *plain) append(l *lab, r *rapid.T, b *store.Batch) {
	texts := rapid.SliceOfN(rapid.StringMatching(`[a-z]{1,5}`), 0, 3).Draw(r, "texts")
	b.After = int64(len(p.texts[b.Stream]) + rapid.SampledFrom([]int{0, 0, 0, 0, 1, -1}).Draw(r, "off"))
	b.Epoch = p.epoch[b.Session] + rapid.SampledFrom([]int64{0, 0, 0, 0, 1}).Draw(r, "epoch")
	b.Key = rapid.SampledFrom([]string{"", "", "", "k1", "k2"}).Draw(r, "key")
	b.Lane.Runnable = rapid.Bool().Draw(r, "runnable")
	for _, text := range texts {
		b.Events = append(b.Events, l.fact(b, text))
	}
	if in := p.inbox[b.Stream]; len(in) > 0 && rapid.Bool().Draw(r, "consume") {
		b.Consumed = in[:1]
	}
	key := string(b.Stream) + " " + b.Key
	var want error
	switch {
	case !p.owned[b.Session] || b.Epoch != p.epoch[b.Session]:
		want = store.ErrStale
	case b.Key != "" && p.keys[key]:
		_, err := l.Append(l.Context(), *b)
		l.must(err)
		return
	case b.After != int64(len(p.texts[b.Stream])):
		want = store.ErrConflict
	}
	_, err := l.Append(l.Context(), *b)
	l.is(err, want)
	if want != nil {
		return
	}
	for _, text := range texts {
		p.log = append(p.log, string(b.Stream)+" "+text)
	}
	p.texts[b.Stream] = append(p.texts[b.Stream], texts...)
	p.inbox[b.Stream] = p.inbox[b.Stream][len(b.Consumed):]
	p.keys[key], p.lanes[b.Stream] = true, b.Lane.Runnable
}

func (p *plain) enqueue(l *lab, r *rapid.T, b *store.Batch) {
	id := belay.CommandID(rapid.SampledFrom([]string{"c1", "c2", "c3", "c4"}).Draw(r, "id"))
	reason := rapid.SampledFrom([]string{"x", "x", "x", "y"}).Draw(r, "reason")
	err := l.Enqueue(l.Context(), l.order(string(id), b, reason))
	body := string(b.Stream) + reason
	switch known := p.bodies[id]; {
	case known == "" && p.gone[b.Session]:
		l.code(err, belay.CodeDeleted)
	case known == "":
		l.must(err)
		p.known[b.Session] = true
		p.bodies[id] = body
		p.inbox[b.Stream] = append(slices.Clip(p.inbox[b.Stream]), id)
	case known != body:
		l.code(err, belay.CodeIDConflict)
	default:
		l.must(err)
	}
}

func (p *plain) remove(l *lab, b *store.Batch) {
	d, err := l.DeleteSession(l.Context(), b.Session, "user:ada")
	switch {
	case p.gone[b.Session]:
		l.must(err)
		return
	case p.owned[b.Session]:
		l.taken(err, owner("x"))
		return
	case !p.known[b.Session]:
		l.is(err, store.ErrNotFound)
		return
	}
	l.must(err)
	if int(d.Facts) != len(p.texts[b.Stream]) {
		l.Fatalf("deleted %d facts of %v", d.Facts, p.texts[b.Stream])
	}
	p.gone[b.Session] = true
	p.log = slices.DeleteFunc(p.log, func(line string) bool { return strings.HasPrefix(line, string(b.Stream)+" ") })
	delete(p.texts, b.Stream)
	delete(p.inbox, b.Stream)
	delete(p.lanes, b.Stream)
}

func (p *plain) compare(l *lab) {
	var got []string
	for _, rec := range l.log(l, 0) {
		got = append(got, string(rec.Event.Stream)+" "+rec.Event.Data.(event.ModelDelta).Text)
	}
	same(l, "log", got, p.log)
	lanes := l.lanes("")
	for _, id := range []belay.StreamID{"thread/thr_a", "thread/thr_b"} {
		same(l, "texts", l.texts(id), p.texts[id])
		same(l, "inbox", l.waiting(id), p.inbox[id])
		if row := lanes[id]; row.Runnable != p.lanes[id] || row.Inbox != len(p.inbox[id]) {
			l.Fatalf("lane of %s: got %+v, want %v and %d", id, row, p.lanes[id], len(p.inbox[id]))
		}
	}
}
