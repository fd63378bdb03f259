package engine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/model/scripted"
	"github.com/belay-run/belay/internal/tool"
)

// nest is an agent of a tree: what it does before it completes.
type nest struct {
	asks       bool // a person
	background []bool
	below      []int // agents that it starts, and waits for
}

// nestScript has an answer for each agent: it asks and starts those below it, waits for
// those in the background, and completes.
func nestScript(tree []nest) string {
	var b strings.Builder
	first := func(n nest) string {
		var calls []string
		if n.asks {
			calls = append(calls, "{tool: ask_user, args: {question: Which?}}")
		}
		for i, k := range n.below {
			calls = append(calls, fmt.Sprintf("{tool: spawn_agent, args: {task: 'PART-%d.', name: n%d, background: %v}}", k, k, n.background[i]))
		}
		if len(calls) == 0 {
			calls = []string{"{tool: complete_task, args: {summary: leaf}}"}
		}
		return "calls: [" + strings.Join(calls, ", ") + "]\n"
	}
	b.WriteString("steps:\n")
	for k, n := range tree {
		if k > 0 {
			fmt.Fprintf(&b, "  - when: {contains: 'PART-%d.'}\n    %s", k, first(n))
		}
		if len(n.below) > 0 {
			next := "{tool: complete_task, args: {summary: all}}"
			if slices.Contains(n.background, true) {
				next = "{tool: wait_agent, args: {all: true}}"
			}
			fmt.Fprintf(&b, "  - when: {tool: spawn_agent, contains: '\"name\":\"n%d\"'}\n    calls: [%s]\n", n.below[0], next)
		}
	}
	for _, tool := range []string{"wait_agent", "ask_user"} {
		fmt.Fprintf(&b, "  - when: {tool: %s}\n    calls: [{tool: complete_task, args: {summary: done}}]\n", tool)
	}
	return b.String() + "  - " + first(tree[0])
}

// completes drives a tree with so many places. More than one question of the tree can be
// open at a time, because who waits for a person needs no place.
func completes(t *testing.T, what any, running int, tree []nest) {
	t.Helper()
	script, err := scripted.Parse("nest", []byte(nestScript(tree)))
	if err != nil {
		t.Fatal(err)
	}
	set, err := tool.NewSet(append(append(tool.AgentTools(), tool.TurnTools()...), effects{})...)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t)
		defer m.discard()
		m.script, m.tools, m.agents = script, set, belay.AgentLimits{Running: running}
		m.accept()
		p := m.boot(0)
		defer p.off()
		for range 10 * len(tree) {
			if err := p.e.Session(p.ctx, sess, nil); err != nil {
				t.Fatal(err)
			}
			over := true
			for _, th := range m.threads(p.h) {
				over = over && th.Turn == nil && th.Prev != nil
				m.answer(th)
			}
			if over {
				break
			}
		}
		all := m.threads(p.h)
		for _, th := range all {
			if th.Prev == nil || th.Prev.Outcome != belay.Completed {
				t.Errorf("%v: %s of %+v: turn %v, ended %+v", what, th.Thread, tree, th.Turn != nil, th.Prev)
			}
		}
		if len(all) != len(tree) {
			t.Errorf("%v: %d of %d agents were started: %+v", what, len(all), len(tree), tree)
		}
		waits := 0
		for r, err := range p.h.Scan(t.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			if s, ok := r.Event.Data.(event.SubagentStatus); ok && s.Status == event.SubagentWaiting {
				waits++
			}
		}
		if t.Logf("%v: %d agents, %d waits", what, len(tree), waits); waits == 0 {
			t.Errorf("%v: no agent gave its place back", what)
		}
	})
}

// Agents that wait for agents in the background, for those in the foreground, for a person
// or for budget need no place, so every tree ends with any number of places.
// Guarantee: F3.
func TestEveryTreeOfAgentsEnds(t *testing.T) {
	eight := []nest{{}}
	for i := range 8 { // each starts one in the background, and waits for it
		eight[0].below, eight[0].background = append(eight[0].below, 1+i), append(eight[0].background, false)
		eight = append(eight, nest{below: []int{9 + i}, background: []bool{true}})
	}
	eight = append(eight, make([]nest, 8)...)
	completes(t, "eight", 8, eight)
	for range 12 {
		seed := rand.Uint64()
		r := rand.New(rand.NewPCG(seed, 0))
		tree, depth := []nest{{below: []int{1}, background: []bool{false}}, {asks: true}}, []int{0, 1}
		for k := 2; k < 4+r.IntN(8); k++ {
			of := r.IntN(k)
			for depth[of] > 2 {
				of = r.IntN(k)
			}
			tree[of].below, tree[of].background = append(tree[of].below, k), append(tree[of].background, r.IntN(2) == 0)
			tree, depth = append(tree, nest{asks: r.IntN(3) == 0}), append(depth, depth[of]+1)
		}
		completes(t, seed, 1, tree)
	}
}
