package story

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// whyTurn explains why a turn ended, waits or still runs.
func (s *story) whyTurn(t *turn) Answer {
	a := Answer{Kind: "turn", ID: string(t.ids.Turn)}
	a.stands(t.submitted, t.started)
	if with := Attached(as[event.TurnSubmitted](t.submitted).Text); with != "" {
		a.say("Its text came %s.", with)
	}
	for _, e := range t.takeovers {
		a.say("Another process took it over (epoch %d): the one before was gone, and the time between doesn't count.", as[event.RunStatus](e).Epoch)
		a.stands(e)
	}
	for _, e := range t.updates {
		a.say("Its rules changed: %s.", says(*e))
		a.stands(e)
	}
	for _, e := range t.pauses {
		a.say("It was %s.", says(*e))
		a.stands(e)
	}
	switch p := payload(t.ended).(type) {
	case event.TurnCompleted:
		s.whyCompleted(&a, t, p)
	case event.TurnFailed:
		s.whyFailed(&a, t, p)
	default:
		s.whyUnfinished(&a, t)
	}
	if e := t.plan(); e != nil {
		a.say("Its %s.", says(*e))
		a.stands(e)
	}
	for _, e := range t.shortened {
		if p, ok := e.Data.(event.ContextCompactionFailed); ok {
			a.say("Its conversation was not shortened (%s): %s", p.Trigger, problem(p.Problem))
		} else {
			a.say("Its conversation was shortened (%s): %s", as[event.ContextCompactionCompleted](e).Trigger, says(*e))
		}
		a.stands(e)
	}
	a.stands(t.ended)
	a.cost(t)
	a.Tree = s.tree(t.ids.Session, t.ids.Thread)
	return a
}

// plan is the fact that set the turn's plan last, or nil.
func (t *turn) plan() (last *event.Envelope) {
	for _, c := range t.calls() {
		for _, e := range c.did {
			if p, ok := e.Data.(event.ArtifactChanged); ok && p.Kind == "plan" && (last == nil || e.Seq > last.Seq) {
				last = e
			}
		}
	}
	return last
}

func (s *story) whyCompleted(a *Answer, t *turn, p event.TurnCompleted) {
	a.head("Turn %s completed (exit code 0).", short(string(t.ids.Turn)))
	a.say("Its summary: %s", quote(p.Summary.Text))
	if c := t.completion(); c != nil {
		a.say("The model called %s, and it was accepted.", c.name)
		a.stands(c.over)
	} else if as[event.TurnStarted](t.started).Completion == belay.CompletionConversational {
		a.say("In conversational mode an answer without calls ends the turn.")
		if st := last(t.steps.list); st != nil {
			a.stands(st.answer)
		}
	}
	a.say("It used %s.", stats(p.Stats))
	a.next("gives the session more to do", "belay run --session %s TEXT", t.ids.Session)
}

// completion is the call that ended the turn well.
func (t *turn) completion() *call {
	c := last(t.calls())
	if c == nil || c.over == nil || t.ended == nil || c.over.Seq+1 != t.ended.Seq {
		return nil
	}
	if _, failed := c.failed(); failed {
		return nil
	}
	return c
}

func (s *story) whyFailed(a *Answer, t *turn, p event.TurnFailed) {
	a.head("Turn %s ended %s (%s, exit code %d): %s", short(string(t.ids.Turn)), p.Outcome, p.Code, p.Outcome.ExitCode(), p.Reason)
	if e, ok := endingOf(p.Code); ok {
		a.say("%s", e.means)
		if e.details != nil {
			e.details(a, t)
		}
	}
	a.say("It used %s.", stats(p.Stats))
	if len(a.Next) == 0 {
		resume(a, t, "tries the task again, in the same conversation", "")
	}
}

// resume is the command that continues with the session of a turn, with a flag
// and its value if there are some.
func resume(a *Answer, t *turn, effect, flag string, value ...any) {
	words := append([]any{t.ids.Session}, value...)
	a.next(effect, "belay sessions resume %s"+when(flag, " --%s")+strings.Repeat(" %v", len(value)), words...)
}

// ending is what a cause of turn.failed means, and what of the turn shows it.
type ending struct {
	means   string
	details func(a *Answer, t *turn)
}

