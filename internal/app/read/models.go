package read

import (
	"context"
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/view"
	"github.com/belay-run/belay/internal/view/snapshot"
)

// The standard's read models that follow from a session's facts. Each is a part
// of one fold, so that what two of them say was true at the same moment if their
// positions are the same.

// Standing is how far an answer has seen the log, and whose it is.
type Standing struct {
	Fresh
	Session belay.SessionID `json:"sessionId"`
	Driven  bool            `json:"driven"` // a process drives it now; else what looks as if it ran is stale
}

// stand folds a session for one answer.
func (v *Reads) stand(ctx context.Context, q Query, id belay.SessionID) (Standing, *snapshot.Session, error) {
	f, err := v.fresh(ctx, q)
	if err != nil {
		return Standing{}, nil, err
	}
	fold, err := v.standing(ctx, id)
	if err != nil {
		return Standing{}, nil, err
	}
	owner, err := v.Store.OwnerOf(ctx, id)
	if err != nil {
		return Standing{}, nil, err
	}
	return Standing{f, id, owner != nil}, fold.Done(owner != nil), nil
}

// standOf is stand for the session that a request's path names.
func (v *Reads) standOf(ctx context.Context, q Query) (Standing, *snapshot.Session, error) {
	scope, err := v.ofSession(ctx, q)
	if err != nil {
		return Standing{}, nil, err
	}
	return v.stand(ctx, q, scope.Session)
}

// Model answers a read model.
type Model[T any] func(v *Reads, ctx context.Context, q Query) (*T, error)

// OfFold is a read model that the fold of a session has all of.
func OfFold[T any](of func(at Standing, s *snapshot.Session) *T) Model[T] {
	return func(v *Reads, ctx context.Context, q Query) (*T, error) {
		at, s, err := v.standOf(ctx, q)
		if err != nil {
			return nil, err
		}
		return of(at, s), nil
	}
}

// SessionSnapshot is the session_snapshot.
type SessionSnapshot struct {
	Standing
	Snapshot *snapshot.Session `json:"snapshot"` // as both schemas of the standard have it
}

// SessionSnapshot answers with the standard's snapshot of a session.
func (v *Reads) SessionSnapshot(ctx context.Context, q Query) (*SessionSnapshot, error) {
	at, s, err := v.standOf(ctx, q)
	if err == nil {
		err = whole(s)
	}
	return &SessionSnapshot{at, s}, err
}

// whole refuses a snapshot that isn't one of the standard yet.
func whole(s *snapshot.Session) error {
	if len(s.Threads) > 0 {
		return nil
	}
	return input.At("path id", belay.Errorf(belay.CodeBadState, "the session has no thread yet, so there is nothing to show"))
}

// ThreadRead is the thread_read_model.
type ThreadRead struct {
	Standing
	Thread     *snapshot.Thread         `json:"thread"` // of its turns the running one, or the one that ended last
	Tasks      []*snapshot.Task         `json:"tasks"`  // of the thread
	Permission snapshot.PermissionState `json:"permissionState"`
	Sandbox    snapshot.SandboxState    `json:"sandboxState"`
	Routing    snapshot.Routing         `json:"modelRouting"`
	Subagents  snapshot.Subagents       `json:"subagentJobSummary"`
	Telemetry  snapshot.Telemetry       `json:"telemetry"` // of the session
}

// ThreadRead answers what happens in a thread now.
func (v *Reads) ThreadRead(ctx context.Context, q Query) (*ThreadRead, error) {
	scope, err := v.ofThread(ctx, q)
	if err != nil {
		return nil, err
	}
	at, s, err := v.stand(ctx, q, scope.Session)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(s.Threads, func(t *snapshot.Thread) bool { return t.ThreadID.Stream() == scope.Stream })
	if i < 0 {
		return nil, unknown("thread", scope.Stream.ID())
	}
	out := &ThreadRead{Standing: at, Thread: s.Threads[i], Tasks: []*snapshot.Task{}, Permission: s.Permission, Sandbox: s.Sandbox, Routing: s.Routing,
		Subagents: s.Subagents, Telemetry: s.Telemetry}
	out.Thread.Turns = out.Thread.Turns[max(0, len(out.Thread.Turns)-1):]
	for _, t := range s.Tasks {
		if t.ThreadID == out.Thread.ThreadID {
			out.Tasks = append(out.Tasks, t)
		}
	}
	return out, nil
}

