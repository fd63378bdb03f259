package sqlite

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/storetest"
)

// mix writes a bit of everything into a store: streams of several sessions
// with lanes, keys, states and references, small and large content, commands
// that wait and that were answered, views. It continues where it left off.
type mix struct {
	db    *DB
	works []*store.Batch
	n     int
	bare  bool // appends only: the last transaction has a fact
}

func newMix(ctx context.Context, db *DB, sessions int) (*mix, error) {
	m := &mix{db: db}
	for i := range sessions {
		name := "mix" + strconv.Itoa(i)
		b := &store.Batch{Session: belay.SessionID("sess_" + name), Stream: belay.ThreadID("thr_" + name).Stream()}
		var err error
		if b.Epoch, err = db.Claim(ctx, b.Session, store.ThisProcess(), time.Hour); err != nil {
			return nil, err
		}
		if head, err := db.Head(ctx, b.Stream); err == nil {
			b.After = head.Seq
		}
		m.works = append(m.works, b)
	}
	return m, nil
}

// step makes one append and what goes with it.
func (m *mix) step(ctx context.Context) error {
	m.n++
	b := m.works[m.n%len(m.works)]
	text := fmt.Sprintf("step %d says %s", m.n, strings.Repeat("something ", m.n%23))
	size := 50 + m.n*37%600
	if m.n%97 == 5 {
		size = 40<<10 + m.n // a file
	}
	ref, err := m.db.Put(ctx, bytes.Repeat(fmt.Appendf(nil, "content %d;", m.n), 1+size/12), "text/plain")
	if err != nil {
		return err
	}
	b.Events = []event.Envelope{
		{Data: event.ModelDelta{Text: text}},
		{Data: event.TurnSubmitted{Kind: belay.TurnUser, Text: belay.Content{Text: "see", Ref: &ref}, Rules: ref}, Refs: map[string]belay.Ref{"rules": ref}},
	}[:1+m.n%2]
	b.Key, b.State, b.Consumed = "key of step "+strconv.Itoa(m.n), nil, nil
	b.Lane = store.Lane{Runnable: m.n%3 == 0, Wake: time.UnixMicro(int64(1e15) + int64(m.n))}
	if m.n%7 == 0 {
		b.State = &store.State{Seq: b.After + int64(len(b.Events)), Version: "v1", Data: []byte(strings.Repeat(text, 5))}
	}
	if m.n%5 == 0 && !m.bare {
		if err := m.commands(ctx, b, ref); err != nil {
			return err
		}
	}
	if _, err := m.db.Append(ctx, *b); err != nil {
		return err
	}
	b.After += int64(len(b.Events))
	return nil
}

// commands enqueues two and lets the next append answer one, and keeps a view.
func (m *mix) commands(ctx context.Context, b *store.Batch, ref belay.Ref) error {
	for i := range 2 {
		o := belay.Order{ID: belay.CommandID(fmt.Sprintf("cmd_%s_%d_%d", b.Stream, m.n, i)), Principal: "user:mia", Time: time.UnixMicro(int64(m.n)),
			Session: b.Session, Stream: b.Stream, Command: belay.ResumeThread{Rules: ref}}
		if err := m.db.Enqueue(ctx, o); err != nil {
			return err
		}
		if i == 0 {
			b.Consumed = []belay.CommandID{o.ID}
		}
	}
	at, err := m.db.ViewPosition(ctx, "list")
	if err != nil {
		return err
	}
	return m.db.SaveView(ctx, "list", at, at+1, storetest.DataRows(map[string][]byte{strconv.Itoa(m.n): []byte("row")}))
}

func (m *mix) steps(ctx context.Context, n int) error {
	for range n {
		if err := m.step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// foldOp folds the log into the database once its transaction is committed.
type foldOp string

func (foldOp) apply(*writer) error   { return nil }
func (f foldOp) committed(w *writer) { w.fold(string(f)) }

// roleMix writes a mix, keeps a copy of the log, folds it, and appends until
// it is killed. The log has frames of two generations then.
func roleMix(ctx context.Context, args []string) error {
	db, err := Open(ctx, args[0], Options{})
	if err != nil {
		return err
	}
	m, err := newMix(ctx, db, 4)
	if err != nil {
		return err
	}
	if err := m.steps(ctx, 25); err != nil {
		return err
	}
	old, err := os.ReadFile(db.path + "-wal")
	if err != nil {
		return err
	}
	if err := os.WriteFile(args[1], old, 0o600); err != nil {
		return err
	}
	if err := db.do(ctx, foldOp("PASSIVE")); err != nil {
		return err
	}
	for m.bare = true; ; {
		if err := m.step(ctx); err != nil {
			return err
		}
		fmt.Println(m.n)
	}
}
