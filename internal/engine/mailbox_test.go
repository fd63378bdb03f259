package engine

import (
	"errors"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/testkit/memory"
)

// A stream that was notified is looked at, by the drive that runs or by the next one.
func TestANotifiedStreamIsLookedAt(t *testing.T) {
	const to = belay.StreamID("task/task_1")
	for name, when := range map[string]func(m *mailbox, v *drive){
		"while it is driven":           func(m *mailbox, v *drive) { m.begin(v); m.notify(to) },
		"before it is driven":          func(m *mailbox, v *drive) { m.notify(to); m.begin(v) },
		"when its drive just ends":     func(m *mailbox, v *drive) { m.begin(v); m.notify(to); m.end(v); m.begin(v) },
		"after its drive, and before":  func(m *mailbox, v *drive) { m.begin(v); m.end(v); m.notify(to); m.begin(v) },
		"twice, and with any of them":  func(m *mailbox, v *drive) { m.notify(""); m.notify(to); m.notify(to); m.begin(v) },
		"without a drive until a look": func(m *mailbox, v *drive) { m.notify(to); m.streams(); m.begin(v) },
	} {
		m, v := newMailbox(), &drive{stream: to, nudge: make(chan struct{}, 1)}
		when(&m, v)
		if !v.collect(&batch{}) || v.collect(&batch{}) {
			t.Errorf("%s: it isn't looked at, or more than once", name)
		}
		if left := m.streams(); len(left) > 0 {
			t.Errorf("%s: left: %v", name, left)
		}
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
