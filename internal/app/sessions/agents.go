package sessions

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/core/budget"
	"github.com/belay-run/belay/internal/core/session"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/model/tokens"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/view"
)

// ListSubagents is what list_subagents takes.
type ListSubagents struct {
	Session belay.SessionID `json:"sessionId"`
	Thread  belay.ThreadID  `json:"threadId,omitempty" jsonschema:"only the agents below the one with this thread, and what it has left; all when it is left out"`
	app.AsOf
}

// SubagentsShown are the sub-agents of a session, in the order in which they were opened.
type SubagentsShown struct {
	app.Fresh
	Session belay.SessionID   `json:"sessionId"`
	Limits  belay.AgentLimits `json:"limits"`
	Free    *session.Places   `json:"free,omitempty"` // of a thread: what the limits have room for
	Left    *belay.Limits     `json:"left,omitempty"` // of a thread: what its turn and the session's budget have left; 0 is no limit
	Agents  []SubagentShown   `json:"agents"`
	Late    bool              `json:"late,omitempty"` // of a wait: its time was over first
}

// SubagentShown is a sub-agent and how far it is.
type SubagentShown struct {
	Subagent   belay.SubagentID `json:"subagentId"`
	Parent     belay.ThreadID   `json:"parentThreadId"`
	Thread     belay.ThreadID   `json:"threadId"`
	Task       belay.TaskID     `json:"taskId"`
	Agent      string           `json:"agent"`
	Name       string           `json:"name,omitempty"`
	Status     string           `json:"status"` // queued, running, paused, waiting_permission, waiting_input, or how it ended
	Depth      int              `json:"depth"`  // 1 is a child of a main thread
	Background bool             `json:"background,omitempty"`
	Doing      string           `json:"doing,omitempty"`      // the call that runs
	WaitingFor []belay.ActionID `json:"waitingFor,omitempty"` // questions of its own, and of those that it waits for
	Steps      int              `json:"steps"`
	Calls      int              `json:"calls"`
	Usage      belay.Usage      `json:"usage"`
	MicroUSD   int64            `json:"microUsd,omitempty"` // known to be charged, in millionths of a US dollar
	Active     belay.Duration   `json:"active,omitempty"`
	app.Allowed
}

// Subagents lists the sub-agents of a session.
func Subagents(ctx context.Context, r *app.Call, f app.Fresh, in *ListSubagents) (*SubagentsShown, error) {
	s, err := r.Known(ctx, in.Session)
	if err != nil {
		return nil, err
	}
	seen, err := app.FindSession(ctx, r.Store, string(in.Session))
	if err != nil {
		return nil, err
	}
	out := &SubagentsShown{Fresh: f, Session: in.Session, Limits: s.Settings.Agents.OrDefaults(), Agents: []SubagentShown{}}
	if in.Thread != "" {
		if err := out.ofThread(ctx, r, s, in.Thread); err != nil {
			return nil, err
		}
	}
	for _, c := range s.Family {
		if in.Thread != "" && !s.Family.Below(c.Thread, in.Thread) {
			continue
		}
		th, err := r.Thread(ctx, c.Thread)
		if err != nil {
			return nil, err
		}
		a := subagent(c, th)
		var programs view.Programs
		if i := slices.IndexFunc(seen.Threads, func(t view.Thread) bool { return t.ID == c.Thread }); i >= 0 {
			programs = seen.Threads[i].Programs
		}
		rules, err := r.RulesOf(ctx, c.Rules)
		if err != nil {
			return nil, err
		}
		a.Allowed = app.AllowedBy(rules, programs)
		for _, o := range th.Opens() {
			a.WaitingFor = append(a.WaitingFor, o.Action)
		}
		out.Agents = append(out.Agents, a)
	}
	for i := len(out.Agents) - 1; i >= 0; i-- { // a child comes behind its parent
		a := &out.Agents[i]
		if p := slices.IndexFunc(out.Agents, func(p SubagentShown) bool { return p.Thread == a.Parent }); p >= 0 && !a.Background {
			out.Agents[p].WaitingFor = append(out.Agents[p].WaitingFor, a.WaitingFor...)
		}
	}
	return out, nil
}

// ofThread adds what an agent with a thread has left.
func (out *SubagentsShown) ofThread(ctx context.Context, r *app.Call, s *session.State, id belay.ThreadID) error {
	if !slices.Contains(s.All(), id) {
		return input.At("threadId", belay.Errorf(belay.CodeNotFound, "the session has no thread %s", input.Shown(string(id))).WithHint("list_subagents without threadId lists all"))
	}
	th, err := r.Thread(ctx, id)
	if err != nil {
		return err
	}
	var turn belay.TurnID
	if th.Turn != nil {
		turn = th.Turn.Turn
	}
	free, left := s.Places(id, turn), th.Left(r.Now())
	if s.Budget.Limited() { // 0 is no limit
		b := s.Budget.Left().Max(belay.Amounts{MicroUSD: 1, Tokens: 1, Calls: 1, Time: 1}).Only(s.Budget.Told())
		left = left.Within(belay.Limits{MicroUSD: b.MicroUSD, Tokens: b.Tokens, Calls: int(b.Calls), Time: b.Time})
	}
	out.Free, out.Left = &free, &left
	return nil
}