// endingOf describes a cause; false for a cause of another build.
func endingOf(code string) (ending, bool) {
	e, ok := map[string]ending{
		"MODEL_FAILED":         {"The provider gave no answer: its failure was not one to retry, or four attempts of one request had failed.", modelFailed},
		"CONTEXT_FULL":         {"The conversation is longer than what the model reads, it could not be made shorter, and no fallback is known to read more.", tooLong},
		"CONTEXT_TOO_SMALL":    {"Instructions and tools alone fill more than half of what the model reads, and no fallback is known to read more. Nothing was sent.", tooLong},
		"CONTEXT_EXCEEDED":     {"The conversation is longer than what the model reads, and no fallback is known to read more. A request that is counted as too long isn't sent.", tooLong},
		"NO_ROUTE":             {"No model that is set can do what the turn needs, or none has what it takes to be asked. Nothing was sent.", noRoute},
		"RETRY_BUDGET":         {"So many requests of this turn failed that it isn't a passing fault; it stopped before it asked for more.", modelFailed},
		"NO_COMPLETION":        {"The model stopped without calling the completion tool, was reminded (nudge), stopped again, and did not complete in its last step (grace).", noCompletion},
		"STOPPED_AFTER_DENIAL": {"The gate's no was the last thing the model heard; it stopped without completing, also after a nudge and a grace step.", stoppedAfterDenial},
		"STEP_LIMIT":           {"The limit of steps was reached and the final step brought no completion.", limitReached("steps")},
		"CALL_LIMIT":           {"The limit of tool calls was reached and the final step brought no completion.", limitReached("calls")},
		"TIME_LIMIT":           {"The limit of active time was reached: what ran was stopped, and the final step brought no completion. Waiting for a person doesn't count.", limitReached("time")},
		"COST_LIMIT":           {"There was no money left for a request that leaves room for a final step, and that one brought no completion, if there was one.", budgetUp(belay.BudgetCost, "cost")},
		"TOKEN_LIMIT":          {"There were no tokens left for a request that leaves room for a final step, and that one brought no completion, if there was one.", budgetUp(belay.BudgetTokens, "tokens")},
		"CALL_BUDGET":          {"The session's budget had no tool call left, and the final step brought no completion.", budgetUp(belay.BudgetCalls, "")},
		"TIME_BUDGET":          {"The session's budget had no driven time left, and the final step brought no completion.", budgetUp(belay.BudgetTime, "")},
		"NO_PRICE":             {"Money is limited, and the price of the model isn't known: what a request would cost can't be set aside.", noPrice},
		"LOOP":                 {"One call came again and again with the same arguments and the same end while nothing changed in between, and the final step brought no completion.", looped},
		"FAILURES":             {"Three different failures came in a row without one success, and the turn was not continued.", failures},
		"MODEL_REFUSED":        {"The model refused to answer, and in conversational mode an answer is all there is to wait for.", modelRefused},
		"CRASH_LOOP":           {"Process after process stopped while the same request was out. After 20 attempts it is not made again, because the request may be what stops them.", crashLoop},
		"SNAPSHOT_FAILED":      {"The workspace was to be kept before the turn's first step, so that what commands change can be taken back. It could not be, so nothing was run.", snapshotFailed},
		"CHECKS_FAILED":        {"The task has checks that it must pass before it counts as done, and they failed each time that the completion was called. What couldn't be found out doesn't pass.", checksFailed},
		"BUSY":                 {"Another turn ran and it was not to wait, or as many turns waited already as may. It never began; it ended so that its task has an end.", busy},
		"QUEUE_DROPPED":        {"As many turns waited as may when another one came, and by the thread's drop policy the one that had waited longest made room. It never began.", busy},
		"JOINED":               {"Its text was given to the model as a part of another turn, and it ended as that one did.", nil},
		"AGENT_STOPPED":        {"Its agent, which is kept as a file, was stopped with all that it did.", agentStopped},
		"INTERRUPTED":          {"It was stopped on request. Text that was there is kept.", interrupted},
		"CONTENT_MISSING":      {"A part of the conversation is not in the store any more, and a model that is shown the rest would take it for the whole.", contentMissing},
		"RULES_MISSING":        {"The rules the turn was decided by are not in the store any more, and without them nothing may be decided.", rulesMissing},
	}[code]
	return e, ok
}

