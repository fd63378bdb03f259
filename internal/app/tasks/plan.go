package tasks

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/app/read"
	"github.com/belay-run/belay/internal/core/session"
	"github.com/belay-run/belay/internal/core/task"
	"github.com/belay-run/belay/internal/lib/match"
	"github.com/belay-run/belay/internal/model/tokens"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/tool"
)

// CreateTask is what create_task takes. Without a session id, and for one that there
// isn't yet, a session is made.
type CreateTask struct {
	Session   belay.SessionID `json:"sessionId,omitempty" jsonschema:"the session; a new one is made for an id that is new, or none"`
	Task      belay.TaskID    `json:"taskId,omitempty" jsonschema:"the caller's id of the task: told twice, it is one task"`
	Title     string          `json:"title,omitempty" jsonschema:"what lists call it; the first line of the objective when it is left out"`
	Objective string          `json:"objective" jsonschema:"what to do"`
	Priority  string          `json:"priority,omitempty" jsonschema:"among tasks that can start: low, normal, high"`
	Owner     string          `json:"owner,omitempty" jsonschema:"who answers for it"`
	Assignee  string          `json:"assignee,omitempty" jsonschema:"the agent that does it, as a child of the session's main agent; that one does it when it is left out"`
	Parent    belay.TaskID    `json:"parentTaskId,omitempty" jsonschema:"the task that it is a part of"`
	BlockedBy []Blocker       `json:"blockedBy,omitempty" jsonschema:"tasks that must end before it starts"`

	Acceptance []app.CheckInput `json:"acceptance,omitempty" jsonschema:"what must hold before it counts as done, at most 16"`

	Constraints *ConstraintsInput `json:"constraints,omitempty" jsonschema:"what its attempts keep within, besides what the session may"`

	Retry *RetryInput `json:"retry,omitempty" jsonschema:"when it is tried again by itself; never when it is left out"`

	Workspace string `json:"workspace,omitempty" jsonschema:"folder of a new session; the server's own when it is left out"`

	goal bool
}

// Blocker is a task that must end before another one starts.
type Blocker struct {
	Task     belay.TaskID `json:"taskId"`
	OnFailed string       `json:"onFailed,omitempty" jsonschema:"if it doesn't end well: block (the other task waits until it does), skip (it is cancelled), run (it starts)"`
}

// RetryInput says when a task is tried again by itself.
type RetryInput struct {
	Max     int      `json:"max" jsonschema:"attempts more than the first, up to 10; 0: none"`
	On      []string `json:"on,omitempty" jsonschema:"after these outcomes: failed, no_completion, timed_out, lost, denied, blocked, budget; the first four when it is left out"`
	Backoff string   `json:"backoff,omitempty" jsonschema:"before the first of them, such as 30s; each waits twice as long as the one before"`
}

// retry is what the caller wrote.
func (in *RetryInput) retry() (r belay.Retry, err error) {
	if in == nil {
		return r, nil
	}
	if in.Max < 0 || in.Max > belay.MaxRetries {
		return r, input.At("retry.max", belay.Errorf(belay.CodeBadCommand, "%d attempts can't follow by themselves; 0 to %d can", in.Max, belay.MaxRetries).WithHint("name a number up to %d", belay.MaxRetries))
	}
	r.Max = in.Max
	for _, word := range in.On {
		o := belay.Outcome(word)
		if !slices.Contains(belay.Outcomes, o) || o == belay.Completed || o == belay.Cancelled {
			return r, input.At("retry.on", belay.Errorf(belay.CodeBadCommand, "a task isn't tried again after %q", input.Shown(word)).WithHint("failed, no_completion, timed_out, lost, denied, blocked, budget"))
		}
		r.On = append(r.On, o)
	}
	if in.Backoff != "" {
		d, err := time.ParseDuration(in.Backoff)
		if err != nil || d < 0 || d > time.Hour {
			return r, input.At("retry.backoff", belay.Errorf(belay.CodeBadCommand, "%q is no length of time up to an hour", input.Shown(in.Backoff)).WithHint("30s or 5m"))
		}
		r.Backoff = belay.Duration(d)
	}
	return r, nil
}