// QueueSnapshot is the queue_snapshot.
type QueueSnapshot struct {
	Standing
	Threads []ThreadQueue `json:"threads"`
}

// ThreadQueue are the turns of a thread that wait.
type ThreadQueue struct {
	Thread belay.ThreadID `json:"threadId"`
	Status string         `json:"status"` // of the thread; stale: it isn't driven now, and continues when it is
	Active belay.TurnID   `json:"activeTurnId,omitempty"`
	Policy belay.Queueing `json:"policy"` // what is left out is the default
	Queued []WaitingTurn  `json:"queued"` // in the order in which they will begin
}

// WaitingTurn is a turn that waits.
type WaitingTurn struct {
	Position  int             `json:"queuePosition"` // from 1
	Turn      belay.TurnID    `json:"turnId"`
	Mode      belay.QueueMode `json:"mode,omitempty"` // how it waits, other than for its turn
	Task      belay.TaskID    `json:"taskId,omitempty"`
	Run       belay.RunID     `json:"runId,omitempty"`
	Input     string          `json:"input,omitempty"` // its beginning
	Submitted time.Time       `json:"submittedAt"`
}

// QueueOf answers which turns wait in a session.
func QueueOf(at Standing, s *snapshot.Session) *QueueSnapshot {
	out := &QueueSnapshot{at, []ThreadQueue{}}
	for _, t := range s.Threads {
		q := ThreadQueue{t.ThreadID, t.Status, t.Active, t.Queueing, []WaitingTurn{}}
		for i, w := range t.Queue {
			q.Queued = append(q.Queued, WaitingTurn{i + 1, w.TurnID, w.Mode, w.TaskID, w.RunID, w.Input, w.SubmittedAt})
		}
		out.Threads = append(out.Threads, q)
	}
	return out
}

// TaskSnapshot is the task_snapshot.
type TaskSnapshot struct {
	Standing
	Summary snapshot.TaskSummary `json:"taskSummary"`
	Tasks   []*snapshot.Task     `json:"tasks"` // the newest, the last one last
	Graph   snapshot.TaskGraph   `json:"taskGraph"`
}

// TasksOf answers how the tasks of a session are.
func TasksOf(at Standing, s *snapshot.Session) *TaskSnapshot {
	return &TaskSnapshot{at, s.TaskSummary, s.Tasks, s.Graph}
}

// SubagentJobs is the subagent_job_summary.
type SubagentJobs struct {
	Standing
	Summary snapshot.Subagents `json:"subagentJobSummary"`
}

// SubagentsOf answers which agents agents of a session started, and how those are.
func SubagentsOf(at Standing, s *snapshot.Session) *SubagentJobs {
	return &SubagentJobs{at, s.Subagents}
}

// ContextBoundary is the context_boundary_snapshot.
type ContextBoundary struct {
	Standing
	History snapshot.History `json:"historySummary"`
	Threads []ThreadContext  `json:"threads"`
}

// ThreadContext is what the model of a thread is given.
type ThreadContext struct {
	Thread belay.ThreadID `json:"threadId"`
	snapshot.Context
}

// ContextOf answers what models are given besides the conversation, and
// what of it they aren't.
func ContextOf(at Standing, s *snapshot.Session) *ContextBoundary {
	out := &ContextBoundary{at, s.History, []ThreadContext{}}
	for _, t := range s.Threads {
		out.Threads = append(out.Threads, ThreadContext{t.ThreadID, t.Context})
	}
	return out
}

