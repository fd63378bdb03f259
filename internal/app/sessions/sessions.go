package sessions

import (
	"context"
	"errors"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view"
)

// GetSession is what get_session takes.
type GetSession struct {
	Session belay.SessionID `json:"sessionId"`
	app.AsOf
}

// SessionShown is a session and its driver.
type SessionShown struct {
	app.Fresh
	Session view.Session `json:"session"`
	Driven  bool         `json:"driven"` // a process drives it now
}

func getSession(ctx context.Context, r *app.Call, f app.Fresh, in *GetSession) (*SessionShown, error) {
	if err := input.Named("sessionId", string(in.Session)); err != nil {
		return nil, err
	}
	s, err := view.SessionByID(ctx, r.Store, string(in.Session))
	if err == nil && s.ID != in.Session || belay.CodeOf(err) == belay.CodeNotFound {
		err = app.NoSession(in.Session)
	}
	if err != nil {
		return nil, input.At("sessionId", err)
	}
	owner, err := r.Store.OwnerOf(ctx, in.Session)
	return &SessionShown{f, s, owner != nil}, err
}

// GetThreadRead is what get_thread_read takes.
type GetThreadRead struct {
	Session belay.SessionID `json:"sessionId"`
	Thread  belay.ThreadID  `json:"threadId,omitempty" jsonschema:"the session's newest when it is left out"`
	app.AsOf
}

// ThreadShown is a thread as its facts say.
type ThreadShown struct {
	app.Fresh
	Session belay.SessionID `json:"sessionId"`
	Thread  belay.ThreadID  `json:"threadId"`
	Status  string          `json:"status"` // idle, queued, running, waiting
	Turn    *TurnShown      `json:"turn,omitempty"`
	Last    *thread.Ended   `json:"lastOutcome,omitempty"`
	Queue   []belay.TurnID  `json:"queue"` // in the order in which they will begin
	Queued  []QueuedShown   `json:"queuedTurns"`
	Policy  belay.Queueing  `json:"queuePolicy"` // what is left out is the default
	Actions []app.Action    `json:"actions"`     // open questions
	Taint   []string        `json:"taint,omitempty"`

	WaitingFor []belay.ActionID `json:"waitingFor,omitempty"` // questions of agents that it waits for

	Processes []ProcessShown `json:"processes,omitempty"` // that it runs
}

// TurnShown is the running turn.
type TurnShown struct {
	ID    belay.TurnID `json:"turnId"`
	Task  belay.TaskID `json:"taskId,omitempty"`
	Run   belay.RunID  `json:"runId,omitempty"`
	Begun bool         `json:"begun"`
	Steps int          `json:"steps"`
	Calls int          `json:"calls"`
	Usage belay.Usage  `json:"usage,omitzero"`
}

func getThreadRead(ctx context.Context, r *app.Call, f app.Fresh, in *GetThreadRead) (*ThreadShown, error) {
	if err := input.ID("threadId", string(in.Thread)); err != nil {
		return nil, err
	}
	s, err := r.Known(ctx, in.Session)
	if err != nil {
		return nil, err
	}
	th, err := r.ThreadOf(ctx, s, in.Thread)
	if err != nil {
		return nil, err
	}
	out := &ThreadShown{Fresh: f, Session: in.Session, Thread: th.Thread, Status: "idle", Last: th.Prev,
		Queue: []belay.TurnID{}, Queued: queuedTurns(th), Policy: th.Line, Actions: app.OpenActions(th), Processes: processes(th)}
	if out.Actions == nil {
		out.Actions = []app.Action{}
	}
	if len(s.Family) > 0 {
		open, err := r.Actions(ctx, in.Session)
		if err != nil {
			return nil, err
		}
		out.WaitingFor = below(s, th.Thread, open)
	}
	for _, q := range th.Queue {
		out.Queue = append(out.Queue, q.Turn)
	}
	for _, t := range th.Taint {
		out.Taint = append(out.Taint, t.Kind+" "+t.Origin)
	}
	if t := th.Turn; t != nil {
		out.Turn = &TurnShown{ID: t.Turn, Task: t.Task, Run: t.Run, Begun: t.Begun, Steps: t.Steps, Calls: t.Calls, Usage: t.Usage}
	}
	switch {
	case len(out.Actions) > 0, len(out.WaitingFor) > 0 && th.AwaitsOthers():
		out.Status = view.Waiting
	case th.Turn != nil:
		out.Status = view.Running
	case len(th.Queue) > 0:
		out.Status = view.Queued
	}
	return out, nil
}

// GetToolInventory is what get_tool_inventory takes.
type GetToolInventory struct {
	Session   belay.SessionID `json:"sessionId,omitempty" jsonschema:"the tools of this session"`
	Workspace string          `json:"workspace,omitempty" jsonschema:"the tools of a new session in this folder"`
}

// ToolsShown are tools.
type ToolsShown struct {
	app.Fresh
	Workspace string     `json:"workspace"`
	Mode      belay.Mode `json:"mode"`
	Tools     []ToolInfo `json:"tools"`
}

