package sessions

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/tasks"
	"github.com/belay-run/belay/internal/app/turns"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/lib/match"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view"
)

// TasksCmd is the command "belay tasks".
type TasksCmd struct {
	List     tasksListCmd     `cmd:"" use:"list_tasks" default:"withargs" help:"List the tasks of a session."`
	Show     tasksShowCmd     `cmd:"" use:"get_task" help:"Show a task, what it waits for and its attempts."`
	Create   tasksCreateCmd   `cmd:"" use:"create_task" help:"Plan a task; it is started later."`
	Update   tasksUpdateCmd   `cmd:"" use:"update_task" help:"Change a task that hasn't ended."`
	Start    tasksStartCmd    `cmd:"" use:"start_task" help:"Start a task as soon as no other task blocks it."`
	Retry    tasksRetryCmd    `cmd:"" use:"retry_task" help:"Start another attempt of a task that ended without success."`
	Progress tasksProgressCmd `cmd:"" use:"append_task_progress" help:"Record how far a task is."`
	Complete tasksCompleteCmd `cmd:"" use:"complete_task" help:"Complete a task of which no attempt runs."`
	Pause    tasksPauseCmd    `cmd:"" use:"pause_task" help:"Keep a task, its parts and their agents from beginning anything more."`
	Resume   tasksResumeCmd   `cmd:"" use:"resume_task" help:"End a pause; the task continues in the same turn."`
	Fail     tasksFailCmd     `cmd:"" use:"fail_task" help:"Fail a task of which no attempt runs."`
	Cancel   tasksCancelCmd   `cmd:"" use:"cancel_task" help:"Cancel a task."`
	Link     tasksLinkCmd     `cmd:"" use:"link_tasks" help:"Add an edge from a task to another one."`
	Unlink   tasksUnlinkCmd   `cmd:"" use:"unlink_tasks" help:"Remove an edge of a task."`
}

type tasksListCmd struct {
	ID string `arg:"" optional:"" help:"The session, or the beginning of its id (default the last one of this workspace)."`
}

// Read implements command.Reader.
func (c *tasksListCmd) Read(ctx context.Context, a *command.Program, st store.Store) (int, error) {
	id, err := a.SessionID(ctx, st, c.ID)
	if err != nil {
		return 0, err
	}
	all, err := tasksOf(ctx, a.Reader(st), id)
	if err != nil {
		return 0, err
	}
	return term.PrintRows(&a.Env, all, "it has no tasks", "TASK\tSTATUS\tPRIORITY\tATTEMPTS\tWAITS FOR\tTITLE", func(t view.Task) []any {
		return []any{t.ID, t.Status, priorityWord(t.Priority), t.Attempts, cmp.Or(waitsFor(all, t), "-"), term.Short(cmp.Or(t.Title, t.Objective), 60)}
	})
}

func priorityWord(n int) string {
	switch {
	case n < 0:
		return "low"
	case n > 0:
		return "high"
	}
	return "normal"
}

// waitsFor are the blockers of a task that aren't met, by their titles.
func waitsFor(all []view.Task, t view.Task) string {
	var names []string
	for _, e := range t.Edges {
		if e.Relation != belay.RelationBlockedBy || e.Met || t.Attempts > 0 {
			continue
		}
		name := e.Target
		for _, b := range all {
			if string(b.ID) == e.Target {
				name = cmp.Or(b.Title, e.Target)
			}
		}
		names = append(names, term.Short(name, 30))
	}
	return strings.Join(names, ", ")
}

func tasksOf(ctx context.Context, r *app.Runtime, id belay.SessionID) ([]view.Task, error) {
	c := r.Call("list_tasks")
	fresh, err := c.Fresh(ctx, 0)
	if err != nil {
		return nil, err
	}
	shown, err := tasks.List(ctx, c, fresh, &tasks.ListTasks{Session: id})
	if err != nil {
		return nil, err
	}
	return shown.Tasks, nil
}

// inSession names the session of a task.
type inSession struct {
	Session string `placeholder:"ID" help:"Its session, or the beginning of the id (default the last one of this workspace)."`
}

// find returns the session and tasks by their ids, the beginnings of those, or titles.
func (c *inSession) find(ctx context.Context, a *command.Program, r *app.Runtime, names ...string) (belay.SessionID, []belay.TaskID, error) {
	id, err := a.SessionID(ctx, r.Store, c.Session)
	if err != nil {
		return "", nil, err
	}
	all, err := tasksOf(ctx, r, id)
	if err != nil {
		return "", nil, err
	}
	var found []belay.TaskID
	for _, name := range names {
		t, err := findTask(all, name)
		if err != nil {
			return "", nil, err
		}
		found = append(found, t)
	}
	return id, found, nil
}

