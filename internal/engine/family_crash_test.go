package engine_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core/coretest"
	"github.com/belay-run/belay/internal/core/session"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/model/scripted"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/testkit/memory"
	"github.com/belay-run/belay/internal/tool"
)

// A parent with a child that it waits for, which runs a command and has a child of its
// own, and one in the background, which is told more when it has ended.
const familyScript = `
steps:
  - when: {contains: MORE}
    calls: [{tool: complete_task, args: {summary: more}}]
  - when: {contains: PART-1}
    calls:
      - {tool: spawn_agent, args: {task: PART-2, agent: general}}
  - when: {contains: PART-2}
    calls: [{tool: exec, args: {command: make}}]
  - when: {contains: PART-3}
    calls: [{tool: complete_task, args: {summary: three}}]
  - when: {tool: exec}
    calls: [{tool: complete_task, args: {summary: two}}]
  - when: {tool: spawn_agent, contains: two}
    calls: [{tool: complete_task, args: {summary: one}}]
  - calls:
      - {tool: spawn_agent, args: {task: PART-1, name: first}}
      - {tool: spawn_agent, args: {task: PART-3, name: third, background: true}}
  - calls:
      - {tool: wait_agent, args: {all: true, agents: [first, third]}}
  - calls:
      - {tool: send_input, args: {agent: third, text: MORE}}
  - calls:
      - {tool: wait_agent, args: {agents: [third]}}
  - calls:
      - {tool: complete_task, args: {summary: done}}
`

// TestAFamilySurvivesACrashAtEveryPoint: no child is started twice, each end reaches the
// parent once, and all that was reserved is charged or returned.
// Guarantee: F1.
func TestAFamilySurvivesACrashAtEveryPoint(t *testing.T) {
	script, err := scripted.Parse("family", []byte(familyScript))
	if err != nil {
		t.Fatal(err)
	}
	tools := []tool.Tool{effects{}}
	for _, tl := range append(tool.AgentTools(), tool.TurnTools()...) {
		tools = append(tools, mortalOf(tl))
	}
	set, err := tool.NewSet(tools...)
	if err != nil {
		t.Fatal(err)
	}
	points := 0
	for hit := true; hit; points++ {
		synctest.Test(t, func(t *testing.T) {
			m := newMachine(t)
			defer m.discard()
			m.script, m.tools = script, set
			m.accept()
			_, hit = m.through([]int{points + 1}, (*process).liveFamily)
			m.checkFamily(points + 1)
		})
	}
	t.Logf("%d points", points)
	if points < 60 {
		t.Errorf("only %d points", points)
	}
}

// liveFamily is live with answers for the questions of all threads.
func (p *process) liveFamily() error {
	for range 20 {
		if err := p.e.Session(p.ctx, sess, nil); err != nil {
			return err
		}
		main, err := loadThread(p.ctx, p.h)
		if err != nil {
			return err
		}
		if main.Turn == nil && main.Prev != nil {
			return nil
		}
		for _, th := range p.m.threads(p.h) {
			p.m.answer(th)
		}
	}
	return fmt.Errorf("the family neither ends nor waits")
}

// threads are the main thread and its children.
func (m *machine) threads(st store.Store) (all []*thread.State) {
	m.t.Helper()
	d, _, _, err := engine.Load(m.t.Context(), st, sess.Stream())
	if err != nil {
		m.t.Error(err)
		return nil
	}
	for _, id := range d.(*session.Decider).State().All() {
		th, err := loadThreadOf(m.t.Context(), st, id)
		if err != nil {
			m.t.Error(err)
			return nil
		}
		all = append(all, th)
	}
	return all
}