func tooLong(a *Answer, t *turn) {
	modelFailed(a, t)
	a.next("shows what fills it", "belay context %s", t.ids.Session)
	a.next("continues in a new session from before the turn that made it long", "belay fork %s --turn N", t.ids.Session)
}

func modelFailed(a *Answer, t *turn) {
	class := ""
	if st := last(t.steps.list); st != nil {
		for _, f := range st.failures {
			p := as[event.ModelFailed](f)
			a.say("Attempt %d: %s", p.Attempt, problem(p.Problem))
			class = p.Problem.Class
			a.stands(f)
		}
	}
	switch class {
	case "transient", "rate_limited":
		resume(a, t, "tries again; the provider may answer by now", "")
	case "auth":
		a.next("says which providers this machine can use", "belay doctor")
		resume(a, t, "tries again once the key is right", "")
	default:
		resume(a, t, "tries again with another model", "model", "NAME")
	}
}

func noRoute(a *Answer, t *turn) {
	for _, e := range t.routing {
		if p, ok := e.Data.(event.RoutingNotPossible); ok {
			for _, x := range p.Excluded {
				a.say("%s: %s", routeName(x.Route), x.Reason)
			}
			a.stands(e)
		}
	}
	a.next("says which providers this machine can use", "belay doctor")
	resume(a, t, "tries again with another model", "model", "NAME")
}

// saySteps says what came of the turn's steps of a kind.
func (t *turn) saySteps(a *Answer, kind, name string) {
	for _, st := range t.steps.list {
		if p, e := st.request(); p.Kind == kind {
			a.say("Step %d was the %s: %s", st.n, name, stepResult(st))
			a.stands(e, st.answer)
		}
	}
}

func noCompletion(a *Answer, t *turn) {
	t.saySteps(a, "nudge", "nudge")
	t.saySteps(a, "grace", "grace")
	resume(a, t, "tries the task again, in the same conversation", "")
	resume(a, t, "takes a plain answer as the end", "completion", belay.CompletionConversational)
}

func stepResult(st *step) string {
	if st.answer == nil {
		return "it got no answer"
	}
	return answerText(st)
}

func stoppedAfterDenial(a *Answer, t *turn) {
	for _, c := range slices.Backward(t.calls()) {
		p, failed := c.failed()
		if !failed || p.Problem.Class != "denied" {
			continue
		}
		a.say("Denied: %s %s: %s", c.name, cut(c.args, 80), p.Problem.Message)
		c.sayVerdict(a)
		a.stands(c.verdict, c.over)
		c.adviseAfterDenial(a)
		return
	}
}

// limits are those in force last: a resume can have changed them.
func (t *turn) limits() belay.Limits {
	l := as[event.TurnStarted](t.started).Limits
	for _, e := range t.updates {
		if changed := as[event.ThreadUpdated](e).Limits; changed != nil {
			l = *changed
		}
	}
	return l
}

func limitReached(of string) func(a *Answer, t *turn) {
	return func(a *Answer, t *turn) {
		t.saySteps(a, "final", "final step")
		raise(a, t, of)
	}
}

// raise is the command that tries again with twice a limit, if there is one.
func raise(a *Answer, t *turn, of string) {
	var twice any
	switch l := t.limits(); {
	case of == "steps" && l.Steps > 0:
		twice = 2 * l.Steps
	case of == "calls" && l.Calls > 0:
		twice = 2 * l.Calls
	case of == "time" && l.Time > 0:
		twice = 2 * time.Duration(l.Time)
	default:
		return
	}
	resume(a, t, "tries again with twice the "+of+"; 0 is no limit", "max-"+of, twice)
}