func findTask(all []view.Task, name string) (found belay.TaskID, err error) {
	var names []string
	for _, t := range all {
		if string(t.ID) == name || t.Title == name {
			return t.ID, nil
		}
		if view.Named(string(t.ID), name) {
			if found != "" {
				return "", belay.Errorf(belay.CodeUsage, "%s names several tasks", name).WithHint("belay tasks lists them")
			}
			found = t.ID
		}
		names = append(names, cmp.Or(t.Title, string(t.ID)))
	}
	if found == "" {
		return "", belay.Errorf(belay.CodeNotFound, "the session has no task %s", name).WithHint("%s", match.Hint(name, names, "belay tasks lists them"))
	}
	return found, nil
}

type tasksShowCmd struct {
	inSession
	Task string `arg:"" help:"Its id or title, or the beginning of its id."`
}

// Read implements command.Reader.
func (c *tasksShowCmd) Read(ctx context.Context, a *command.Program, st store.Store) (int, error) {
	r := a.Reader(st)
	id, found, err := c.find(ctx, a, r, c.Task)
	if err != nil {
		return 0, err
	}
	call := r.Call("get_task")
	fresh, err := call.Fresh(ctx, 0)
	if err != nil {
		return 0, err
	}
	t, err := tasks.Get(ctx, call, fresh, &tasks.GetTask{Session: id, Task: found[0]})
	if err != nil {
		return 0, err
	}
	_, err = a.Show(t, func() {
		line := func(name, format string, args ...any) {
			fmt.Fprintf(a.Out, "%-10s %s\n", name, term.Line(fmt.Sprintf(format, args...)))
		}
		line("task", "%s", t.Task)
		line("title", "%s", cmp.Or(t.Title, "-"))
		line("objective", "%s", term.Short(t.Objective.Text, 200))
		line("status", "%s%s", t.Status, when(", ", t.Reason))
		line("priority", "%s", priorityWord(t.Priority))
		if t.Owner != "" {
			line("owner", "%s", t.Owner)
		}
		if t.Assignee != "" {
			line("assignee", "%s%s", t.Assignee, when(", ", string(t.Subagent)))
		}
		if k := t.Constraints; len(k.Tools) > 0 || k.Limits != (belay.Limits{}) {
			line("within", "%s", constraintsText(k))
		}
		if t.Retry.Max > 0 {
			line("retry", "%d", t.Retry.Max)
		}
		for _, e := range t.Edges {
			line("edge", "%s %s%s", strings.ReplaceAll(string(e.Relation), "_", " "), e.Target, when(", else ", e.OnFailed))
		}
		for i, n := range []tasks.TaskCount{t.Counts.Plan, t.Counts.Children, t.Counts.Checks} {
			if n.Total > 0 {
				line([]string{"plan", "children", "checks"}[i], "%d of %d", n.Done, n.Total)
			}
		}
		for _, k := range t.Checks {
			line("check", "%s: %s%s", k.ID, cmp.Or(k.Status, "not looked at yet"), when(", ", k.Reason))
		}
		for i, x := range t.Attempts {
			said := cmp.Or(string(x.Outcome), "running")
			if x.Agent != "" {
				said += " (" + x.Agent + ")"
			}
			line("attempt", "%d, turn %s: %s", i+1, x.Turn, said)
		}
		if r := t.Report; r != nil {
			line("report", "%s, %s: %s", r.Class, r.Code, r.Reason)
			line("next", "%s", r.Next)
		}
	})
	return belay.ExitOK, err
}