func (m *machine) checkFamily(at int) {
	m.t.Helper()
	h := m.data.Open(memory.Options{})
	defer h.Close()
	s, err := loadThread(m.t.Context(), h)
	if err != nil {
		m.t.Fatal(err)
	}
	if s.Prev == nil || s.Prev.Outcome != belay.Completed {
		m.t.Errorf("crash %d: ended %+v", at, s.Prev)
	}
	var facts []event.Envelope
	streams := map[belay.StreamID]bool{}
	spawned, inputs, ended, told, summaries := map[belay.SubagentID]int{}, map[belay.SubagentID]int{}, map[belay.SubagentID]int{}, map[belay.SubagentID]int{}, map[string]int{}
	for r, err := range h.Scan(m.t.Context(), 0) {
		if err != nil {
			m.t.Fatal(err)
		}
		e := r.Event
		facts = append(facts, e)
		streams[e.Stream] = true
		switch p := e.Data.(type) {
		case event.SubagentSpawned:
			spawned[e.IDs.Subagent]++
		case event.SubagentInput:
			inputs[e.IDs.Subagent]++
		case event.SubagentCompleted:
			ended[e.IDs.Subagent]++
			summaries[p.Summary.Text]++
		case event.SubagentFailed:
			m.t.Errorf("crash %d: a child failed: %+v", at, p)
		case event.SubagentStatus:
			if p.Status == event.SubagentEnded {
				told[e.IDs.Subagent]++
			}
		}
	}
	want := map[string]int{"one": 1, "two": 1, "three": 1, "more": 1}
	if len(spawned) != 3 || !maps.Equal(summaries, want) {
		m.t.Errorf("crash %d: spawned %v, ended %v, told %v, %v", at, spawned, ended, told, summaries)
	}
	for id := range spawned {
		if ends := 1 + inputs[id]; spawned[id] != 1 || ended[id] != ends || told[id] != ends {
			m.t.Errorf("crash %d: %s was spawned %d times, ended %d times of %d, told %d times", at, id, spawned[id], ended[id], ends, told[id])
		}
	}
	for stream := range streams {
		m.checkStream(m.t.Context(), h, stream, at)
	}
	coretest.Books(m.t, at, facts)
	runs, _ := os.ReadFile(filepath.Join(m.dir, "effects.log"))
	if n := bytes.Count(runs, []byte("\n")); n > 1 {
		m.t.Errorf("crash %d: the command ran %d times", at, n)
	}
}

const interruptedFamily = `
steps:
  - when: {contains: PART-1}
    calls:
      - {tool: spawn_agent, args: {task: PART-2}}
  - when: {contains: PART-2}
    calls: [{tool: exec, args: {command: make}}]
  - calls:
      - {tool: spawn_agent, args: {task: PART-1, name: first}}
`

// The turn of the main thread is interrupted while its child's child asks a person.
// Guarantee: F5.
func TestAnInterruptEndsTheWholeFamily(t *testing.T) {
	script, err := scripted.Parse("family", []byte(interruptedFamily))
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		defer m.discard()
		set, err := tool.NewSet(append(append(tool.AgentTools(), tool.TurnTools()...), effects{})...)
		if err != nil {
			t.Fatal(err)
		}
		m.script, m.tools = script, set
		m.accept()
		p := m.boot(0)
		defer p.off()
		for range 6 { // the budget is too small at first
			if err := p.e.Session(p.ctx, sess, nil); err != nil {
				t.Fatal(err)
			}
			for _, th := range m.threads(p.h) {
				if o := th.Opens(); len(o) > 0 && o[0].Call == nil {
					m.answer(th)
				}
			}
		}
		s, err := loadThread(p.ctx, p.h)
		if err != nil || s.Turn == nil || len(s.Children) != 1 || len(m.threads(p.h)) != 3 || len(m.threads(p.h)[2].Opens()) != 1 {
			t.Fatalf("%+v, %v", s, err)
		}
		if s.Turn.Active > time.Second { // the family waits for a person
			t.Errorf("waiting took %s of its time", s.Turn.Active)
		}
		if _, err := p.e.Submit(p.ctx, belay.Order{ID: "cmd_stop", Principal: "user:bob", Session: sess, Stream: thr.Stream(), Command: belay.InterruptTurn{}}); err != nil {
			t.Fatal(err)
		}
		if err := p.e.Session(p.ctx, sess, nil); err != nil {
			t.Fatal(err)
		}
		for _, th := range m.threads(p.h) {
			if th.Turn != nil || th.Prev == nil || th.Prev.Outcome != belay.Cancelled || len(th.Opens()) > 0 {
				t.Errorf("%s: %+v", th.Thread, th.Prev)
			}
		}
		if rows, err := p.h.Lanes(p.ctx, ""); err != nil || len(rows) != 0 {
			t.Errorf("lanes at rest: %+v %v", rows, err)
		}
	})
}

const pausedFamily = `
steps:
  - when: {contains: PART-1}
    calls: [{tool: spawn_agent, args: {task: PART-2}}]
  - when: {contains: PART-2}
    calls: [{tool: exec, args: {command: make}}]
  - when: {tool: exec}
    calls: [{tool: complete_task, args: {summary: two}}]
  - when: {tool: spawn_agent, contains: two}
    calls: [{tool: complete_task, args: {summary: one}}]
  - calls: [{tool: spawn_agent, args: {task: PART-1, name: first}}]
  - calls: [{tool: complete_task, args: {summary: done}}]
`