// ConstraintsInput is what the attempts of a task keep within.
type ConstraintsInput struct {
	Tools     []string `json:"tools,omitempty" jsonschema:"only these of the session's tools: names, group:NAME, patterns"`
	MaxSteps  int      `json:"maxSteps,omitempty" jsonschema:"steps of an attempt"`
	MaxTime   string   `json:"maxTime,omitempty" jsonschema:"active time of an attempt, such as 30m"`
	MaxTokens int64    `json:"maxTokens,omitempty" jsonschema:"tokens that an attempt may read and write"`
	MaxUSD    float64  `json:"maxUsd,omitempty" jsonschema:"what the requests of an attempt may cost, in US dollars"`
}

// Bounds of what a task may name.
const (
	maxTerms = 64
	maxMoney = 1e6 // US dollars
)

// constraints are what the caller wrote.
func (in *ConstraintsInput) constraints() (c belay.Constraints, err error) {
	if in == nil {
		return c, nil
	}
	switch {
	case len(in.Tools) > maxTerms:
		return c, input.At("constraints.tools", belay.Errorf(belay.CodeTooLarge, "%d names of tools are more than %d", len(in.Tools), maxTerms))
	case in.MaxSteps < 0 || in.MaxTokens < 0 || in.MaxUSD < 0 || in.MaxUSD > maxMoney:
		return c, input.At("constraints", belay.Errorf(belay.CodeBadCommand, "a limit is out of range").WithHint("a number above 0, or leave it out"))
	}
	for _, t := range in.Tools {
		if err := input.Text("constraints.tools", t, maxName); err != nil {
			return c, err
		}
	}
	c.Tools = in.Tools
	c.Limits = belay.Limits{Steps: in.MaxSteps, Tokens: in.MaxTokens, MicroUSD: int64(in.MaxUSD * 1e6)}
	if in.MaxTime != "" {
		d, err := time.ParseDuration(in.MaxTime)
		if err != nil || d <= 0 {
			return c, input.At("constraints.maxTime", belay.Errorf(belay.CodeBadCommand, "%q is no length of time", input.Shown(in.MaxTime)).WithHint("30s or 5m"))
		}
		c.Limits.Time = belay.Duration(d)
	}
	return c, nil
}

// maxName bounds the name of a person.
const maxName = 200

// Create plans a task.
func Create(ctx context.Context, r *app.Call, in *CreateTask) (*app.Result, error) {
	plan, err := in.check(r)
	if err != nil {
		return nil, err
	}
	derive := func(prefix string) string { return belay.NewID(prefix) }
	if r.Key != "" {
		derive = r.Keyed
	}
	in.Session = cmp.Or(in.Session, belay.SessionID(derive(belay.PrefixSession)))
	in.Task = cmp.Or(in.Task, belay.TaskID(derive(belay.PrefixTask)))
	ws, settings, begin, err := place(ctx, r, in)
	if err != nil {
		return nil, err
	}
	objective, err := content(ctx, r, in.Objective, settings)
	if err != nil {
		return nil, err
	}
	if told, err := repeated(ctx, r, in, objective); told != nil || err != nil {
		return told, err
	}
	c := belay.PlanTask{Task: in.Task, Objective: objective, Parent: in.Parent, Plan: plan}
	c.Plan.Title, c.Plan.Owner, c.Plan.Assignee = r.Clean(c.Plan.Title), r.Clean(c.Plan.Owner), r.Clean(c.Plan.Assignee)
	for _, b := range in.BlockedBy {
		c.BlockedBy = append(c.BlockedBy, belay.Blocker{Task: b.Task, OnFailed: onFailed(b.OnFailed)})
	}
	if begin {
		base := belay.StreamID("create/" + derive(belay.PrefixCommand))
		made := r.Order(belay.CommandID(belay.DeriveID(belay.PrefixCommand, base, 0, 0)), in.Session, in.Session.Stream(), belay.CreateSession{Workspace: ws, Title: plan.Title, Settings: settings})
		if _, err := r.Engine.Submit(ctx, made); err != nil {
			return nil, err
		}
	}
	told, err := r.Send(ctx, in.Session, in.Session.Stream(), c)
	if err != nil {
		return nil, input.At("taskId", err)
	}
	told.Task = in.Task
	return told, begun(ctx, r, told)
}

