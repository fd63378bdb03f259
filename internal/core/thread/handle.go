package thread

import (
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
)

// handler answers one command.
type handler struct {
	*State
	order belay.Order
	rules *Rules // of the running turn; nil: none runs, or they aren't loaded
	now   time.Time
}

// Handle answers a command with facts. A command repeated after it took effect
// gives none.
func (d *Decider) Handle(o belay.Order, now time.Time) ([]core.Fact, []core.Send, error) {
	h := &handler{State: &d.s, order: o, rules: d.Rules(), now: now}
	var fs []core.Fact
	var sends []core.Send
	var err error
	switch c := o.Command.(type) {
	case belay.OpenThread:
		fs = h.open(c)
	case belay.SubmitTurn:
		fs, sends, err = h.submit(c)
	case belay.InterruptTurn:
		fs, sends, err = h.interrupt(c)
	case belay.ConfigureQueue:
		fs, err = h.configure(c)
	case belay.PromoteTurn:
		fs, err = h.promote(c)
	case belay.ReorderTurns:
		fs, err = h.reorder(c)
	case belay.UseWorkspace:
		fs = h.use(c)
	case belay.ShareWorkspace:
		fs, sends = h.share()
	case belay.GrantWorkspace:
		fs = h.grantHold(c)
	case belay.ResumeThread:
		fs, err = h.resume(c)
	case belay.RollBack:
		fs, err = h.rollBack(c)
	case belay.RevokeGrant:
		fs, err = h.revoke(c)
	case belay.RespondAction:
		fs, err = h.respond(c, nil)
	case Edited:
		fs, err = h.respond(c.RespondAction, &c)
	case belay.WriteProcessStdin:
		fs, err = h.writeStdin(c)
	case belay.TerminateProcess:
		fs, err = h.terminate(c)
	case belay.TakeOver:
		fs = h.takeOver(c)
	default:
		err = belay.Errorf(belay.CodeBadCommand, "a thread doesn't take %s", belay.CommandName(c))
	}
	return fs, sends, err
}

func (h *handler) open(c belay.OpenThread) []core.Fact {
	if h.Open {
		return nil
	}
	ids := belay.IDs{Session: h.order.Session, Thread: belay.ThreadID(h.order.Stream.ID())}
	started := event.ThreadStarted{Kind: "main", Workspace: c.Workspace, Queue: c.Queue}
	if c.Begin != nil {
		started.Beginning = *c.Begin
	}
	return []core.Fact{{IDs: ids, Data: started}}
}

// use records how the session uses the workspace from now on; calls that
// haven't begun are judged by it. It may come before the thread is open.
func (h *handler) use(c belay.UseWorkspace) []core.Fact {
	if c.Use == nil || *c.Use == h.Use {
		return nil
	}
	ids := belay.IDs{Session: h.order.Session, Thread: belay.ThreadID(h.order.Stream.ID())}
	return []core.Fact{{IDs: ids, Data: event.ThreadUpdated{Use: c.Use, Reason: "the workspace's use was settled"}}}
}

// repeated answers a turn id that the thread knows: the same turn again changes
// nothing; another attempt under a used id gets the answer that it won't run.
func (h *handler) repeated(c belay.SubmitTurn) ([]core.Fact, []core.Send, error) {
	if c.Task == "" || slices.ContainsFunc(h.Known, func(k Known) bool { return k.Turn == c.Turn && k.Run == c.Run }) {
		return nil, nil, nil
	}
	reason := "the turn id " + string(c.Turn) + " was used before in this thread"
	ids := belay.IDs{Session: h.Session, Thread: h.Thread, Turn: c.Turn}
	return []core.Fact{{IDs: ids, Data: event.RuntimeWarning{Code: "TURN_ID_USED", Message: reason}}},
		[]core.Send{{To: c.Task.Stream(), Command: belay.EndAttempt{Run: c.Run, Turn: c.Turn, Outcome: belay.Failed, Reason: reason}}}, nil
}

