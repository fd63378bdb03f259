package tool

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/match"
)

//go:embed tasks.md
var tasksDoc string

// TaskTools lists the tools by which an agent plans tasks of its session. They are offered
// by their names.
func TaskTools() []Tool {
	docs := strings.Split(strings.TrimSpace(tasksDoc), "\n---\n")
	spec := func(name, doc string) Spec {
		return Spec{Name: name, Doc: doc, Effect: belay.Idempotent, ReadOnly: true, Access: belay.Read, Load: LoadSearch}
	}
	return []Tool{New(spec("task_create", docs[0]), createTask), New(spec("task_update", docs[1]), updateTask), New(spec("task_list", docs[2]), listTasks)}
}

type taskCreateArgs struct {
	Objective string   `json:"objective" jsonschema:"what to do; who does it knows nothing else"`
	Title     string   `json:"title,omitempty" jsonschema:"what lists call it"`
	Priority  string   `json:"priority,omitempty" jsonschema:"low, normal or high"`
	Owner     string   `json:"owner,omitempty" jsonschema:"who answers for it"`
	Assignee  string   `json:"assignee,omitempty" jsonschema:"the agent that does it when it is started"`
	After     []string `json:"after,omitempty" jsonschema:"titles or ids of tasks that must end well before"`
	PartOf    string   `json:"part_of,omitempty" jsonschema:"title or id of the whole"`
}

type taskUpdateArgs struct {
	Task      string `json:"task" jsonschema:"title or id"`
	Title     string `json:"title,omitempty"`
	Objective string `json:"objective,omitempty"`
	Priority  string `json:"priority,omitempty" jsonschema:"low, normal or high"`
	Assignee  string `json:"assignee,omitempty"`
	Status    string `json:"status,omitempty" jsonschema:"working, completed, failed or cancelled"`
	Note      string `json:"note,omitempty" jsonschema:"what was done, or why not"`
	Done      int    `json:"done,omitempty" jsonschema:"of total"`
	Total     int    `json:"total,omitempty"`
}

// Command performs a command of the runtime for a call: the name is that of the table of
// commands. Another attempt of the call does it no second time.
func (c Call) Command(ctx context.Context, name string, in, out any) error {
	if c.Commands == nil {
		return Failf(Internal, "UNAVAILABLE", "nothing here performs commands")
	}
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	answer, err := c.Commands(ctx, name, body)
	if e, ok := errors.AsType[*belay.Error](err); ok {
		return commandError(e)
	}
	if err != nil || out == nil {
		return err
	}
	return json.Unmarshal(answer, out)
}

// commandError is a refused command as a model reads it: tools have other names than
// commands.
func commandError(e *belay.Error) error {
	class := BadArguments
	switch e.Code {
	case belay.CodeNotFound:
		class = NotFound
	case belay.CodeBadState, belay.CodeIDConflict, belay.CodeConflict, belay.CodeCycle, belay.CodeTooMany:
		class = Conflict
	case belay.CodeForbidden:
		class = Denied
	}
	names := strings.NewReplacer("create_task", "task_create", "update_task", "task_update", "list_tasks", "task_list", "get_task", "task_list", "GET /v1/sessions", "sessions_list", "list_peer_sessions", "sessions_list")
	return Failf(class, strings.ToUpper(string(e.Code)), "%s", e.Message).WithHint("%s", names.Replace(e.Hint))
}

// listedTask is what the tools read of a task.
type listedTask struct {
	ID       belay.TaskID `json:"id"`
	Title    string       `json:"title"`
	Status   string       `json:"status"`
	Reason   string       `json:"reason"`
	Priority int          `json:"priority"`
	Owner    string       `json:"owner"`
	Assignee string       `json:"assignee"`
	Parent   belay.TaskID `json:"parent"`
	Planned  bool         `json:"planned"`
	Progress *struct {
		Phase   string `json:"phase"`
		Summary string `json:"summary"`
		Done    int    `json:"done"`
		Total   int    `json:"total"`
	} `json:"progress"`
	Edges []struct {
		Relation belay.Relation `json:"relation"`
		Target   string         `json:"target"`
		Met      bool           `json:"met"`
	} `json:"edges"`
}

func tasksOf(ctx context.Context, c Call) ([]listedTask, error) {
	var out struct {
		Tasks []listedTask `json:"tasks"`
	}
	in := struct {
		Session belay.SessionID `json:"sessionId"`
	}{c.Session}
	err := c.Command(ctx, "list_tasks", in, &out)
	return slices.DeleteFunc(out.Tasks, func(t listedTask) bool { return !t.Planned }), err
}

// namedTask is the newest task of a title, or the one with an id.
func namedTask(all []listedTask, name string) (belay.TaskID, error) {
	var names []string
	for _, t := range slices.Backward(all) {
		if string(t.ID) == name || t.Title == name {
			return t.ID, nil
		}
		names = append(names, t.Title)
	}
	return "", Failf(NotFound, "NOT_FOUND", "no task is called %q", shorten(name)).WithHint("%s", match.Hint(name, names, "task_list lists them"))
}