// begun waits until a task that its session has taken in has a stream of its own, which the
// session writes right after: who has the answer can read the task, and change it.
func begun(ctx context.Context, r *app.Call, told *app.Result) error {
	if told.Status != app.Done {
		return nil
	}
	there, err := read.Until(ctx, r.Store, func() (bool, error) {
		_, err := r.Task(ctx, told.Session, told.Task)
		if err != nil && belay.CodeOf(err) == belay.CodeNotFound {
			return false, nil
		}
		return err == nil, err
	})
	if !there {
		told.Status = app.Accepted
		return err
	}
	told.Position, err = r.Store.End(ctx)
	return err
}

func (in *CreateTask) check(r *app.Call) (plan belay.TaskPlan, err error) {
	if err := cmp.Or(
		input.ID("sessionId", string(in.Session)), input.ID("taskId", string(in.Task)), input.ID("parentTaskId", string(in.Parent)),
		input.Text("title", in.Title, app.MaxTitle), input.Text("objective", in.Objective, app.MaxText), input.Text("owner", in.Owner, maxName), input.Text("assignee", in.Assignee, maxName), input.Text("workspace", in.Workspace, 4<<10),
	); err != nil {
		return plan, err
	}
	if strings.TrimSpace(in.Objective) == "" {
		return plan, input.At("objective", belay.Errorf(belay.CodeBadCommand, "there is nothing to do: the objective is empty"))
	}
	if in.Session == belay.SystemSession {
		return plan, input.At("sessionId", belay.Errorf(belay.CodeBadState, "the system session takes no work"))
	}
	for _, b := range in.BlockedBy {
		if err := cmp.Or(input.Named("blockedBy.taskId", string(b.Task)), checkOnFailed("blockedBy.onFailed", b.OnFailed)); err != nil {
			return plan, err
		}
	}
	if plan.Priority, err = app.PriorityOf(in.Priority); err != nil {
		return plan, input.At("priority", err)
	}
	if plan.Acceptance, err = app.Acceptance(in.Acceptance, r.Clean); err != nil {
		return plan, err
	}
	if plan.Retry, err = in.Retry.retry(); err != nil {
		return plan, err
	}
	if plan.Constraints, err = in.Constraints.constraints(); err != nil {
		return plan, err
	}
	if in.goal {
		plan.Goal, plan.Retry = true, belay.Retry{Max: belay.MaxRetries, On: missed}
	}
	plan.Title, plan.Owner, plan.Assignee = strings.TrimSpace(in.Title), strings.TrimSpace(in.Owner), strings.TrimSpace(in.Assignee)
	if plan.Title == "" {
		plan.Title, _, _ = strings.Cut(strings.TrimSpace(in.Objective), "\n")
		plan.Title = app.Cut(plan.Title, 80)
	}
	return plan, nil
}

// onFailedBlock is the word for what happens if nothing is said.
const onFailedBlock = "block"

func onFailed(word string) string {
	if word == onFailedBlock {
		return belay.OnFailedBlock
	}
	return word
}

func checkOnFailed(field, word string) error {
	switch word {
	case "", onFailedBlock, belay.OnFailedSkip, belay.OnFailedRun:
		return nil
	}
	return input.At(field, belay.Errorf(belay.CodeBadCommand, "%q is none of block, skip, run", input.Shown(word)))
}

