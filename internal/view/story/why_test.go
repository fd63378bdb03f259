package story

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/testkit/golden"
)

const required, conversational = belay.CompletionRequired, belay.CompletionConversational

// logs has one for every outcome and decision, with the ids that are asked
// about; the empty id asks about what happened last.
var logs = []struct {
	name string
	asks string
	log  func() *log
}{
	{"completed", " turn_1 call_2 step_1 sess_1 run_1 task_1 thr_1", func() *log {
		return newLog().task(1).turn(1, required).read(1, "a.go", "package a").complete(2).taskEnds(1, belay.Completed, "fixed")
	}},
	{"conversational", "", func() *log {
		return newLog().turn(1, conversational).ask("normal", "").after(time.Second).say("It is a test.").completes("It is a test.")
	}},
	{"model_failed", " step_1 task_1", func() *log {
		l := newLog().task(1).turn(1, required).ask("normal", "")
		for i := range 4 {
			if i > 0 {
				l.askAgain(i + 1)
			}
			l.after(time.Second).failed(i+1, "transient", "503 service unavailable", true)
		}
		return l.ends(belay.Failed, "MODEL_FAILED", "503 service unavailable").taskEnds(1, belay.Failed, "503 service unavailable")
	}},
	{"too_long", "", func() *log {
		return newLog().turn(1, required).ask("normal", "").failed(1, "overflow", "the request has about 5196 tokens and m reads 1500; it was not sent", false).ends(belay.Failed, "CONTEXT_EXCEEDED", "the request has about 5196 tokens and m reads 1500; it was not sent")
	}},
	{"context_full", "", func() *log {
		l := newLog().turn(1, required)
		l.thread(l.ids, event.ContextCompactionCompleted{Trigger: "threshold", Strategy: "summarise", From: 1, To: 2, TokensBefore: 9000, TokensAfter: 5000, Dropped: 3})
		l.thread(l.ids, event.ContextCompactionFailed{Trigger: "overflow", Strategy: "truncate", Problem: event.Problem{Class: "not_smaller", Code: "NOT_SMALLER", Message: "the conversation has 5000 tokens and would have 4900: that is not a fifth less"}})
		return l.ask("normal", "").failed(1, "overflow", "the request has about 5196 tokens and m reads 1500; it was not sent", false).ends(belay.Failed, "CONTEXT_FULL", "the conversation doesn't fit into what m reads, and could not be made shorter: the request has about 5196 tokens and m reads 1500; it was not sent")
	}},
	{"context_too_small", "", func() *log {
		return newLog().turn(1, required).ends(belay.Failed, "CONTEXT_TOO_SMALL", "instructions and tools have about 5196 tokens, and m reads 1500: take a model that reads more, or fewer tools (--tools)")
	}},
	{"retry_budget", "", func() *log {
		return newLog().turn(1, required).ask("normal", "").failed(1, "transient", "503", true).ends(belay.Failed, "RETRY_BUDGET", "20 requests of this turn have failed; the last: 503")
	}},
	{"no_route", "", func() *log {
		l := newLog().turn(1, required)
		l.thread(l.ids, event.RoutingNotPossible{Reason: "none of the models can be used: a/x (credential)", Excluded: []event.Excluded{{Route: event.Route{Provider: "a", Model: "x"}, Reason: "credential"}}})
		return l.ends(belay.Failed, "NO_ROUTE", "none of the models can be used: a/x (credential)")
	}},
	{"fallback", "step_1", func() *log {
		a, b := event.Route{Provider: "a", Model: "x"}, event.Route{Provider: "b", Model: "y"}
		l := newLog().turn(1, required)
		l.thread(l.ids, event.RoutingDecided{Route: a, Mode: "preferred", Source: "user", Reason: "it is the first that was named", Fallbacks: []event.Route{b}})
		l.ask("normal", "").failed(1, "transient", "503", true)
		l.thread(l.ids, event.RoutingFallbackApplied{From: a, To: b, Reason: "HTTP_503: 503"})
		l.askAgain(2).say("", "complete_task", `{"summary":"s"}`)
		l.thread(l.ids, event.CostRecorded{Cost: event.Cost{Amount: 1234, Currency: "USD", Provider: "b", Model: "y"}, Source: "computed"})
		return l.completes("s")
	}},
	{"model_auth", "", func() *log {
		return newLog().turn(1, required).ask("normal", "").failed(1, "auth", "the key is not valid", false).ends(belay.Failed, "MODEL_FAILED", "the key is not valid")
	}},
	{"no_completion", " step_2 step_3", func() *log {
		return newLog().turn(1, required).ask("normal", "").say("done").ask("nudge", "").say("I said done").
			ask("grace", "").say("", "read", `{"path":"a"}`).allow(1, "read").
			broke(1, 0, "read", "skipped", "LAST_STEP", "this step only takes the completion tool; read was not run", false).
			ends(belay.NoCompletion, "NO_COMPLETION", "the model stopped without calling complete_task, also after a nudge and a grace step")
	}},
	{"denied_headless", " call_1", func() *log {
		return newLog().turn(1, required).ask("normal", "").say("", "exec", `{"command":"make"}`).
			judge(1, "exec", "deny", "headless", "builtin/ask", "NO_PERSON", "this would ask (it can change things), and no person can be asked").
			broke(1, 0, "exec", "denied", "DENIED", "not allowed: this would ask (it can change things), and no person can be asked", false).
			ask("normal", "").say("I can't").ask("nudge", "").say("no").ask("grace", "").say("no").
			ends(belay.Denied, "STOPPED_AFTER_DENIAL", "the model gave up after a call was denied")
	}},
	{"denied_plan", " call_1", func() *log {
		return newLog().turn(1, required).ask("normal", "").say("", "edit", `{"path":"a"}`).
			judge(1, "edit", "deny", "rule", "builtin/plan-deny", "MODE_PLAN", "mode plan only reads").
			broke(1, 0, "edit", "denied", "DENIED", "not allowed: mode plan only reads", false)
	}},
	{"denied_by_person", " call_1 act_1", func() *log {
		return asked().after(3*time.Minute).answer(1, "deny", "user:ann", "once", "use go test\x1b[2J\u202e").
			broke(1, 0, "exec", "denied", "DENIED", "not allowed: user:ann said no: use go test", false)
	}},
	{"denied_by_deadline", "act_1", func() *log {
		return asked().after(24*time.Hour).answer(1, "deny", "deadline", "once", "nobody answered in time").
			broke(1, 0, "exec", "denied", "DENIED", "not allowed: deadline said no: nobody answered in time", false)
	}},
	{"waiting", " turn_1 call_1 act_1 step_1", asked},
	{"waiting_twice", "turn_1", func() *log { return asked().question(0, "question", "", "Which colour?") }},
	{"allowed_by_person", "act_1 call_1", func() *log {
		l := asked().after(time.Minute).answer(1, "allow", "user:ann", "session", "").start(1, 1, "exec", "at_most_once", false)
		return l.thread(l.call(1), event.ProcessStarted{PID: 77, Argv: []string{"sh", "-c", "make"}}).after(time.Second).
			thread(l.call(1), event.ProcessCompleted{Exit: 0, Bytes: 3, Millis: 900}).result(1, 1, "exec", "ok\n")
	}},
	{"question", " act_1", func() *log {
		return newLog().turn(1, required).ask("normal", "").say("", "ask_user", `{"question":"which one?"}`).allow(1, "ask_user").question(1, "question", "ask_user", "which one?")
	}},
	{"question_taken_back", "act_1 call_1 turn_1", func() *log {
		l := newLog().turn(1, required).ask("normal", "").say("", "ask_user", `{"question":"which one?"}`).allow(1, "ask_user").question(1, "question", "ask_user", "which one?").after(time.Minute)
		return l.thread(l.ids, event.RunStatus{Status: "cancelling", By: "user:ann", Reason: "wrong branch"}).answer(1, "cancelled", "turn", "", "the turn was interrupted").
			broke(1, 0, "ask_user", "cancelled", "INTERRUPTED", "the turn was interrupted", false).ends(belay.Cancelled, "INTERRUPTED", "wrong branch")
	}},
	{"steps_raised", "", func() *log {
		l := newLog().turn(1, required).read(1, "a", "x")
		l.thread(belay.IDs{Session: "sess_1", Thread: "thr_1"}, event.ThreadUpdated{Rules: &belay.Ref{Digest: belay.DigestOf([]byte("other"))}, Limits: &belay.Limits{Steps: 300}, Reason: "resumed with other settings"})
		l.thread(l.ids, event.ThreadUpdated{Hold: &event.HoldChange{}}) // no rule changes, and the story names none
		l.thread(l.ids, event.ThreadUpdated{Mode: "plan", Boundary: "read-only"})
		return l.ask("final", "steps").say("not yet").ends(belay.NoCompletion, "STEP_LIMIT", "300 steps are used up")
	}},
	{"steps", " step_2", func() *log {
		return newLog().turn(1, required).read(1, "a", "x").ask("final", "steps").say("not yet").ends(belay.NoCompletion, "STEP_LIMIT", "200 steps are used up")
	}},
	{"calls", " step_2", func() *log {
		return newLog().turn(1, required).read(1, "a", "x").ask("final", "calls").say("not yet").ends(belay.NoCompletion, "CALL_LIMIT", "1000 calls are used up")
	}},
	{"time", " step_2 call_1", func() *log {
		return newLog().turn(1, required).ask("normal", "").say("", "read", `{"path":"a"}`).allow(1, "read").start(1, 1, "read", "pure", false).after(time.Hour).
			broke(1, 1, "read", "cancelled", "CANCELLED", "read was cancelled", false).ask("final", "time").say("too late").
			ends(belay.TimedOut, "TIME_LIMIT", "1h0m0s of active time are used up")
	}},
	{"loop", "", func() *log {
		return newLog().turn(1, required).read(1, "a", "x").read(2, "a", "x").read(3, "a", "x").ask("final", "loop").say("hm").
			ends(belay.NoCompletion, "LOOP", "read was called 3 times in a row with the same arguments and the same result")
	}},
	{"blocked", " act_1", func() *log {
		l := newLog().turn(1, required).ask("normal", "")
		l.say("", "read", `{"path":"a"}`, "read", `{"path":"b"}`, "exec", `{"command":"x"}`)
		for i, c := range []string{"NOT_FOUND", "IS_A_DIRECTORY", "EXIT"} {
			l.allow(i+1, "read").start(i+1, 1, "read", "pure", false).broke(i+1, 1, "read", "not_found", c, "it is not there", false)
		}
		return l.question(0, "continue", "", "Three different failures in a row. Go on?").after(time.Hour).answer(0, "deny", "user:ann", "", "").
			ends(belay.Blocked, "FAILURES", "three different failures in a row and nobody wanted to go on")
	}},
	{"blocked_headless", "", func() *log {
		l := newLog().turn(1, required).ask("normal", "").say("", "read", `{"path":"a"}`).allow(1, "read").start(1, 1, "read", "pure", false).broke(1, 1, "read", "not_found", "NOT_FOUND", "it is not there", false)
		return l.ends(belay.Blocked, "FAILURES", "three different failures in a row")
	}},
	{"not_kept", "", func() *log {
		return newLog().turn(1, required).ends(belay.Failed, "SNAPSHOT_FAILED", "the workspace could not be kept before the turn: no space left")
	}},
	{"checks_failed", "", func() *log {
		l := newLog().turn(1, required).ask("normal", "").say("", "complete_task", `{"summary":"x"}`).allow(1, "complete_task").start(1, 1, "complete_task", "idempotent", true)
		result := func(id, status, reason string) {
			l.thread(l.call(1), event.TaskProgress{Phase: event.PhaseVerifying, Check: &event.CheckResult{ID: id, Kind: belay.CheckFiles, Status: status, Reason: reason}})
		}
		result("files-1", event.CheckNoted, "")
		result("files-1", event.CheckFailed, "go.mod has changed")
		result("command-2", event.CheckUnknown, "DENIED: no")
		return l.broke(1, 1, "complete_task", "conflict", "CHECKS_FAILED", "0 of 2 checks pass (files-1 failed, command-2 unknown)", false).
			ends(belay.Failed, "CHECKS_FAILED", "0 of 2 checks pass (files-1 failed, command-2 unknown)")
	}},
	{"agent_paused", "", func() *log {
		l := newLog().turn(1, required)
		l.thread(l.ids, event.ThreadUpdated{Pause: &event.Pause{Op: event.Paused, Agent: "reviewer"}, Reason: "agent reviewer is paused (lunch); belay agents resume reviewer lets it go on"})
		return l
	}},
	{"agent_stopped", "", func() *log {
		l := newLog().turn(1, required)
		l.thread(l.ids, event.ThreadUpdated{Pause: &event.Pause{Op: event.Refused, Now: true, Agent: "reviewer"}, Reason: "agent reviewer is stopped"})
		return l.ends(belay.Cancelled, "AGENT_STOPPED", "agent reviewer is stopped")
	}},
	{"lost_turn", "", func() *log {
		return newLog().turn(1, required).ends(belay.Lost, "RULES_MISSING", "the turn's rules are not in the store any more, so it can't be continued")
	}},
	{"budget", "", func() *log {
		return newLog().turn(1, required).read(1, "a", "x").ends(belay.OverBudget, "COST_LIMIT", "5 USD are used up")
	}},
	{"lost_call", "call_1 turn_1", func() *log {
		return newLog().turn(1, required).ask("normal", "").say("", "exec", `{"command":"deploy"}`).
			judge(1, "exec", "allow", "grant", "grant/exec", "GRANTED", "allowed for this session by user:ann").start(1, 1, "exec", "at_most_once", false).
			after(time.Minute).takeover(2).broke(1, 1, "exec", "lost", "LOST", "the runtime stopped while exec was running; nobody knows whether it did its work (lost). It was not run again.", false).
			ask("normal", "")
	}},
	{"ran_twice", "call_1 call_2 call_3 step_1 turn_1", func() *log {
		l := newLog().turn(1, required).ask("normal", "").after(time.Second).takeover(2).askAgain(2).after(time.Second)
		l.say("", "read", `{"path":"a"}`, "edit", `{"path":"b"}`, "fetch", `{"url":"u"}`)
		l.allow(1, "read").allow(2, "edit").allow(3, "fetch")
		l.start(1, 1, "read", "pure", false).start(2, 1, "edit", "recoverable", false).start(3, 1, "fetch", "idempotent", false)
		l.broke(3, 1, "fetch", "transient", "RESET", "connection reset", true).after(time.Second).start(3, 2, "fetch", "idempotent", false)
		l.takeover(3).start(1, 2, "read", "pure", false).start(2, 2, "edit", "recoverable", true).start(3, 3, "fetch", "idempotent", false).after(time.Second)
		l.result(1, 2, "read", "x")
		l.thread(l.call(2), event.ArtifactChanged{Kind: "file", Path: "b", Op: "changed", Kept: true}).result(2, 2, "edit", "ok").result(3, 3, "fetch", "<html>")
		return l.complete(4)
	}},
	{"retrying", " turn_1 step_1", func() *log {
		return newLog().turn(1, required).ask("normal", "").failed(1, "rate_limited", "429", true)
	}},
	{"tool_retrying", " call_1", func() *log {
		return newLog().turn(1, required).ask("normal", "").say("", "fetch", `{"url":"u"}`).allow(1, "fetch").start(1, 1, "fetch", "idempotent", false).
			after(time.Second).broke(1, 1, "fetch", "transient", "RESET", "connection reset", true)
	}},
	{"running", " turn_1 sess_1", func() *log {
		return newLog().turn(1, required).read(1, "a", "x").ask("normal", "").say("", "exec", `{"command":"make"}`).allow(2, "exec").start(2, 1, "exec", "at_most_once", false).
			after(time.Second)
	}},
	{"queued", "turn_2 sess_1", func() *log {
		l := newLog().turn(1, required).ask("normal", "")
		ids := belay.IDs{Session: "sess_1", Thread: "thr_1", Turn: "turn_2"}
		return l.thread(ids, event.TurnSubmitted{Kind: belay.TurnUser, Text: belay.Content{Text: "and then this"}})
	}},
	{"queued_too_many", " turn_2 turn_1", func() *log {
		l := newLog().turn(1, required).ask("normal", "")
		return l.thread(l.queued(2), event.TurnFailed{Outcome: belay.Failed, Code: "BUSY", Reason: "too many turns wait already"})
	}},
	{"queued_dropped", " turn_2", func() *log {
		l := newLog().turn(1, required).ask("normal", "")
		return l.thread(l.queued(2), event.TurnFailed{Outcome: belay.Cancelled, Code: "QUEUE_DROPPED", Reason: "too many turns wait: it made room for another one"})
	}},
	{"queued_joined", " turn_2", func() *log {
		l := newLog().turn(1, required).ask("normal", "")
		ids := l.queued(2)
		l.thread(ids, event.QueueChanged{Op: event.QueueJoined, Turn: "turn_2", Into: "turn_1"})
		return l.thread(ids, event.TurnFailed{Outcome: belay.Failed, Code: "JOINED", Reason: "it was part of turn turn_1: it broke"})
	}},
	{"queued_taken_out", "turn_2 turn_1 sess_1", func() *log {
		l := newLog().turn(1, required).ask("normal", "")
		l.thread(l.queued(2), event.TurnFailed{Outcome: belay.Cancelled, Code: "INTERRUPTED", Reason: "interrupted by user:ann"})
		return l.say("", "exec", `{"command":"make"}`).allow(1, "exec").start(1, 1, "exec", "at_most_once", false)
	}},
	{"model_refused", " step_1", func() *log {
		return newLog().turn(1, conversational).ask("normal", "").stops("I won't.", "refused").ends(belay.Failed, "MODEL_REFUSED", "the model refused to answer")
	}},
	{"answer_cut", " step_1", func() *log {
		return newLog().turn(1, conversational).ask("normal", "").stops("It is", "length").ask("nudge", "").stops("a test.", "stop").completes("a test.")
	}},
	{"content_missing", " step_1", func() *log {
		return newLog().turn(1, required).ask("normal", "").
			thread(belay.IDs{Session: "sess_1", Thread: "thr_1", Turn: "turn_1", Step: "step_1"}, event.ModelFailed{Attempt: 1, Problem: event.Problem{Class: "lost", Code: "CONTENT_MISSING", Message: "a part of the conversation is not in the store any more"}}).
			ends(belay.Lost, "CONTENT_MISSING", "a part of the conversation is not in the store any more")
	}},
	{"crash_loop", "", func() *log {
		return newLog().turn(1, required).ask("normal", "").takeover(2).askAgain(20).takeover(3).
			ends(belay.Failed, "CRASH_LOOP", "the runtime stopped again and again while the model was asked")
	}},
	{"crash_loop_call", "call_1", func() *log {
		return newLog().turn(1, required).ask("normal", "").say("", "read", `{"path":"a"}`).allow(1, "read").start(1, 1, "read", "pure", false).
			takeover(2).start(1, 20, "read", "pure", false).takeover(3).
			broke(1, 20, "read", "internal", "CRASH_LOOP", "the runtime stopped again and again while read was running", false).ask("normal", "")
	}},
	{"insists", "", func() *log {
		l := newLog().turn(1, required)
		for i := 1; i <= 5; i++ {
			l.ask("normal", "").say("", "read", `{"path":"a"}`).allow(i, "read")
			if i <= 2 {
				l.start(i, 1, "read", "pure", false).broke(i, 1, "read", "not_found", "NOT_FOUND", "a is not there", false)
				continue
			}
			l.broke(i, 0, "read", "skipped", "SAME_FAILURE", "read failed twice with NOT_FOUND for exactly these arguments and was not run again", false)
		}
		return l.ask("final", "loop").say("hm").ends(belay.NoCompletion, "LOOP", "read was called 5 times with the same arguments although it fails with NOT_FOUND")
	}},
	{"cost_limit", " act_1", func() *log {
		l := newLog().turn(1, required).read(1, "a", "x")
		limit := belay.Amounts{MicroUSD: 50_000, Calls: 300}
		l.thread(l.ids, event.LimitChanged{Op: event.LimitSet, Scope: "thread", Limit: limit})
		l.thread(l.ids, event.LimitChanged{Op: event.LimitRefused, Scope: "thread", GrantID: "g", Amount: belay.Amounts{MicroUSD: 700}})
		const text = "the budget of the session (0.05usd,300calls) has no money left for a request. Raise it by 0.04usd?"
		ids := l.ids
		l.acts++
		ids.Action = "act_1"
		l.thread(ids, event.ActionRequired{Kind: "budget", Prompt: belay.Content{Text: text}, Decisions: []string{"allow", "deny"}, Default: "deny", Until: l.now.Add(24 * time.Hour),
			Budget: &event.BudgetAsked{Scope: "session", Kind: belay.BudgetCost, Limit: limit, Raise: belay.Amounts{MicroUSD: 40_000}}})
		l.after(time.Hour).answer(0, "deny", "user:ann", "", "it is enough").ask("final", "cost")
		l.thread(l.ids, event.CostEstimated{Cost: event.Cost{Amount: 900, Currency: "USD", Provider: "b", Model: "y", Usage: belay.Usage{Input: 100, Output: 400}}})
		l.say("not yet")
		l.thread(l.ids, event.CostRecorded{Cost: event.Cost{Amount: 1000, Currency: "USD", Provider: "b", Model: "y"}, Source: "computed", Over: 100})
		return l.ends(belay.OverBudget, "COST_LIMIT", "the budget has no money left for more")
	}},
	{"token_limit", "", func() *log {
		l := newLog().turn(1, required)
		l.thread(l.ids, event.ThreadUpdated{Limits: &belay.Limits{Tokens: 9000}, Reason: "resumed with other settings"})
		return l.ask("final", "tokens").say("hm").ends(belay.OverBudget, "TOKEN_LIMIT", "the budget has no tokens left for more")
	}},
	{"call_budget", "", func() *log {
		l := newLog().turn(1, required)
		l.thread(l.ids, event.LimitChanged{Op: event.LimitSet, Scope: "thread", Limit: belay.Amounts{Calls: 3}})
		return l.ask("final", "call_budget").say("hm").ends(belay.OverBudget, "CALL_BUDGET", "the budget has no tool calls left for more")
	}},
	{"time_budget", "", func() *log {
		l := newLog().turn(1, required)
		l.thread(l.ids, event.LimitChanged{Op: event.LimitSet, Scope: "thread", Limit: belay.Amounts{Time: belay.Duration(time.Hour)}})
		return l.ask("final", "time_budget").say("hm").ends(belay.OverBudget, "TIME_BUDGET", "the budget has no driven time left for more")
	}},
	{"no_price", "", func() *log {
		return newLog().turn(1, required).ends(belay.OverBudget, "NO_PRICE", "the price of b/y isn't known, and the turn's money is limited")
	}},
	{"other_rules", "act_1 turn_1", func() *log {
		l := asked().after(time.Minute)
		more := belay.Limits{Steps: 7}
		l.thread(belay.IDs{Session: "sess_1", Thread: "thr_1"}, event.ThreadUpdated{Rules: &belay.Ref{Digest: belay.DigestOf([]byte("other"))}, Limits: &more, Reason: "resumed with other settings"})
		return l.answer(1, "cancelled", "rules", "", "other rules decide it now").judge(1, "exec", "deny", "rule", "builtin/plan-deny", "MODE_PLAN", "mode plan only reads").
			broke(1, 0, "exec", "denied", "DENIED", "not allowed: mode plan only reads", false)
	}},
	{"not_alone", "call_2", func() *log {
		l := newLog().turn(1, required).ask("normal", "").say("", "read", `{"path":"a"}`, "complete_task", `{"summary":"s"}`).allow(1, "read").allow(2, "complete_task")
		return l.broke(2, 0, "complete_task", "bad_arguments", "NOT_ALONE", "complete_task must be the only call of an answer", false)
	}},
	{"two_attempts", "task_1 run_1 run_2 sess_1", func() *log {
		return newLog().task(1).turn(1, required).ask("normal", "").failed(1, "overflow", "too long", false).ends(belay.Failed, "MODEL_FAILED", "too long").taskEnds(1, belay.Failed, "too long").
			after(time.Hour).task(2).turn(2, required).complete(1).taskEnds(2, belay.Completed, "fixed")
	}},
	{"refused", "", func() *log {
		l := newLog()
		return l.on("thread/thr_1", belay.IDs{Session: "sess_1", Request: "cmd_1"}, event.ChannelMessage{Kind: "audit", Principal: "user:bob", Command: "respond_action", Code: "already_answered", Message: "act_1 was answered with allow", Hint: "belay sessions list"})
	}},
	{"two_questions", " turn_1 sess_1", func() *log {
		l := newLog().turn(1, required).ask("normal", "").say("", "exec", `{"command":"make"}`, "exec", `{"command":"make lint"}`)
		for n, command := range []string{"make", "make lint"} {
			l.judge(n+1, "exec", "ask", "rule", "builtin/ask", "CHANGES_THINGS", "it can change things").question(n+1, "permission", "exec", "exec "+command)
		}
		return l
	}},
	{"hostile", " turn_1 call_1", func() *log {
		const evil = "\x1b]0;owned\a\x9b31m\r\nok \u202etxt.exe\u200b\ufeff\u2028\xff"
		return newLog().turn(1, required).ask("normal", "").say(evil, evil, `{"path":"`+"\u202e"+`"}`).
			judge(1, evil, "deny", evil, evil, evil, evil).broke(1, 0, evil, "denied", evil, evil, false).ends(belay.Denied, evil, evil)
	}},
}