// budgetUp says which budget had no more of a kind, and how it is raised: by a flag of
// the turn's limits, if there is one, or the session's budget.
func budgetUp(kind belay.BudgetKind, flag string) func(a *Answer, t *turn) {
	return func(a *Answer, t *turn) {
		t.saySteps(a, "final", "final step")
		var one, session belay.Amounts
		*one.Of(kind) = 1
		if p := as[event.TurnSubmitted](t.submitted); p.Budget != nil {
			session = p.Budget.Limit
		}
		for _, e := range t.budget {
			switch p := as[event.LimitChanged](e); p.Op {
			case event.LimitSet:
				session = p.Limit
			case event.LimitRefused:
				a.say("The session had %s left that no thread had.", cmp.Or(p.Amount.Only(one).String(), "nothing"))
				a.stands(e)
			}
		}
		for _, k := range t.asks.list {
			if as[event.ActionRequired](k.required).Budget != nil {
				a.say("A person was asked to raise it: %s", askResult(k))
				a.stands(k.required, k.resolved)
			}
		}
		l := t.limits()
		if own := (belay.Amounts{MicroUSD: l.MicroUSD, Tokens: l.Tokens}).Only(one); own != (belay.Amounts{}) {
			a.say("The limit of the turn was %s.", own)
			resume(a, t, "tries again with twice the limit of the turn; 0 is no limit", "max-"+flag, own.Add(own))
		}
		if session = session.Only(one); session != (belay.Amounts{}) {
			a.say("The budget of the session was %s.", session)
			a.next("raises the session's budget", "belay budget set %s +%s", t.ids.Session, session)
			resume(a, t, "tries again after that", "")
		}
	}
}

func noPrice(a *Answer, t *turn) {
	a.next("shows which models have prices; docs/models.md says how to add one", "belay models list")
	resume(a, t, "tries again with a model whose price is known", "model", "NAME")
}

func looped(a *Answer, t *turn) {
	same := map[string][]*call{}
	for _, c := range t.calls() {
		end := ""
		switch p := payload(c.over).(type) {
		case event.ToolResult:
			end = string(p.Digest)
		case event.ToolFailed:
			end = p.Problem.Code
		}
		if end == "" || end == "LAST_STEP" {
			continue
		}
		key := c.name + " " + string(c.hash) + " " + end
		if same[key] = append(same[key], c); len(same[key]) == 3 {
			a.say("It was %s %s", c.name, cut(c.args, 80))
			for _, k := range same[key] {
				a.stands(k.over)
			}
		}
	}
	t.saySteps(a, "final", "final step")
}

func failures(a *Answer, t *turn) {
	n := 0
	for _, c := range slices.Backward(t.calls()) {
		p, failed := c.failed()
		if n == 3 || !failed || slices.Contains([]string{"denied", "cancelled", "skipped"}, p.Problem.Class) {
			continue
		}
		a.say("Failed: %s %s: %s", c.name, cut(c.args, 80), problem(p.Problem))
		a.stands(c.over)
		n++
	}
	wasAsked := false
	for _, k := range t.asks.list {
		if as[event.ActionRequired](k.required).Kind == "continue" {
			a.say("A person was asked whether to go on: %s", askResult(k))
			a.stands(k.required, k.resolved)
			wasAsked = true
		}
	}
	if !wasAsked {
		resume(a, t, "tries again, and asks a person instead of giving up", "approvals", belay.ApprovalsWait)
	}
}

func modelRefused(a *Answer, t *turn) {
	if st := last(t.steps.list); st != nil {
		a.say("It said: %s", stepResult(st))
		a.stands(st.answer)
	}
	a.next("says it in other words", "belay run --session %s TEXT", t.ids.Session)
	resume(a, t, "asks another model", "model", "NAME")
}

func crashLoop(a *Answer, t *turn) {
	if st := last(t.steps.list); st != nil {
		a.say("Step %d had %s.", st.n, plural(len(st.requests), "attempt"))
	}
	a.next("says what is wrong with this machine, if it can tell", "belay doctor")
	resume(a, t, "tries the task again, in the same conversation", "")
}

func busy(a *Answer, t *turn) {
	a.next("shows what runs and what waits", "belay sessions show %s", t.ids.Session)
	resume(a, t, "tries the task again once the others are done", "")
}

func contentMissing(a *Answer, t *turn) {
	if st := last(t.steps.list); st != nil {
		a.stands(st.failures...)
	}
	a.next("names what is missing or damaged", "belay verify")
	a.next("begins a conversation of its own", "belay run TEXT")
}

func agentStopped(a *Answer, t *turn) {
	if who := as[event.TurnStarted](t.started).Agent; who != nil {
		a.next("lets the agent take work again", "belay agents resume %s", who.Name)
	}
	resume(a, t, "tries again then", "")
}