// place is where a task is planned, and whether that session is to be made.
func place(ctx context.Context, r *app.Call, in *CreateTask) (ws string, settings belay.Settings, begin bool, err error) {
	s, err := r.Session(ctx, in.Session)
	switch {
	case err != nil:
		return "", settings, false, err
	case s.Session == "":
		ws, settings, err = r.PlaceOf(ctx, "", in.Workspace)
		return ws, settings, true, err
	case in.Workspace != "" && in.Workspace != s.Workspace:
		return "", settings, false, input.At("workspace", belay.Errorf(belay.CodeBadState, "session %s works in %s, and a session keeps its workspace", in.Session, s.Workspace).WithHint("leave the workspace out, or name a new session"))
	}
	if in.Parent != "" {
		if _, err := r.Task(ctx, in.Session, in.Parent); err != nil {
			return "", settings, false, input.At("parentTaskId", err)
		}
	}
	return s.Workspace, s.Settings, false, nil
}

// content is a text as facts hold it.
func content(ctx context.Context, r *app.Call, text string, settings belay.Settings) (belay.Content, error) {
	return app.Given{Text: text}.Keep(ctx, r.Store, r.Workspaces.Secrets(), tokens.Profile{}, settings)
}

// repeated answers for a task that there is: it must be the same one.
func repeated(ctx context.Context, r *app.Call, in *CreateTask, objective belay.Content) (*app.Result, error) {
	if _, err := r.Store.Head(ctx, in.Task.Stream()); errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	t, err := r.Task(ctx, in.Session, in.Task)
	if belay.CodeOf(err) == belay.CodeNotFound || err == nil && (!t.Plan || t.Objective.Text != objective.Text) {
		return nil, input.At("taskId", belay.Errorf(belay.CodeIDConflict, "task %s exists already", in.Task).WithHint("bring a new task id"))
	}
	if err != nil {
		return nil, err
	}
	told := &app.Result{Status: app.Done, Repeated: true, Session: in.Session, Task: in.Task}
	return told, r.End(ctx, told)
}

// UpdateTask is what update_task takes. What is left out stays.
type UpdateTask struct {
	Session   belay.SessionID `json:"sessionId"`
	Task      belay.TaskID    `json:"taskId"`
	Title     string          `json:"title,omitempty"`
	Objective string          `json:"objective,omitempty" jsonschema:"of the next attempt"`
	Priority  string          `json:"priority,omitempty" jsonschema:"among tasks that can start: low, normal, high"`
	Owner     string          `json:"owner,omitempty"`
	Assignee  *string         `json:"assignee,omitempty" jsonschema:"the agent that does it; empty: the session's main agent"`

	Acceptance  []app.CheckInput  `json:"acceptance,omitempty" jsonschema:"in place of all that there were"`
	Constraints *ConstraintsInput `json:"constraints,omitempty" jsonschema:"in place of what there was"`
	Retry       *RetryInput       `json:"retry,omitempty" jsonschema:"in place of what there was"`
}

// Update changes what a task is.
func Update(ctx context.Context, r *app.Call, in *UpdateTask) (*app.Result, error) {
	if err := cmp.Or(input.Text("title", in.Title, app.MaxTitle), input.Text("objective", in.Objective, app.MaxText), input.Text("owner", in.Owner, maxName)); err != nil {
		return nil, err
	}
	s, err := r.Known(ctx, in.Session)
	if err != nil {
		return nil, err
	}
	c := belay.UpdateTask{Title: r.Clean(strings.TrimSpace(in.Title)), Owner: r.Clean(strings.TrimSpace(in.Owner))}
	if in.Acceptance != nil {
		checks, err := app.Acceptance(in.Acceptance, r.Clean)
		if err != nil {
			return nil, err
		}
		c.Acceptance = &checks
	}
	if err := in.more(&c); err != nil {
		return nil, err
	}
	if strings.TrimSpace(in.Objective) != "" {
		o, err := content(ctx, r, in.Objective, s.Settings)
		if err != nil {
			return nil, err
		}
		c.Objective = &o
	}
	return toTask(ctx, r, in.Session, in.Task, c)
}

