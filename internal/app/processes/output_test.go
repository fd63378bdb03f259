package processes

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/read"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite"
	"github.com/belay-run/belay/internal/view"
)

// windowed is a store that counts the facts that are read of sessions.
type windowed struct {
	store.Store
	read map[belay.SessionID]int
}

func (c windowed) Window(ctx context.Context, w store.Window) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		for r, err := range c.Store.Window(ctx, w) {
			if c.read[w.Session]++; !yield(r, err) {
				return
			}
		}
	}
}

// logged is a store whose facts come one after the other.
type logged struct {
	*testing.T
	*sqlite.DB
	now time.Time
}

func newLogged(t *testing.T) *logged {
	l := &logged{T: t, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	db, err := sqlite.Open(t.Context(), t.TempDir(), sqlite.Options{Now: func() time.Time { return l.now }})
	l.must(err)
	l.DB = db
	t.Cleanup(func() { db.Close() })
	return l
}

func (l *logged) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// append adds facts to a session's stream, appendAs to a thread's if the ids name one.
func (l *logged) append(session belay.SessionID, facts ...event.Payload) {
	l.Helper()
	l.appendAs(session, belay.IDs{Session: session}, facts...)
}

func (l *logged) appendAs(session belay.SessionID, ids belay.IDs, facts ...event.Payload) {
	l.Helper()
	ctx := l.T.Context()
	epoch, err := l.Claim(ctx, session, store.ThisProcess(), time.Hour)
	l.must(err)
	stream := session.Stream()
	if ids.Thread != "" {
		stream = ids.Thread.Stream()
	}
	head, err := l.Head(ctx, stream)
	if !errors.Is(err, store.ErrNotFound) {
		l.must(err)
	}
	batch := store.Batch{Session: session, Stream: stream, Epoch: epoch, After: head.Seq}
	for _, f := range facts {
		batch.Events = append(batch.Events, event.Envelope{IDs: ids, Data: f})
	}
	_, err = l.Append(ctx, batch)
	l.must(err)
	l.must(l.Release(ctx, session, epoch))
}

// TestAProcessIsFoundWithoutReadingTheStore: its session alone is read where others
// never ran a program, and for what is no process's id nothing is.
func TestAProcessIsFoundWithoutReadingTheStore(t *testing.T) {
	p := newLogged(t)
	ctx := t.Context()
	for _, session := range []belay.SessionID{"sess_a", "sess_b", "sess_c"} {
		p.append(session, event.SessionCreated{Workspace: "/w"})
		p.now = p.now.Add(time.Minute)
	}
	ran := belay.IDs{Session: "sess_a", Thread: "thr_a", Process: "proc_1"}
	p.appendAs("sess_a", ran, event.ProcessStarted{}, event.ProcessOutput{}, event.ProcessCompleted{})
	p.append("sess_a", event.OutputExpired{Reason: event.ExpiredAsked})
	for range 50 {
		p.now = p.now.Add(time.Minute)
		p.append("sess_b", event.SessionUpdated{})
	}
	p.must(view.Catchup(ctx, p.DB))

	c := windowed{p.DB, map[belay.SessionID]int{}}
	call := &app.Call{Runtime: &app.Runtime{Store: c, Reads: &read.Reads{Store: c, Views: view.NewFollower(c)}}, Command: "read_process_output"}
	o, err := OpenOutput(ctx, call, "", "proc_1")
	p.must(err)
	if o.IDs != ran || !o.Kept.Ended {
		t.Errorf("it is %+v, ended %v", o.IDs, o.Kept.Ended)
	}
	if len(c.read) != 1 || c.read["sess_a"] != 5 {
		t.Errorf("facts that were read: %v", c.read)
	}
	clear(c.read)
	for id, sessions := range map[belay.ProcessID]int{"nope": 0, "": 0, "proc_none": 3} {
		if _, err := OpenOutput(ctx, call, "", id); belay.CodeOf(err) != belay.CodeNotFound || len(c.read) != sessions {
			t.Errorf("%q: %v, read %v", id, err, c.read)
		}
		clear(c.read)
	}
	p.append("sess_c", event.SessionUpdated{})
	p.appendAs("sess_c", belay.IDs{Session: "sess_c", Process: "proc_2"}, event.ProcessFailed{}) // it never ran
	if o, err := OpenOutput(ctx, call, "", "proc_2"); err != nil || o.IDs.Session != "sess_c" {
		t.Errorf("one that couldn't be started: %+v, %v", o, err)
	}
}

// TestTextIsFoundInAnOutput: the line that has it, at an offset or behind it, or nothing.
func TestTextIsFoundInAnOutput(t *testing.T) {
	p := newLogged(t)
	ctx := t.Context()
	p.append("sess_a", event.SessionCreated{Workspace: "/w"})
	lines, wide := strings.Repeat("a line of it\n", 20_000), strings.Repeat("x", 50_000)
	ran := belay.IDs{Session: "sess_a", Thread: "thr_a", Process: "proc_1"}
	said, size := []event.Payload{event.ProcessStarted{}}, int64(0)
	for part := range slices.Chunk([]byte(lines+"first Needle\n"+lines+wide+"second needle\n"), 10_001) {
		said = append(said, event.ProcessOutput{Offset: size, Text: string(part)})
		size += int64(len(part))
	}
	said = append(said, event.ProcessOutput{Offset: size + 200_000, Text: "third needle"}) // nothing was kept in between
	p.appendAs("sess_a", ran, said...)
	p.must(view.Catchup(ctx, p.DB))
	call := &app.Call{Runtime: &app.Runtime{Store: p.DB, Reads: &read.Reads{Store: p.DB, Views: view.NewFollower(p.DB)}}, Command: "read_process_output"}
	first := int64(len(lines) + len("first "))
	second := int64(2*len(lines) + len("first Needle\n") + len(wide) + len("second "))
	third := second + int64(len("needle\n")) + 200_000 + int64(len("third "))
	for _, x := range []struct {
		from, found, offset int64
		find                string
	}{
		{0, first, first - 6, "needle"}, {first, first, first, "NEEDLE"}, {first + 1, second, second - maxLine, "needle"},
		{second + 1, third, third - 6, "needle"}, {third + 1, -1, third + 6, "needle"}, {0, -1, third + 6, "nothing like it"}, {-6, third, third, "needle"},
	} {
		out, err := readProcessOutput(ctx, call, app.Fresh{}, &ReadProcessOutput{Session: "sess_a", Process: "proc_1", Offset: x.from, Find: x.find, Bytes: 100})
		if err != nil {
			t.Fatal(err)
		}
		if out.Offset != x.offset || (out.Found == nil) != (x.found < 0) || out.Found != nil && *out.Found != x.found {
			t.Errorf("%q from %d: %+v", x.find, x.from, out)
		}
	}
	_, err := readProcessOutput(ctx, call, app.Fresh{}, &ReadProcessOutput{Session: "sess_a", Process: "proc_1", Find: strings.Repeat("x", 201)})
	if belay.CodeOf(err) != belay.CodeTooLarge {
		t.Errorf("a long text is looked for: %v", err)
	}
}
