package thread

import (
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
)

// handler answers one command. It has the rules of the running turn; nil: none
// runs, or they aren't loaded.
type handler struct {
	*decision
	order belay.Order
}

// Handle answers a command with facts. A command repeated after it took effect
// gives none.
func (d *Decider) Handle(o belay.Order, now time.Time) ([]core.Fact, []core.Send, error) {
	h := &handler{&decision{State: &d.s, rules: d.Rules(), now: now, ready: &core.Ready{}}, o}
	if err := h.handle(o.Command); err != nil {
		return nil, nil, err
	}
	return h.ready.Decided, h.ready.Sends, nil
}

func (h *handler) handle(c belay.Command) error {
	switch c := c.(type) {
	case belay.OpenThread:
		h.open(c)
	case belay.SubmitTurn:
		return h.submit(c)
	case belay.InterruptTurn:
		return h.interrupt(c)
	case belay.ConfigureQueue:
		return h.configure(c)
	case belay.PromoteTurn:
		return h.promote(c)
	case belay.ReorderTurns:
		return h.reorder(c)
	case belay.UseWorkspace:
		h.use(c)
	case belay.ShareWorkspace:
		h.share()
	case belay.GiveGrant:
		h.takeHold(c)
		h.takeBudget(c.Budget)
		h.takeShared(c)
	case belay.TellParent:
		h.hearOf(c)
	case belay.CompactThread:
		return h.wantCompaction(c)
	case belay.PinContext:
		return h.pin(c)
	case belay.UnpinContext:
		return h.unpin(c)
	case belay.RecallGrants:
		h.recallBudget(c.Waits)
	case belay.ResumeThread:
		return h.resume(c)
	case belay.PauseThread:
		h.pauses(c)
	case belay.LimitMode:
		h.limitMode(c)
	case belay.RollBack:
		return h.rollBack(c)
	case belay.RevokeGrant:
		return h.revoke(c)
	case belay.RespondAction:
		return h.respond(c, nil)
	case Edited:
		return h.respond(c.RespondAction, &c)
	case belay.WriteProcessStdin:
		return h.writeStdin(c)
	case belay.TerminateProcess:
		return h.terminate(c)
	case belay.TakeOver:
		h.record(h.fact(event.RunStatus{Status: "running", Phase: "takeover", Epoch: c.Epoch, Reason: "another process drives the thread now; what was in flight is not any more"}))
	default:
		return belay.Errorf(belay.CodeBadCommand, "a thread doesn't take %s", belay.CommandName(c))
	}
	return nil
}

// threadIDs are the identities of the thread, which may not be open yet.
func (h *handler) threadIDs() belay.IDs {
	return belay.IDs{Session: h.order.Session, Thread: belay.ThreadID(h.order.Stream.ID())}
}

func (h *handler) open(c belay.OpenThread) {
	if h.Open {
		return
	}
	started := event.ThreadStarted{Kind: "main", Workspace: c.Workspace, Queue: c.Queue, Depth: c.Depth, Lineage: c.Lineage}
	if c.Depth > 0 {
		started.Kind = "child"
	}
	if c.Begin != nil {
		started.Beginning = *c.Begin
	}
	h.record(core.Fact{IDs: h.threadIDs(), Data: started})
	for _, p := range c.Pins {
		h.record(core.Fact{IDs: h.threadIDs(), Data: event.ThreadUpdated{Pin: &event.PinChange{ID: p.Pin, Text: p.Text, By: h.order.Principal}}})
	}
}

// use records how the session uses the workspace from now on; calls that
// haven't begun are judged by it. It may come before the thread is open.
func (h *handler) use(c belay.UseWorkspace) {
	if c.Use != nil && *c.Use != h.Use {
		h.record(core.Fact{IDs: h.threadIDs(), Data: event.ThreadUpdated{Use: c.Use, Reason: "the workspace's use was settled"}})
	}
}