// more reads what of a change needs no session.
func (in *UpdateTask) more(c *belay.UpdateTask) error {
	if in.Priority != "" {
		n, err := app.PriorityOf(in.Priority)
		if err != nil {
			return input.At("priority", err)
		}
		c.Priority = &n
	}
	if in.Assignee != nil {
		name := strings.TrimSpace(*in.Assignee)
		if err := input.Text("assignee", name, maxName); err != nil {
			return err
		}
		c.Assignee = &name
	}
	if in.Constraints != nil {
		k, err := in.Constraints.constraints()
		if err != nil {
			return err
		}
		c.Constraints = &k
	}
	if in.Retry != nil {
		r, err := in.Retry.retry()
		if err != nil {
			return err
		}
		c.Retry = &r
	}
	return nil
}

// toTask brings a command to a task.
func toTask(ctx context.Context, r *app.Call, sid belay.SessionID, tid belay.TaskID, c belay.Command) (*app.Result, error) {
	if _, err := r.Task(ctx, sid, tid); err != nil {
		return nil, err
	}
	told, err := r.Send(ctx, sid, tid.Stream(), c)
	if err == nil {
		told.Task = tid
	}
	return told, err
}

// CancelTask is what cancel_task takes.
type CancelTask struct {
	Session belay.SessionID `json:"sessionId"`
	Task    belay.TaskID    `json:"taskId"`
	Reason  string          `json:"reason,omitempty"`
}

// Cancel ends a task.
func Cancel(ctx context.Context, r *app.Call, in *CancelTask) (*app.Result, error) {
	if err := input.Text("reason", in.Reason, app.MaxReason); err != nil {
		return nil, err
	}
	t, err := r.Task(ctx, in.Session, in.Task)
	if err != nil || !t.Plan || t.Ended() {
		return toTask(ctx, r, in.Session, in.Task, belay.CancelTask{Reason: r.Clean(in.Reason)})
	}
	told, err := r.Send(ctx, in.Session, in.Session.Stream(), belay.CancelTask{Task: in.Task, Reason: r.Clean(in.Reason)})
	if err == nil {
		told.Task = in.Task
	}
	return told, err
}

// StartTask is what start_task takes.
type StartTask struct {
	Session belay.SessionID `json:"sessionId"`
	Task    belay.TaskID    `json:"taskId"`
	Thread  belay.ThreadID  `json:"threadId,omitempty" jsonschema:"where it is done, a new thread for an id that is new; the session's newest when it is left out"`
	Turn    belay.TurnID    `json:"turnId,omitempty" jsonschema:"the caller's id of the turn: told twice, it is one start"`
}

