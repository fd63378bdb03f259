package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
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

// A parent with a child that it waits for, which has a child of its own; one in the
// background, which is told more when it has ended; one that fails while its own child in
// the background works; one that is closed while it asks; and two in worktrees of their
// own, of which one changes nothing. Four of them run the same command; the person who is
// asked allows two calls of it to the tree. Another agent judges what came of it. Then the session has a goal, which the first
// turn doesn't meet, and behind that a task that an agent does.
const familyScript = `
steps:
  - when: {contains: Judge whether this work}
    calls: [{tool: complete_task, args: {summary: judged, output: {score: 0.9, verdict: pass, findings: []}}}]
  - when: {contains: MORE}
    calls: [{tool: complete_task, args: {summary: more}}]
  - when: {contains: PART-1}
    calls: [{tool: spawn_agent, args: {task: PART-2, agent: general}}]
  - when: {contains: PART-2}
    calls: [{tool: exec, args: {command: make}}]
  - when: {contains: PART-3}
    calls: [{tool: exec, args: {command: make}}]
  - when: {contains: PART-4}
    calls: [{tool: spawn_agent, args: {task: PART-5, name: slow, background: true}}]
  - when: {contains: PART-5}
    calls: [{tool: exec, args: {command: make}}]
  - when: {contains: PART-6}
    calls: [{tool: ask_user, args: {question: Which?}}]
  - when: {contains: PART-7}
    calls: [{tool: exec, args: {command: make}}]
  - when: {contains: PART-8}
    calls: [{tool: complete_task, args: {summary: idle}}]
  - when: {contains: PART-9}
    calls: [{tool: complete_task, args: {summary: nine}}]
  - when: {contains: The goal is not met yet}
    calls: [{tool: complete_task, args: {summary: met}}]
  - when: {contains: GOAL}
    text: I give up.
  - when: {tool: exec}
    calls: [{tool: complete_task, args: {summary: two}}]
  - when: {tool: spawn_agent, contains: two}
    calls: [{tool: complete_task, args: {summary: one}}]
  - when: {tool: spawn_agent, contains: '"name":"slow"'}
    text: I give up.
  - when: {note: You stopped}
    text: I give up.
  - calls:
      - {tool: spawn_agent, args: {task: PART-1, name: first}}
      - {tool: spawn_agent, args: {task: PART-3, name: third, background: true}}
      - {tool: spawn_agent, args: {task: PART-4, name: fails}}
      - {tool: spawn_agent, args: {task: PART-6, name: closed, background: true}}
      - {tool: spawn_agent, args: {task: PART-7, name: tree, isolation: worktree, background: true}}
      - {tool: spawn_agent, args: {task: PART-8, name: idle, isolation: worktree}}
  - calls:
      - {tool: close_agent, args: {agent: closed}}
  - calls:
      - {tool: wait_agent, args: {all: true, agents: [first, third, tree, closed]}}
  - calls:
      - {tool: send_input, args: {agent: third, text: MORE}}
  - calls:
      - {tool: wait_agent, args: {agents: [third]}}
  - calls:
      - {tool: complete_task, args: {summary: done}}
`

// folders are worktrees that are folders, made and removed as git's are.
type folders struct{ dir string }

func (f folders) Plan(_ context.Context, _, id string) (belay.Worktree, string, error) {
	path := filepath.Join(f.dir, "trees", id)
	return belay.Worktree{Repository: f.dir, Path: path, Branch: "belay/" + id, Base: "0"}, path, nil
}

func (f folders) Add(_ context.Context, t belay.Worktree) error { return os.MkdirAll(t.Path, 0o700) }

func (f folders) Settle(_ context.Context, t belay.Worktree, keep bool) (belay.Worktree, belay.Diffstat, []string, error) {
	changed, err := os.ReadDir(t.Path)
	if os.IsNotExist(err) {
		err = nil
	}
	if len(changed) == 0 && !keep {
		t.Removed, err = true, os.RemoveAll(t.Path)
	}
	return t, belay.Diffstat{Files: len(changed)}, nil, err
}