// repeated answers a turn id that the thread knows: the same turn again changes
// nothing; another attempt under a used id gets the answer that it won't run.
func (h *handler) repeated(q Queued) {
	if q.Task == "" || slices.ContainsFunc(h.Known, func(k Known) bool { return k.Turn == q.Turn && k.Run == q.Run }) {
		return
	}
	reason := "the turn id " + string(q.Turn) + " was used before in this thread"
	h.record(core.Fact{IDs: h.idsOf(Queued{Turn: q.Turn}), Data: event.RuntimeWarning{Code: "TURN_ID_USED", Message: reason}})
	h.endAttempt(q, belay.AttemptEnd{Outcome: belay.Failed, Reason: reason})
}

// endQueued ends a turn that never began.
func (h *handler) endQueued(q Queued, o belay.Outcome, code, reason string) {
	reason = event.CutText(reason, maxSaid)
	h.record(core.Fact{IDs: h.idsOf(q), Data: event.TurnFailed{Outcome: o, Code: code, Reason: reason}})
	h.endAttempt(q, belay.AttemptEnd{Outcome: o, Reason: reason})
}

func (h *handler) interrupt(c belay.InterruptTurn) error {
	if i := slices.IndexFunc(h.Queue, func(q Queued) bool { return q.Turn == c.Turn }); i >= 0 {
		h.endQueued(h.Queue[i], belay.Cancelled, "INTERRUPTED", stopReason(h.order.Principal, c.Reason))
		h.record(h.threadFact(event.QueueChanged{Op: event.QueueRemoved, Turn: c.Turn, Length: len(h.Queue) - 1, By: h.order.Principal}))
		return nil
	}
	joined := h.Turn != nil && slices.ContainsFunc(h.Turn.Joined, func(q Queued) bool { return q.Turn == c.Turn })
	if c.Queued && joined {
		return belay.Errorf(belay.CodeBadState, "turn %s is part of turn %s now", c.Turn, h.Turn.Turn).WithHint("interrupt that one")
	}
	if c.Queued {
		return belay.Errorf(belay.CodeBadState, "turn %s doesn't wait in %s", c.Turn, h.Thread)
	}
	if h.Turn == nil || c.Turn != "" && c.Turn != h.Turn.Turn && !joined {
		return belay.Errorf(belay.CodeBadState, "no such turn is running in %s", h.Thread)
	}
	phase := ""
	if c.Grace && h.Paused() == nil { // one that is paused begins nothing
		phase = phaseGrace
	}
	if h.Turn.Stop == nil || h.Turn.Stop.Grace && phase == "" {
		h.record(h.fact(event.RunStatus{Status: "cancelling", Phase: phase, Reason: c.Reason, By: h.order.Principal}))
	}
	return nil
}

func stopReason(by, reason string) string {
	if reason == "" {
		return "interrupted by " + by
	}
	return reason
}

func (h *handler) resume(c belay.ResumeThread) error {
	if h.Turn == nil {
		return belay.Errorf(belay.CodeBadState, "no unfinished turn in %s", h.Thread)
	}
	if c.Rules.Digest != "" && c.Rules.Digest != h.Turn.Rules.Digest {
		h.record(h.threadFact(event.ThreadUpdated{Rules: &c.Rules, Limits: c.Limits, Reason: "resumed with other settings"}))
	}
	return nil
}