// ArtifactCheckpoints is the artifact_checkpoint_summary.
type ArtifactCheckpoints struct {
	Standing
	Artifacts  []view.Artifact  `json:"artifacts"` // that were handed over: the newest version of each
	Files      []view.File      `json:"files"`     // of the workspace that changed, net; kept: what was before can be restored
	Changed    int              `json:"filesChanged"`
	Outputs    snapshot.Outputs `json:"outputs"`
	Validation snapshot.State   `json:"validation"`
}

// ArtifactCheckpoints answers what came of a session: artifacts, changed files
// and large outputs.
func (v *Reads) ArtifactCheckpoints(ctx context.Context, q Query) (*ArtifactCheckpoints, error) {
	at, s, err := v.standOf(ctx, q)
	if err != nil {
		return nil, err
	}
	if err := v.Views.Catchup(ctx); err != nil {
		return nil, err
	}
	out := &ArtifactCheckpoints{Standing: at, Artifacts: []view.Artifact{}, Files: []view.File{}, Outputs: s.Outputs,
		Validation: snapshot.State{Status: "unavailable", Reason: "this build validates no artifacts"}}
	row, err := v.row(ctx, at.Session)
	if belay.CodeOf(err) == belay.CodeNotFound { // it has facts, and session.created isn't among them
		return out, nil
	}
	out.Artifacts, out.Files, out.Changed = append(out.Artifacts, row.Artifacts...), append(out.Files, row.Files...), row.Counts.Files
	return out, err
}

// PermissionSandbox is the permission_sandbox_summary.
type PermissionSandbox struct {
	Standing
	Permission snapshot.PermissionState `json:"permissionState"`
	Pending    []*snapshot.Action       `json:"pendingRequests"` // of all threads
	Sandbox    snapshot.SandboxState    `json:"sandboxState"`
}

// PermissionsOf answers what a session may do, what was refused, what waits
// for a person, and in which boundary programs run.
func PermissionsOf(at Standing, s *snapshot.Session) *PermissionSandbox {
	out := &PermissionSandbox{at, s.Permission, []*snapshot.Action{}, s.Sandbox}
	for _, t := range s.Threads {
		out.Pending = append(out.Pending, t.Pending...)
	}
	return out
}

// ExecutionEnvironment is the execution_environment_snapshot.
type ExecutionEnvironment struct {
	Standing
	Environment snapshot.Environment  `json:"executionEnvironment"`
	Sandbox     snapshot.SandboxState `json:"sandboxState"`
	Processes   []ThreadProcess       `json:"processes"` // that run, as facts say
}

// ThreadProcess is a program of a thread.
type ThreadProcess struct {
	Thread belay.ThreadID `json:"threadId"`
	snapshot.Process
}

// EnvironmentOf answers where programs of a session run, and which do.
func EnvironmentOf(at Standing, s *snapshot.Session) *ExecutionEnvironment {
	out := &ExecutionEnvironment{at, s.Environment, s.Sandbox, []ThreadProcess{}}
	for _, t := range s.Threads {
		for _, p := range t.Processes {
			out.Processes = append(out.Processes, ThreadProcess{t.ThreadID, *p})
		}
	}
	return out
}

// RoutingLimits is the routing_limit_summary.
type RoutingLimits struct {
	Standing
	Routing   snapshot.Routing   `json:"routingLimitSummary"`
	Limits    belay.Limits       `json:"limits"` // of a turn
	Telemetry snapshot.Telemetry `json:"telemetry"`
}

// RoutingOf answers which model is asked and why, what was used and what it
// cost.
func RoutingOf(at Standing, s *snapshot.Session) *RoutingLimits {
	return &RoutingLimits{at, s.Routing, s.Environment.Limits, s.Telemetry}
}
