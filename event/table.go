package event

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
)

// Type is a line of the table: a name of the standard and what it carries.
type Type struct {
	Name       string
	Version    int      // current payloadVersion
	Stable     bool     // emitted; its fields are additive. A draft must not be emitted
	Checkpoint bool     // coalesced checkpoints of something that flows (2 s or 4 KB)
	Needs      []string // what a fact of it must carry beside every fact's own ids, by JSON name
	Doc        string

	goType reflect.Type
	decode func([]byte) (Payload, error)
	up     map[int]upcaster // by the version they read
}

// upcaster turns a payload of one version into one of the next.
type upcaster func([]byte) ([]byte, error)

func of[P Payload](name string, doc string, opts ...func(*Type)) Type {
	t := Type{Name: name, Version: 1, Needs: needsOf(name), Doc: doc, goType: reflect.TypeFor[P](),
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

// upcast gives a type a new version: up reads the one before. What was recorded
// stays as it is; it is lifted each time it is read.
func upcast(from int, up upcaster) func(*Type) {
	return func(t *Type) {
		if t.up == nil {
			t.up = make(map[int]upcaster)
		}
		t.up[from] = up
		t.Version = max(t.Version, from+1)
	}
}

// read decodes a payload recorded in any version up to the table's.
func (t *Type) read(version int, raw []byte) (Payload, error) {
	for v := max(version, 1); v < t.Version; v++ {
		up, ok := t.up[v]
		if !ok {
			return nil, fmt.Errorf("%s: version %d can no longer be read", t.Name, v)
		}
		var err error
		if raw, err = up(raw); err != nil {
			return nil, fmt.Errorf("%s: from version %d: %w", t.Name, v, err)
		}
	}
	p, err := t.decode(raw)
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", t.Name, err)
	}
	return p, nil
}

// Types lists the table in the standard's order.
func Types() []Type { return slices.Clone(table) }

// Lookup is the line of a name.
func Lookup(name string) (Type, bool) {
	t, ok := byName[name]
	if !ok {
		return Type{}, false
	}
	return *t, true
}

var table = []Type{
	of[SessionCreated]("session.created", "a session was opened on a workspace", stable),
	of[SessionUpdated]("session.updated", "settings or title of a session changed", stable),
	of[ThreadStarted]("thread.started", "a thread was opened", stable),
	of[ThreadUpdated]("thread.updated", "a thread continues under other rules", stable),
	of[TurnSubmitted]("turn.submitted", "input was accepted", stable),
	of[TurnStarted]("turn.started", "a turn began, under named rules", stable),
	of[TurnCompleted]("turn.completed", "a turn ended by the completion protocol", stable),
	of[TurnFailed]("turn.failed", "a turn ended in any other way", stable),
	of[TaskCreated]("task.created", "a task has an objective", stable),
	of[TaskAccepted]("task.accepted", "the session takes responsibility for the task", stable),
	of[TaskQueued]("task.queued", "the task waits for its turn", stable),
	of[TaskStarted]("task.started", "the first attempt begins", stable),
	of[TaskUpdated]("task.updated", "what the task is changed", stable),
	of[TaskProgress]("task.progress", "how far the task is", stable),
	of[TaskWaiting]("task.waiting", "the task waits for something named", stable),
	of[TaskBlocked]("task.blocked", "the task can't go on by itself", stable),
	of[TaskPaused]("task.paused", "the task was stopped on purpose", stable),
	of[TaskResumed]("task.resumed", "a pause or a wait is over", stable),
	of[TaskRetrying]("task.retrying", "another attempt follows", stable),
	of[TaskCancelRequested]("task.cancel_requested", "the task is asked to stop", stable),
	of[TaskCancelled]("task.cancelled", "the task stopped on request", stable),
	of[TaskTimedOut]("task.timed_out", "a time limit ended the task", stable),
	of[TaskFailed]("task.failed", "the task ended without success", stable),
	of[TaskLost]("task.lost", "the task's outcome is unknown", stable),
	of[TaskCompleted]("task.completed", "the task's objective is met", stable),
	of[TaskArchived]("task.archived", "an ended task left the lists", stable),
	of[RunStatus]("run.status", "a turn waits, continues, or changed its driver", stable),
	of[ModelRequested]("model.requested", "a request to a model is about to leave", stable),
	of[ModelDelta]("model.delta", "text of an answer so far", stable, checkpoint),
	of[ModelCompleted]("model.completed", "a whole answer", stable),
	of[ModelFailed]("model.failed", "an attempt of a request ended without an answer", stable),
	of[ReasoningDelta]("reasoning.delta", "reasoning so far", checkpoint),
	of[ReasoningSummary]("reasoning.summary", "reasoning that a provider shows", stable),
	of[ToolCatalogResolved]("tool.catalog.resolved", "the inventory of a turn is fixed", stable),
	of[ToolStarted]("tool.started", "a call is about to run", stable),
	of[ToolArgs]("tool.args", "a call runs with other arguments", stable),
	of[ToolProgress]("tool.progress", "how far a running call is", stable, checkpoint),
	of[ToolResult]("tool.result", "a call ended well", stable),
	of[ToolFailed]("tool.failed", "a call ended in any other way", stable),
	of[ActionRequired]("action.required", "a person's decision is needed", stable),
	of[ActionResolved]("action.resolved", "a decision was made", stable),
	of[QueueChanged]("queue.changed", "the row of waiting turns changed", stable),
	of[ContextResolved]("context.resolved", "what a model is given besides the conversation", stable),
	of[ContextCompactionStarted]("context.compaction.started", "a conversation is about to be shortened", stable),
	of[ContextCompactionCompleted]("context.compaction.completed", "a shorter window took the place of a range", stable),
	of[ContextCompactionFailed]("context.compaction.failed", "a conversation could not be shortened", stable),
	of[ArtifactChanged]("artifact.changed", "a file, memory or definition changed", stable),
	of[EvidenceChanged]("evidence.changed", "proof was exported, or there is none"),
	of[SubagentSpawned]("subagent.spawned", "a child thread was opened", stable),
	of[SubagentStatus]("subagent.status", "how a child is", stable),
	of[SubagentInput]("subagent.input", "a child got input", stable),
	of[SubagentCompleted]("subagent.completed", "a child met its objective", stable),
	of[SubagentFailed]("subagent.failed", "a child ended in any other way", stable),
	of[SubagentClosed]("subagent.closed", "a child is to end", stable),
	of[LimitChanged]("limit.changed", "a budget was set, or a part of it asked for, granted, recalled, returned", stable),
	of[SnapshotUpdated]("snapshot.updated", "a read model was brought up to a position"),
	of[RuntimeWarning]("runtime.warning", "something odd that stopped nothing", stable),
	of[RuntimeError]("runtime.error", "something of the runtime stopped"),
	of[PermissionEvaluated]("permission.evaluated", "the gate's verdict on a call", stable),
	of[PermissionRequested]("permission.requested", "the gate asks a person", stable),
	of[PermissionResolved]("permission.resolved", "the answer to a question of the gate", stable),
	of[SandboxApplied]("sandbox.applied", "the boundary an execution got", stable),
	of[SandboxViolation]("sandbox.violation", "a boundary stopped something", stable),
	of[HookStarted]("hook.started", "a hook or a checker is about to run", stable),
	of[HookCompleted]("hook.completed", "a hook or a checker answered", stable),
	of[HookFailed]("hook.failed", "a hook or a checker gave no answer", stable),
	of[PolicyChanged]("policy.changed", "rules or grants changed", stable),
	of[ProcessStarted]("process.started", "the operating system has a process", stable),
	of[ProcessOutput]("process.output", "output of a process so far", stable, checkpoint),
	of[ProcessInput]("process.input", "input was written to a process, or is to be", stable),
	of[ProcessCompleted]("process.completed", "a process exited", stable),
	of[ProcessFailed]("process.failed", "a process could not start, or its end is unknown", stable),
	of[ProcessTerminated]("process.terminated", "a process was ended from outside", stable),
	of[TaskProfileResolved]("task.profile.resolved", "what a task needs from a model", stable),
	of[RoutingCandidatesResolved]("routing.candidates.resolved", "what a request may be sent to", stable),
	of[RoutingDecided]("routing.decided", "the model, and why it is that one", stable),
	of[RoutingFallbackApplied]("routing.fallback.applied", "the next of the fallbacks is tried", stable),
	of[RoutingNotPossible]("routing.not_possible", "no model can do it", stable),
	of[RoutingSingleCandidate]("routing.single_candidate", "there was nothing to choose", stable),
	of[TaskDelegated]("task.delegated", "another agent or job does the task or a part of it", stable),
	of[TaskDependencyUpdated]("task.dependency.updated", "an edge of the task changed", stable),
	of[TaskAttemptStarted]("task.attempt.started", "a run of the task begins", stable),
	of[TaskAttemptCompleted]("task.attempt.completed", "a run ended well", stable),
	of[TaskAttemptFailed]("task.attempt.failed", "a run ended in any other way", stable),
	of[CostEstimated]("cost.estimated", "a reservation for a request", stable),
	of[CostRecorded]("cost.recorded", "what a request did cost", stable),
	of[RateLimitHit]("rate_limit.hit", "a provider wants fewer requests", stable),
	of[QuotaLow]("quota.low", "a quota is nearly used up", stable),
	of[QuotaBlocked]("quota.blocked", "a quota stopped something", stable),
	of[ChannelConnected]("channel.connected", "a peer can be reached", stable),
	of[ChannelDisconnected]("channel.disconnected", "a peer left or fell silent", stable),
	of[ChannelResumed]("channel.resumed", "a peer is back", stable),
	of[ChannelMessage]("channel.message", "an audit entry or a peer's message", stable),
	of[ChannelPermissionForwarded]("channel.permission_forwarded", "a question of the gate went to a peer", stable),
	of[ChannelPermissionReturned]("channel.permission_returned", "a peer's decision came back", stable),
	of[JobCreated]("job.created", "a batch or a schedule exists"),
	of[JobStarted]("job.started", "the first item may begin"),
	of[JobProgress]("job.progress", "items were counted"),
	of[JobItemStarted]("job.item.started", "an attempt of an item begins"),
	of[JobItemCompleted]("job.item.completed", "an item ended well"),
	of[JobItemFailed]("job.item.failed", "an attempt of an item ended in any other way"),
	of[JobCompleted]("job.completed", "every item has ended"),
	of[JobFailed]("job.failed", "the job can't go on"),
	of[JobCancelled]("job.cancelled", "the job was stopped on request"),
	of[OutputSpilled]("output.spilled", "a large output was kept beside the log", stable),
	of[OutputTruncated]("output.truncated", "a large output was shown in part", stable),
	of[OutputRedacted]("output.redacted", "something was taken out of an output", stable),
	of[OutputExpired]("output.expired", "a stored output expired", stable),
	of[HistoryWindowLoaded]("history.window.loaded", "a reader was given a part of a history", stable),
	of[HistoryReconstructed]("history.reconstructed", "state was made from facts again", stable),
	of[HistoryRollbackStarted]("history.rollback.started", "a conversation, or files alone, are about to go back", stable),
	of[HistoryRollbackCompleted]("history.rollback.completed", "a conversation, or files alone, went back", stable),
	of[SnapshotRepaired]("snapshot.repaired", "a read model was made anew", stable),
	of[BenchmarkDatasetResolved]("benchmark.dataset.resolved", "the data set is fixed"),
	of[BenchmarkConfigurationResolved]("benchmark.configuration.resolved", "a configuration is fixed"),
	of[BenchmarkTrialStarted]("benchmark.trial.started", "a trial begins"),
	of[BenchmarkTrialCompleted]("benchmark.trial.completed", "a trial ran to its end"),
	of[BenchmarkTrialFailed]("benchmark.trial.failed", "a trial has no result"),
	of[BenchmarkRewardRecorded]("benchmark.reward.recorded", "a grader gave its verdict"),
	of[BenchmarkComparisonCompleted]("benchmark.comparison.completed", "two configurations were set side by side"),
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
