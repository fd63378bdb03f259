package agentfile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/belay-run/belay"
	share "github.com/belay-run/belay/internal/core/budget"
)

// Part is the work of an agent beside that of others: of a team that a file makes, or of
// agents that a person names.
type Part struct {
	*Agent
	Spec  *Member      // of the team of a file; nil: none makes it
	After []*Part      // that end before it begins
	Turns int          // how many tasks it does
	Task  belay.TaskID // of all its work

	Allowed belay.Amounts // what each of its tasks was allotted; a kind that is zero isn't limited
	Starved string        // why it can't begin
}

// Cast are the agents of a team, each behind those that it begins after. Each has one task.
func (c *Catalog) Cast(team *Agent) (parts []*Part, err error) {
	by := map[string]*Part{}
	for i := range team.Members {
		spec := &team.Members[i]
		of, err := c.Find(spec.Agent)
		if err != nil {
			return nil, fmt.Errorf("member %s of %s: %w", spec.Name, team.Title(), err)
		}
		p := &Part{Agent: of, Spec: spec, Turns: 1}
		for _, name := range spec.After {
			p.After = append(p.After, by[name])
		}
		by[spec.Name] = p
		parts = append(parts, p)
	}
	return parts, nil
}

// InOrder are parts in the order in which they begin where several could: by priority, then
// by the longest way that begins with them. Each is behind those that it begins after, as
// it has to be before.
func InOrder(parts []*Part) (out []*Part) {
	path := map[*Part]belay.Duration{}
	for _, p := range slices.Backward(parts) {
		path[p] += cmp.Or(p.Estimate, 1)
		for _, b := range p.After {
			path[b] = max(path[b], path[p])
		}
	}
	for len(out) < len(parts) {
		var next *Part
		for _, p := range parts {
			ready := !slices.Contains(out, p) && !slices.ContainsFunc(p.After, func(b *Part) bool { return !slices.Contains(out, b) })
			if ready && (next == nil || p.Rank() > next.Rank() || p.Rank() == next.Rank() && path[p] > path[next]) {
				next = p
			}
		}
		out = append(out, next)
	}
	return out
}

// Allot shares tokens and money among parts, by priority; a kind that is zero has no limit.
// One that would get less than it needs at least doesn't begin, and what it would have had
// is for others.
func Allot(total belay.Amounts, parts []*Part) {
	asked := make([]share.Request, len(parts))
	if total.Tokens > 0 {
		for i, p := range parts { // what a file says is for a turn
			turns := int64(p.Turns)
			least := p.Tokens.Min * turns
			asked[i] = share.Request{Priority: p.Rank(), Min: least, Optimal: cmp.Or(p.Tokens.Optimal*turns, max(least, total.Tokens/int64(len(parts))))}
		}
		for i, got := range share.Allocate(total.Tokens, asked) {
			p := parts[i]
			if p.Allowed.Tokens = got.Amount / int64(p.Turns); p.Allowed.Tokens == 0 {
				p.Starved = fmt.Sprintf("TOKENS: member %s needs at least %d tokens, and of the team's %d no more are left", p.InTeam(), max(asked[i].Min, 1), total.Tokens)
			}
		}
	}
	if total.MicroUSD > 0 {
		for i, p := range parts {
			asked[i] = share.Request{Priority: p.Rank(), Optimal: cmp.Or(p.Limits.MicroUSD*int64(p.Turns), max(total.MicroUSD/int64(len(parts)), 1))}
		}
		for i, got := range share.Allocate(total.MicroUSD, asked) {
			p := parts[i]
			if p.Allowed.MicroUSD = got.Amount / int64(p.Turns); p.Allowed.MicroUSD == 0 && p.Starved == "" {
				p.Starved = fmt.Sprintf("MONEY: of the team's %s nothing is left for member %s", belay.Amounts{MicroUSD: total.MicroUSD}, p.InTeam())
			}
		}
	}
}

// InTeam is what the team calls it.
func (p *Part) InTeam() string {
	if p.Spec != nil {
		return p.Spec.Name
	}
	return p.Name
}

// Rank is its priority among tasks.
func (p *Part) Rank() int {
	return map[string]int{"critical": 2, "high": 1, "low": -1}[p.Priority]
}

// Exactly is a name that means this version of the agent and no other.
func (a *Agent) Exactly() string {
	name := a.Origin + ":" + a.Name
	if a.Version != "" {
		name += "@=" + a.Version
	}
	return name
}

// Plan is its task as it is planned.
func (p *Part) Plan() belay.TaskPlan {
	plan := belay.TaskPlan{Title: p.InTeam(), Owner: p.Title(), Priority: p.Rank()}
	if p.Spec != nil {
		plan.Optional = p.Spec.Optional
	}
	return plan
}

// Blockers are the tasks that end before its own begins. They have to have ids.
func (p *Part) Blockers() (all []belay.Blocker) {
	for _, b := range p.After {
		on := belay.OnFailedSkip
		if b.OnFailure == GoOn || b.Spec != nil && b.Spec.Optional {
			on = belay.OnFailedRun
		}
		all = append(all, belay.Blocker{Task: b.Task, OnFailed: on})
	}
	return all
}

// Binding says what its input is made of when it begins; nil: it gets none. team is the
// input of the whole.
func (p *Part) Binding(text string, team json.RawMessage, rules belay.Ref) *belay.Binding {
	if p.Spec == nil || len(p.Spec.Input) == 0 {
		return nil
	}
	b := &belay.Binding{Text: text, Values: p.Spec.Input, Team: team, Members: map[string]belay.TaskID{}, Rules: rules}
	for _, before := range p.After {
		b.Members[before.Spec.Name] = before.Task
	}
	return b
}

// Whole is the task of a team as it is planned, and what its output is made of; nil: it has
// none. team is its input.
func (a *Agent) Whole(parts []*Part, team json.RawMessage) (belay.TaskPlan, *belay.Binding) {
	plan := belay.TaskPlan{Title: a.Name, Owner: a.Title(), CompleteAt: cmp.Or(a.CompleteAt, 1)}
	if len(a.Result) == 0 {
		return plan, nil
	}
	b := &belay.Binding{Values: a.Result, Team: team, Members: map[string]belay.TaskID{}, Output: a.Output}
	for _, p := range parts {
		b.Members[p.Spec.Name] = p.Task
	}
	return plan, b
}
