package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/config/agentfile"
	"github.com/belay-run/belay/internal/core/coretest"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/model/scripted"
	"github.com/belay-run/belay/internal/testkit/memory"
	"github.com/belay-run/belay/internal/tool"
)

// A call starts a team: two of its agents work side by side, of which one asks a person
// before its command; the third gets what the first ended with, and runs one too.
const teamScript = `
steps:
  - when: {contains: '"said":"found"'}
    calls: [{tool: exec, args: {command: last}}]
  - when: {contains: '"first":true'}
    calls: [{tool: complete_task, args: {summary: found}}]
  - when: {contains: PART}
    calls: [{tool: exec, args: {command: beside}}]
  - when: {tool: exec}
    calls: [{tool: complete_task, args: {summary: ran}}]
  - calls: [{tool: spawn_agent, args: {task: PART, agent: audit}}]
  - calls: [{tool: complete_task, args: {summary: done}}]
`

// audit is the team of teamScript.
func audit(_ context.Context, _ *thread.Rules, name string) (*agentfile.Agent, []*agentfile.Part, error) {
	if name != "audit" {
		return nil, nil, nil
	}
	part := func(name string, input map[string]string, after ...*agentfile.Part) *agentfile.Part {
		return &agentfile.Part{Agent: &agentfile.Agent{Name: "general", Source: agentfile.Source{Origin: agentfile.BuiltIn, Trusted: true}}, Spec: &agentfile.Member{Name: name, Input: input}, After: after, Turns: 1}
	}
	first, beside := part("first", map[string]string{"first": "true"}), part("beside", nil)
	last := part("last", map[string]string{"said": "members.first.summary"}, first, beside)
	team := &agentfile.Agent{Name: "audit", Source: agentfile.Source{Trusted: true}}
	team.Result = map[string]string{"how": "members.last.summary"}
	return team, []*agentfile.Part{first, beside, last}, nil
}

// TestATeamSurvivesACrashAtEveryPoint: no agent is started twice, no command runs twice, the
// end reaches the parent once, and all that was reserved is charged or returned.
// Guarantee: F1, F28.
func TestATeamSurvivesACrashAtEveryPoint(t *testing.T) {
	script, err := scripted.Parse("team", []byte(teamScript))
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
			m.script, m.tools, m.team = script, set, audit
			m.accept()
			_, hit = m.through(crashes, (*process).liveTeam)
			m.checkTeam(crashes)
		})
		return hit
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	first, step, pairs := 1+r.IntN(4), 4, 10
	if os.Getenv("BELAY_CRASH") == "full" {
		first, step, pairs = 1, 1, 300
	}
	last := first
	for life(last) {
		last += step
	}
	for range pairs {
		life(1+r.IntN(last), 1+r.IntN(last))
	}
	if t.Logf("%d points, one of %d, and %d pairs", last, step, pairs); last < 100 {
		t.Errorf("only %d points", last)
	}
}

// liveTeam is live with answers for the questions of all threads.
func (p *process) liveTeam() error {
	for range 20 {
		if err := p.e.Session(p.ctx, sess, nil); err != nil {
			return err
		}
		over := true
		for _, th := range p.m.threads(p.h) {
			over = over && th.Turn == nil && (th.Prev != nil || th.Thread != thr)
			p.m.answer(th)
		}
		if over || p.ctx.Err() != nil {
			return p.ctx.Err()
		}
	}
	return fmt.Errorf("the team neither ends nor waits")
}

func (m *machine) checkTeam(at []int) {
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
	spawned, ended, told, answers := map[string]int{}, map[string]int{}, 0, 0
	for r, err := range h.Scan(m.t.Context(), 0) {
		if err != nil {
			m.t.Fatal(err)
		}
		facts = append(facts, r.Event)
		streams[r.Event.Stream] = true
		switch p := r.Event.Data.(type) {
		case event.SubagentSpawned:
			spawned[p.Nickname+"/"+p.Agent]++
		case event.SubagentCompleted:
			ended[p.Summary.Text]++
		case event.SubagentFailed:
			ended[string(p.Outcome)]++
		case event.SubagentStatus:
			if p.Status == event.SubagentEnded {
				told++
			}
		case event.ToolResult:
			if p.Name == tool.SpawnName && strings.Contains(p.Output.Text, `"output":{"how":"ran"}`) {
				answers++
			}
		}
	}
	if got := fmt.Sprint(spawned); got != "map[/audit:1 beside/general:1 first/general:1 last/general:1]" {
		m.t.Errorf("crashes %v: spawned %s", at, got)
	}
	if got := fmt.Sprint(ended); got != "map[first: found\nbeside: ran\nlast: ran\n:1 found:1 ran:2]" || told != 1 || answers != 1 {
		m.t.Errorf("crashes %v: ended %s, the parent was told %d times, %d answers", at, got, told, answers)
	}
	for stream := range streams {
		m.checkStream(m.t.Context(), h, stream, at)
	}
	coretest.Books(m.t, at, facts)
	runs, _ := os.ReadFile(filepath.Join(m.dir, "effects.log"))
	for _, command := range []string{"beside", "last"} {
		if n := strings.Count(string(runs), command); n > 1 {
			m.t.Errorf("crashes %v: %s ran %d times", at, command, n)
		}
	}
}
