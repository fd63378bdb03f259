package agents

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/config/agentfile"
	"github.com/belay-run/belay/internal/core/session"
	"github.com/belay-run/belay/internal/model/tokens"
	"github.com/belay-run/belay/internal/policy"
)

// Commands are the rows of this feature.
func Commands() []app.Command {
	return []app.Command{
		app.Define("pause_agent", auth.Work, true, "Hold what an agent does that is kept as a file, in all sessions; what is new waits.", Pause),
		app.Define("resume_agent", auth.Work, true, "Let an agent work that was paused or stopped, or that is unhealthy.", Resume).RunsAgents(),
		app.Define("check_agent", auth.Own, true, "Run the health command of an agent that is kept as a file.", Check),
		app.Define("stop_agent", auth.Work, true, "Let an agent take no new work; it ends what it has.", Stop),
		app.Define("run_agents", auth.Work, true, "Have agents that are kept as files work side by side in a new session, each after those that it requires.", runAgents).RunsAgents(),
	}
}

// RunAgents is what run_agents takes.
type RunAgents struct {
	Session      belay.SessionID   `json:"sessionId,omitempty" jsonschema:"of the new session: told twice, it is one"`
	Workspace    string            `json:"workspace,omitempty" jsonschema:"the folder; the server's own when it is left out"`
	Agents       []string          `json:"agents" jsonschema:"NAME, NAME@RANGE or ORIGIN:NAME"`
	Text         string            `json:"text,omitempty" jsonschema:"what each of them is to do; none: the tasks of its file"`
	Input        input.Object      `json:"input,omitempty" jsonschema:"data that one agent, or a team, is started with, by the schema of its file"`
	WithRequired bool              `json:"withRequired,omitempty" jsonschema:"also those that these require, and those require"`
	Conditions   []string          `json:"conditions,omitempty" jsonschema:"tasks of files that are done on a condition: those of these"`
	Max          int               `json:"max,omitempty" jsonschema:"how many may work at the same time; none: all"`
	Settings     app.SettingsInput `json:"settings,omitzero" jsonschema:"of the session"`
}

// TeamStarted is a session in which agents were given work.
type TeamStarted struct {
	Session belay.SessionID `json:"sessionId"`
	Team    belay.TaskID    `json:"teamTaskId,omitempty"` // of a team that a file makes: the whole
	Members []Member        `json:"members"`
}

// Member is an agent of a session with its task.
type Member struct {
	Agent string         `json:"agent"`
	Task  belay.TaskID   `json:"taskId"`
	Parts []belay.TaskID `json:"parts,omitempty"` // the tasks of its file, which are done one after the other
	After []string       `json:"after,omitempty"` // agents that end before it begins
	Name  string         `json:"name,omitempty"`  // in the team of a file

	Starved string `json:"starved,omitempty"` // why it doesn't begin
}

func runAgents(ctx context.Context, r *app.Call, in *RunAgents) (*TeamStarted, error) {
	ws, err := r.Workspaces.Workspace(ctx, in.Workspace)
	if err != nil {
		return nil, input.At("workspace", err)
	}
	if err := r.MayWiden(ctx, in.Settings, &session.State{}); err != nil {
		return nil, err
	}
	settings, err := r.Workspaces.Settings(ctx, ws, nil, in.Settings)
	if err != nil {
		return nil, err
	}
	return Run(ctx, r, in, ws, settings)
}

// OwnPart is what an agent is told that is told nothing else.
const OwnPart = "Do your part."

// maxMembers bounds the agents that work in one session: each may have several tasks.
const maxMembers = 64

