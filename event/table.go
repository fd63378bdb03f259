package event

import (
	"encoding/json"
	"reflect"
)

// Type is a line of the table: a name of the standard and what it carries.
type Type struct {
	Name       string
	Version    int  // current payloadVersion
	Stable     bool // emitted; its fields are additive. A draft must not be emitted
	Checkpoint bool // coalesced checkpoints of something that flows (2 s or 4 KB)
	Doc        string

	goType reflect.Type
	decode func([]byte) (Payload, error)
	up     map[int]func([]byte) ([]byte, error) // upcasters by the version they read
}

func of[P Payload](name string, doc string, opts ...func(*Type)) Type {
	t := Type{Name: name, Version: 1, Doc: doc, goType: reflect.TypeFor[P](),
		decode: func(b []byte) (Payload, error) {
			var p P
			if err := json.Unmarshal(b, &p); err != nil {
				return nil, err
			}
			return p, nil
		}}
	for _, o := range opts {
		o(&t)
	}
	return t
}

func stable(t *Type)     { t.Stable = true }
func checkpoint(t *Type) { t.Checkpoint = true }

// Types lists the table in the standard's order.
func Types() []Type { return table }

var table = []Type{
	of[SessionCreated]("session.created", "a session was opened on a workspace", stable),
	of[SessionUpdated]("session.updated", "settings or title of a session changed", stable),
	of[ThreadStarted]("thread.started", "a thread was opened", stable),
	of[ThreadUpdated]("thread.updated", "a thread goes on under other rules", stable),
	of[TurnSubmitted]("turn.submitted", "input was accepted", stable),
	of[TurnStarted]("turn.started", "a turn began, under named rules", stable),
	of[TurnCompleted]("turn.completed", "a turn ended by the completion protocol", stable),
	of[TurnFailed]("turn.failed", "a turn ended in any other way", stable),
	of[TaskCreated]("task.created", "a task has an objective", stable),
	of[TaskStarted]("task.started", "the first attempt begins", stable),
	of[TaskRetrying]("task.retrying", "another attempt follows", stable),
	of[TaskCancelRequested]("task.cancel_requested", "somebody wants the task to stop", stable),
	of[TaskCancelled]("task.cancelled", "the task stopped because somebody wanted it", stable),
	of[TaskTimedOut]("task.timed_out", "a time limit ended the task", stable),
	of[TaskFailed]("task.failed", "the task ended without success", stable),
	of[TaskLost]("task.lost", "nobody can tell what became of the task", stable),
	of[TaskBlocked]("task.blocked", "the task can't go on by itself", stable),
	of[TaskCompleted]("task.completed", "the task's objective is met", stable),
	of[TaskAttemptStarted]("task.attempt.started", "a run of the task begins", stable),
	of[TaskAttemptCompleted]("task.attempt.completed", "a run ended well", stable),
	of[TaskAttemptFailed]("task.attempt.failed", "a run ended in any other way", stable),
	of[RunStatus]("run.status", "a turn waits, goes on, or changed its driver", stable),
	of[ModelRequested]("model.requested", "a request to a model is about to leave", stable),
	of[ModelDelta]("model.delta", "text of an answer so far", stable, checkpoint),
	of[ModelCompleted]("model.completed", "a whole answer", stable),
	of[ModelFailed]("model.failed", "an attempt of a request ended without an answer", stable),
	of[ToolCatalogResolved]("tool.catalog.resolved", "the inventory of a turn is fixed", stable),
	of[ToolStarted]("tool.started", "a call is about to run", stable),
	of[ToolResult]("tool.result", "a call ended well", stable),
	of[ToolFailed]("tool.failed", "a call ended in any other way", stable),
	of[ActionRequired]("action.required", "a person's decision is needed", stable),
	of[ActionResolved]("action.resolved", "a decision was made", stable),
	of[ArtifactChanged]("artifact.changed", "a file, memory or definition changed", stable),
	of[RuntimeWarning]("runtime.warning", "something odd that stopped nothing", stable),
	of[PermissionEvaluated]("permission.evaluated", "the gate's verdict on a call", stable),
	of[PermissionRequested]("permission.requested", "the gate asks a person", stable),
	of[PermissionResolved]("permission.resolved", "what became of the gate's question", stable),
	of[SandboxApplied]("sandbox.applied", "the boundary an execution got", stable),
	of[SandboxViolation]("sandbox.violation", "a boundary stopped something"),
	of[PolicyChanged]("policy.changed", "rules or grants changed", stable),
	of[ProcessStarted]("process.started", "the operating system has a process", stable),
	of[ProcessOutput]("process.output", "output of a process so far", stable, checkpoint),
	of[ProcessInput]("process.input", "input was written to a process"),
	of[ProcessCompleted]("process.completed", "a process exited", stable),
	of[ProcessFailed]("process.failed", "a process could not start, or its end is unknown", stable),
	of[ProcessTerminated]("process.terminated", "a process was ended from outside", stable),
	of[OutputTruncated]("output.truncated", "a large output was shown in part", stable),
	of[ChannelMessage]("channel.message", "an audit entry or a peer's message", stable),
}

var (
	byName = index(func(t *Type) string { return t.Name })
	byGo   = index(func(t *Type) reflect.Type { return t.goType })
)

func index[K comparable](key func(*Type) K) map[K]*Type {
	m := make(map[K]*Type, len(table))
	for i := range table {
		m[key(&table[i])] = &table[i]
	}
	return m
}

func byPayload(p Payload) *Type { return byGo[reflect.TypeOf(p)] }
