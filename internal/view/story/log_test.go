package story

import (
	"fmt"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// log is a hand-made log: a session with a thread and a task.
type log struct {
	events []event.Envelope
	now    time.Time
	seqs   map[belay.StreamID]int64
	ids    belay.IDs // of the running turn and step
	steps  int
	calls  int
	acts   int
}

func newLog() *log {
	l := &log{now: time.Date(2026, 1, 1, 9, 0, 0, 0, time.UTC), seqs: map[belay.StreamID]int64{}}
	l.ids = belay.IDs{Session: "sess_1", Thread: "thr_1"}
	l.on("session/sess_1", belay.IDs{Session: "sess_1"}, event.SessionCreated{Workspace: "/ws", Title: "fix it",
		Settings: belay.Settings{Provider: "scripted", Model: "m", Mode: belay.ModeDefault}})
	l.on("thread/thr_1", l.ids, event.ThreadStarted{Kind: "main", Workspace: "/ws"})
	return l
}

func (l *log) on(s belay.StreamID, ids belay.IDs, p event.Payload) *log {
	l.seqs[s]++
	l.events = append(l.events, event.Envelope{Stream: s, Seq: l.seqs[s], Time: l.now, IDs: ids, Version: 1, Data: p})
	return l
}

func (l *log) after(d time.Duration) *log { l.now = l.now.Add(d); return l }

// thread adds a fact of the thread. Task and run are on the facts of the turn
// itself only.
func (l *log) thread(ids belay.IDs, p event.Payload) *log {
	switch p.(type) {
	case event.TurnSubmitted, event.TurnStarted, event.TurnCompleted, event.TurnFailed:
	default:
		ids.Task, ids.Run = "", ""
	}
	return l.on("thread/thr_1", ids, p)
}

func (l *log) task(number int) *log {
	k := belay.IDs{Session: "sess_1", Task: "task_1"}
	if number == 1 {
		l.on("task/task_1", k, event.TaskCreated{Objective: belay.Content{Text: "fix the test"}, Kind: "agent", Thread: "thr_1", By: "user:ann"})
		l.on("task/task_1", k, event.TaskStarted{})
	} else {
		l.on("task/task_1", k, event.TaskRetrying{Reason: "resumed by user:ann"})
	}
	k.Run = belay.RunID(fmt.Sprintf("run_%d", number))
	return l.on("task/task_1", k, event.TaskAttemptStarted{Number: number, Thread: "thr_1", Turn: belay.TurnID(fmt.Sprintf("turn_%d", number))})
}

func (l *log) taskEnds(number int, o belay.Outcome, reason string) *log {
	k := belay.IDs{Session: "sess_1", Task: "task_1"}
	run := k
	run.Run = belay.RunID(fmt.Sprintf("run_%d", number))
	if o == belay.Completed {
		l.on("task/task_1", run, event.TaskAttemptCompleted{Summary: belay.Content{Text: reason}})
		return l.on("task/task_1", k, event.TaskCompleted{TaskEnd: event.TaskEnd{Outcome: o, Summary: belay.Content{Text: reason}}})
	}
	l.on("task/task_1", run, event.TaskAttemptFailed{Outcome: o, Reason: reason})
	return l.on("task/task_1", k, event.TaskFailed{TaskEnd: event.TaskEnd{Outcome: o, Reason: reason}})
}

// turn submits and begins a turn.
func (l *log) turn(number int, c belay.Completion) *log {
	l.ids = belay.IDs{Session: "sess_1", Thread: "thr_1", Turn: belay.TurnID(fmt.Sprintf("turn_%d", number)), Task: "task_1", Run: belay.RunID(fmt.Sprintf("run_%d", number))}
	rules := belay.Ref{Digest: belay.DigestOf([]byte("rules")), Size: 100}
	l.thread(l.ids, event.TurnSubmitted{Kind: belay.TurnUser, Text: belay.Content{Text: "fix the test"}, By: "user:ann", Rules: rules})
	return l.thread(l.ids, event.TurnStarted{Kind: belay.TurnUser, Rules: rules, Completion: c, Limits: belay.DefaultLimits})
}

// ask requests an answer: a new step, or another attempt of the running one.
func (l *log) ask(kind, limit string) *log {
	l.steps++
	l.ids.Step = belay.StepID(fmt.Sprintf("step_%d", l.steps))
	note := ""
	if kind != "normal" {
		note = "You stopped without calling complete_task."
	}
	return l.thread(l.ids, event.ModelRequested{Attempt: 1, Kind: kind, Limit: limit, Provider: "scripted", Model: "m", From: 1, To: l.seqs["thread/thr_1"], Note: note})
}

func (l *log) askAgain(attempt int) *log {
	return l.thread(l.ids, event.ModelRequested{Attempt: attempt, Kind: "normal", Provider: "scripted", Model: "m", From: 1, To: 3})
}

func (l *log) failed(attempt int, class, message string, retry bool) *log {
	p := event.ModelFailed{Attempt: attempt, Problem: event.Problem{Class: class, Code: class, Message: message, Retryable: retry}}
	if retry {
		p.RetryAt = l.now.Add(time.Second)
	}
	return l.thread(l.ids, p)
}

// stops answers the request with text, and says why the answer ended.
func (l *log) stops(text, why string) *log {
	return l.thread(l.ids, event.ModelCompleted{Attempt: 1, Text: belay.Content{Text: text}, Stop: why})
}

// say answers the request: text, and calls as NAME ARGS pairs.
func (l *log) say(text string, calls ...string) *log {
	p := event.ModelCompleted{Attempt: 1, Text: belay.Content{Text: text}, Usage: belay.Usage{Input: 1000, Output: 50, Cached: 600, Reported: true}}
	for i := 0; i < len(calls); i += 2 {
		l.calls++
		p.Calls = append(p.Calls, event.ModelCall{ID: belay.CallID(fmt.Sprintf("call_%d", l.calls)), Name: calls[i], Args: []byte(calls[i+1]), ArgsHash: belay.DigestOf([]byte(calls[i+1]))})
	}
	return l.thread(l.ids, p)
}

func (l *log) call(n int) belay.IDs {
	ids := l.ids
	ids.Call = belay.CallID(fmt.Sprintf("call_%d", n))
	return ids
}

func (l *log) judge(n int, tool, decision, source, rule, code, reason string) *log {
	return l.thread(l.call(n), event.PermissionEvaluated{Decision: decision, Source: source, Rule: rule, Tier: "default", ReasonCode: code, Reason: reason, Tool: tool, ArgsHash: belay.DigestOf([]byte(tool))})
}

func (l *log) allow(n int, tool string) *log {
	return l.judge(n, tool, "allow", "rule", "builtin/read", "READ_ONLY", "reading is allowed")
}

func (l *log) start(n, attempt int, tool, effect string, look bool) *log {
	return l.thread(l.call(n), event.ToolStarted{Name: tool, Attempt: attempt, Effect: effect, Boundary: "workspace", ArgsHash: belay.DigestOf([]byte(tool)), Recover: look})
}

func (l *log) result(n, attempt int, tool, text string) *log {
	return l.thread(l.call(n), event.ToolResult{Name: tool, Attempt: attempt, Output: belay.Content{Text: text}, Digest: belay.DigestOf([]byte(text)), Millis: 1500})
}

func (l *log) broke(n, attempt int, tool, class, code, message string, retry bool) *log {
	p := event.ToolFailed{Name: tool, Attempt: attempt, Problem: event.Problem{Class: class, Code: code, Message: message}, Final: !retry}
	if retry {
		p.RetryAt = l.now.Add(time.Second)
	}
	return l.thread(l.call(n), p)
}

// question asks a person, about call n or, for n 0, about the turn.
func (l *log) question(n int, kind, tool, prompt string) *log {
	ids := l.ids
	if n > 0 {
		ids = l.call(n)
	}
	l.acts++
	ids.Action = belay.ActionID(fmt.Sprintf("act_%d", l.acts))
	until := l.now.Add(24 * time.Hour)
	l.thread(ids, event.ActionRequired{Kind: kind, Prompt: belay.Content{Text: prompt}, Decisions: []string{"allow", "deny"}, Default: "deny", Owner: "approver", Until: until, Tool: tool})
	return l.thread(ids, event.RunStatus{Status: "waiting_permission", WaitingFor: string(ids.Action), Until: until})
}

func (l *log) answer(n int, decision, by, scope, message string) *log {
	ids := l.ids
	if n > 0 {
		ids = l.call(n)
	}
	ids.Action = belay.ActionID(fmt.Sprintf("act_%d", l.acts))
	return l.thread(ids, event.ActionResolved{Decision: decision, By: by, Scope: scope, Message: belay.Content{Text: message}})
}

func (l *log) takeover(epoch int64) *log {
	return l.thread(l.ids, event.RunStatus{Status: "running", Phase: "takeover", Epoch: epoch, Reason: "another process drives the thread now"})
}

// queued submits a turn and doesn't begin it.
func (l *log) queued(number int) belay.IDs {
	n := fmt.Sprint(number)
	ids := belay.IDs{Session: "sess_1", Thread: "thr_1", Turn: belay.TurnID("turn_" + n), Task: belay.TaskID("task_" + n), Run: belay.RunID("run_" + n)}
	l.thread(ids, event.TurnSubmitted{Kind: belay.TurnUser, Text: belay.Content{Text: "and then this"}})
	return ids
}

func (l *log) used() event.TurnStats {
	return event.TurnStats{Steps: l.steps, Calls: l.calls, ActiveMS: 12_300, Usage: belay.Usage{Input: 1000 * int64(l.steps), Output: 50 * int64(l.steps), Reported: true}}
}

func (l *log) completes(summary string) *log {
	ids := l.ids
	ids.Step = ""
	return l.thread(ids, event.TurnCompleted{Summary: belay.Content{Text: summary}, Stats: l.used()})
}

func (l *log) ends(o belay.Outcome, code, reason string) *log {
	ids := l.ids
	ids.Step = ""
	return l.thread(ids, event.TurnFailed{Outcome: o, Code: code, Reason: reason, Stats: l.used()})
}

// complete is a step that calls the completion tool, and the end of the turn.
func (l *log) complete(n int) *log {
	return l.ask("normal", "").after(time.Second).say("", "complete_task", `{"summary":"fixed"}`).
		judge(n, "complete_task", "allow", "rule", "builtin/complete", "COMPLETION", "ending the turn is always allowed").
		start(n, 1, "complete_task", "pure", false).result(n, 1, "complete_task", "accepted").completes("fixed")
}

func (l *log) read(n int, path, text string) *log {
	return l.ask("normal", "").after(2*time.Second).say("", "read", `{"path":"`+path+`"}`).allow(n, "read").
		start(n, 1, "read", "pure", false).after(time.Second).result(n, 1, "read", text)
}