// Run gives agents work in a new session with these settings.
func Run(ctx context.Context, r *app.Call, in *RunAgents, ws string, settings belay.Settings) (*TeamStarted, error) {
	if in.Session == "" {
		in.Session = belay.SessionID(belay.NewID(belay.PrefixSession))
		if r.Key != "" {
			in.Session = belay.SessionID(r.Keyed(belay.PrefixSession))
		}
	}
	settings.Agent = "" // each member is one
	t := &team{r: r, in: in, out: &TeamStarted{Session: in.Session}, ws: ws, settings: settings}
	cat, err := r.Workspaces.Agents(ctx, ws)
	if err != nil {
		return nil, err
	}
	if err := t.choose(ctx, cat); err != nil {
		return nil, err
	}
	t.settings.Agents.Running = cmp.Or(in.Max, len(t.members))
	t.settings.Completion = belay.CompletionRequired
	if err := t.estimates(ctx); err != nil {
		return nil, err
	}
	t.allot()
	for _, m := range t.members { // before anything is made: what can't be is refused whole
		if err := m.rules(ctx, t); err != nil {
			return nil, input.At("agents", err)
		}
	}
	made := r.Order(belay.CommandID(t.id(belay.PrefixCommand, 0)), in.Session, in.Session.Stream(), belay.CreateSession{Workspace: ws, Title: t.title(), Settings: t.settings})
	if _, err := r.Engine.Submit(ctx, made); err != nil {
		return nil, err
	}
	quotas, err := r.Workspaces.Quotas(ctx, ws)
	if err != nil {
		return nil, err
	}
	for i, m := range t.members {
		t.made = i + 1
		m.made, m.Task, m.thread = t.made, belay.TaskID(t.id(belay.PrefixTask, 0)), belay.ThreadID(t.id(belay.PrefixThread, 0))
	}
	if err := t.whole(ctx); err != nil {
		return nil, err
	}
	for _, m := range t.members {
		if err := m.plan(ctx, t); err != nil {
			return nil, err
		}
	}
	for _, m := range t.members {
		if m.Starved != "" {
			for _, id := range append([]belay.TaskID{m.Task}, m.parts...) { // the whole first: it has the reason
				if _, err := r.Send(ctx, in.Session, id.Stream(), belay.FailTask{Reason: m.Starved}); err != nil {
					return nil, err
				}
			}
			continue
		}
		for i, id := range m.work() {
			c := belay.BeginTask{Task: id, Thread: m.thread, Turn: belay.TurnID(belay.DeriveID(belay.PrefixTurn, id.Stream(), 0, i)), Rules: m.ref, Memory: m.memory, Quotas: quotas}
			if _, err := r.Send(ctx, in.Session, in.Session.Stream(), c); err != nil {
				return nil, err
			}
		}
	}
	return t.out, nil
}

// team is agents that are about to get work.
type team struct {
	r        *app.Call
	in       *RunAgents
	out      *TeamStarted
	ws       string
	settings belay.Settings
	members  []*member // each behind those that it requires
	made     int       // ids

	file *agentfile.Agent // that makes the team; nil: none does
	task belay.TaskID     // of the whole
}

// member is one of them.
type member struct {
	*agentfile.Part
	made   int            // its ids
	parts  []belay.TaskID // of its work, if they are several
	texts  []string
	titles []string // of parts
	thread belay.ThreadID
	ref    belay.Ref // its rules
	again  belay.Retry
	memory belay.MemoryNeed
}

// id is the next id of the team.
func (t *team) id(prefix string, ordinal int) string {
	return belay.DeriveID(prefix, t.in.Session.Stream()+"/team", int64(t.made), ordinal)
}

func (t *team) title() string {
	var names []string
	for _, m := range t.members {
		names = append(names, m.Name)
	}
	return app.Cut(strings.Join(names, ", "), 80)
}

