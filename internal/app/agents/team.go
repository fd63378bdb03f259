package agents

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/config/agentfile"
)

// fromFile makes the team of a file's members. Each gets a task; what it begins after are
// its edges.
func (t *team) fromFile(ctx context.Context, cat *agentfile.Catalog, a *agentfile.Agent) error {
	if _, err := cat.Told(t.in.Agents[0], "team", t.data(), true); err != nil {
		return input.At("input", err)
	}
	book, _, err := t.r.Workspaces.AgentRecords(ctx)
	if err != nil {
		return err
	}
	if refused := book.AgentControl(a.Called()).Refuses(a.Called(), a.Path); refused != nil {
		return input.At("agents", refused)
	}
	parts, err := cat.Cast(a)
	if err != nil {
		return input.At("agents", err)
	}
	t.file = a
	for _, p := range parts {
		t.members = append(t.members, &member{Part: p, texts: []string{t.objective(p.Agent)}})
	}
	t.order()
	return nil
}

// order puts the members in the order in which they begin where several could.
func (t *team) order() {
	parts := agentfile.InOrder(t.parts())
	slices.SortFunc(t.members, func(a, b *member) int { return cmp.Compare(slices.Index(parts, a.Part), slices.Index(parts, b.Part)) })
}

func (t *team) parts() (parts []*agentfile.Part) {
	for _, m := range t.members {
		m.Turns = len(m.texts)
		parts = append(parts, m.Part)
	}
	return parts
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
	}
	t.order()
	return nil
}

// allot shares the tokens of the team among its members, and the money of one that a file
// makes.
func (t *team) allot() {
	total := belay.Amounts{Tokens: cmp.Or(t.settings.Limits.Tokens, t.settings.Budget.Tokens)}
	if t.file != nil {
		total.Tokens, total.MicroUSD = cmp.Or(t.file.Tokens.Optimal, total.Tokens), t.file.Limits.MicroUSD
	}
	agentfile.Allot(total, t.parts())
}

// whole plans the task that the members' are parts of.
func (t *team) whole(ctx context.Context) error {
	if t.file == nil {
		return nil
	}
	t.made = 0
	t.task = belay.TaskID(t.id(belay.PrefixTask, 0))
	t.out.Team = t.task
	plan, output := t.file.Whole(t.parts(), t.data())
	if err := t.keep(ctx, output, &plan); err != nil {
		return err
	}
	return t.planned(ctx, belay.PlanTask{Task: t.task, Plan: plan}, cmp.Or(strings.TrimSpace(t.in.Text), t.file.Description, "The work of team "+t.file.Name))
}

// keep keeps what the input of a plan is made of; nil: it has none.
func (t *team) keep(ctx context.Context, b *belay.Binding, plan *belay.TaskPlan) error {
	if b == nil {
		return nil
	}
	raw, err := json.Marshal(b)
	if err != nil {
		return err
	}
	ref, err := t.r.Store.Put(ctx, t.r.Workspaces.Secrets().Bytes(raw), "application/json")
	plan.Input = &ref
	return err
}