// below are the open questions of agents that a thread waits for.
func below(s *session.State, thread belay.ThreadID, open []app.Action) (ids []belay.ActionID) {
	for _, a := range open {
		at := a.Thread
		for c := s.Family.ByThread(at); c != nil && !c.Background && at != thread; c = s.Family.ByThread(at) {
			at = c.Parent
		}
		if at == thread && a.Thread != thread {
			ids = append(ids, a.ID)
		}
	}
	return ids
}

func subagent(c session.Child, th *thread.State) SubagentShown {
	a := SubagentShown{Subagent: c.ID, Parent: c.Parent, Thread: c.Thread, Task: c.Task, Agent: c.Agent, Name: c.Nickname, Status: "running", Depth: c.Depth, Background: c.Background}
	switch {
	case c.Outcome != "":
		a.Status = string(c.Outcome)
		a.Steps, a.Calls, a.Usage, a.MicroUSD, a.Active = c.Steps, c.Calls, c.Usage, c.MicroUSD, c.Active
		return a
	case c.Waits:
		a.Status = "queued"
	}
	if c.Paused {
		a.Status = event.Paused
	}
	if t := c.Team; t != nil {
		a.Steps, a.Calls, a.Usage, a.MicroUSD, a.Active = t.Used.Steps, t.Used.Calls, t.Used.Usage, t.Used.MicroUSD, t.Used.Active
	}
	t := th.Turn
	if t == nil {
		return a
	}
	a.Steps, a.Calls, a.Usage, a.MicroUSD, a.Active = t.Steps, t.Calls, t.Usage, t.Cost.MicroUSD, belay.Duration(t.Active)
	for _, o := range th.Opens() {
		if c.Paused {
			break
		}
		a.Status = "waiting_input"
		if o.Ask.Kind == "permission" {
			a.Status = "waiting_permission"
		}
	}
	if t.Step != nil {
		for _, call := range t.Step.Calls {
			if call.Phase == thread.CallRunning || call.Phase == thread.CallWaits {
				a.Doing = call.Name
			}
		}
	}
	return a
}

// CloseSubagent is what close_subagent takes.
type CloseSubagent struct {
	Session  belay.SessionID  `json:"sessionId"`
	Subagent belay.SubagentID `json:"subagentId"`
	Grace    bool             `json:"grace,omitempty" jsonschema:"it gets one more step, in which it can only complete"`
	Reason   string           `json:"reason,omitempty"`
}

// CloseAgent ends a sub-agent, with those that it started.
func CloseAgent(ctx context.Context, r *app.Call, in *CloseSubagent) (*app.Result, error) {
	return toAgent(ctx, r, in.Session, in.Subagent, in.Reason, belay.CloseSubagent{Subagent: in.Subagent, Reason: in.Reason, Grace: in.Grace})
}

// toAgent brings a command about a sub-agent to its session.
func toAgent(ctx context.Context, r *app.Call, id belay.SessionID, agent belay.SubagentID, reason string, c belay.Command) (*app.Result, error) {
	if err := cmp.Or(input.Named("subagentId", string(agent)), input.Text("reason", reason, app.MaxReason)); err != nil {
		return nil, err
	}
	s, err := r.Known(ctx, id)
	if err != nil {
		return nil, err
	}
	if s.Family.Find(agent) == nil {
		return nil, input.At("subagentId", app.NoAgent(s, agent))
	}
	told, err := r.Send(ctx, id, id.Stream(), c)
	return told, input.At("subagentId", err)
}

// PauseSubagent is what pause_subagent takes.
type PauseSubagent struct {
	Session  belay.SessionID  `json:"sessionId"`
	Subagent belay.SubagentID `json:"subagentId"`
	Now      bool             `json:"now,omitempty" jsonschema:"what is in flight is cancelled; else it finishes"`
	Reason   string           `json:"reason,omitempty"`
}

// PauseAgent keeps a sub-agent, and those that it started, from beginning anything.
func PauseAgent(ctx context.Context, r *app.Call, in *PauseSubagent) (*app.Result, error) {
	told, err := toAgent(ctx, r, in.Session, in.Subagent, in.Reason, belay.PauseSubagent{Subagent: in.Subagent, Now: in.Now, Reason: in.Reason})
	if err != nil {
		return nil, err
	}
	s, err := r.Known(ctx, in.Session)
	if err == nil {
		told.Programs, err = r.Background(ctx, s, s.Family.Find(in.Subagent).Thread)
	}
	return told, err
}

