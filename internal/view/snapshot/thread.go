package snapshot

import (
	"cmp"
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// Thread is a thread as it stands.
type Thread struct {
	ThreadID  belay.ThreadID `json:"threadId"`
	Status    string         `json:"status"` // idle, queued, running, blocked, completed, failed, cancelled, stale, unknown
	Active    belay.TurnID   `json:"activeTurnId,omitempty"`
	Turns     []*Turn        `json:"turns"` // the last ones
	Pending   []*Action      `json:"pendingRequests"`
	Queue     []*Turn        `json:"queuedTurns"` // in order
	Queueing  belay.Queueing `json:"queuePolicy,omitzero"`
	Incidents []Incident     `json:"incidents"`
	Processes []*Process     `json:"processes"` // that the facts say run
	Context   Context        `json:"contextBoundary"`
	Evidence  State          `json:"evidenceSummary"`
	Last      belay.Outcome  `json:"lastOutcome,omitempty"`

	step   *Step
	joined []*Turn // that are part of the running one
}

// Turn is a turn.
type Turn struct {
	TurnID      belay.TurnID    `json:"turnId"`
	Status      string          `json:"status"`              // queued, running, waiting, or how it ended
	Mode        belay.QueueMode `json:"queueMode,omitempty"` // how it waits, other than for its turn
	Into        belay.TurnID    `json:"partOf,omitempty"`    // the turn that its text is part of
	TaskID      belay.TaskID    `json:"taskId,omitempty"`
	RunID       belay.RunID     `json:"runId,omitempty"`
	Input       string          `json:"input,omitempty"` // its beginning
	SubmittedAt time.Time       `json:"submittedAt,omitzero"`
	StartedAt   time.Time       `json:"startedAt,omitzero"`
	CompletedAt time.Time       `json:"completedAt,omitzero"`
	Steps       []*Step         `json:"steps"`
	Calls       []*Call         `json:"toolCalls"`
	Summary     string          `json:"summary,omitempty"`
	Reason      string          `json:"statusReason,omitempty"`
	Code        string          `json:"code,omitempty"`
	Limits      *belay.Limits   `json:"limitState,omitempty"`
	Used        event.TurnStats `json:"used"`
}

// Step is a request to the model.
type Step struct {
	StepID      belay.StepID `json:"stepId"`
	Kind        string       `json:"kind"`
	Status      string       `json:"status"` // running, completed, failed
	Attempts    int          `json:"attempts"`
	Model       string       `json:"model,omitempty"`
	StartedAt   time.Time    `json:"startedAt,omitzero"`
	CompletedAt time.Time    `json:"completedAt,omitzero"`
	Usage       belay.Usage  `json:"usage"`
}

// Call is a tool call.
type Call struct {
	CallID   belay.CallID `json:"toolCallId"`
	StepID   belay.StepID `json:"stepId,omitempty"`
	Name     string       `json:"toolName"`
	Status   string       `json:"status"` // requested, denied, running, completed, failed, lost, …
	Attempts int          `json:"attempts"`
	Decision string       `json:"decision,omitempty"` // of the gate
	Rule     string       `json:"rule,omitempty"`
	Code     string       `json:"code,omitempty"`
	Output   *belay.Ref   `json:"outputRef,omitempty"`
	EditedBy string       `json:"editedBy,omitempty"` // who gave it other arguments than the model did
}

// Action is a question that waits for a person.
type Action struct {
	ActionID belay.ActionID `json:"actionId"`
	Kind     string         `json:"kind"`
	TurnID   belay.TurnID   `json:"turnId,omitempty"`
	CallID   belay.CallID   `json:"toolCallId,omitempty"`
	Tool     string         `json:"toolName,omitempty"`
	Prompt   string         `json:"prompt,omitempty"`
	Default  string         `json:"default,omitempty"`
	Until    time.Time      `json:"until,omitzero"`
}

// Incident is something that a person should know of.
type Incident struct {
	EventID belay.EventID `json:"eventId"`
	Kind    string        `json:"kind"` // lost_call, failed_turn, warning, takeover
	Code    string        `json:"code,omitempty"`
	Message string        `json:"message,omitempty"`
	At      time.Time     `json:"at"`
}

// Process is a process of the system.
type Process struct {
	ProcessID belay.ProcessID `json:"processId"`
	CallID    belay.CallID    `json:"toolCallId,omitempty"`
	PID       int             `json:"pid"`
	Status    string          `json:"status"` // running; unknown: its driver went away
	Argv      []string        `json:"argv,omitempty"`
	Cwd       string          `json:"cwd,omitempty"`
	TTY       bool            `json:"tty,omitempty"`
	StartedAt time.Time       `json:"startedAt,omitzero"`
}

// thread folds a fact of a thread's stream.
func (f *Fold) thread(e event.Envelope) {
	t := f.threads[e.Stream]
	if t == nil {
		t = &Thread{ThreadID: belay.ThreadID(e.Stream.ID()), Turns: []*Turn{}, Pending: []*Action{}, Queue: []*Turn{}, Incidents: []Incident{},
			Processes: []*Process{}, Context: noContext(), Evidence: State{notApplicable, "no evidence was exported"}}
		f.threads[e.Stream] = t
		f.s.Threads = append(f.s.Threads, t)
	}
	switch p := e.Data.(type) {
	case event.QueueChanged:
		t.queueChanged(p)
	case event.ThreadStarted:
		t.Queueing = p.Queue
		if p.ForkedFrom != nil {
			f.s.History.Forked = p.ForkedFrom
		}
		if p.ImportedFrom != nil {
			f.s.History.Imported = p.ImportedFrom
		}
	case event.TurnSubmitted:
		f.s.Telemetry.Turns++
		t.Queue = append(t.Queue, &Turn{TurnID: e.IDs.Turn, Status: "queued", TaskID: e.IDs.Task, RunID: e.IDs.Run, Input: cut(p.Text.Text), SubmittedAt: e.Time,
			Steps: []*Step{}, Calls: []*Call{}, Mode: p.Queue})
	case event.TurnStarted:
		limits := p.Limits
		t.begin(e, &limits)
	case event.TurnCompleted:
		t.end(e, belay.Completed, p.Stats).Summary = cut(p.Summary.Text)
	case event.TurnFailed:
		turn := t.end(e, p.Outcome, p.Stats)
		turn.Reason, turn.Code = cut(p.Reason), p.Code
		t.incident(e, "failed_turn", p.Code, p.Reason)
	case event.RunStatus:
		t.status(e, p)
	case event.RuntimeWarning:
		t.incident(e, "warning", p.Code, p.Message)
	case event.HistoryRollbackCompleted:
		f.s.History.Rollbacks++
	case event.ActionRequired:
		t.Pending = append(t.Pending, &Action{ActionID: e.IDs.Action, Kind: p.Kind, TurnID: e.IDs.Turn, CallID: e.IDs.Call, Tool: p.Tool,
			Prompt: cut(p.Prompt.Text), Default: p.Default, Until: p.Until})
	case event.ActionResolved:
		t.answered(e.IDs.Action)
	}
	f.work(t, e)
	t.process(e)
	t.context(e)
}

func (t *Thread) begin(e event.Envelope, limits *belay.Limits) {
	is := func(q *Turn) bool { return q.TurnID == e.IDs.Turn }
	var queued, joined *Turn
	t.Queue, queued = without(t.Queue, is)
	t.joined, joined = without(t.joined, is)
	turn := cmp.Or(joined, queued, &Turn{TurnID: e.IDs.Turn, TaskID: e.IDs.Task, RunID: e.IDs.Run, Steps: []*Step{}, Calls: []*Call{}})
	turn.Status, turn.StartedAt, turn.Limits = "running", e.Time, limits
	t.Active, t.step = turn.TurnID, nil
	t.Turns = last(append(t.Turns, turn), maxTurns)
}

// end closes a turn; one that never began leaves the queue.
func (t *Thread) end(e event.Envelope, o belay.Outcome, used event.TurnStats) *Turn {
	turn := t.turn()
	if turn == nil || turn.TurnID != e.IDs.Turn {
		active, step := t.Active, t.step
		t.begin(e, nil)
		turn = t.turn()
		turn.StartedAt = time.Time{}
		t.Active, t.step = active, step
		if n := len(t.Turns); active != "" && n > 1 { // the one that runs stays the newest
			t.Turns[n-1], t.Turns[n-2] = t.Turns[n-2], turn
		}
	} else {
		t.Active, t.step = "", nil
		t.Pending = []*Action{}
	}
	turn.Status, turn.CompletedAt, turn.Used = string(o), e.Time, used
	t.Last = o
	return turn
}

// queueChanged folds a change of the row. A turn that is part of another one waits
// no more; it ends with it.
func (t *Thread) queueChanged(p event.QueueChanged) {
	i := slices.IndexFunc(t.Queue, func(q *Turn) bool { return q.TurnID == p.Turn })
	switch {
	case (p.Op == event.QueueAdded || p.Op == event.QueuePromoted) && i >= 0 && p.Position >= 1 && p.Position <= len(t.Queue):
		rest, q := without(t.Queue, func(q *Turn) bool { return q.TurnID == p.Turn })
		t.Queue = slices.Insert(rest, p.Position-1, q)
	case p.Op == event.QueueReordered:
		slices.SortStableFunc(t.Queue, func(a, b *Turn) int { return slices.Index(p.Order, a.TurnID) - slices.Index(p.Order, b.TurnID) })
	case p.Op == event.QueueJoined && i >= 0:
		t.Queue[i].Into = p.Into
		t.joined = append(t.joined, t.Queue[i])
		t.Queue = slices.Delete(t.Queue, i, i+1)
	case p.Op == event.QueuePolicy && p.Policy != nil:
		t.Queueing = *p.Policy
	}
}

// turn is the newest turn that has begun.
func (t *Thread) turn() *Turn {
	if len(t.Turns) == 0 {
		return nil
	}
	return t.Turns[len(t.Turns)-1]
}

func (t *Thread) status(e event.Envelope, p event.RunStatus) {
	if p.Phase == "takeover" {
		t.incident(e, "takeover", "", p.Reason)
		for _, proc := range t.Processes {
			proc.Status = "unknown"
		}
		return
	}
	if turn := t.turn(); turn != nil && t.Active == turn.TurnID {
		turn.Status = p.Status
	}
}

func (t *Thread) incident(e event.Envelope, kind, code, message string) {
	t.Incidents = last(append(t.Incidents, Incident{e.ID(), kind, code, cut(message), e.Time}), maxIncidents)
}

func (t *Thread) answered(id belay.ActionID) {
	t.Pending, _ = without(t.Pending, func(a *Action) bool { return a.ActionID == id })
}

// finish decides the thread's status in the standard's words.
func (t *Thread) finish(driven bool) {
	switch turn := t.turn(); {
	case t.Active != "" && turn != nil && len(t.Pending) > 0:
		t.Status = "blocked"
	case t.Active != "" && !driven:
		t.Status = "stale"
	case t.Active != "":
		t.Status = "running"
	case len(t.Queue) > 0:
		t.Status = "queued"
	case t.Last == "":
		t.Status = "idle"
	default:
		t.Status = ended(t.Last)
	}
}

// ended is an outcome in the standard's words for threads and attempts, which
// know neither lost nor timed out.
func ended(o belay.Outcome) string {
	switch o {
	case belay.Completed:
		return "completed"
	case belay.Cancelled:
		return "cancelled"
	case belay.Blocked:
		return "blocked"
	case belay.Lost:
		return "unknown"
	}
	return "failed"
}