// ToolInfo is a tool as a list shows it.
type ToolInfo struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Group       string `json:"group,omitempty"`
	Allowed     bool   `json:"allowed,omitempty"` // the session's settings allow it without a question
}

func getToolInventory(ctx context.Context, r *app.Call, f app.Fresh, in *GetToolInventory) (*ToolsShown, error) {
	if in.Session != "" && in.Workspace != "" {
		return nil, input.At("workspace", belay.Errorf(belay.CodeBadCommand, "the session says which folder").WithHint("leave one of the two out"))
	}
	ws, settings, err := r.PlaceOf(ctx, in.Session, in.Workspace)
	if err != nil {
		return nil, err
	}
	specs, err := r.Workspaces.Tools(ctx, ws, settings)
	if err != nil {
		return nil, err
	}
	out := &ToolsShown{Fresh: f, Workspace: ws, Mode: settings.Mode, Tools: []ToolInfo{}}
	for _, s := range specs {
		out.Tools = append(out.Tools, ToolInfo{s.Name, s.Doc, s.Group, slices.Contains(settings.Allow, s.Name)})
	}
	return out, nil
}

// GetExecutionEnvironment is what get_execution_environment takes.
type GetExecutionEnvironment struct {
	Session belay.SessionID `json:"sessionId"`
}

// EnvironmentShown is where a session's processes run. It is what was decided for
// the newest turn; what really held is in the facts of each process.
type EnvironmentShown struct {
	app.Fresh
	Session   belay.SessionID    `json:"sessionId"`
	Workspace string             `json:"workspace"`
	Use       belay.WorkspaceUse `json:"use,omitzero"`
	Mode      belay.Mode         `json:"mode"`
	Limits    belay.Limits       `json:"limits"`
	Boundary  *thread.Boundary   `json:"boundary,omitempty"` // left out: no turn was begun
}

func getExecutionEnvironment(ctx context.Context, r *app.Call, f app.Fresh, in *GetExecutionEnvironment) (*EnvironmentShown, error) {
	s, err := r.Known(ctx, in.Session)
	if err != nil {
		return nil, err
	}
	out := &EnvironmentShown{Fresh: f, Session: in.Session, Workspace: s.Workspace, Use: s.Use, Mode: s.Settings.Mode, Limits: s.Settings.Limits}
	if len(s.Threads) == 0 {
		return out, nil
	}
	th, err := r.Thread(ctx, s.Threads[len(s.Threads)-1])
	if err != nil || th.Turn == nil || th.Turn.Rules.Digest == "" {
		return out, err
	}
	rules, err := r.RulesOf(ctx, th.Turn.Rules)
	if errors.Is(err, store.ErrNotFound) {
		return out, nil
	}
	if err == nil {
		out.Boundary = &rules.Boundary
	}
	return out, err
}

// ToolInventory is the tool_inventory_snapshot.
type ToolInventory struct {
	ToolsShown
	Session belay.SessionID `json:"sessionId"`
}

func toolInventory(ctx context.Context, r *app.Call, f app.Fresh, id belay.SessionID) (*ToolInventory, error) {
	out, err := getToolInventory(ctx, r, f, &GetToolInventory{Session: id})
	if err != nil {
		return nil, err
	}
	return &ToolInventory{*out, id}, nil
}

// ProcessShown is a program that runs in a thread.
type ProcessShown struct {
	ID         belay.ProcessID `json:"processId"`
	Call       belay.CallID    `json:"callId"`
	Command    string          `json:"command"`              // the beginning of its command line
	Background bool            `json:"background,omitempty"` // its call is over: it takes input and can be ended
	Lost       bool            `json:"lost,omitempty"`       // the runtime that started it is gone
	Waiting    int             `json:"waiting,omitempty"`    // inputs that it hasn't been given yet
}

// processes are the programs of a thread, as far as facts say.
func processes(th *thread.State) []ProcessShown {
	out := make([]ProcessShown, 0, len(th.Procs))
	for _, p := range th.Procs {
		out = append(out, ProcessShown{ID: p.IDs.Process, Call: p.IDs.Call, Command: p.What, Background: p.Left, Lost: p.Orphan, Waiting: len(p.Inputs)})
	}
	return out
}

// QueuedShown is a turn that waits.
type QueuedShown struct {
	Turn belay.TurnID    `json:"turnId"`
	Task belay.TaskID    `json:"taskId,omitempty"`
	Run  belay.RunID     `json:"runId,omitempty"`
	Mode belay.QueueMode `json:"mode"`
	Into belay.TurnID    `json:"into,omitempty"` // steer: the turn to steer
	Text string          `json:"text,omitempty"` // its first line
}

// queuedTurns are the turns of a thread that wait, in order.
func queuedTurns(th *thread.State) []QueuedShown {
	out := make([]QueuedShown, 0, len(th.Queue))
	for _, q := range th.Queue {
		mode := q.Mode
		if mode == "" {
			mode = belay.QueueEnqueue
		}
		out = append(out, QueuedShown{Turn: q.Turn, Task: q.Task, Run: q.Run, Mode: mode, Into: q.Into, Text: q.Line})
	}
	return out
}
