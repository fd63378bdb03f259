package story

import (
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// why explains a call: who allowed or refused it, why it ran as often as it
// did, and how it ended.
func (c *call) why() Answer {
	a := Answer{Kind: "call", ID: string(c.id)}
	what, how := join(" ", c.name, cut(c.args, 100)), "well"
	if o := c.outcome(); o != "ok" {
		how = "with " + o
	}
	switch p, failed := c.failed(); {
	case failed && p.Problem.Class == "denied":
		a.head("%s was denied: %s", what, p.Problem.Message)
	case failed && p.Problem.Class == "lost":
		a.head("%s is lost: nobody knows whether it did its work.", what)
	case failed && len(c.starts) == 0:
		a.head("%s was not run (%s): %s", what, p.Problem.Code, p.Problem.Message)
	case failed:
		a.head("%s failed (%s): %s", what, join(", ", p.Problem.Class, p.Problem.Code), p.Problem.Message)
	case c.over != nil && len(c.starts) > 1:
		a.head("%s ran %d times and ended %s.", what, len(c.starts), how)
	case c.over != nil:
		a.head("%s ended %s.", what, how)
	case c.step.turn.ended != nil:
		a.head("%s has no end in these facts; its turn is over.", what)
	default:
		a.head("%s: %s.", what, result(c))
	}
	a.stands(c.step.answer, c.verdict)
	c.sayVerdict(&a)
	c.sayRungs(&a)
	c.sayAsk(&a)
	c.sayEdit(&a)
	c.sayAttempts(&a)
	c.sayEnd(&a)
	c.advise(&a)
	c.rehearse(&a)
	return a
}

// outcome is how a call ended that gave a result.
func (c *call) outcome() string {
	return as[event.ToolResult](c.over).Outcome()
}

// sayVerdict says what the gate said and by which rule.
func (c *call) sayVerdict(a *Answer) {
	p, ok := payload(c.verdict).(event.PermissionEvaluated)
	if !ok {
		return
	}
	a.say("The gate said %s: rule %s of tier %s, %s, %s (arguments %s).", p.Decision, p.Rule, p.Tier, p.ReasonCode, p.Reason, p.ArgsHash.Short())
	if p.Where != "" {
		a.say("The rule stood at %s, with priority %d; the mode was %s.", p.Where, p.Priority, p.Mode)
	}
	if p.Bounds != nil {
		least := ""
		if p.Least != "" {
			least = "; at least level " + p.Least
		}
		a.say("Its programs get boundary %s, which comes of %s%s.", p.Boundary, p.BoundaryBy, least)
	}
	for _, j := range p.Commands {
		a.say("Of the command line, %s is %s: %s by %s.", cut(j.Name, 100), j.Class, j.Decision, j.Rule)
	}
	for _, m := range p.Matched {
		fate := "agreed"
		if m.Lost {
			fate = "lost"
		}
		a.say("The rule %s (tier %s, priority %d) said %s, and %s.", m.Rule, m.Tier, m.Priority, m.Decision, fate)
	}
	if len(p.Taint) > 0 {
		a.say("The conversation was tainted by %s.", strings.Join(p.Taint, ", "))
	}
	if p.Omitted > 0 {
		a.say("The fact has no room for %d more rules and commands.", p.Omitted)
	}
}

// rehearse names the command that judges the call again, with every rule and
// matcher, when there is more to say than one built-in rule.
func (c *call) rehearse(a *Answer) {
	if p := as[event.PermissionEvaluated](c.verdict); len(p.Matched)+len(p.Commands)+len(p.Where) > 0 {
		a.next("shows every rule that was held against it, and what would change the verdict", "belay policy explain %s", c.id)
	}
}

// codesOfChange are the codes of calls that weren't what a person had allowed.
var codesOfChange = map[string]bool{"FOLDER_CHANGED": true, "PROGRAM_CHANGED": true, "ENVIRONMENT_CHANGED": true}

// codeViolation is the code of an attempt that a boundary stopped.
const codeViolation = "BOUNDARY_VIOLATION"

// sayRungs says what boundaries stopped, and what was decided about it.
func (c *call) sayRungs(a *Answer) {
	if c.boundary != nil {
		a.say("What it ran in: %s.", says(*c.boundary))
		a.stands(c.boundary)
	}
	for _, e := range c.rungs {
		switch p := e.Data.(type) {
		case event.SandboxViolation:
			a.say("A boundary stopped something: %s.", says(*e))
		case event.PermissionEvaluated:
			a.say("About that the gate said %s by %s: %s.", p.Decision, p.Rule, p.Reason)
		}
		a.stands(e)
	}
}

func (c *call) sayAsk(a *Answer) {
	if c.ask == nil {
		return
	}
	a.say("A person was asked: %s", askResult(c.ask))
	a.stands(c.ask.required, c.ask.resolved)
}

// sayEdit says who changed the call, from what to what.
func (c *call) sayEdit(a *Answer) {
	p, ok := payload(c.edit).(event.ToolArgs)
	if !ok {
		return
	}
	a.say("%s changed it before allowing it. The model asked for %s (arguments %s); what was judged after that, and runs, is %s (arguments %s). The result says so to the model.",
		p.By, cut(c.args, 200), p.Before.Short(), changedTo(p, 200), p.ArgsHash.Short())
	a.stands(c.edit)
	if v, ok := payload(c.asked).(event.PermissionEvaluated); ok {
		a.say("Of the model's arguments the gate had said %s: rule %s of tier %s, %s, %s.", v.Decision, v.Rule, v.Tier, v.ReasonCode, v.Reason)
		a.stands(c.asked)
	}
}

// sayAttempts says why there was more than one.
func (c *call) sayAttempts(a *Answer) {
	a.stands(c.starts...)
	for i := 1; i < len(c.starts); i++ {
		a.say("Attempt %d was made because %s.", i+1, whyAgain(c, i))
		for _, e := range c.step.turn.takeovers {
			if e.Seq > c.starts[i-1].Seq && e.Seq < c.starts[i].Seq {
				a.stands(e)
			}
		}
	}
	if p, ok := c.failed(); ok && p.Problem.Class == "lost" {
		a.say("Its effect is at_most_once: after a crash in the middle it is never run again by itself.")
		for _, e := range c.step.turn.takeovers {
			if n := len(c.starts); n > 0 && e.Seq > c.starts[n-1].Seq && e.Seq < c.over.Seq {
				a.stands(e)
			}
		}
	}
}

func (c *call) sayEnd(a *Answer) {
	for _, e := range c.did {
		a.say("It left: %s %s", e.Type(), says(*e))
		a.stands(e)
	}
	a.stands(c.ends...)
	if p, ok := c.failed(); ok {
		if m := refusal(p.Problem.Code); m != "" {
			a.say("%s", m)
		}
		if p.Problem.Hint != "" {
			a.say("The model got: %s", p.Problem.Hint)
		}
	}
}

// refusal returns what a refusal by the turn itself means.
func refusal(code string) string {
	return map[string]string{
		"NOT_ALONE":     "The completion tool must be the only call of its answer, so that the model has seen every result before it says that it is done.",
		"LAST_STEP":     "A grace or final step takes the completion tool only.",
		"SAME_FAILURE":  "The same call had failed, or was denied, twice in the same way; a third time is not tried unless something has changed.",
		"OTHER_WRITER":  "Another session had become the writer of the workspace before it was to run again.",
		"CALL_LIMIT":    "The turn's tool calls were used up.",
		"CAPABILITY":    "The tool is there, but the agent's kind, its file or the call that started it doesn't let it call this one.",
		"UNKNOWN_TOOL":  "The turn's inventory, fixed when it began, has no such tool.",
		"STEERED":       "A message for the running turn came before the call had begun, so the model was to decide anew.",
		"INTERRUPTED":   "The turn was stopped before the call was over.",
		"TIME_IS_UP":    "The turn's time was up before the call was over.",
		"CRASH_LOOP":    "Process after process stopped while it ran; after 20 attempts it is not run again.",
		"RULES_MISSING": "The turn's rules are not in the store any more, so nothing of it may be decided.",
		"NO_PERSON":     "The model asked a person, and questions can't be answered in this session.",
	}[code]
}

// advise names the command that changes how such a call ends.
func (c *call) advise(a *Answer) {
	t := c.step.turn
	p, failed := c.failed()
	switch {
	case c.ask != nil && c.ask.resolved == nil && t.ended == nil:
		a.Next = append(a.Next, c.ask.why().Next...)
	case failed && p.Problem.Class == "denied":
		c.adviseAfterDenial(a)
	case failed && p.Problem.Class == "lost":
		a.next("shows what the call was about to do and what happened around it", "belay events %s", t.ids.Session)
		resume(a, t, "continues; the same call runs again only if a rule or a person allows it", "")
	case failed && p.Problem.Code == "CALL_LIMIT":
		raise(a, t, "calls")
	case failed && p.Problem.Code == "TIME_IS_UP":
		raise(a, t, "time")
	case c.over == nil && t.ended == nil:
		resume(a, t, "continues it, if no process drives the session", "")
	case c.wasAsked() && !failed:
		resume(a, t, "doesn't ask for this tool again in the session", "allow", c.name)
	default:
		a.next("explains the turn it belongs to", "belay why %s", t.ids.Turn)
	}
}

func (c *call) wasAsked() bool {
	return as[event.PermissionEvaluated](c.verdict).Decision == "ask"
}

// adviseAfterDenial names what would have let the call through.
func (c *call) adviseAfterDenial(a *Answer) {
	t := c.step.turn
	v := as[event.PermissionEvaluated](c.verdict)
	f, _ := c.failed()
	switch {
	case f.Problem.Code == "NO_PERSON" || f.Problem.Code == "NO_ANSWER":
		resume(a, t, "keeps questions open until they are answered", "approvals", belay.ApprovalsWait)
	case f.Problem.Code == codeViolation, f.Problem.Code == "BOUNDARY_NOT_APPLIED", v.ReasonCode == "BOUNDARY_UNAVAILABLE", strings.Contains(v.Rule, "least-level"):
		resume(a, t, "runs programs in no boundary at all", "boundary", belay.BoundaryFull)
		a.next("shows what this machine can confine", "belay doctor")
	case v.ReasonCode == "MODE_PLAN":
		resume(a, t, "leaves plan mode: what changes things is asked about", "mode", belay.ModeDefault)
	case v.ReasonCode == "CAPABILITY":
		if u := as[event.TurnStarted](t.started).Agent; u != nil {
			a.next("shows what the agent may do", "belay agents show %s", u.Name)
		}
	case v.ReasonCode == "NO_POLICY":
		resume(a, t, "uses a mode that has rules", "mode", belay.ModeDefault)
	case v.ReasonCode == "OTHER_WRITER" || f.Problem.Code == "OTHER_WRITER":
		resume(a, t, "continues as the writer if the other session has ended, and is read-only otherwise", "")
		resume(a, t, "writes beside the other session", "share")
	case v.ReasonCode == "LOST_RERUN", v.ReasonCode == "NO_PERSON" && strings.Contains(v.Rule, "lost-rerun"):
		resume(a, t, "lets it run again although it may do its work twice", "allow", c.name)
	default:
		resume(a, t, "allows the tool for the whole session", "allow", c.name)
	}
	if v.ReasonCode == "NO_PERSON" {
		resume(a, t, "asks instead of denying, and waits for an answer", "approvals", belay.ApprovalsWait)
	}
}

// why explains a question: why it was asked, who answered, and what followed.
func (k *ask) why() Answer {
	a := Answer{Kind: "action", ID: string(k.id)}
	p := as[event.ActionRequired](k.required)
	about := "A person was asked"
	switch p.Kind {
	case "permission":
		about = "A person was asked to allow " + p.Tool
		if p.Stopped != nil {
			about = "A person was asked to run " + p.Tool + " again in a wider boundary"
			if p.Stopped.Op == "obeyed" {
				about = "A person was asked to run " + p.Tool + " again and let it leave " + p.Stopped.Target
			}
		}
	case "question":
		about = "The model asked a person"
	case "form":
		about = "A person was asked what an MCP server wants to know"
	case "continue":
		about = "A person was asked whether the turn continues after three different failures"
	case "acceptance":
		about = "A person was asked whether the task is done"
	case "budget":
		about = "A person was asked to raise the budget"
	}
	a.head("%s: %s", about, askResult(k))
	a.say("%s", quote(p.Prompt.Text))
	if k.call != nil {
		k.call.sayVerdict(&a)
		a.stands(k.call.verdict)
		if p.Stopped != nil {
			k.call.sayRungs(&a)
		}
		if k.resolved != nil {
			a.say("After that: %s", result(k.call))
			a.stands(k.call.over)
		}
	}
	a.stands(k.required, k.resolved)
	k.advise(&a, p)
	return a
}

func (k *ask) advise(a *Answer, p event.ActionRequired) {
	switch {
	case k.resolved == nil && k.turn.ended == nil && p.Kind == "question":
		a.next("answers it", "belay answer %s TEXT", k.id)
		a.next("lets the model go on without an answer", "belay deny %s", k.id)
	case k.resolved == nil && k.turn.ended == nil && p.Kind == "form":
		a.next("gives what is asked for, as a JSON object", "belay answer %s '{…}'", k.id)
		a.next("declines", "belay deny %s", k.id)
	case k.resolved == nil && k.turn.ended == nil:
		a.next("lets it go on", "belay approve %s", k.id)
		a.next("says no; the text is for the model", "belay deny %s -m TEXT", k.id)
		switch {
		case p.Stopped != nil:
			a.next("gives exactly this call that boundary, for the whole session", "belay approve %s --session", k.id)
		case p.Budget != nil:
			a.next("raises it by another amount", "belay approve %s --budget +AMOUNT", k.id)
		case p.Kind == "permission":
			a.next("allows the tool for the whole session", "belay approve %s --session", k.id)
		}
	case p.Kind == "permission" && p.Stopped == nil:
		resume(a, k.turn, "doesn't ask for this tool again in the session", "allow", p.Tool)
	default:
		a.next("explains the turn it belongs to", "belay why %s", k.turn.ids.Turn)
	}
}

// askResult is who answered a question and how.
func askResult(k *ask) string {
	p, ok := payload(k.resolved).(event.ActionResolved)
	if !ok {
		if k.turn.ended != nil {
			return "there was no answer before the turn ended."
		}
		r := as[event.ActionRequired](k.required)
		return "it waits until " + clock(r.Until) + ", then it counts as " + r.Default + "."
	}
	after := ""
	if k.required != nil {
		after = " after " + took(k.resolved.Time.Sub(k.required.Time))
	}
	said := when(cut(p.Message.Text, 200), `, "%s"`)
	switch p.By {
	case "deadline":
		return "nobody answered in time, so it counted as " + p.Decision + after + "."
	case "server":
		return "it was taken back" + after + " because the server didn't wait any more."
	case "turn":
		return "it was taken back" + after + " because the turn ended."
	case "budget":
		return "it was taken back" + after + " because there was budget again."
	case "rules":
		return "it was taken back" + after + " because the session was resumed under other rules, which decide it."
	}
	return event.Answered(p.Decision, p.By) + when(p.Scope, " (%s)") + after + said + "."
}