// ResumeSubagent is what resume_subagent takes.
type ResumeSubagent struct {
	Session  belay.SessionID  `json:"sessionId"`
	Subagent belay.SubagentID `json:"subagentId"`
	Reason   string           `json:"reason,omitempty"`
}

// ResumeAgent ends a pause.
func ResumeAgent(ctx context.Context, r *app.Call, in *ResumeSubagent) (*app.Result, error) {
	return toAgent(ctx, r, in.Session, in.Subagent, in.Reason, belay.ResumeSubagent{Subagent: in.Subagent, Reason: in.Reason})
}

// SendSubagentInput is what send_subagent_input takes.
type SendSubagentInput struct {
	Session   belay.SessionID  `json:"sessionId"`
	Subagent  belay.SubagentID `json:"subagentId"`
	Text      string           `json:"text"`
	Interrupt bool             `json:"interrupt,omitempty" jsonschema:"what it does now ends"`
	Turn      belay.TurnID     `json:"turnId,omitempty" jsonschema:"the caller's id of its new turn"`
}

// SendInput gives a sub-agent a text.
func SendInput(ctx context.Context, r *app.Call, in *SendSubagentInput) (*app.Result, error) {
	if err := cmp.Or(input.Named("subagentId", string(in.Subagent)), input.ID("turnId", string(in.Turn)), input.Text("text", in.Text, app.MaxText)); err != nil {
		return nil, err
	}
	if strings.TrimSpace(in.Text) == "" {
		return nil, input.At("text", belay.Errorf(belay.CodeBadCommand, "the text is empty").WithHint("say what it is to know or do"))
	}
	s, err := r.Known(ctx, in.Session)
	if err != nil {
		return nil, err
	}
	text, err := app.Given{Text: in.Text}.Keep(ctx, r.Store, r.Workspaces.Secrets(), tokens.Profile{}, s.Settings)
	if err != nil {
		return nil, err
	}
	return r.ToSubagent(ctx, s, in.Subagent, in.Turn, text, in.Interrupt)
}

// WaitSubagents is what wait_subagents takes.
type WaitSubagents struct {
	Session   belay.SessionID    `json:"sessionId"`
	Subagents []belay.SubagentID `json:"subagentIds,omitempty" jsonschema:"all that are open when it is left out"`
	All       bool               `json:"all,omitempty" jsonschema:"until all have ended, not one"`
	Timeout   int                `json:"timeoutSeconds,omitempty" jsonschema:"at most 60, which is also the default; then they are shown as they are"`
}

// maxWait is how long an answer of wait_subagents takes at most, in seconds.
const maxWait = 60

// Wait waits until sub-agents have ended, for a time, and shows them.
func Wait(ctx context.Context, r *app.Call, in *WaitSubagents) (*SubagentsShown, error) {
	if in.Timeout < 0 || in.Timeout > maxWait {
		return nil, input.At("timeoutSeconds", belay.Errorf(belay.CodeBadCommand, "%d seconds are none of 0 to %d", in.Timeout, maxWait))
	}
	timeout := time.After(time.Duration(cmp.Or(in.Timeout, maxWait)) * time.Second)
	for {
		changed := r.Store.Changed(ctx)
		s, err := r.Known(ctx, in.Session)
		if err != nil {
			return nil, err
		}
		if len(s.Family) == 0 {
			return nil, r.Hinted(belay.Errorf(belay.CodeNotFound, "the session has started no agents: there is nobody to wait for").At(string(in.Session)).WithHint("belay agents spawn TASK starts one"), "spawn_subagent starts one")
		}
		over, open, err := waited(s, in.Subagents)
		late := false
		if err == nil && open > 0 && (in.All || over == 0) {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-timeout:
				late = true
			case <-changed:
				continue
			}
		}
		if err != nil {
			return nil, err
		}
		fresh, err := r.Fresh(ctx, 0)
		if err != nil {
			return nil, err
		}
		out, err := Subagents(ctx, r, fresh, &ListSubagents{Session: in.Session})
		if err != nil {
			return nil, err
		}
		out.Late = late
		if len(in.Subagents) > 0 {
			out.Agents = slices.DeleteFunc(out.Agents, func(a SubagentShown) bool { return !slices.Contains(in.Subagents, a.Subagent) })
		}
		return out, nil
	}
}