// held is the agent that the turn waits for, which is paused; empty: it doesn't.
func (t *turn) held() string {
	if e := last(t.pauses); e != nil {
		if p := as[event.ThreadUpdated](e).Pause; p.Op == event.Paused {
			return p.Agent
		}
	}
	return ""
}

func interrupted(a *Answer, t *turn) {
	if !t.begun() {
		a.say("It had not begun: it was taken out of the queue.")
	}
	if p, ok := payload(t.stop).(event.RunStatus); ok {
		a.say("Asked for by %s%s", cmp.Or(p.By, "somebody"), when(p.Reason, ": %s"))
		a.stands(t.stop)
	}
}

func snapshotFailed(a *Answer, t *turn) {
	resume(a, t, "tries again", "")
	resume(a, t, "continues without keeping the workspace", "snapshot", "none")
}

// checksFailed says how the checks ended the last time.
func checksFailed(a *Answer, t *turn) {
	seen := map[string]bool{}
	for _, e := range slices.Backward(t.checks) {
		k := as[event.TaskProgress](e).Check
		if seen[k.ID] || k.Status == event.CheckNoted || k.Status == event.CheckRunning {
			continue
		}
		seen[k.ID] = true
		a.say("%s", k.Text())
		a.stands(e)
	}
	resume(a, t, "tries again, in the same conversation", "")
	if t.ids.Task != "" {
		a.next("counts it as done without one of them", "belay tasks complete %s --waive CHECK --why TEXT", t.ids.Task)
	}
}

func rulesMissing(a *Answer, t *turn) {
	if p, ok := payload(t.started).(event.TurnStarted); ok {
		a.say("The rules are the blob %s.", p.Rules.Digest)
	}
	a.next("looks for what else is missing or damaged", "belay verify")
	a.next("gives the session its task again, under new rules", "belay run --session %s TEXT", t.ids.Session)
}

// whyUnfinished explains what a turn is at.
func (s *story) whyUnfinished(a *Answer, t *turn) {
	id := short(string(t.ids.Turn))
	switch opens := t.opens(); {
	case !t.begun():
		a.head("Turn %s was accepted and waits until the turns before it have ended.", id)
		resume(a, t, "drives the session, if no process does", "")
		return
	case t.stop != nil:
		a.head("Turn %s is being stopped: it ends once what is in flight has ended.", id)
		a.stands(t.stop)
	case len(opens) > 0:
		for i, k := range opens {
			b := k.why()
			switch {
			case i > 0:
				a.say("It also waits for this. %s", b.Head)
			case len(opens) > 1:
				a.head("Turn %s waits for a person, with %d questions. %s", id, len(opens), b.Head)
			default:
				a.head("Turn %s waits for a person. %s", id, b.Head)
			}
			a.Says = append(a.Says, b.Says...)
			a.stands(k.required)
			a.Next = append(a.Next, b.Next...)
		}
		resume(a, t, "continues after the answer, if no process drives the session", "")
		return
	case t.held() != "":
		a.head("Turn %s waits until its agent may work.", id)
		a.next("lets the agent go on", "belay agents resume %s", t.held())
	default:
		a.head("Turn %s hasn't ended.", id)
	}
	if st := last(t.steps.list); st != nil {
		st.sayAt(a)
	}
	a.stands(t.last)
	resume(a, t, "continues it, if no process drives the session", "")
}

// sayAt adds what a step is doing.
func (st *step) sayAt(a *Answer) {
	if st.answer == nil {
		if e := last(st.failures); e != nil && len(st.failures) >= len(st.requests) {
			p := as[event.ModelFailed](e)
			a.say("Step %d waits to ask the model again: %s; %s", st.n, problem(p.Problem), cmp.Or(again(p.RetryAt), "at once"))
			a.stands(e)
			return
		}
		a.say("Step %d waits for the model's answer (attempt %d).", st.n, len(st.requests))
		a.stands(last(st.requests))
		return
	}
	for _, c := range st.calls {
		if c.over == nil {
			a.say("%s %s: %s", c.name, cut(c.args, 80), result(c))
			a.stands(last(c.starts))
		}
	}
}