func createTask(ctx context.Context, c Call, in taskCreateArgs) (Result, error) {
	type blocker struct {
		Task belay.TaskID `json:"taskId"`
	}
	body := struct {
		Session   belay.SessionID `json:"sessionId"`
		Objective string          `json:"objective"`
		Title     string          `json:"title,omitempty"`
		Priority  string          `json:"priority,omitempty"`
		Owner     string          `json:"owner,omitempty"`
		Assignee  string          `json:"assignee,omitempty"`
		Parent    belay.TaskID    `json:"parentTaskId,omitempty"`
		BlockedBy []blocker       `json:"blockedBy,omitempty"`
	}{Session: c.Session, Objective: in.Objective, Title: in.Title, Priority: in.Priority, Owner: in.Owner, Assignee: in.Assignee}
	if len(in.After) > 0 || in.PartOf != "" {
		all, err := tasksOf(ctx, c)
		if err != nil {
			return Result{}, err
		}
		for _, name := range in.After {
			id, err := namedTask(all, name)
			if err != nil {
				return Result{}, err
			}
			body.BlockedBy = append(body.BlockedBy, blocker{id})
		}
		if in.PartOf != "" {
			if body.Parent, err = namedTask(all, in.PartOf); err != nil {
				return Result{}, err
			}
		}
	}
	var told struct {
		Task belay.TaskID `json:"taskId"`
	}
	if err := c.Command(ctx, "create_task", body, &told); err != nil {
		return Result{}, err
	}
	return Result{Text: "planned " + string(told.Task)}, nil
}

func updateTask(ctx context.Context, c Call, in taskUpdateArgs) (Result, error) {
	all, err := tasksOf(ctx, c)
	if err != nil {
		return Result{}, err
	}
	id, err := namedTask(all, in.Task)
	if err != nil {
		return Result{}, err
	}
	type task struct {
		Session belay.SessionID `json:"sessionId"`
		Task    belay.TaskID    `json:"taskId"`
	}
	this := task{c.Session, id}
	if in.Title != "" || in.Objective != "" || in.Priority != "" || in.Assignee != "" {
		body := struct {
			task
			Title     string `json:"title,omitempty"`
			Objective string `json:"objective,omitempty"`
			Priority  string `json:"priority,omitempty"`
			Assignee  string `json:"assignee,omitempty"`
		}{this, in.Title, in.Objective, in.Priority, in.Assignee}
		if err := c.Command(ctx, "update_task", body, nil); err != nil {
			return Result{}, err
		}
	}
	var body any
	command := "append_task_progress"
	switch {
	case in.Status == "completed":
		command, body = "complete_task", struct {
			task
			Summary string `json:"summary,omitempty"`
		}{this, in.Note}
	case in.Status == "failed" || in.Status == "cancelled":
		command = map[string]string{"failed": "fail_task", "cancelled": "cancel_task"}[in.Status]
		body = struct {
			task
			Reason string `json:"reason,omitempty"`
		}{this, in.Note}
	case in.Status == "working" || in.Status == "" && (in.Note != "" || in.Done > 0 || in.Total > 0):
		body = struct {
			task
			Phase   string `json:"phase,omitempty"`
			Summary string `json:"summary,omitempty"`
			Done    int    `json:"done,omitempty"`
			Total   int    `json:"total,omitempty"`
		}{this, in.Status, in.Note, in.Done, in.Total}
	case in.Status == "":
		return Result{Text: "changed"}, nil
	default:
		return Result{}, Failf(BadArguments, CodeBadArguments, "status can't be %q", shorten(in.Status)).WithHint("working, completed, failed or cancelled")
	}
	return Result{Text: cmp.Or(in.Status, "noted")}, c.Command(ctx, command, body, nil)
}

func listTasks(ctx context.Context, c Call, _ struct{}) (Result, error) {
	all, err := tasksOf(ctx, c)
	if err != nil {
		return Result{}, err
	}
	titles := map[string]string{}
	for _, t := range all {
		titles[string(t.ID)] = t.Title
	}
	var b strings.Builder
	for _, t := range all {
		fmt.Fprintf(&b, "%s %s: %s", t.ID, t.Title, t.Status)
		add := func(format, s string) {
			if s != "" {
				fmt.Fprintf(&b, format, s)
			}
		}
		add(" (%s)", t.Reason)
		if t.Priority != 0 {
			add(", %s priority", map[bool]string{true: "high", false: "low"}[t.Priority > 0])
		}
		add(", owner %s", t.Owner)
		add(", assigned to %s", t.Assignee)
		for _, e := range t.Edges {
			name := cmp.Or(titles[e.Target], e.Target)
			switch {
			case e.Relation == belay.RelationParent:
				add(", part of %s", name)
			case e.Relation == belay.RelationBlockedBy && !e.Met:
				add(", after %s", name)
			}
		}
		if p := t.Progress; p != nil {
			add(", %s", p.Phase)
			if p.Total > 0 {
				fmt.Fprintf(&b, ", %d of %d", p.Done, p.Total)
			}
			add(", %s", p.Summary)
		}
		b.WriteByte('\n')
	}
	return Result{Text: cmp.Or(b.String(), "no tasks are planned")}, nil
}
