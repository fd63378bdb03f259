package event

import "slices"

// Naming says under which type a fact is recorded that the standard's closed
// list has no name for. In Note, text in backquotes is a field of the payload
// or an id of the envelope, with the value that tells the fact apart.
type Naming struct{ Fact, Type, Note string }

// Namings lists them by subject.
func Namings() []Naming { return slices.Clone(namings) }

var namings = []Naming{
	{"turn failed", "turn.failed", "`outcome: failed`; text the model had produced is `partialRef` or `partial`"},
	{"turn ended without completion", "turn.failed", "`outcome: no_completion`"},
	{"turn denied", "turn.failed", "`outcome: denied`"},
	{"turn cancelled", "turn.failed", "`outcome: cancelled`; `partialRef` or `partial`"},
	{"turn timed out", "turn.failed", "`outcome: timed_out`"},
	{"turn blocked", "turn.failed", "`outcome: blocked`"},
	{"turn over budget", "turn.failed", "`outcome: budget`"},
	{"turn lost", "turn.failed", "`outcome: lost`; `code` names what is missing"},
	{"turn waits for a person, a timer, a child or a grant", "run.status", "`status`, `waitingFor`, `until`"},
	{"turn goes on", "run.status", "`status: running`"},
	{"turn is being cancelled", "run.status", "`status: cancelling`, `by`"},
	{"thread was taken over by another process", "run.status", "`phase: takeover`, `epoch`, `priorEpoch`"},
	{"model text was cut", "model.failed", "`partialRef` or `partial`, `offset`"},

	{"tool call lost", "tool.failed", "`problem.class: lost`"},
	{"tool call cancelled", "tool.failed", "`problem.class: cancelled`"},
	{"tool call skipped", "tool.failed", "`problem.class: skipped`"},
	{"tool call denied", "tool.failed", "`problem.class: denied`"},
	{"tool call refused for its arguments", "tool.failed", "`problem.class: bad_arguments`"},
	{"inventory of a turn", "tool.catalog.resolved", "`stepId` is the step it comes before, `toolCallId` is derived and belongs to no call"},
	{"process lost", "process.failed", "`class: lost`"},
	{"compensation begins", "task.attempt.started", "`purpose: compensate`"},

	{"file changed", "artifact.changed", "`kind: file`, `op`, `path`, `before`, `after`, `toolCallId`"},
	{"memory stored", "artifact.changed", "`kind: memory`, `op: stored`, `scope`, `origin`"},
	{"memory updated", "artifact.changed", "`kind: memory`, `op: updated`, `scope`, `origin`"},
	{"memory forgotten", "artifact.changed", "`kind: memory`, `op: forgotten`, `scope`"},
	{"memory quarantined", "artifact.changed", "`kind: memory`, `op: quarantined`, `origin`"},
	{"memory confirmed", "artifact.changed", "`kind: memory`, `op: confirmed`"},
	{"instructions of a workspace or a person", "context.resolved", "an entry of `items` with `items.kind: instruction`, or of `omitted`"},
	{"memory recalled", "context.resolved", "an entry of `items` with `items.kind: memory`"},
	{"flow defined or edited", "artifact.changed", "`kind: flow`, `version`, `digest`"},
	{"agent defined or edited", "artifact.changed", "`kind: agent`, `version`, `digest`"},
	{"playbook defined or edited", "artifact.changed", "`kind: playbook`, `version`, `digest`"},
	{"schedule defined or edited", "artifact.changed", "`kind: schedule`, `version`, `digest`"},
	{"rule file defined or edited", "artifact.changed", "`kind: rules`, `version`, `digest`; followed by policy.changed"},
	{"plan of a thread changed", "artifact.changed", "`kind: plan`, `op: changed`; `plan` is the whole list from then on"},
	{"artifact published", "artifact.changed", "`kind: artifact`, `op: published`, `artifactId`, `name`, `version`, `after`"},
	{"workspace file trusted", "policy.changed", "`kind: trust`, `op: granted`, `path`, `digest`, `by`; in the system session"},
	{"trust taken back", "policy.changed", "`kind: trust`, `op: revoked`, `path`, `by`; in the system session"},
	{"rule saved", "policy.changed", "`kind: rules`, `op: saved`, `path`, `digest`, `by`; in the system session"},
	{"rules took effect", "policy.changed", "`kind: rules`, `op: loaded`, `digest`"},

	{"flow run begins", "task.created", "`kind: flow`, with a thread of its own"},
	{"flow run's thread", "thread.started", "`kind: flow`; one turn for each run, so that questions and hooks have ids"},
	{"flow node begins", "task.created", "`kind: node`, `parentTaskId`, `node`, `iteration`"},
	{"edge taken, fan-in reached", "task.dependency.updated", "`op: taken`, `edge`, `because`"},
	{"dependency met", "task.dependency.updated", "`op: met`, `target`, `because`"},
	{"channel of a flow written, checkpoint made", "task.progress", "`checkpoint.channels`, `checkpoint.versions`"},
	{"human node asks", "action.required", "on the flow's `threadId` and `turnId`"},
	{"map node begins", "job.created", "`kind: map`; `jobItemId` follows from the item"},
	{"batch begins", "job.created", "`kind: batch`; `jobItemId` follows from the item"},

	{"schedule set", "job.created", "`kind: schedule`, `cron`, `zone`"},
	{"schedule fires", "job.item.started", "`kind: schedule`, `due`"},
	{"schedule missed", "job.item.failed", "`kind: schedule`, `missed`, `due`"},
	{"result of a schedule delivered", "job.progress", "`delivery`"},

	{"agent registered", "artifact.changed", "`kind: agent`, `name`, `digest`"},
	{"agent healthy or not", "subagent.status", "`status: healthy` or `status: unhealthy`, `agent`"},
	{"agent drained", "subagent.status", "`status: drained`, `agent`"},
	{"agent paused", "task.paused", "`by`, `reason`, for each of its tasks"},

	{"budget set", "limit.changed", "`op: set`, `scope`, `limit`, `by`"},
	{"budget asked for", "limit.changed", "`op: asked`, `grantId`, `least`, `amount`"},
	{"budget granted", "limit.changed", "`op: granted`, `grantId`, `amount`"},
	{"budget that can't be granted", "limit.changed", "`op: refused`, `grantId`"},
	{"budget recalled", "limit.changed", "`op: recalled`"},
	{"budget returned", "limit.changed", "`op: returned`, `closed`, `spent`, `amount`, `kept`"},
	{"budget reserved", "cost.estimated", "`amount`, `currency`, `usage`, `for`"},
	{"budget charged", "cost.recorded", "`amount`, `currency`, `source`, `for`"},

	{"approval scope granted", "policy.changed", "`kind: grant`, `op: granted`, `scope`, `argsHash` or `prefix`"},
	{"approval scope revoked", "policy.changed", "`kind: grant`, `op: revoked`, `by`"},
	{"approval scope used up", "policy.changed", "`kind: grant`, `op: used_up`"},
	{"taint added", "context.resolved", "`taint`"},
	{"taint cleared", "action.resolved", "`taint`"},

	{"thread forked", "thread.started", "`forkedFrom`; `base` is the conversation that was copied"},
	{"thread imported", "thread.started", "`importedFrom`; `base` is the conversation that was carried over"},
	{"conversation went back to a turn", "history.rollback.completed", "`scope: thread`, `target`, `to`"},
	{"files of turns were restored (undo)", "history.rollback.completed", "`scope: files`, `target`; the conversation stays"},
	{"workspace kept before or after a turn", "artifact.changed", "`kind: snapshot`, `op`, `name: before` or `name: after`, `version` is the commit, `path` its name in the repository"},
	{"file restored", "artifact.changed", "`kind: file`, between history.rollback.started and history.rollback.completed of its stream"},
	{"command refused", "channel.message", "`kind: audit`, `principal`, `command`, `code`"},
	{"login", "channel.message", "`kind: audit`, `principal`, `code`"},
	{"token made or revoked", "channel.message", "`kind: audit`, `principal`, `code`"},
	{"node joined", "channel.message", "`kind: audit`, `principal`, `code`"},
	{"peer task linked", "task.delegated", "`to: peer`, `taskId`, `peer.task`"},
	{"peer task updated", "channel.message", "`kind: task`, `taskId`, `peer.task`, `peer.status`"},
}
