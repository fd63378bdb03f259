package engine

import (
	"context"
	"errors"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/testkit/memory"
)

// meddling is a store in which something happens while an inbox is read.
type meddling struct {
	store.Store
	during func()
}

func (m *meddling) Inbox(ctx context.Context, s belay.StreamID) ([]belay.Order, error) {
	orders, err := m.Store.Inbox(ctx, s)
	if m.during != nil {
		m.during()
	}
	return orders, err
}

// A command that streams send one another may be seen in the inbox before,
// while or after it is handed over. It is taken once.
func TestACommandIsTakenOnce(t *testing.T) {
	const sess, to = belay.SessionID("sess_1"), belay.StreamID("task/task_1")
	order := belay.Order{ID: "cmd_1", Principal: fromStream + "session/sess_1", Session: sess, Stream: to, Command: belay.CancelTask{}}
	for _, c := range []struct {
		name string
		when func(e *Engine, v *drive, m *meddling, take func())
	}{
		{"handed over only", func(e *Engine, v *drive, m *meddling, take func()) {
			v.own.mailbox.deliver([]belay.Order{order})
			take()
		}},
		{"handed over, then read", func(e *Engine, v *drive, m *meddling, take func()) {
			v.own.mailbox.deliver([]belay.Order{order})
			e.claims.notify(sess, to)
			take()
		}},
		{"handed over while it is read", func(e *Engine, v *drive, m *meddling, take func()) {
			m.during = func() { v.own.mailbox.deliver([]belay.Order{order}) }
			e.claims.notify(sess, to)
			take()
			m.during = nil
		}},
		{"read, then handed over", func(e *Engine, v *drive, m *meddling, take func()) {
			e.claims.notify(sess, to)
			take()
			v.own.mailbox.deliver([]belay.Order{order})
		}},
		{"read, then handed over when nobody drives the stream any more", func(e *Engine, v *drive, m *meddling, take func()) {
			e.claims.notify(sess, to)
			take()
			v.own.mailbox.end(v)
			v.own.mailbox.deliver([]belay.Order{order})
			v.own.mailbox.begin(v, false)
		}},
		{"handed over while nobody drives the stream", func(e *Engine, v *drive, m *meddling, take func()) {
			v.own.mailbox.end(v)
			v.own.mailbox.deliver([]belay.Order{order})
			v.own.mailbox.begin(v, false)
		}},
		{"handed over to a drive that just ends", func(e *Engine, v *drive, m *meddling, take func()) {
			v.own.mailbox.deliver([]belay.Order{order})
			v.own.mailbox.end(v)
			v.own.mailbox.begin(v, true)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &meddling{Store: memory.New().Open(memory.Options{})}
			defer m.Close()
			e, err := New(Config{Store: m, Owner: store.Owner{ID: "proc_1"}, Performers: none{}})
			if err != nil {
				t.Fatal(err)
			}
			own, err := e.claims.claim(t.Context(), sess, drives)
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Enqueue(t.Context(), order); err != nil {
				t.Fatal(err)
			}
			v := e.newDrive(own, to)
			v.own.mailbox.begin(v, false)
			taken := 0
			take := func() {
				orders, err := own.mailbox.collect(t.Context(), v)
				if err != nil {
					t.Fatal(err)
				}
				taken += len(orders)
			}
			c.when(e, v, m, take)
			take()
			if taken != 1 {
				t.Errorf("taken %d times", taken)
			}
			if len(own.mailbox.read)+len(own.mailbox.mail)+len(v.post.mail) != 0 {
				t.Errorf("left: %v %v %v", own.mailbox.read, own.mailbox.mail, v.post.mail)
			}
		})
	}
}

// One engine drives a session once, and brings no command to it meanwhile by
// another way.
func TestASessionIsDrivenOnce(t *testing.T) {
	st := memory.New().Open(memory.Options{})
	defer st.Close()
	e, err := New(Config{Store: st, Owner: store.Owner{ID: "proc_1"}, Performers: none{}})
	if err != nil {
		t.Fatal(err)
	}
	const sess = belay.SessionID("sess_1")
	for _, c := range []struct {
		has, wants purpose
		refused    bool
	}{
		{hold, hold, false}, {hold, drives, false}, {hold, bring, false},
		{drives, hold, false}, {drives, drives, true}, {drives, bring, true},
		{bring, hold, true}, {bring, drives, true}, {bring, bring, true},
	} {
		has, err := e.claims.claim(t.Context(), sess, c.has)
		if err != nil {
			t.Fatal(err)
		}
		wants, err := e.claims.claim(t.Context(), sess, c.wants)
		if isOwned(err) != c.refused || err == nil == c.refused {
			t.Errorf("claimed to %d, then to %d: %v", c.has, c.wants, err)
		}
		if err == nil && (wants != has || e.claims.release(t.Context(), wants, c.wants) != nil) {
			t.Errorf("claimed to %d, then to %d: not the same claim", c.has, c.wants)
		}
		if o, err := st.OwnerOf(t.Context(), sess); o == nil || err != nil {
			t.Errorf("claimed to %d: the first claim ended with the second: %v", c.has, err)
		}
		if err := e.claims.release(t.Context(), has, c.has); err != nil || len(e.claims.owned) != 0 {
			t.Errorf("released: %v", err)
		}
	}
}

func isOwned(err error) bool {
	_, ok := errors.AsType[*store.OwnedError](err)
	return ok
}