// livePaused pauses the first agent when the one below it asks a person, answers, and
// resumes it when nothing is left to do. Whatever it is told twice is done once.
func (p *process) livePaused() error {
	for range 30 {
		if err := p.e.Session(p.ctx, sess, nil); err != nil {
			return err
		}
		all := p.m.threads(p.h)
		if len(all) == 0 {
			return p.ctx.Err()
		}
		if all[0].Turn == nil && all[0].Prev != nil {
			return nil
		}
		order := belay.Order{Principal: "user:bob", Session: sess, Stream: sess.Stream()}
		first := func() belay.SubagentID { return all[0].Children[0].ID }
		asks := len(all) == 3 && len(all[2].Opens()) > 0 && all[2].Opens()[0].Call != nil
		switch {
		case asks && all[2].Pause == nil:
			order.ID, order.Command = "cmd_pause", belay.PauseSubagent{Subagent: first()}
		case len(all) == 3 && all[2].Pause != nil && !asks:
			order.ID, order.Command = "cmd_resume", belay.ResumeSubagent{Subagent: first()}
		default:
			for _, th := range all {
				p.m.answer(th)
			}
			continue
		}
		if _, err := p.e.Submit(p.ctx, order); err != nil {
			return err
		}
	}
	return fmt.Errorf("the family neither ends nor waits")
}

// An agent that is paused begins nothing, nor does one below it, and an answer that
// comes meanwhile waits. When it is resumed, the same turn goes on.
// Guarantee: F6.
func TestAPauseSurvivesACrashAtEveryPoint(t *testing.T) {
	script, err := scripted.Parse("family", []byte(pausedFamily))
	if err != nil {
		t.Fatal(err)
	}
	tools := []tool.Tool{effects{}}
	for _, tl := range append(tool.AgentTools(), tool.TurnTools()...) {
		tools = append(tools, mortalOf(tl))
	}
	set, err := tool.NewSet(tools...)
	if err != nil {
		t.Fatal(err)
	}
	points := 0
	for hit := true; hit; points++ {
		synctest.Test(t, func(t *testing.T) {
			m := newMachine(t)
			defer m.discard()
			m.script, m.tools = script, set
			m.accept()
			_, hit = m.through([]int{points + 1}, (*process).livePaused)
			m.checkPaused(points + 1)
		})
	}
	t.Logf("%d points", points)
	if points < 60 {
		t.Errorf("only %d points", points)
	}
}

func (m *machine) checkPaused(at int) {
	m.t.Helper()
	h := m.data.Open(memory.Options{})
	defer h.Close()
	main, err := loadThread(m.t.Context(), h)
	if err != nil {
		m.t.Fatal(err)
	}
	if main.Prev == nil || main.Prev.Outcome != belay.Completed {
		m.t.Errorf("crash %d: ended %+v", at, main.Prev)
	}
	paused, pauses, turns := map[belay.StreamID]bool{}, 0, map[belay.StreamID]int{}
	var facts []event.Envelope
	for r, err := range h.Scan(m.t.Context(), 0) {
		if err != nil {
			m.t.Fatal(err)
		}
		e := r.Event
		facts = append(facts, e)
		switch p := e.Data.(type) {
		case event.ThreadUpdated:
			if p.Pause != nil {
				paused[e.Stream] = p.Pause.Op == event.Paused
				pauses++
			}
		case event.TurnStarted:
			turns[e.Stream]++
		case event.ModelRequested, event.ToolStarted:
			if paused[e.Stream] {
				m.t.Errorf("crash %d: a paused agent begins %s", at, e.Type())
			}
		}
	}
	if pauses != 4 { // two agents are paused, and resumed
		m.t.Errorf("crash %d: %d beginnings and ends of pauses", at, pauses)
	}
	for stream, n := range turns {
		if n != 1 {
			m.t.Errorf("crash %d: %d turns in %s", at, n, stream)
		}
	}
	coretest.Books(m.t, at, facts)
	runs, _ := os.ReadFile(filepath.Join(m.dir, "effects.log"))
	if n := bytes.Count(runs, []byte("\n")); n > 1 {
		m.t.Errorf("crash %d: the command ran %d times", at, n)
	}
}
