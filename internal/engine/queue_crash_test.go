package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core/task"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/model/scripted"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/testkit/memory"
	"github.com/belay-run/belay/internal/tool"
)

// rowScript: the first answer acts and lets others come; each that follows acts,
// then ends its turn.
const rowScript = "name: row\nsteps:\n  - calls: [{tool: act, args: {}}, {tool: come, args: {}}]\n" +
	"  - calls: [{tool: act, args: {}}]\n  - calls: [{tool: complete_task, args: {summary: done}}]\n" +
	"  - calls: [{tool: act, args: {}}]\n  - calls: [{tool: complete_task, args: {summary: done}}]\n" +
	"  - calls: [{tool: act, args: {}}]\n  - calls: [{tool: complete_task, args: {summary: done}}]\n" +
	"  - calls: [{tool: act, args: {}}]\n  - calls: [{tool: complete_task, args: {summary: done}}]\n"

// rowCase is what comes while turn_1 runs, and what has to become of it.
type rowCase struct {
	name  string
	slow  bool // one comes after the other, else all together: their tasks overtake each other then
	line  belay.Queueing
	modes []belay.QueueMode // of turn_2 and those after it
	began string            // turns, in the order in which they begin
	ends  string            // of turn_1 and those after it, in words of shortEnd
	told  string            // what the model is told of those that were dropped
}

var rowCases = []rowCase{
	{name: "enqueue", modes: []belay.QueueMode{"", "", ""}, began: "1 2 3 4", ends: "ok ok ok ok"},
	{name: "steer", modes: []belay.QueueMode{"steer", "", "steer"}, began: "1 3", ends: "ok ok ok ok"},
	{name: "collect", modes: []belay.QueueMode{"collect", "collect", "collect"}, began: "1 2", ends: "ok ok ok ok"},
	{name: "interrupt", slow: true, modes: []belay.QueueMode{"", "", "interrupt"}, began: "1 4 2 3", ends: "INTERRUPTED ok ok ok"},
	{name: "rollback", slow: true, modes: []belay.QueueMode{"", "rollback"}, began: "1 3 2", ends: "INTERRUPTED ok ok"},
	{name: "drop new", slow: true, line: belay.Queueing{Cap: 1}, modes: []belay.QueueMode{"", "", ""}, began: "1 2", ends: "ok ok BUSY BUSY"},
	{name: "drop old", line: belay.Queueing{Cap: 1, Drop: belay.DropOld}, modes: []belay.QueueMode{"", "", ""}, began: "1 4", ends: "ok QUEUE_DROPPED QUEUE_DROPPED ok"},
	{name: "summarise", line: belay.Queueing{Cap: 1, Drop: belay.DropSummarise}, modes: []belay.QueueMode{"", "", ""}, began: "1 4", ends: "ok QUEUE_DROPPED QUEUE_DROPPED ok", told: "- do turn_2\n- do turn_3"},
}

// rowMachine is a machine to which more turns come while the first one runs.
type rowMachine struct {
	machine
	rowCase
	ref belay.Ref
	mu  sync.Mutex
	ran map[belay.CallID]int // runs of the at-most-once tool
}

// come lets a person give the turns, from another process. After a crash it gives
// the same again, which changes nothing.
func (m *rowMachine) come(ctx context.Context) (tool.Result, error) {
	if deadIn(ctx) {
		return tool.Result{}, errPower
	}
	other := m.data.Open(memory.Options{})
	defer other.Close()
	for i, mode := range m.modes {
		turn := fmt.Sprintf("turn_%d", i+2)
		o := belay.Order{ID: belay.CommandID("cmd_" + turn), Principal: "user:ann", Session: sess, Stream: sess.Stream(), Command: belay.SubmitWork{
			Thread: thr, Task: belay.TaskID("task_" + turn), Turn: belay.TurnID(turn), Text: belay.Content{Text: "do " + turn}, Rules: m.ref, Queue: mode}}
		if err := other.Enqueue(context.WithoutCancel(ctx), o); err != nil {
			return tool.Result{}, err
		}
		if !m.slow && i < len(m.modes)-1 {
			continue
		}
		select {
		case <-ctx.Done():
			return tool.Result{}, context.Cause(ctx)
		case <-time.After(time.Second): // of synctest: whoever drives sees it within a tenth of it
		}
	}
	return tool.Result{Text: "they came"}, nil
}