// constraintsText is constraints as people read them.
func constraintsText(k belay.Constraints) string {
	var parts []string
	add := func(is bool, format string, args ...any) {
		if is {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	l := k.Limits
	add(len(k.Tools) > 0, "tools %s", strings.Join(k.Tools, " "))
	add(l.Steps > 0, "%d steps", l.Steps)
	add(l.Time > 0, "%s", l.Time)
	add(l.Tokens > 0, "%d tokens", l.Tokens)
	add(l.MicroUSD > 0, "%.2f USD", float64(l.MicroUSD)/1e6)
	return strings.Join(parts, ", ")
}

// when is a text behind something, if there is one.
func when(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}

type taskWords struct {
	Title    string `placeholder:"TEXT" help:"Its title in lists."`
	Priority string `placeholder:"WORD" help:"Among tasks that can start: low, normal, high."`
	Owner    string `placeholder:"NAME" help:"The person responsible for it."`

	Tools     []string `placeholder:"TERM" help:"Only these of the session's tools: names, group:NAME, patterns."`
	MaxSteps  int      `placeholder:"N" help:"Steps of an attempt."`
	MaxTime   string   `placeholder:"TIME" help:"Active time of an attempt."`
	MaxTokens int64    `placeholder:"N" help:"Tokens that an attempt may read and write."`
	MaxUSD    float64  `name:"max-usd" placeholder:"N" help:"What the requests of an attempt may cost."`

	Retry   int      `default:"-1" placeholder:"N" help:"Try it again by itself, at most so often; 0: never."`
	RetryOn []string `placeholder:"OUTCOME" help:"After these outcomes: failed, no_completion, timed_out, lost (the default), denied, blocked, budget."`
	Backoff string   `placeholder:"TIME" help:"Wait so long before the first of those, and twice as long before each that follows."`
}

// constraints are those that flags name; nil: they name none.
func (c *taskWords) constraints() *tasks.ConstraintsInput {
	in := tasks.ConstraintsInput{Tools: c.Tools, MaxSteps: c.MaxSteps, MaxTime: c.MaxTime, MaxTokens: c.MaxTokens, MaxUSD: c.MaxUSD}
	if len(in.Tools) == 0 && in.MaxSteps == 0 && in.MaxTime == "" && in.MaxTokens == 0 && in.MaxUSD == 0 {
		return nil
	}
	return &in
}

// retry is what flags say of it; nil: they say nothing.
func (c *taskWords) retry() *tasks.RetryInput {
	if c.Retry < 0 && len(c.RetryOn) == 0 && c.Backoff == "" {
		return nil
	}
	return &tasks.RetryInput{Max: max(c.Retry, 0), On: c.RetryOn, Backoff: c.Backoff}
}

type tasksCreateCmd struct {
	taskWords
	command.CheckFlags
	Session   string   `placeholder:"ID" help:"The session, or the beginning of its id (default the last one of this workspace, or a new one)."`
	New       bool     `help:"In a new session."`
	After     []string `placeholder:"TASK" help:"It starts when this task has completed; repeated, when all of them have."`
	OnFailed  string   `placeholder:"WORD" help:"If one of those doesn't complete: block, skip, run."`
	Assignee  string   `placeholder:"AGENT" help:"The agent that does it, as a child of the session's main one."`
	Part      string   `placeholder:"TASK" help:"The task that it is a part of."`
	Objective []string `arg:"" help:"What to do."`
}

// Run implements command.Command.
func (c *tasksCreateCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	return a.OrderingHere(ctx, func(r *app.Runtime, ws string) (int, error) {
		in := tasks.CreateTask{Title: c.Title, Objective: strings.Join(c.Objective, " "), Priority: c.Priority, Owner: c.Owner, Assignee: c.Assignee, Workspace: ws,
			Constraints: c.constraints(), Retry: c.retry()}
		var err error
		if in.Acceptance, err = c.Input(a); err != nil {
			return 0, err
		}
		if err := c.place(ctx, a, r, &in); err != nil {
			return 0, err
		}
		res, err := tasks.Create(ctx, r.Call("create_task"), &in)
		if err != nil {
			return 0, err
		}
		_, err = a.Show(res, func() { fmt.Fprintf(a.Out, "planned %s in session %s\n", res.Task, res.Session) })
		return belay.ExitOK, err
	})
}

// place says in which session the task is, and next to which others.
func (c *tasksCreateCmd) place(ctx context.Context, a *command.Program, r *app.Runtime, in *tasks.CreateTask) error {
	id, err := a.SessionID(ctx, r.Store, c.Session)
	others := slices.Clone(c.After)
	if c.Part != "" {
		others = append(others, c.Part)
	}
	switch {
	case (c.New || c.Session == "" && belay.CodeOf(err) == belay.CodeNotFound) && len(others) == 0:
		return nil
	case err != nil:
		return err
	}
	in.Session, in.Workspace = id, ""
	_, found, err := (&inSession{string(id)}).find(ctx, a, r, others...)
	if err != nil {
		return err
	}
	if c.Part != "" {
		in.Parent, found = found[len(found)-1], found[:len(found)-1]
	}
	for _, b := range found {
		in.BlockedBy = append(in.BlockedBy, tasks.Blocker{Task: b, OnFailed: c.OnFailed})
	}
	return nil
}

type tasksUpdateCmd struct {
	inSession
	taskWords
	command.CheckFlags
	Assignee  *string `placeholder:"AGENT" help:"The agent that does it; an empty one: the session's main agent."`
	Objective string  `placeholder:"TEXT" help:"The work of the next attempt."`
	Task      string  `arg:"" help:"Its id or title, or the beginning of its id."`
}

// Order implements command.Orderer.
func (c *tasksUpdateCmd) Order(ctx context.Context, a *command.Program, r *app.Runtime) (int, error) {
	id, found, err := c.find(ctx, a, r, c.Task)
	if err != nil {
		return 0, err
	}
	checks, err := c.Input(a)
	if err != nil {
		return 0, err
	}
	res, err := tasks.Update(ctx, r.Call("update_task"), &tasks.UpdateTask{Session: id, Task: found[0], Title: c.Title, Objective: c.Objective, Priority: c.Priority, Owner: c.Owner, Assignee: c.Assignee, Acceptance: checks,
		Constraints: c.constraints(), Retry: c.retry()})
	if err != nil {
		return 0, err
	}
	return a.Tell(ctx, r, res, "updated")
}

type tasksStartCmd struct {
	inSession
	Thread string `placeholder:"ID" help:"Where it is done; a new thread for an id that is new."`
	Task   string `arg:"" help:"Its id or title, or the beginning of its id."`
}

// Order implements command.Orderer.
func (c *tasksStartCmd) Order(ctx context.Context, a *command.Program, r *app.Runtime) (int, error) {
	id, found, err := c.find(ctx, a, r, c.Task)
	if err != nil {
		return 0, err
	}
	res, err := tasks.Start(ctx, r.Call("start_task"), &tasks.StartTask{Session: id, Task: found[0], Thread: belay.ThreadID(c.Thread)})
	if err != nil {
		return 0, err
	}
	t, err := r.Task(ctx, id, found[0])
	if err != nil {
		return 0, err
	}
	return a.Tell(ctx, r, res, map[string]string{"queued": "it starts when nothing blocks it", "blocked": "it is blocked"}[t.Status]+map[bool]string{true: "started"}[t.Count > 0])
}

type tasksRetryCmd struct {
	inSession
	Message string `short:"m" placeholder:"TEXT" help:"Why."`
	Task    string `arg:"" help:"Its id or title, or the beginning of its id."`
}

// Order implements command.Orderer.
func (c *tasksRetryCmd) Order(ctx context.Context, a *command.Program, r *app.Runtime) (int, error) {
	id, found, err := c.find(ctx, a, r, c.Task)
	if err != nil {
		return 0, err
	}
	res, err := turns.Retry(ctx, r.Call("retry_task"), &turns.RetryTask{Session: id, Task: found[0], Reason: c.Message})
	if err != nil {
		return 0, err
	}
	return a.Tell(ctx, r, res, "another attempt begins")
}

type tasksCancelCmd struct {
	inSession
	Message string `short:"m" placeholder:"TEXT" help:"Why."`
	Task    string `arg:"" help:"Its id or title, or the beginning of its id."`
}

// Order implements command.Orderer.
func (c *tasksCancelCmd) Order(ctx context.Context, a *command.Program, r *app.Runtime) (int, error) {
	id, found, err := c.find(ctx, a, r, c.Task)
	if err != nil {
		return 0, err
	}
	res, err := tasks.Cancel(ctx, r.Call("cancel_task"), &tasks.CancelTask{Session: id, Task: found[0], Reason: c.Message})
	if err != nil {
		return 0, err
	}
	return a.Tell(ctx, r, res, "cancelled")
}

type tasksProgressCmd struct {
	inSession
	Phase   string   `placeholder:"WORD" help:"planning, working, verifying, delivering, waiting."`
	Done    int      `placeholder:"N" help:"The amount that is done, of --total."`
	Total   int      `placeholder:"N" help:"The whole amount of work."`
	Task    string   `arg:"" help:"Its id or title, or the beginning of its id."`
	Summary []string `arg:"" optional:"" help:"What is done, or comes next."`
}

// Order implements command.Orderer.
func (c *tasksProgressCmd) Order(ctx context.Context, a *command.Program, r *app.Runtime) (int, error) {
	id, found, err := c.find(ctx, a, r, c.Task)
	if err != nil {
		return 0, err
	}
	in := tasks.AppendTaskProgress{Session: id, Task: found[0], Phase: c.Phase, Summary: strings.Join(c.Summary, " "), Done: c.Done, Total: c.Total}
	res, err := tasks.Progress(ctx, r.Call("append_task_progress"), &in)
	if err != nil {
		return 0, err
	}
	return a.Tell(ctx, r, res, "noted")
}

type tasksCompleteCmd struct {
	inSession
	Message string   `short:"m" placeholder:"TEXT" help:"What was done."`
	Waive   []string `placeholder:"CHECK" help:"Waive this check; may be repeated."`
	Why     string   `placeholder:"TEXT" help:"Why not."`
	Task    string   `arg:"" help:"Its id or title, or the beginning of its id."`
}

// Order implements command.Orderer.
func (c *tasksCompleteCmd) Order(ctx context.Context, a *command.Program, r *app.Runtime) (int, error) {
	id, found, err := c.find(ctx, a, r, c.Task)
	if err != nil {
		return 0, err
	}
	res, err := tasks.Complete(ctx, r.Call("complete_task"), &tasks.CompleteTask{Session: id, Task: found[0], Summary: c.Message, Waive: c.Waive, Reason: c.Why})
	if err != nil {
		return 0, err
	}
	if res.Turn != "" {
		return a.Tell(ctx, r, res, "its checks run first")
	}
	return a.Tell(ctx, r, res, "completed")
}

type tasksFailCmd struct {
	inSession
	Message string `short:"m" required:"" placeholder:"TEXT" help:"Why."`
	Task    string `arg:"" help:"Its id or title, or the beginning of its id."`
}

// Order implements command.Orderer.
func (c *tasksFailCmd) Order(ctx context.Context, a *command.Program, r *app.Runtime) (int, error) {
	id, found, err := c.find(ctx, a, r, c.Task)
	if err != nil {
		return 0, err
	}
	res, err := tasks.Fail(ctx, r.Call("fail_task"), &tasks.FailTask{Session: id, Task: found[0], Reason: c.Message})
	if err != nil {
		return 0, err
	}
	return a.Tell(ctx, r, res, "failed")
}

type tasksLinkCmd struct {
	inSession
	OnFailed string `placeholder:"WORD" help:"If the blocker doesn't complete: block, skip, run."`
	Message  string `short:"m" placeholder:"TEXT" help:"Why."`
	Task     string `arg:"" help:"Its id or title, or the beginning of its id."`
	Relation string `arg:"" help:"What it has to do with the other: blocked_by, blocks, parent, child, source_task, evidence, …"`
	Target   string `arg:"" help:"The other task, or the id of what the relation names."`
}

// Order implements command.Orderer.
func (c *tasksLinkCmd) Order(ctx context.Context, a *command.Program, r *app.Runtime) (int, error) {
	id, task, target, err := c.ends(ctx, a, r, c.Task, c.Relation, c.Target)
	if err != nil {
		return 0, err
	}
	res, err := tasks.Link(ctx, r.Call("link_tasks"), &tasks.LinkTasks{Session: id, Task: task, Relation: belay.Relation(c.Relation), Target: target, OnFailed: c.OnFailed, Reason: c.Message})
	if err != nil {
		return 0, err
	}
	return a.Tell(ctx, r, res, "linked")
}

// ends are the session and both ends of an edge.
func (c *inSession) ends(ctx context.Context, a *command.Program, r *app.Runtime, task, relation, target string) (belay.SessionID, belay.TaskID, string, error) {
	names := []string{task}
	if belay.Relation(relation).Tasks() {
		names = append(names, target)
	}
	id, found, err := c.find(ctx, a, r, names...)
	if err != nil {
		return "", "", "", err
	}
	if len(found) > 1 {
		target = string(found[1])
	}
	return id, found[0], target, nil
}

type tasksUnlinkCmd struct {
	inSession
	Message  string `short:"m" placeholder:"TEXT" help:"Why."`
	Task     string `arg:"" help:"Its id or title, or the beginning of its id."`
	Relation string `arg:"" help:"As in belay tasks link."`
	Target   string `arg:"" help:"The other end."`
}

// Order implements command.Orderer.
func (c *tasksUnlinkCmd) Order(ctx context.Context, a *command.Program, r *app.Runtime) (int, error) {
	id, task, target, err := c.ends(ctx, a, r, c.Task, c.Relation, c.Target)
	if err != nil {
		return 0, err
	}
	res, err := tasks.Unlink(ctx, r.Call("unlink_tasks"), &tasks.UnlinkTasks{Session: id, Task: task, Relation: belay.Relation(c.Relation), Target: target, Reason: c.Message})
	if err != nil {
		return 0, err
	}
	return a.Tell(ctx, r, res, "unlinked")
}