// asked is a log that waits for a person.
func asked() *log {
	return newLog().turn(1, required).ask("normal", "").after(time.Second).say("I'll build it.", "exec", `{"command":"make"}`).
		judge(1, "exec", "ask", "rule", "builtin/ask", "CHANGES_THINGS", "it can change things").question(1, "permission", "exec", `exec {"command":"make"}`)
}

// Guarantee: G12.
func TestAnswers(t *testing.T) {
	for _, c := range logs {
		t.Run(c.name, func(t *testing.T) {
			l := c.log()
			var b strings.Builder
			for _, r := range Timeline(l.events) {
				fmt.Fprintln(&b, r)
			}
			for _, id := range strings.Split(c.asks, " ") {
				a, err := Why(l.events, id)
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&b, "\n> why %s\n%s", id, a)
			}
			golden.Compare(t, filepath.Join("testdata", c.name+".txt"), b.String())
		})
	}
}

// No answer has a formatting mistake in it.
func TestAnswersAreFormatted(t *testing.T) {
	for _, c := range logs {
		l := c.log()
		for _, id := range strings.Split(c.asks, " ") {
			if a, err := Why(l.events, id); err != nil || strings.Contains(a.String(), "%!") {
				t.Errorf("%s, why %s: %v\n%s", c.name, id, err, a)
			}
		}
	}
}