// choose finds the agents, those that they require, and an order in which each comes
// behind those.
func (t *team) choose(ctx context.Context, cat *agentfile.Catalog) error {
	if len(t.in.Agents) == 0 {
		return input.At("agents", belay.Errorf(belay.CodeUsage, "no agent is named").WithHint("belay agents list shows them"))
	}
	if t.in.Max < 0 {
		return input.At("max", belay.Errorf(belay.CodeUsage, "%d agents can't work at the same time", t.in.Max).WithHint("a number from 1, or none for all"))
	}
	if len(t.in.Agents) == 1 {
		a, err := cat.Find(t.in.Agents[0])
		if err == nil && len(a.Members) > 0 {
			return t.fromFile(ctx, cat, a)
		}
	}
	if t.in.Input != nil && len(t.in.Agents) > 1 {
		return input.At("input", belay.Errorf(belay.CodeUsage, "data is for one agent, and these are %d", len(t.in.Agents)).WithHint("put it into the text, or make a team of them in a file"))
	}
	var named []*agentfile.Agent
	for _, name := range t.in.Agents {
		a, err := cat.Find(name)
		if err != nil {
			return input.At("agents", err)
		}
		if !slices.Contains(named, a) {
			named = append(named, a)
		}
	}
	whole, err := cat.Order(named...)
	if e, ok := err.(*belay.Error); ok && (t.in.WithRequired || e.Code != agentfile.CodeMissing) { //nolint:errorlint // Order makes it
		return input.At("agents", belay.Errorf(belay.CodeBadManifest, "%s: %s", e.Code, e.Message).WithHint("%s", e.Hint))
	}
	if !t.in.WithRequired {
		if whole = slices.DeleteFunc(whole, func(a *agentfile.Agent) bool { return !slices.Contains(named, a) }); len(whole) < len(named) {
			whole = named
		}
	}
	if len(whole) > maxMembers {
		return input.At("agents", belay.Errorf(belay.CodeTooMany, "these are %d agents; %d can work in one session", len(whole), maxMembers))
	}
	for _, a := range whole {
		m := &member{Part: &agentfile.Part{Agent: a}, texts: t.texts(a)}
		m.titles = slices.Clone(m.texts)
		if t.in.Input != nil && a == named[0] {
			if len(m.texts) == 0 {
				m.texts = []string{OwnPart}
			}
			for i, text := range m.texts {
				if m.texts[i], err = cat.Told(t.in.Agents[0], text, t.data(), true); err != nil {
					return input.At("input", err)
				}
			}
		}
		if len(m.texts) == 0 {
			return input.At("text", belay.Errorf(belay.CodeUsage, "agent %s has no tasks of its own", a.Title()).At(a.Path).WithHint("say what it is to do, or give its file tasks"))
		}
		for _, n := range a.Requires {
			if i := slices.IndexFunc(t.members, func(b *member) bool { return b.Name == n.Name && b.Fits(n.Range) }); i >= 0 {
				m.After = append(m.After, t.members[i].Part)
			}
		}
		t.members = append(t.members, m)
	}
	for _, c := range t.in.Conditions {
		if !slices.ContainsFunc(t.members, func(m *member) bool { return len(m.Conditional[c]) > 0 }) {
			return input.At("conditions", belay.Errorf(belay.CodeUsage, "no file here has tasks of condition %s", input.Shown(c)).WithHint("tasks.conditional in the file of an agent names them"))
		}
	}
	t.order()
	return nil
}

// texts are what an agent is to do, by priority, then as its file has them.
func (t *team) texts(a *agentfile.Agent) (texts []string) {
	if text := strings.TrimSpace(t.in.Text); text != "" {
		return []string{text}
	}
	all := slices.Clone(a.Tasks)
	for _, c := range t.in.Conditions {
		all = append(all, a.Conditional[c]...)
	}
	rank := func(s agentfile.StandingTask) int {
		return slices.Index(agentfile.Priorities, cmp.Or(s.Priority, "medium"))
	}
	slices.SortStableFunc(all, func(x, y agentfile.StandingTask) int { return cmp.Compare(rank(x), rank(y)) })
	for _, s := range all {
		texts = append(texts, s.Description)
	}
	return texts
}