// Start starts a task as soon as nothing blocks it.
func Start(ctx context.Context, r *app.Call, in *StartTask) (*app.Result, error) {
	if err := cmp.Or(input.ID("threadId", string(in.Thread)), input.ID("turnId", string(in.Turn))); err != nil {
		return nil, err
	}
	s, err := r.Known(ctx, in.Session)
	if err != nil {
		return nil, err
	}
	t, err := r.Task(ctx, in.Session, in.Task)
	if err != nil {
		return nil, err
	}
	if in.Thread, err = threadFor(ctx, r, s, in.Thread); err != nil {
		return nil, err
	}
	if in.Turn == "" {
		in.Turn = belay.TurnID(belay.NewID(belay.PrefixTurn))
		if r.Key != "" {
			in.Turn = belay.TurnID(r.Keyed(belay.PrefixTurn))
		}
	}
	begin := belay.BeginTask{Task: in.Task, Thread: in.Thread, Turn: in.Turn}
	if t.Assignee != "" {
		err = assign(ctx, r, s, t, &begin)
	} else {
		begin.Rules, err = rulesFor(ctx, r, s, t)
	}
	if err != nil {
		return nil, r.Refuse(ctx, in.Session, err, func(e *belay.Error) belay.Command { begin.Refused = e; return begin })
	}
	if err := verifiable(ctx, r, begin.Rules, t.Acceptance); err != nil {
		return nil, err
	}
	if begin.Quotas, err = r.Workspaces.Quotas(ctx, s.Workspace); err != nil {
		return nil, err
	}
	told, err := r.Send(ctx, in.Session, in.Session.Stream(), begin)
	if err == nil {
		told.Task = in.Task
	}
	if begin.Agent != nil && err == nil {
		told.Subagent = begin.Agent.Subagent
		in.Thread, _ = session.OfSubagent(told.Subagent)
	}
	return app.With(told, err, in.Thread, in.Turn)
}

// rulesFor are what an attempt is decided by that the session's main agent makes.
func rulesFor(ctx context.Context, r *app.Call, s *session.State, t *task.State) (belay.Ref, error) {
	settings := s.Settings
	settings.Completion = belay.CompletionRequired
	settings.Limits = settings.Limits.Within(t.Constraints.Limits)
	if len(t.Constraints.Tools) > 0 {
		have, err := r.Workspaces.Tools(ctx, s.Workspace, settings)
		if err != nil {
			return belay.Ref{}, err
		}
		settings.Tools = nil
		for _, term := range t.Constraints.Tools {
			names := tool.Expand(term, have)
			if len(names) == 0 {
				return belay.Ref{}, belay.Errorf(belay.CodeNotCovered, "the session has no tool %s, which the task is constrained to", input.Shown(term)).
					WithHint("%s", match.Hint(term, tool.Names(have), "update_task changes the constraints"))
			}
			settings.Tools = append(settings.Tools, names...)
		}
	}
	return r.Workspaces.Rules(ctx, r.By.String(), s.Workspace, settings)
}

// assign prepares the sub-agent that does a task, as a child of the session's main agent.
func assign(ctx context.Context, r *app.Call, s *session.State, t *task.State, begin *belay.BeginTask) error {
	in := tool.SpawnArgs{Task: t.Objective.Text, Agent: t.Assignee, Tools: t.Constraints.Tools, Budget: tool.SpawnLimitOf(t.Constraints.Limits)}
	c := belay.SpawnSubagent{Subagent: belay.SubagentID(belay.DeriveID(belay.PrefixSubagent, belay.StreamID(begin.Turn), 0, 0)), Parent: begin.Thread}
	if err := r.PrepareChild(ctx, s, in, &c); err != nil {
		return err
	}
	if c.Team != nil {
		return belay.Errorf(belay.CodeBadState, "agent %s is a team, and a task is one agent's", t.Assignee).WithHint("spawn_subagent starts it; update_task names another agent")
	}
	text := t.Objective
	if told := c.Text.Text; told != text.Text && text.Ref == nil {
		var err error
		if text, err = content(ctx, r, told, s.Settings); err != nil {
			return err
		}
		begin.Text = &text
	}
	text.Text = event.CutText(text.Text, maxTold)
	begin.Rules, begin.Memory = c.Rules, c.Memory
	begin.Agent = &belay.Assigned{Subagent: c.Subagent, Agent: c.Agent, Text: text, Workspace: c.Workspace, Worktree: c.Worktree, Taint: c.Taint}
	return nil
}

// maxTold is how much of an objective the facts about its agent have, in bytes.
const maxTold = 500