// endQueued ends a turn that never began.
func (h *handler) endQueued(q Queued, o belay.Outcome, code, reason string) (core.Fact, []core.Send) {
	ids := belay.IDs{Session: h.Session, Thread: h.Thread, Turn: q.Turn, Task: q.Task, Run: q.Run}
	reason = event.CutText(reason, maxSaid)
	f := core.Fact{IDs: ids, Data: event.TurnFailed{Outcome: o, Code: code, Reason: reason}}
	if q.Task == "" {
		return f, nil
	}
	return f, []core.Send{{To: q.Task.Stream(), Command: belay.EndAttempt{Run: q.Run, Turn: q.Turn, Outcome: o, Reason: reason}}}
}

func (h *handler) interrupt(c belay.InterruptTurn) ([]core.Fact, []core.Send, error) {
	if i := slices.IndexFunc(h.Queue, func(q Queued) bool { return q.Turn == c.Turn }); i >= 0 {
		f, send := h.endQueued(h.Queue[i], belay.Cancelled, "INTERRUPTED", stopReason(h.order.Principal, c.Reason))
		return []core.Fact{f, h.queueFact(event.QueueChanged{Op: event.QueueRemoved, Turn: c.Turn, Length: len(h.Queue) - 1, By: h.order.Principal})}, send, nil
	}
	joined := h.Turn != nil && slices.ContainsFunc(h.Turn.Joined, func(q Queued) bool { return q.Turn == c.Turn })
	if c.Queued && joined {
		return nil, nil, belay.Errorf(belay.CodeBadState, "turn %s is part of turn %s now", c.Turn, h.Turn.Turn).WithHint("interrupt that one")
	}
	if c.Queued {
		return nil, nil, belay.Errorf(belay.CodeBadState, "turn %s doesn't wait in %s", c.Turn, h.Thread)
	}
	if h.Turn == nil || c.Turn != "" && c.Turn != h.Turn.Turn && !joined {
		return nil, nil, belay.Errorf(belay.CodeBadState, "no such turn is running in %s", h.Thread)
	}
	if h.Turn.Stop != nil {
		return nil, nil, nil
	}
	return []core.Fact{h.fact(event.RunStatus{Status: "cancelling", Reason: c.Reason, By: h.order.Principal})}, nil, nil
}

func stopReason(by, reason string) string {
	if reason == "" {
		return "interrupted by " + by
	}
	return reason
}

func (h *handler) resume(c belay.ResumeThread) ([]core.Fact, error) {
	if h.Turn == nil {
		return nil, belay.Errorf(belay.CodeBadState, "no unfinished turn in %s", h.Thread)
	}
	if c.Rules.Digest == "" || c.Rules.Digest == h.Turn.Rules.Digest {
		return nil, nil
	}
	return []core.Fact{{IDs: belay.IDs{Session: h.Session, Thread: h.Thread}, Data: event.ThreadUpdated{Rules: &c.Rules, Limits: c.Limits, Reason: "resumed with other settings"}}}, nil
}