// rules keeps what the member's turns are decided by.
func (m *member) rules(ctx context.Context, t *team) (err error) {
	s := t.settings
	s.Agent = m.Exactly()
	s.Limits = s.Limits.Within(belay.Limits{Tokens: m.Allowed.Tokens, MicroUSD: m.Allowed.MicroUSD})
	if t.file != nil {
		of := t.file.Limits
		s.Limits = s.Limits.Within(belay.Limits{Steps: of.Steps, Calls: of.Calls, Time: of.Time})
	}
	if m.ref, err = t.r.Workspaces.Rules(ctx, t.r.By.String(), t.ws, s); err != nil {
		return err
	}
	rules, err := t.r.RulesOf(ctx, m.ref)
	if err != nil {
		return err
	}
	m.again, m.memory = rules.Retry(), rules.Memory()
	for i := range m.texts {
		m.texts[i] = rules.Worded(m.texts[i])
	}
	if most := s.Agents.MemoryLimit(m.memory.Machine); most > 0 && m.memory.Declared > most {
		return belay.Errorf(belay.CodeBadState, "agent %s declares %s of memory, and agents-memory is %s", m.Title(), policy.SizeText(m.memory.Declared), policy.SizeText(most)).At(m.Path).
			WithHint("lower its limits.memory, or raise the setting agents-memory")
	}
	if m.Spec == nil {
		return nil
	}
	if len(rules.Input) > 0 && len(m.Spec.Input) == 0 {
		return belay.Errorf(belay.CodeBadInput, "member %s gets no input, and its agent wants some", m.Spec.Name).At(t.file.Path).WithHint("its schema is %s", app.Cut(string(rules.Input), 500))
	}
	for _, name := range m.Spec.Fallback {
		s.Agent = name
		ref, err := t.r.Workspaces.Rules(ctx, t.r.By.String(), t.ws, s)
		if err != nil {
			return err
		}
		m.again.Fallback = append(m.again.Fallback, belay.Substitute{Agent: name, Rules: ref})
	}
	m.again.Fallback = m.again.Fallback[:min(len(m.again.Fallback), belay.MaxFallback)]
	return nil
}

// plan makes the member's task, and those that are its parts.
func (m *member) plan(ctx context.Context, t *team) error {
	t.made = m.made
	shown := Member{Agent: m.Title(), Task: m.Task, Starved: m.Starved}
	for _, b := range m.After {
		shown.After = append(shown.After, b.Title())
	}
	plan, blockers := m.Plan(), m.Blockers()
	plan.Retry = m.again
	if m.Spec != nil {
		shown.Name = m.Spec.Name
		if err := t.keep(ctx, m.Binding(m.texts[0], t.data(), m.ref), &plan); err != nil {
			return err
		}
	}
	if len(m.texts) == 1 {
		t.out.Members = append(t.out.Members, shown)
		return t.planned(ctx, belay.PlanTask{Task: m.Task, Parent: t.task, Plan: plan, BlockedBy: blockers}, m.texts[0])
	}
	whole := plan
	whole.Retry = belay.Retry{}
	whole.CompleteAt = cmp.Or(m.CompleteAt, 1)
	if err := t.planned(ctx, belay.PlanTask{Task: m.Task, Plan: whole}, strings.Join(m.texts, "\n")); err != nil {
		return err
	}
	for i, text := range m.texts {
		part := belay.TaskID(t.id(belay.PrefixTask, i+1))
		before := blockers
		if i > 0 {
			before = []belay.Blocker{{Task: m.parts[i-1], OnFailed: belay.OnFailedRun}}
		}
		plan.Title, _, _ = strings.Cut(m.titles[i], "\n")
		plan.Title = app.Cut(plan.Title, 80)
		if err := t.planned(ctx, belay.PlanTask{Task: part, Parent: m.Task, Plan: plan, BlockedBy: before}, text); err != nil {
			return err
		}
		m.parts = append(m.parts, part)
	}
	shown.Parts = m.parts
	t.out.Members = append(t.out.Members, shown)
	return nil
}

// work are the tasks that are started.
func (m *member) work() []belay.TaskID {
	if len(m.parts) > 0 {
		return m.parts
	}
	return []belay.TaskID{m.Task}
}

func (t *team) planned(ctx context.Context, c belay.PlanTask, text string) error {
	objective, err := app.Given{Text: text}.Keep(ctx, t.r.Store, t.r.Workspaces.Secrets(), tokens.Profile{}, t.settings)
	if err != nil {
		return err
	}
	c.Objective = objective
	c.Plan.Title, c.Plan.Owner = t.r.Clean(c.Plan.Title), t.r.Clean(c.Plan.Owner)
	_, err = t.r.Send(ctx, t.in.Session, t.in.Session.Stream(), c)
	return err
}