// verifiable refuses checks that turns under some rules could never pass.
func verifiable(ctx context.Context, r *app.Call, ref belay.Ref, checks []belay.Check) error {
	if len(checks) == 0 {
		return nil
	}
	rules, err := r.RulesOf(ctx, ref)
	if err != nil {
		return err
	}
	return app.Verifiable(rules, checks)
}

// threadFor is the thread on which a task is done.
func threadFor(ctx context.Context, r *app.Call, s *session.State, named belay.ThreadID) (belay.ThreadID, error) {
	switch {
	case named == "" && len(s.Threads) == 0:
		return app.FirstThread(s.Session), nil
	case named == "":
		return s.Threads[len(s.Threads)-1], nil
	case slices.Contains(s.Threads, named):
		return named, nil
	}
	if _, err := r.Store.Head(ctx, named.Stream()); !errors.Is(err, store.ErrNotFound) {
		return "", input.At("threadId", cmp.Or(err, error(belay.Errorf(belay.CodeIDConflict, "thread %s isn't a main thread of this session", named))))
	}
	return named, nil
}

// LinkTasks is what link_tasks takes.
type LinkTasks struct {
	Session  belay.SessionID `json:"sessionId"`
	Task     belay.TaskID    `json:"taskId"`
	Relation belay.Relation  `json:"relation" jsonschema:"parent, child, blocks, blocked_by, source_task, source_attempt, spawned_subagent, assigned_thread, produced_artifact, consumed_artifact, evidence"`
	Target   string          `json:"targetId" jsonschema:"a task, or the id of what the relation names"`
	OnFailed string          `json:"onFailed,omitempty" jsonschema:"of a blocker that doesn't end well: block (the other task waits until it does), skip (it is cancelled), run (it starts)"`
	Reason   string          `json:"reason,omitempty"`
}

// Link adds an edge.
func Link(ctx context.Context, r *app.Call, in *LinkTasks) (*app.Result, error) {
	return link(ctx, r, in, false)
}

// UnlinkTasks is what unlink_tasks takes.
type UnlinkTasks struct {
	Session  belay.SessionID `json:"sessionId"`
	Task     belay.TaskID    `json:"taskId"`
	Relation belay.Relation  `json:"relation" jsonschema:"as in link_tasks"`
	Target   string          `json:"targetId"`
	Reason   string          `json:"reason,omitempty"`
}

// Unlink removes an edge.
func Unlink(ctx context.Context, r *app.Call, in *UnlinkTasks) (*app.Result, error) {
	return link(ctx, r, &LinkTasks{Session: in.Session, Task: in.Task, Relation: in.Relation, Target: in.Target, Reason: in.Reason}, true)
}

func link(ctx context.Context, r *app.Call, in *LinkTasks, remove bool) (*app.Result, error) {
	if err := cmp.Or(input.Named("targetId", in.Target), input.Text("reason", in.Reason, app.MaxReason), checkOnFailed("onFailed", in.OnFailed)); err != nil {
		return nil, err
	}
	if !slices.Contains(belay.Relations(), in.Relation) {
		return nil, input.At("relation", belay.Errorf(belay.CodeBadCommand, "%q is no relation", input.Shown(string(in.Relation))).WithHint("use blocked_by, parent or another that the description of link_tasks lists"))
	}
	if _, err := r.Task(ctx, in.Session, in.Task); err != nil {
		return nil, err
	}
	if in.Relation.Tasks() && !remove {
		if _, err := r.Task(ctx, in.Session, belay.TaskID(in.Target)); err != nil {
			if e, ok := errors.AsType[*input.FieldError](err); ok {
				e.Field = "targetId"
			}
			return nil, err
		}
	}
	told, err := r.Send(ctx, in.Session, in.Session.Stream(), belay.LinkTasks{Task: in.Task, Relation: in.Relation, Target: in.Target, OnFailed: onFailed(in.OnFailed), Reason: r.Clean(in.Reason), Remove: remove})
	if err == nil {
		told.Task = in.Task
	}
	return told, err
}