// familyKit is the same in every life of a family.
var familyKit = sync.OnceValue(func() parts {
	script, err := scripted.Parse("family", []byte(familyScript))
	if err != nil {
		panic(err)
	}
	tools := []tool.Tool{effects{}}
	for _, tl := range append(tool.AgentTools(), tool.TurnTools()...) {
		tools = append(tools, mortalOf(tl))
	}
	set, err := tool.NewSet(tools...)
	if err != nil {
		panic(err)
	}
	return parts{script, set}
})

// newFamily is a machine for the family.
func newFamily(t *testing.T) *machine {
	m, k := newMachine(t), familyKit()
	m.script, m.tools, m.trees, m.also = k.script, k.tools, folders{m.dir}, planned
	m.checks = []belay.Check{{ID: "file", Kind: belay.CheckFiles, Paths: []string{"notes"}},
		{ID: "kept", Kind: belay.CheckFiles, Paths: []string{"notes"}, Unchanged: true},
		{ID: "make", Kind: belay.CheckCommand, Argv: []string{"make", "test"}},
		{ID: "judge", Kind: belay.CheckAgent}, {ID: "person", Kind: belay.CheckPerson, Prompt: "Is it good?"}}
	return m
}

// TestAFamilySurvivesACrashAtEveryPoint: no child is started twice, each end reaches the
// parent once, a planned task has no attempt too many, and all that was reserved is
// charged or returned.
// Guarantee: F1, F11.
func TestAFamilySurvivesACrashAtEveryPoint(t *testing.T) {
	points, used := 0, 0
	life := func(crashes ...int) (hit bool) {
		points++
		synctest.Test(t, func(t *testing.T) {
			m := newFamily(t)
			defer m.discard()
			m.accept()
			_, hit = m.through(crashes, (*process).liveFamily)
			m.checkFamily(crashes)
			used += m.used
		})
		return hit
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	first, step, pairs := 1+r.IntN(10), 10, 10
	if os.Getenv("BELAY_CRASH") == "full" {
		first, step, pairs = 1, 1, 500
	}
	last := first
	for life(last) {
		last += step
	}
	for range pairs {
		life(1+r.IntN(last), 1+r.IntN(last))
	}
	t.Logf("%d points, one of %d, and %d pairs; a counted grant was used by another agent %d times", last, step, pairs, used)
	if last < 300 || used == 0 {
		t.Errorf("only %d points, %d uses", last, used)
	}
}

// planned are a goal, and a task that an agent does when the goal has ended.
func planned(p *process, rules belay.Ref) []belay.Command {
	c := belay.SpawnSubagent{Subagent: "sub_assigned", Parent: thr}
	if problem, err := p.e.PrepareChild(p.ctx, rules, tool.SpawnArgs{Task: "PART-9", Agent: "general"}, belay.Limits{}, 1, &c); err != nil || problem != nil {
		p.m.t.Fatal(problem, err)
	}
	text := belay.Content{Text: "PART-9"}
	return []belay.Command{
		belay.PlanTask{Task: "task_goal", Objective: belay.Content{Text: "GOAL"}, Plan: belay.TaskPlan{Goal: true, Retry: belay.Retry{Max: belay.MaxRetries, On: []belay.Outcome{belay.NoCompletion}}}},
		belay.PlanTask{Task: "task_assigned", Objective: text, Plan: belay.TaskPlan{Assignee: "general"}, BlockedBy: []belay.Blocker{{Task: "task_goal"}}},
		belay.BeginTask{Task: "task_goal", Thread: thr, Turn: "turn_goal", Rules: rules},
		belay.BeginTask{Task: "task_assigned", Thread: thr, Turn: "turn_assigned", Rules: c.Rules, Agent: &belay.Assigned{Subagent: c.Subagent, Agent: c.Agent, Text: text, Taint: c.Taint}},
	}
}

// liveFamily is live with answers for the questions of all threads.
func (p *process) liveFamily() error {
	for range 60 {
		if err := p.e.Session(p.ctx, sess, nil); err != nil {
			return err
		}
		over := true
		for _, th := range p.m.threads(p.h) {
			over = over && th.Turn == nil && th.Prev != nil
			if o := th.Opens(); len(o) > 0 && o[0].Kind != "question" {
				p.m.answer(th, belay.RespondAction{Scope: "count", Count: 2})
			}
		}
		if over || p.ctx.Err() != nil {
			return p.ctx.Err()
		}
		time.Sleep(100 * time.Millisecond) // some wait for a time
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

func (m *machine) checkFamily(at []int) {
	m.t.Helper()
	h := m.data.Open(memory.Options{})
	defer h.Close()
	s, err := loadThread(m.t.Context(), h)
	if err != nil {
		m.t.Fatal(err)
	}
	if s.Prev == nil || s.Prev.Outcome != belay.Completed {
		m.t.Errorf("crashes %v: ended %+v", at, s.Prev)
	}
	var facts []event.Envelope
	streams := map[belay.StreamID]bool{}
	used, checks, tasks := map[belay.CallID]int{}, map[string]int{}, map[string]int{}
	spawned, inputs, ended, told, summaries := map[belay.SubagentID]int{}, map[belay.SubagentID]int{}, map[belay.SubagentID]int{}, map[belay.SubagentID]int{}, map[string]int{}
	for r, err := range h.Scan(m.t.Context(), 0) {
		if err != nil {
			m.t.Fatal(err)
		}
		e := r.Event
		facts = append(facts, e)
		streams[e.Stream] = true
		switch p := e.Data.(type) {
		case event.PolicyChanged:
			if e.Stream == sess.Stream() && p.Op == "used" {
				used[e.IDs.Call]++
			}
		case event.TaskProgress:
			if p.Check != nil && p.Check.Status != event.CheckRunning {
				checks[p.Check.ID+" "+p.Check.Status]++
				if p.Check.Reason != "" {
					m.t.Errorf("crashes %v: check %s: %s", at, p.Check.ID, p.Check.Reason)
				}
			}
		case event.TaskAttemptStarted, event.TaskCompleted:
			if e.IDs.Task == "task_goal" || e.IDs.Task == "task_assigned" {
				tasks[string(e.IDs.Task)+" "+e.Type()]++
			}
		case event.SubagentSpawned:
			spawned[e.IDs.Subagent]++
		case event.SubagentInput:
			inputs[e.IDs.Subagent]++
		case event.SubagentCompleted:
			ended[e.IDs.Subagent]++
			summaries[p.Summary.Text]++
		case event.SubagentFailed:
			ended[e.IDs.Subagent]++
			summaries[string(p.Outcome)]++
		case event.SubagentStatus:
			if p.Status == event.SubagentEnded {
				told[e.IDs.Subagent]++
			}
		}
	}
	for call, n := range used { // an answer allows its own call, and one more
		if n > 1 {
			m.t.Errorf("crashes %v: call %s used the grant %d times", at, call, n)
		}
	}
	m.used += len(used)
	want := map[string]int{"one": 1, "two": 4, "more": 1, "idle": 1, "nine": 1, "judged": 1, "no_completion": 1, "cancelled": 1}
	if len(spawned) != 10 || !maps.Equal(summaries, want) {
		m.t.Errorf("crashes %v: spawned %v, ended %v, told %v, %v", at, spawned, ended, told, summaries)
	}
	for id := range spawned {
		if ends := 1 + inputs[id]; spawned[id] != 1 || ended[id] != ends || told[id] != ends {
			m.t.Errorf("crashes %v: %s was spawned %d times, ended %d times of %d, told %d times", at, id, spawned[id], ended[id], ends, told[id])
		}
	}
	for stream := range streams {
		m.checkStream(m.t.Context(), h, stream, at)
	}
	if want := map[string]int{"task_goal task.attempt.started": 2, "task_goal task.completed": 1, "task_assigned task.attempt.started": 1, "task_assigned task.completed": 1}; !maps.Equal(tasks, want) {
		m.t.Errorf("crashes %v: the tasks that were planned: %v", at, tasks)
	}
	coretest.Books(m.t, at, facts)
	if want := map[string]int{"kept noted": 1, "kept passed": 1, "file passed": 1, "make passed": 1, "judge passed": 1, "person passed": 1}; !maps.Equal(checks, want) {
		m.t.Errorf("crashes %v: checks %v", at, checks)
	}
	runs, _ := os.ReadFile(filepath.Join(m.dir, "effects.log"))
	trees, _ := filepath.Glob(filepath.Join(m.dir, "trees", "*"))
	for _, tree := range trees {
		more, _ := os.ReadFile(filepath.Join(tree, "effects.log"))
		runs = append(runs, more...)
	}
	ran, agents := map[string]int{}, 0
	for line := range strings.Lines(string(runs)) {
		if ran[line]++; strings.Contains(line, `"command"`) {
			agents++
		}
	}
	for line, n := range ran { // the check's program may run again when nobody knows what it said
		if most := 1 + len(at); n > 1 && !strings.Contains(line, `"argv"`) || n > most {
			m.t.Errorf("crashes %v: ran %d times: %s", at, n, line)
		}
	}
	if agents > 4 || len(trees) > 1 {
		m.t.Errorf("crashes %v: agents ran %d commands, there are %d worktrees", at, agents, len(trees))
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
			time.Sleep(time.Hour) // none of it is active time
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
// comes meanwhile waits. When it is resumed, the same turn goes on, and the hour between
// is none of its active time.
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
	life := func(crashes ...int) (hit bool) {
		synctest.Test(t, func(t *testing.T) {
			m := newMachine(t)
			defer m.discard()
			m.script, m.tools = script, set
			m.accept()
			_, hit = m.through(crashes, (*process).livePaused)
			m.checkPaused(crashes)
		})
		return hit
	}
	points, pairs := 0, 10
	for life(points + 1) {
		points++
	}
	if os.Getenv("BELAY_CRASH") == "full" {
		pairs = 500
	}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range pairs {
		life(1+r.IntN(points), 1+r.IntN(points))
	}
	t.Logf("%d points, %d pairs, seed %d", points, pairs, seed)
	if points < 60 {
		t.Errorf("only %d points", points)
	}
}

func (m *machine) checkPaused(at []int) {
	m.t.Helper()
	h := m.data.Open(memory.Options{})
	defer h.Close()
	main, err := loadThread(m.t.Context(), h)
	if err != nil {
		m.t.Fatal(err)
	}
	if main.Prev == nil || main.Prev.Outcome != belay.Completed {
		m.t.Errorf("crashes %v: ended %+v", at, main.Prev)
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
		case event.TurnCompleted:
			if active := time.Duration(p.Stats.ActiveMS) * time.Millisecond; active > time.Minute {
				m.t.Errorf("crashes %v: %s was active for %s, with the pause", at, e.IDs.Turn, active)
			}
		case event.ModelRequested, event.ToolStarted:
			if paused[e.Stream] {
				m.t.Errorf("crashes %v: a paused agent begins %s", at, e.Type())
			}
		}
	}
	if pauses != 4 { // two agents are paused, and resumed
		m.t.Errorf("crashes %v: %d beginnings and ends of pauses", at, pauses)
	}
	for stream, n := range turns {
		if n != 1 {
			m.t.Errorf("crashes %v: %d turns in %s", at, n, stream)
		}
	}
	coretest.Books(m.t, at, facts)
	runs, _ := os.ReadFile(filepath.Join(m.dir, "effects.log"))
	if n := bytes.Count(runs, []byte("\n")); n > 1 {
		m.t.Errorf("crashes %v: the command ran %d times", at, n)
	}
}
