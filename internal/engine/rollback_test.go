package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/effect/history"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/model/scripted"
	"github.com/belay-run/belay/internal/secret"
	"github.com/belay-run/belay/internal/testkit/memory"
)

// back takes session 1 back to a turn, without files.
func (b *bench) back(turn string) {
	b.t.Helper()
	past, err := history.ReadPast(b.t.Context(), b.h, thr)
	if err != nil {
		b.t.Fatal(err)
	}
	to, err := past.Find(turn)
	if err != nil {
		b.t.Fatal(err)
	}
	o := belay.Order{ID: belay.CommandID("cmd_back_" + turn), Principal: "user:ann", Session: sess, Stream: thr.Stream(),
		Command: belay.RollBack{Scope: event.ScopeThread, To: to.ID, After: past.Seq}}
	if _, err := b.e.Submit(b.t.Context(), o); err != nil {
		b.t.Fatal(err)
	}
}

// TestBackIsAsIfNothingWasSaidSince: after going back to a turn the
// conversation is the parent's up to there, and what is asked next is what a
// fork of that turn asks.
// Guarantee: E41.
func TestBackIsAsIfNothingWasSaidSince(t *testing.T) {
	for n := range 5 {
		t.Run(fmt.Sprint("turn ", n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := talk(t)
				fork := b.fork(1, thr, fmt.Sprint(n))
				b.back(fmt.Sprint(n))
				if d := cmp.Diff(b.said(fork), b.said(thr), cmpopts.EquateEmpty()); d != "" {
					t.Errorf("-fork +back:\n%s", d)
				}
				b.say("sess_fork_1", fork, 9)
				want := b.asked[len(b.asked)-1]
				b.say(sess, thr, 9)
				if d := cmp.Diff(strip(want), strip(b.asked[len(b.asked)-1])); d != "" {
					t.Errorf("what is asked next (-fork +back):\n%s", d)
				}
				past, err := history.ReadPast(t.Context(), b.h, thr)
				if err != nil || len(past.Turns) != n+1 || past.Turns[n].ID != "turn_9" {
					t.Errorf("turns in force: %+v, %v", past.Turns, err)
				}
				paired(t, b.said(thr))
			})
		})
	}
}

// strip takes the ids of calls out of messages: they follow from where in the
// log a call was made.
func strip(raw string) string {
	var msgs []belay.Message
	if err := json.Unmarshal([]byte(raw), &msgs); err != nil {
		return raw
	}
	n := 0
	ids := map[belay.CallID]belay.CallID{}
	for _, m := range msgs {
		for _, p := range m.Parts {
			if p.Call != nil {
				n++
				ids[p.Call.ID] = belay.CallID(fmt.Sprint("call_", n))
				p.Call.ID = ids[p.Call.ID]
			}
			if p.Result != nil {
				p.Result.ID = ids[p.Result.ID]
			}
		}
	}
	b, _ := json.Marshal(msgs)
	return string(b)
}

// An undo leaves the conversation and tells the model.
// Guarantee: E44.
func TestTheModelIsToldOfAnUndo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := talk(t)
		before := b.said(thr)
		past, err := history.ReadPast(t.Context(), b.h, thr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.e.Submit(t.Context(), belay.Order{ID: "cmd_undo", Principal: "user:ann", Session: sess, Stream: thr.Stream(),
			Command: belay.RollBack{Scope: event.ScopeFiles, To: past.Turns[2].ID, After: past.Seq, Kept: []string{"exec make: unknown"}}}); err != nil {
			t.Fatal(err)
		}
		after := b.said(thr)
		if d := cmp.Diff(before, after[:len(before)]); d != "" || len(after) != len(before)+1 {
			t.Fatalf("%d messages after %d:\n%s", len(after), len(before), d)
		}
		note := after[len(before)].Parts[0].Text
		for _, want := range []string{"[belay] A person took back what your last turn did to files.", "exec make: unknown"} {
			if !strings.Contains(note, want) {
				t.Errorf("the note says %q, not %q", note, want)
			}
		}
	})
}

// rollBack takes a machine whose turn has ended back to before it, through the
// crashes, and to the end.
func (m *machine) rollBack(crashes ...int) (points int, hit bool) {
	m.t.Helper()
	p := m.boot(0)
	m.planBack(p)
	p.off()
	return m.through(crashes, func(p *process) error { return p.e.Session(p.ctx, sess, nil) })
}

// planBack puts the rollback into the thread's inbox.
func (m *machine) planBack(p *process) {
	m.t.Helper()
	root, err := os.OpenRoot(m.dir)
	if err != nil {
		m.t.Fatal(err)
	}
	defer root.Close()
	past, err := history.ReadPast(p.ctx, p.h, thr)
	if err != nil {
		m.t.Fatal(err)
	}
	to, err := past.BeforeLast(1)
	if err != nil {
		m.t.Fatal(err)
	}
	plan, err := past.PlanRollback(p.ctx, to, history.Planner{Root: root, Secrets: &secret.Scrubber{}})
	if err != nil || len(plan.Files) == 0 || len(plan.Foreign)+len(plan.Lost) > 0 || len(plan.Ran) != 1 {
		m.t.Fatalf("plan %+v, %v", plan, err)
	}
	c, err := plan.Command(p.ctx, p.h, event.ScopeThread, "")
	if err != nil {
		m.t.Fatal(err)
	}
	if err := p.h.Enqueue(p.ctx, belay.Order{ID: "cmd_back", Principal: "user:ann", Time: time.Now(), Session: sess, Stream: thr.Stream(), Command: c}); err != nil {
		m.t.Fatal(err)
	}
}