// waited counts the sub-agents that are waited for: those that have ended, and those
// that haven't.
func waited(s *session.State, ids []belay.SubagentID) (over, open int, err error) {
	for _, id := range ids {
		if s.Family.Find(id) == nil {
			return 0, 0, input.At("subagentIds", app.NoAgent(s, id))
		}
	}
	for _, c := range s.Family {
		switch {
		case len(ids) > 0 && !slices.Contains(ids, c.ID):
		case c.Outcome == "":
			open++
		case len(ids) > 0:
			over++
		}
	}
	return over, open, nil
}

// SpawnSubagent is what spawn_subagent takes.
type SpawnSubagent struct {
	Session  belay.SessionID  `json:"sessionId"`
	Subagent belay.SubagentID `json:"subagentId,omitempty" jsonschema:"the caller's id of the agent: told twice, it is one agent"`
	Parent   belay.SubagentID `json:"parentSubagentId,omitempty" jsonschema:"the agent whose child it is; the session's main agent when it is left out"`
	tool.SpawnArgs
}

// Most sets the most that the agent may use: steps, and amounts as people write them,
// such as 2usd,500ktok,300calls,30m. What is 0 or empty is no limit of its own.
func (in *SpawnSubagent) Most(steps int, amounts string) error {
	limits := belay.Limits{Steps: steps}
	if amounts != "" {
		l, err := budget.Parse(amounts)
		if err == nil && l.Raise {
			err = belay.Errorf(belay.CodeUsage, "an agent that begins has no limit to raise").WithHint("leave the + out")
		}
		if err != nil {
			return input.At("budget", err)
		}
		limits.MicroUSD, limits.Tokens, limits.Calls, limits.Time = l.MicroUSD, l.Tokens, int(l.Calls), l.Time
	}
	if limits != (belay.Limits{}) {
		in.Budget = tool.SpawnLimitOf(limits)
	}
	return nil
}

// Spawn starts a sub-agent, in the background of its parent.
func Spawn(ctx context.Context, r *app.Call, in *SpawnSubagent) (*app.Result, error) {
	if err := cmp.Or(input.ID("subagentId", string(in.Subagent)), input.ID("parentSubagentId", string(in.Parent)), input.Text("task", in.Task, app.MaxText), input.Text("name", in.Name, app.MaxTitle)); err != nil {
		return nil, err
	}
	if strings.TrimSpace(in.Task) == "" {
		return nil, input.At("task", belay.Errorf(belay.CodeBadCommand, "the task is empty").WithHint("say what the agent is to do; it knows nothing else"))
	}
	s, err := r.Known(ctx, in.Session)
	if err != nil {
		return nil, err
	}
	if in.Subagent == "" {
		in.Subagent = belay.SubagentID(belay.NewID(belay.PrefixSubagent))
		if r.Key != "" {
			in.Subagent = belay.SubagentID(r.Keyed(belay.PrefixSubagent))
		}
	}
	c := belay.SpawnSubagent{Subagent: in.Subagent, Nickname: in.Name, Background: true}
	switch p := s.Family.Find(in.Parent); {
	case in.Parent == "" && len(s.Threads) == 0:
		return nil, r.Hinted(belay.Errorf(belay.CodeBadState, "the session has no agent yet").At(string(s.Session)).WithHint("belay run --session %s TEXT begins", s.Session), "submit_turn begins")
	case in.Parent == "":
		c.Parent = s.Threads[len(s.Threads)-1]
	case p == nil:
		return nil, input.At("parentSubagentId", app.NoAgent(s, in.Parent))
	case p.Outcome != "":
		return nil, input.At("parentSubagentId", belay.Errorf(belay.CodeBadState, "agent %s has ended: %s", in.Parent, p.Outcome).WithHint("leave it out, or send it something first"))
	case p.Team != nil:
		return nil, input.At("parentSubagentId", belay.Errorf(belay.CodeBadState, "agent %s is a team, which starts no agents", in.Parent).WithHint("leave it out"))
	default:
		c.Parent = p.Thread
	}
	if err := r.PrepareChild(ctx, s, in.SpawnArgs, &c); err != nil {
		return nil, r.Refuse(ctx, in.Session, err, func(e *belay.Error) belay.Command { c.Refused = e; return c })
	}
	in.Task = c.Text.Text
	if c.Text, err = (app.Given{Text: in.Objective()}).Keep(ctx, r.Store, r.Workspaces.Secrets(), tokens.Profile{}, s.Settings); err != nil {
		return nil, err
	}
	told, err := r.Send(ctx, in.Session, in.Session.Stream(), c)
	if err != nil {
		return nil, r.Hinted(err, "wait_subagents waits for one to end, close_subagent ends one")
	}
	told.Subagent = in.Subagent
	told.Thread, told.Task = session.OfSubagent(in.Subagent)
	return told, nil
}