// respond answers a question. edit is the call as the answer changes it, or nil.
func (h *handler) respond(c belay.RespondAction, edit *Edited) ([]core.Fact, error) {
	for _, a := range h.Answers {
		if a.Action == c.Action {
			return nil, belay.Errorf(belay.CodeAlreadyAnswered, "%s was answered with %s by %s at %s", c.Action, a.Decision, a.By, a.At.UTC().Format(time.RFC3339))
		}
	}
	open := h.OpenAsk(c.Action)
	ask, call := open.Ask, open.Call
	if ask == nil {
		return nil, belay.Errorf(belay.CodeUnknownAction, "%s doesn't wait for an answer in %s", c.Action, h.Thread).WithHint("belay sessions show %s lists what waits", h.Session)
	}
	if is := open.Version(); c.Seen != "" && c.Seen != is {
		return nil, belay.Errorf(belay.CodeConflict, "the request has changed since version %s: it is version %s now", event.CutText(c.Seen, maxWord), is).WithHint("belay sessions show %s shows it as it is", h.Session)
	}
	if !slices.Contains(decisions(ask.Kind), c.Decision) {
		return nil, belay.Errorf(belay.CodeBadCommand, "%s can't be answered with %q", c.Action, c.Decision).WithHint("%s", howToAnswer(ask))
	}
	if !h.now.Before(ask.Until) {
		return nil, belay.Errorf(belay.CodeAlreadyAnswered, "the deadline of %s passed at %s", c.Action, ask.Until.UTC().Format(time.RFC3339))
	}
	if event.TextLen(c.Message) > maxMessage {
		return nil, belay.Errorf(belay.CodeTooLarge, "the message has %d bytes; at most %d are taken", len(c.Message), maxMessage).WithHint("put it into a file and name the file")
	}
	scope := c.Scope
	if scope == "" {
		scope = "once"
	}
	if c.Clear && c.Decision != "allow" {
		return nil, belay.Errorf(belay.CodeBadCommand, "only who allows a call can vouch for the conversation").WithHint("belay approve %s --clear-taint", c.Action)
	}
	changed, runs, err := h.edits(ask, call, c, edit, h.order.Principal)
	if err != nil {
		return nil, err
	}
	answer := h.resolve(ask, runs, c.Decision, h.order.Principal, scope, c.Message)
	if c.Clear {
		h.clearTaint(answer)
	}
	fs := append(changed, answer...)
	if c.Decision != "allow" || scope == "once" {
		return fs, nil
	}
	given, err := h.gives(call, ask, c)
	if err != nil {
		return nil, err
	}
	fs = append(fs, given...)
	if scope == "session" && ask.Wider == nil && ask.Kind == "permission" {
		fs = append(fs, h.coveredBy(call, h.order.Principal)...)
	}
	return fs, nil
}

// coveredBy answers the other open questions that a grant for the session covers.
func (h *handler) coveredBy(granted *Call, by string) (fs []core.Fact) {
	for _, c := range h.Turn.Step.Calls {
		if c != granted && c.Name == granted.Name && c.Ask != nil && c.Ask.Open && c.Ask.Kind == "permission" && !slices.Contains(h.LostKeys, c.key()) {
			fs = append(fs, h.resolve(c.Ask, c, "allow", by, "session", "")...)
		}
	}
	return fs
}

func howToAnswer(a *Ask) string {
	if a.Kind == "question" {
		return "belay answer " + string(a.Action) + " TEXT"
	}
	return "belay approve " + string(a.Action) + ", or belay deny " + string(a.Action)
}

func decisions(kind string) []string {
	if kind == "question" {
		return []string{"answer", "deny"}
	}
	return []string{"allow", "deny"}
}

// resolve are the facts that end a question.
func (s *State) resolve(a *Ask, c *Call, decision, by, scope, message string) []core.Fact {
	ids := s.ids()
	if c != nil {
		ids = s.callIDs(c)
	}
	if a.Kind != "permission" {
		scope = ""
	}
	withAction := ids
	withAction.Action = a.Action
	fs := []core.Fact{{IDs: withAction, Data: event.ActionResolved{Decision: decision, By: by, Scope: scope, Message: belay.Content{Text: message}}}}
	if a.Kind == "permission" {
		p := event.PermissionResolved{Decision: decision, By: by, Scope: scope, ArgsHash: c.ArgsHash, Message: message}
		if decision != "allow" {
			p.Decision = "deny"
		}
		fs = append(fs, core.Fact{IDs: withAction, Data: p})
	}
	return fs
}

func (h *handler) takeOver(c belay.TakeOver) []core.Fact {
	return []core.Fact{h.fact(event.RunStatus{Status: "running", Phase: "takeover", Epoch: c.Epoch, Reason: "another process drives the thread now; what was in flight is not any more"})}
}