// respond answers a question. edit is the call as the answer changes it, or nil.
func (h *handler) respond(c belay.RespondAction, edit *Edited) error {
	for _, a := range h.Answers {
		if a.Action == c.Action {
			return belay.Errorf(belay.CodeAlreadyAnswered, "%s was %s at %s", c.Action, event.Answered(a.Decision, a.By), a.At.UTC().Format(time.RFC3339))
		}
	}
	open := h.OpenAsk(c.Action)
	ask, call := open.Ask, open.Call
	if ask == nil {
		return belay.Errorf(belay.CodeUnknownAction, "%s doesn't wait for an answer in %s", c.Action, h.Thread).WithHint("belay sessions show %s lists what waits", h.Session)
	}
	if is := open.Version(); c.Seen != "" && c.Seen != is {
		return belay.Errorf(belay.CodeConflict, "the request has changed since version %s: it is version %s now", event.CutText(c.Seen, maxWord), is).WithHint("belay sessions show %s shows it as it is", h.Session)
	}
	if !slices.Contains(decisions(ask.Kind), c.Decision) {
		return belay.Errorf(belay.CodeBadCommand, "%s can't be answered with %q", c.Action, c.Decision).WithHint("%s", howToAnswer(ask))
	}
	if !h.now.Before(ask.Until) {
		return belay.Errorf(belay.CodeAlreadyAnswered, "the deadline of %s passed at %s", c.Action, ask.Until.UTC().Format(time.RFC3339))
	}
	if event.TextLen(c.Message) > maxMessage {
		return belay.Errorf(belay.CodeTooLarge, "the message has %d bytes; at most %d are taken", len(c.Message), maxMessage).WithHint("put it into a file and name the file")
	}
	scope := c.Scope
	if scope == "" {
		scope = "once"
	}
	var cleared []string
	switch {
	case c.Clear && c.Decision != "allow":
		return belay.Errorf(belay.CodeBadCommand, "only who allows a call can vouch for the conversation").WithHint("belay approve %s --clear-taint", c.Action)
	case c.Decision == "allow" && scope != "once" && ask.Kind != "permission":
		return belay.Errorf(belay.CodeBadCommand, "a %s is answered once", ask.Kind).At(string(c.Action))
	case c.Only && scope == "once":
		return belay.Errorf(belay.CodeBadCommand, "what is allowed once is the agent's alone anyway").WithHint("leave only out, or name a scope")
	case c.Clear:
		cleared = TaintNames(h.Taint, maxTaints)
	}
	runs, err := h.edits(ask, call, c, edit)
	if err != nil {
		return err
	}
	if c.Asks {
		return h.asksFor(ask, call, runs, c)
	}
	if err := ask.raises(c); err != nil {
		return err
	}
	h.resolve(ask, runs, c.Decision, h.order.Principal, scope, c.Message, cleared...)
	if ask.Kind == askBudget && c.Decision == "allow" {
		h.raiseBudget(ask, c.Budget)
		return nil
	}
	if c.Decision != "allow" || scope == "once" {
		return nil
	}
	return h.gives(open, c)
}

// raises refuses a raise that isn't one of the budget that the question is about.
func (a *Ask) raises(c belay.RespondAction) error {
	switch by := c.Budget; {
	case by == belay.Amounts{}:
		return nil
	case a.Kind != askBudget || c.Decision != "allow":
		return belay.Errorf(belay.CodeBadCommand, "%s isn't about a budget", c.Action).WithHint("%s", howToAnswer(a))
	case *by.Of(a.Budget.Kind) <= 0 || by.Only(a.Budget.Limit) != by || by.Short(belay.Amounts{}) != "":
		return belay.Errorf(belay.CodeBadCommand, "%s isn't a raise of %s within %s: it names the first, and only what the budget limits", by, a.Budget.Kind, a.Budget.Limit).WithHint("belay approve %s --budget +%s", c.Action, a.Budget.Raise)
	}
	return nil
}

func howToAnswer(a *Ask) string {
	switch a.Kind {
	case askForm:
		return "belay answer " + string(a.Action) + " '{…}', or belay deny " + string(a.Action)
	case "question":
		return "belay answer " + string(a.Action) + " TEXT"
	}
	return "belay approve " + string(a.Action) + ", or belay deny " + string(a.Action)
}

func decisions(kind string) []string {
	if kind == "question" || kind == askForm {
		return []string{"answer", "deny"}
	}
	return []string{"allow", "deny"}
}

// resolve ends a question, and clears taint if the answer does.
func (d *decision) resolve(a *Ask, c *Call, decision, by, scope, message string, cleared ...string) {
	ids := d.ids()
	if c != nil {
		ids = d.callIDs(c)
	}
	if a.Kind != "permission" {
		scope = ""
	}
	ids.Action = a.Action
	d.record(core.Fact{IDs: ids, Data: event.ActionResolved{Decision: decision, By: by, Scope: scope, Message: belay.Content{Text: message}, Taint: cleared}})
	if a.Kind == "permission" {
		p := event.PermissionResolved{Decision: decision, By: by, Scope: scope, ArgsHash: c.ArgsHash, Message: message}
		if decision != "allow" {
			p.Decision = "deny"
		}
		d.record(core.Fact{IDs: ids, Data: p})
	}
}
