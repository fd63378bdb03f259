package tasks

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/core/session"
	"github.com/belay-run/belay/internal/model/tokens"
	"github.com/belay-run/belay/internal/store"
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
	Parent    belay.TaskID    `json:"parentTaskId,omitempty" jsonschema:"the task that it is a part of"`
	BlockedBy []Blocker       `json:"blockedBy,omitempty" jsonschema:"tasks that must end before it starts"`
	Workspace string          `json:"workspace,omitempty" jsonschema:"folder of a new session; the server's own when it is left out"`
}

// Blocker is a task that must end before another one starts.
type Blocker struct {
	Task     belay.TaskID `json:"taskId"`
	OnFailed string       `json:"onFailed,omitempty" jsonschema:"if it doesn't end well: block (the other task waits until it does), skip (it is cancelled), run (it starts)"`
}

// maxName bounds the name of a person.
const maxName = 200

// Create plans a task.
func Create(ctx context.Context, r *app.Call, in *CreateTask) (*app.Result, error) {
	plan, err := in.check()
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
	c.Plan.Title, c.Plan.Owner = r.Clean(c.Plan.Title), r.Clean(c.Plan.Owner)
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
	if err == nil {
		told.Task = in.Task
	}
	return told, input.At("taskId", err)
}

func (in *CreateTask) check() (plan belay.TaskPlan, err error) {
	if err := cmp.Or(
		input.ID("sessionId", string(in.Session)), input.ID("taskId", string(in.Task)), input.ID("parentTaskId", string(in.Parent)),
		input.Text("title", in.Title, app.MaxTitle), input.Text("objective", in.Objective, app.MaxText), input.Text("owner", in.Owner, maxName), input.Text("workspace", in.Workspace, 4<<10),
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
	plan.Title, plan.Owner = strings.TrimSpace(in.Title), strings.TrimSpace(in.Owner)
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
	if in.Priority != "" {
		n, err := app.PriorityOf(in.Priority)
		if err != nil {
			return nil, input.At("priority", err)
		}
		c.Priority = &n
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
	return toTask(ctx, r, in.Session, in.Task, belay.CancelTask{Reason: in.Reason})
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
	if _, err := r.Task(ctx, in.Session, in.Task); err != nil {
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
	settings := s.Settings
	settings.Completion = belay.CompletionRequired
	rules, err := r.Workspaces.Rules(ctx, r.By.String(), s.Workspace, settings)
	if err != nil {
		return nil, err
	}
	quotas, err := r.Workspaces.Quotas(ctx, s.Workspace)
	if err != nil {
		return nil, err
	}
	told, err := r.Send(ctx, in.Session, in.Session.Stream(), belay.BeginTask{Task: in.Task, Thread: in.Thread, Turn: in.Turn, Rules: rules, Quotas: quotas})
	if err == nil {
		told.Task = in.Task
	}
	return app.With(told, err, in.Thread, in.Turn)
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
			return nil, input.At("targetId", err)
		}
	}
	told, err := r.Send(ctx, in.Session, in.Session.Stream(), belay.LinkTasks{Task: in.Task, Relation: in.Relation, Target: in.Target, OnFailed: onFailed(in.OnFailed), Reason: r.Clean(in.Reason), Remove: remove})
	if err == nil {
		told.Task = in.Task
	}
	return told, err
}