// undone is what is on the machine after a rollback: the files, the thread's
// state but for its times, and the facts of the rollback.
func (m *machine) undone() string {
	m.t.Helper()
	h := m.data.Open(memory.Options{})
	defer h.Close()
	var out strings.Builder
	err := fs.WalkDir(os.DirFS(m.dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(m.dir + "/" + path)
		fmt.Fprintf(&out, "%s %q\n", path, b)
		return err
	})
	if err != nil {
		m.t.Fatal(err)
	}
	fresh := thread.New(thr.Stream())
	for e, err := range h.Read(m.t.Context(), thr.Stream(), 0) {
		if err != nil {
			m.t.Fatal(err)
		}
		fresh.Apply(e)
		switch e.Data.(type) {
		case event.ArtifactChanged, event.HistoryRollbackStarted, event.HistoryRollbackCompleted:
			raw, _ := event.Encode(e.Data)
			fmt.Fprintf(&out, "%s %s\n", e.Type(), raw)
		}
	}
	s := *fresh.State()
	s.Last, s.Seq, s.Answers = time.Time{}, 0, nil
	raw, _ := json.Marshal(s)
	loaded, _, _, err := engine.Load(m.t.Context(), h, thr.Stream())
	if err != nil {
		m.t.Fatal(err)
	}
	a, _ := loaded.Save()
	b, _ := fresh.Save()
	if !bytes.Equal(a, b) {
		m.t.Errorf("loading gives\n%s\nfolding gives\n%s", a, b)
	}
	msgs, err := history.Messages(m.t.Context(), h, thr.Stream(), 1, 1<<40)
	if err != nil {
		m.t.Fatal(err)
	}
	said, _ := json.Marshal(msgs)
	fmt.Fprintf(&out, "%s\n%s\n", raw, said)
	rows, err := h.Lanes(context.Background(), "")
	if err != nil || len(rows) != 0 {
		m.t.Errorf("lanes at rest: %+v %v", rows, err)
	}
	return out.String()
}

// changing is a turn that changes one file twice, makes one and removes one, and
// runs a program.
var changing = sync.OnceValue(func() *scripted.Script {
	sc, err := scripted.Parse("changing.yaml", []byte(`name: t
steps:
  - calls: [{tool: read, args: {path: notes/a.txt}}, {tool: read, args: {path: notes/b.txt}}]
  - calls: [{tool: edit, args: {path: notes/a.txt, old: colour grey, new: colour green}}]
  - calls: [{tool: write, args: {path: new/x.txt, content: new}}]
  - calls: [{tool: patch, args: {patch: "*** Begin Patch\n*** Delete File: notes/b.txt\n*** End Patch\n"}}]
  - calls: [{tool: exec, args: {command: make}}]
  - calls: [{tool: edit, args: {path: notes/a.txt, old: colour green, new: colour red}}]
  - calls: [{tool: complete_task, args: {summary: done}}]
`))
	if err != nil {
		panic(err)
	}
	return sc
})

// TestCrashAtEveryPointOfARollback: the process dies before and after every
// append and at the start and end of the effect, alone and in pairs: files,
// facts, state and conversation are in the end what they are without a crash.
// Guarantee: E42.
func TestCrashAtEveryPointOfARollback(t *testing.T) {
	var want string
	life := func(crashes ...int) (points int, hit bool) {
		synctest.Test(t, func(t *testing.T) {
			m := newMachine(t)
			defer m.discard()
			m.script = changing()
			m.run()
			points, hit = m.rollBack(crashes...)
			got := m.undone()
			if len(crashes) == 0 {
				want = strings.ReplaceAll(got, m.dir, "DIR")
				files := got[:strings.Index(got, "artifact.changed")]
				if strings.Contains(files, "colour green") || strings.Contains(files, "new/x.txt") || !strings.Contains(files, "notes/b.txt") {
					t.Errorf("not everything was taken back:\n%s", got)
				}
			} else if d := cmp.Diff(want, strings.ReplaceAll(got, m.dir, "DIR")); d != "" {
				t.Errorf("crashes %v (-without +with):\n%s", crashes, d)
			}
		})
		return points, hit
	}
	total, _ := life()
	if total < 6 {
		t.Fatalf("%d points", total)
	}
	pairs := 0
	for first := 1; first <= total; first++ {
		life(first)
		for second := 1; !raceEnabled; second++ {
			if _, hit := life(first, second); !hit {
				break
			}
			pairs++
		}
	}
	t.Logf("%d points, %d pairs", total, pairs)
}
