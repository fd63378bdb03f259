package storage

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite"
)

// printing is a store in which sessions printed something, at a time.
type printing struct {
	*testing.T
	*sqlite.DB
	now time.Time
}

func newPrinting(t *testing.T) *printing {
	p := &printing{T: t, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	db, err := sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{Now: func() time.Time { return p.now }})
	p.must(err)
	p.DB = db
	p.Cleanup(func() { db.Close() })
	return p
}

func (p *printing) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// append adds facts to a session's stream, appendAs to a thread's if the ids name one.
func (p *printing) append(session belay.SessionID, facts ...event.Payload) {
	p.Helper()
	p.appendAs(session, belay.IDs{Session: session}, facts...)
}

func (p *printing) appendAs(session belay.SessionID, ids belay.IDs, facts ...event.Payload) {
	p.Helper()
	ctx := p.T.Context()
	epoch, err := p.Claim(ctx, session, store.ThisProcess(), time.Hour)
	p.must(err)
	stream := session.Stream()
	if ids.Thread != "" {
		stream = ids.Thread.Stream()
	}
	head, err := p.Head(ctx, stream)
	if !errors.Is(err, store.ErrNotFound) {
		p.must(err)
	}
	batch := store.Batch{Session: session, Stream: stream, Epoch: epoch, After: head.Seq}
	for _, f := range facts {
		batch.Events = append(batch.Events, event.Envelope{IDs: ids, Data: f})
	}
	_, err = p.Append(ctx, batch)
	p.must(err)
	p.must(p.Release(ctx, session, epoch))
}

// prints makes a session with an output, and returns its digest.
func (p *printing) prints(session belay.SessionID) belay.Digest {
	p.Helper()
	ref, err := p.Put(p.T.Context(), []byte("printed by "+session), "text/plain")
	p.must(err)
	p.append(session, event.SessionCreated{Workspace: "/w"}, event.OutputSpilled{Owner: "process", Bytes: ref.Size, Ref: &ref})
	return ref.Digest
}

// expired reports whether a session let an output go.
func (p *printing) expired(session belay.SessionID) (said []event.OutputExpired) {
	p.Helper()
	for e, err := range p.Read(p.T.Context(), session.Stream(), 0) {
		p.must(err)
		if x, ok := e.Data.(event.OutputExpired); ok {
			said = append(said, x)
		}
	}
	return said
}

func (p *printing) there(d belay.Digest) bool {
	p.Helper()
	_, err := p.Get(p.T.Context(), d)
	return err == nil
}

func (p *printing) round(r *Retainer, want app.Retained) {
	p.Helper()
	got, err := r.Round(p.T.Context())
	p.must(err)
	if want.Bytes = got.Bytes; got != want || (got.Contents > 0) != (got.Bytes > 0) {
		p.Errorf("the round did %+v, want %+v", got, want)
	}
}

// TestAServerLetsOutputsGoThatAreNotRetained as the setting says, with a fact for
// each before a byte goes; nothing without a setting, nothing of a session that is
// driven, and no more in a round than it has room for.
// Guarantee: S53.
func TestAServerLetsOutputsGoThatAreNotRetained(t *testing.T) {
	p := newPrinting(t)
	ctx := t.Context()
	r := &Retainer{DB: p.DB, Now: func() time.Time { return p.now }, most: 2}
	digests := map[belay.SessionID]belay.Digest{}
	for i := range 4 {
		session := belay.SessionID(fmt.Sprint("sess_", i))
		digests[session] = p.prints(session)
		p.now = p.now.Add(time.Minute)
	}
	p.now = p.now.Add(30 * 24 * time.Hour)
	digests["sess_new"] = p.prints("sess_new")
	p.round(r, app.Retained{})
	p.must(p.Set(ctx, retainSetting, `{"age":"1h0m0s"}`)) // of sessions: those go by command alone
	p.round(r, app.Retained{})

	p.must(p.Set(ctx, retainSetting, `{"outputs":{"age":"240h0m0s"}}`))
	driven, err := p.Claim(ctx, "sess_0", store.ThisProcess(), time.Hour)
	p.must(err)
	p.round(r, app.Retained{Outputs: 2, Contents: 2, More: true})
	for session, want := range map[belay.SessionID]bool{"sess_0": false, "sess_1": true, "sess_2": true, "sess_3": false, "sess_new": false} {
		facts := p.expired(session)
		if (len(facts) == 1) != want || p.there(digests[session]) == want {
			t.Errorf("%s: facts %+v, its content is there: %t", session, facts, p.there(digests[session]))
		}
		if want && (facts[0].Reason != event.ExpiredByRetention || facts[0].Why != "older than 10 days" || facts[0].By != "") {
			t.Errorf("%s: %+v", session, facts[0])
		}
	}
	p.round(r, app.Retained{Outputs: 1, Contents: 1})
	p.round(r, app.Retained{})
	p.must(p.Release(ctx, "sess_0", driven))
	p.round(r, app.Retained{Outputs: 1, Contents: 1})
	if !p.there(digests["sess_new"]) || p.there(digests["sess_0"]) {
		t.Error("what is new went, or what was driven stayed")
	}
}

// TestAServerFinishesAnExpiryThatWasCutShort: facts let outputs go, and the process
// ended before their bytes went. The next server's first round removes them.
// Guarantee: S53.
func TestAServerFinishesAnExpiryThatWasCutShort(t *testing.T) {
	p := newPrinting(t)
	digest := p.prints("sess_1")
	p.must(p.Set(t.Context(), retainSetting, `{"outputs":{"age":"240h0m0s"}}`))
	p.now = p.now.Add(30 * 24 * time.Hour)
	cut := &Retainer{DB: p.DB, Now: func() time.Time { return p.now }}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := cut.Round(ctx); err == nil {
		t.Error("a round goes on when its context has ended")
	}
	p.append("sess_1", event.OutputExpired{Digest: digest, Reason: event.ExpiredByRetention})
	if !p.there(digest) {
		t.Fatal("the content went with the fact")
	}
	next := &Retainer{DB: p.DB, Now: func() time.Time { return p.now }, most: 2}
	p.round(next, app.Retained{Contents: 1})
	p.round(next, app.Retained{})
}