func (m *rowMachine) act(ctx context.Context, c tool.Call) (tool.Result, error) {
	if deadIn(ctx) {
		return tool.Result{}, errPower
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ran[c.ID]++
	return tool.Result{Text: "acted"}, nil
}

func newRowMachine(t *testing.T, c rowCase, script *scripted.Script, dir string) *rowMachine {
	t.Helper()
	m := &rowMachine{machine: machine{t: t, data: memory.New(), dir: dir, script: script}, rowCase: c, ran: map[belay.CallID]int{}}
	tools := []tool.Tool{
		fn{tool.Spec{Name: "act", Doc: "d", Input: noArgs, Effect: belay.AtMostOnce, Access: belay.Write}, m.act},
		pure("come", func(ctx context.Context, _ tool.Call) (tool.Result, error) { return m.come(ctx) })}
	for _, tl := range tool.TurnTools() {
		tools = append(tools, mortalOf(tl))
	}
	set, err := tool.NewSet(tools...)
	if err != nil {
		t.Fatal(err)
	}
	m.tools = set
	p := m.boot(0)
	defer p.off()
	settings := belay.Settings{Provider: "scripted", Mode: belay.ModeDefault, Approvals: belay.ApprovalsDeny, Limits: belay.DefaultLimits, Queue: c.line}
	rules := thread.Rules{Workspace: m.dir, Settings: settings, Tools: set.Specs(), System: "test",
		Grants: []policy.Grant{{Tool: "act", Tier: policy.TierUser, Kind: "rule"}, {Tool: "come", Tier: policy.TierUser, Kind: "rule"}}}
	raw, err := json.Marshal(rules)
	if err != nil {
		t.Fatal(err)
	}
	if m.ref, err = p.h.Put(p.ctx, raw, "application/json"); err != nil {
		t.Fatal(err)
	}
	if err := p.h.Enqueue(p.ctx,
		belay.Order{ID: "cmd_0", Principal: "user:ann", Session: sess, Stream: sess.Stream(), Command: belay.CreateSession{Workspace: m.dir, Settings: settings}},
		belay.Order{ID: "cmd_turn_1", Principal: "user:ann", Session: sess, Stream: sess.Stream(), Command: belay.SubmitWork{Thread: thr, Task: "task_turn_1", Turn: "turn_1", Text: belay.Content{Text: "do turn_1"}, Rules: m.ref}}); err != nil {
		t.Fatal(err)
	}
	return m
}

// live lets one process die at a point, and the next one live to the end.
func (m *rowMachine) live(at int) (hit bool) {
	for _, at := range []int{at, 0} {
		p := m.boot(at)
		err := p.e.Session(p.ctx, sess, nil)
		hit = hit || p.isDead()
		if err != nil && !p.isDead() {
			m.t.Errorf("crash %d: %v", at, err)
		}
		p.off()
		if !hit {
			break
		}
	}
	return hit
}

// shortEnd is how a turn ended, in a word.
func shortEnd(p event.Payload) string {
	switch p := p.(type) {
	case event.TurnCompleted:
		return "ok"
	case event.TurnFailed:
		return p.Code
	}
	return ""
}

// check holds the laws: every turn ends once, and its task with it; they begin in
// their order; no call runs twice; the model is told once of what was dropped.
func (m *rowMachine) check(at int) {
	m.t.Helper()
	h := m.data.Open(memory.Options{})
	defer h.Close()
	var began, told []string
	ends := make([]string, len(m.modes)+1)
	for e, err := range h.Read(m.t.Context(), thr.Stream(), 0) {
		if err != nil {
			m.t.Fatal(err)
		}
		number := strings.TrimPrefix(string(e.IDs.Turn), "turn_")
		if end := shortEnd(e.Data); end != "" {
			var i int
			fmt.Sscan(number, &i) //nolint:errcheck // else it is none of them, and the index says so
			ends[i-1] += end
		}
		switch p := e.Data.(type) {
		case event.TurnStarted:
			began = append(began, number)
		case event.QueueChanged:
			if p.Op == event.QueueTold {
				_, list, _ := strings.Cut(p.Note, ":\n")
				lines := strings.Split(list, "\n") // in the order in which they made room
				slices.Sort(lines)
				told = append(told, strings.Join(lines, "\n"))
			}
		}
	}
	if got := strings.Join(began, " "); got != m.began {
		m.t.Errorf("crash %d: %s began, in this order; want %s", at, got, m.began)
	}
	if got := strings.Join(ends, " "); got != m.ends {
		m.t.Errorf("crash %d: ended %s; want %s", at, got, m.ends)
	}
	if got := strings.Join(told, "; "); got != m.told {
		m.t.Errorf("crash %d: told %q; want %q", at, got, m.told)
	}
	for id, n := range m.ran {
		if n > 1 {
			m.t.Errorf("crash %d: call %s ran %d times", at, id, n)
		}
	}
	m.checkTasks(h, at, ends)
	if rows, err := h.Lanes(m.t.Context(), ""); err != nil || len(rows) != 0 {
		m.t.Errorf("crash %d: lanes at rest: %+v %v", at, rows, err)
	}
}

// checkTasks: each task had one attempt, which ended as its turn did.
func (m *rowMachine) checkTasks(h store.Store, at int, ends []string) {
	m.t.Helper()
	outcomes := map[string]belay.Outcome{"ok": belay.Completed, "BUSY": belay.Failed}
	for i, end := range ends {
		d, _, _, err := engine.Load(m.t.Context(), h, belay.TaskID(fmt.Sprintf("task_turn_%d", i+1)).Stream())
		if err != nil {
			m.t.Fatal(err)
		}
		want := belay.Cancelled
		if o := outcomes[end]; o != "" {
			want = o
		}
		if s := d.(*task.Decider).State(); s.Count != 1 || s.Attempts[0].Outcome != want {
			m.t.Errorf("crash %d: task %d had %d attempts: %+v; its turn ended %s", at, i+1, s.Count, s.Attempts, end)
		}
	}
}

// TestTurnsThatWaitSurviveACrashAtEveryPoint: whatever becomes of turns while
// another one runs, a process that dies anywhere changes nothing about it.
// Guarantee: V22.
func TestTurnsThatWaitSurviveACrashAtEveryPoint(t *testing.T) {
	script, err := scripted.Parse("row", []byte(rowScript))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range rowCases {
		t.Run(c.name, func(t *testing.T) {
			points, dir, every := 0, t.TempDir(), 1
			if raceEnabled {
				every = 7
			}
			for hit := true; hit; points += every {
				synctest.Test(t, func(t *testing.T) {
					m := newRowMachine(t, c, script, dir)
					hit = m.live(points)
					hit = hit || points == 0
					m.check(points)
				})
				if t.Failed() {
					t.FailNow()
				}
			}
			if points < 40 {
				t.Errorf("only %d points", points)
			}
			t.Logf("%d points", points-every)
		})
	}
}
