package agents

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/config/agentfile"
	"github.com/belay-run/belay/internal/core/budget"
)

// fromFile makes the team of a file's members. Each gets a task; what it begins after are
// its edges.
func (t *team) fromFile(cat *agentfile.Catalog, a *agentfile.Agent) error {
	if _, err := cat.Told(t.in.Agents[0], "team", t.data(), true); err != nil {
		return input.At("input", err)
	}
	t.file = a
	by := map[string]*member{}
	for i := range a.Members {
		spec := &a.Members[i]
		of, err := cat.Find(spec.Agent)
		if err != nil {
			return input.At("agents", fmt.Errorf("member %s of %s: %w", spec.Name, a.Title(), err))
		}
		m := &member{Agent: of, spec: spec, texts: []string{t.objective(of)}}
		for _, name := range spec.After {
			m.after = append(m.after, by[name])
		}
		by[spec.Name] = m
		t.members = append(t.members, m)
	}
	t.order()
	return nil
}

// pastRuns is how far back the runs lie by which members are estimated.
const pastRuns = 30 * 24 * time.Hour

// data is what the team is started with; nil: nothing.
func (t *team) data() json.RawMessage {
	if t.in.Input == nil {
		return nil
	}
	return t.in.Input.JSON()
}

// objective is what a member is to do: what the whole is told, or the tasks of its file.
func (t *team) objective(a *agentfile.Agent) string {
	if text := strings.TrimSpace(t.in.Text); text != "" {
		return text
	}
	var tasks []string
	for _, s := range a.Tasks {
		tasks = append(tasks, s.Description)
	}
	return cmp.Or(strings.Join(tasks, "\n"), a.Description, OwnPart)
}

// estimates fills in how long members take whose files don't say it: the median of what
// their runs took.
func (t *team) estimates(ctx context.Context) error {
	if !slices.ContainsFunc(t.members, func(m *member) bool { return m.Estimate == 0 }) {
		return nil
	}
	past, err := Stats(ctx, t.r.Runtime, t.r.Now().Add(-pastRuns))
	if err != nil {
		return err
	}
	for _, m := range t.members {
		for _, s := range past {
			if m.Estimate == 0 && s.Agent == m.Name {
				known := *m.Agent
				known.Estimate = belay.Duration(s.P50MS) * belay.Duration(time.Millisecond)
				m.Agent = &known
			}
		}
		m.path = 0
	}
	t.order()
	return nil
}

// allot shares the tokens of the team among its members, by priority. One that would get
// less than it needs at least doesn't begin, and what it would have had is for others.
func (t *team) allot() {
	total := cmp.Or(t.settings.Limits.Tokens, t.settings.Budget.Tokens)
	if t.file != nil {
		total = cmp.Or(t.file.Tokens.Optimal, total)
	}
	if total == 0 {
		return
	}
	asked := make([]budget.Request, len(t.members))
	for i, m := range t.members { // what a file says is for a turn
		turns := int64(len(m.texts))
		least := m.Tokens.Min * turns
		asked[i] = budget.Request{ID: m.called(), Priority: m.priority(), Min: least, Optimal: cmp.Or(m.Tokens.Optimal*turns, max(least, total/int64(len(t.members))))}
	}
	for i, share := range budget.Allocate(total, asked) {
		m := t.members[i]
		if m.tokens = share.Amount / int64(len(m.texts)); m.tokens == 0 {
			m.starved = fmt.Sprintf("TOKENS: member %s needs at least %d tokens, and of the team's %d no more are left", m.called(), max(asked[i].Min, 1), total)
		}
	}
}

// called is what the team calls the member.
func (m *member) called() string {
	if m.spec != nil {
		return m.spec.Name
	}
	return m.Name
}

// whole plans the task that the members' are parts of.
func (t *team) whole(ctx context.Context) error {
	if t.file == nil {
		return nil
	}
	t.made = 0
	t.task = belay.TaskID(t.id(belay.PrefixTask, 0))
	t.out.Team = t.task
	plan := belay.TaskPlan{Title: t.file.Name, Owner: t.file.Title(), CompleteAt: cmp.Or(t.file.CompleteAt, 1)}
	if len(t.file.Result) > 0 {
		b := belay.Binding{Values: t.file.Result, Team: t.data(), Members: map[string]belay.TaskID{}, Output: t.file.Output}
		for _, m := range t.members {
			b.Members[m.spec.Name] = m.task
		}
		ref, err := t.keep(ctx, b)
		if err != nil {
			return err
		}
		plan.Input = &ref
	}
	return t.planned(ctx, belay.PlanTask{Task: t.task, Plan: plan}, cmp.Or(strings.TrimSpace(t.in.Text), t.file.Description, "The work of team "+t.file.Name))
}

// bind keeps what the input of a member is made of when it begins.
func (m *member) bind(ctx context.Context, t *team, plan *belay.TaskPlan) error {
	if len(m.spec.Input) == 0 {
		return nil
	}
	b := belay.Binding{Text: m.texts[0], Values: m.spec.Input, Team: t.data(), Members: map[string]belay.TaskID{}, Rules: m.ref}
	for _, before := range m.after {
		b.Members[before.spec.Name] = before.task
	}
	ref, err := t.keep(ctx, b)
	plan.Input = &ref
	return err
}

func (t *team) keep(ctx context.Context, b belay.Binding) (belay.Ref, error) {
	raw, err := json.Marshal(b)
	if err != nil {
		return belay.Ref{}, err
	}
	return t.r.Store.Put(ctx, t.r.Workspaces.Secrets().Bytes(raw), "application/json")
}
