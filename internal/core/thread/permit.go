package thread

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/policy"
)

// permit judges the calls of an answer in order. Every call gets its recorded
// verdict, also one that can't run anyway; what is asked waits for a person and
// for its deadline.
func permit(d *decision) bool {
	st := d.Turn.Step
	for _, c := range st.Calls {
		switch {
		case c.Phase == CallOver:
		case c.Phase == CallProposed:
			d.judge(c)
		default:
			d.applyVerdict(c)
		}
	}
	return false
}

// applyVerdict does what follows from the verdict on a call, or waits for an answer.
func (d *decision) applyVerdict(c *Call) {
	late := c.Ask != nil && c.Ask.Open && !d.now.Before(c.Ask.Until)
	switch {
	case late && c.Ask.Kind == askForm:
		d.resolve(c.Ask, c, "cancelled", "deadline", "", "nobody answered in time")
	case c.wantsModel():
		d.sample(c)
	case c.waitsForInput() && c.Sample.Done: // it goes on
	case c.waitsForInput():
		if c.Ask != nil {
			d.wakeAt(c.Ask.Until)
		}
		d.asksInput(c)
	case late:
		d.resolve(c.Ask, c, "deny", "deadline", "once", "nobody answered in time")
	case c.Ask != nil && c.Ask.Open:
		d.wakeAt(c.Ask.Until)
	case c.Verdict == policy.Deny && c.Phase == CallRan:
		d.record(d.denyViolation(c))
	case c.Phase == CallRan:
		d.escalate(c)
	case c.Verdict == policy.Deny:
		d.record(d.failed(c, event.Problem{Class: "denied", Code: "DENIED", Message: "not allowed: " + c.Reason, Hint: c.Hint}))
	}
}

// judge asks the gate about one call and records what it says. A call that
// can't run, or that this step doesn't take, is refused right after.
func (d *decision) judge(c *Call) {
	if v, refusal, waits := d.verdict(c); !waits {
		d.rule(c, &v, refusal)
	}
}

// verdict is what the gate says of a call, and why it can't run. waits: it is
// judged when checkers have answered.
func (d *decision) verdict(c *Call) (v policy.Verdict, refusal *event.Problem, waits bool) {
	spec, known := d.rules.Tool(c.Name)
	v = policy.Verdict{Decision: policy.Deny, Source: "rule", Rule: "builtin/unknown-tool", Tier: policy.TierDefault, ReasonCode: "UNKNOWN_TOOL", Reason: "no such tool in this turn"}
	if !known && d.rules.withholds(c.Name) {
		v.Rule, v.Tier, v.ReasonCode, v.Reason = "agent/tools", policy.TierAgent, codeCapability, "the agent may not call this tool"
	}
	refusal = d.refusal(spec, known, c)
	if known {
		q := d.policyRequest(d.rules, spec, c, d.now)
		q.Grants = unspent(q.Grants, d.ready)
		if refusal == nil && d.rules.Gate().HasCheckers() && d.checks(c, &q) {
			return v, refusal, true
		}
		v = evaluate(d.rules, &q)
		if refusal == nil && d.waitsForUse(c, &v) {
			return v, refusal, true
		}
	}
	if refusal != nil && v.Decision == policy.Ask {
		// There is no question about a call that won't run.
		v.Decision, v.Source, v.ReasonCode, v.Reason = policy.Deny, "runtime", refusal.Code, refusal.Message
	}
	return v, refusal, false
}

// rule records a verdict, after what a person answered before, and asks one if
// it says so.
func (d *decision) rule(c *Call, v *policy.Verdict, refusal *event.Problem) {
	d.reconsider(c, v, refusal != nil)
	d.record(core.Fact{IDs: d.callIDs(c), Data: d.recorded(c, v)})
	d.usesUp(v)
	if refusal != nil {
		d.record(d.failed(c, *refusal))
		return
	}
	if v.Decision == policy.Ask && (c.Ask == nil || !c.Ask.Open) {
		d.askPermission(c, v, event.ActionRequired{Again: c.again(v)})
	}
}

// boundaryName names a boundary in a sentence.
func boundaryName(name string) string {
	if name == "" {
		return "no boundary"
	}
	return "boundary " + name
}

// reconsider joins a verdict under new rules with what a person was asked
// before: an answer stands, and an open question that is no longer one is closed.
func (d *decision) reconsider(c *Call, v *policy.Verdict, refused bool) {
	switch {
	case c.Ask == nil:
	case c.Ask.Open && !refused && c.Ask.Kind == "permission" && v.Decision == policy.Allow && d.granted(v.Grant) != nil: // another agent of the tree was allowed it
		g := d.granted(v.Grant)
		d.resolve(c.Ask, c, "allow", g.By, g.Scope, "")
	case c.Ask.Open && (refused || c.Ask.Kind == "permission" && v.Decision != policy.Ask):
		d.resolve(c.Ask, c, "cancelled", "rules", "", "other rules decide it now")
	case !refused && c.Ask.answered() && v.Decision == policy.Ask && c.Ask.Decision == "allow" && c.Ask.Within != within(v.Bound):
		v.ReasonCode, v.Reason = codeBoundaryChanged, "the call was allowed in "+boundaryName(c.Ask.Boundary)+" and would get "+boundaryName(v.Boundary)+" now: "+v.Reason
	case !refused && c.Ask.answered() && v.Decision == policy.Ask:
		v.Source, v.ReasonCode, v.Reason = "person", "ANSWERED", "a person answered this call before"
		if v.Decision = policy.Deny; c.Ask.Decision == "allow" {
			v.Decision = policy.Allow
		}
	}
}

// answered reports whether a person allowed or denied the call, or the deadline did.
func (a *Ask) answered() bool {
	return a != nil && !a.Open && a.Kind == "permission" && a.Decision != "cancelled"
}

// refusal is why a call isn't run whatever the gate says; nil when it may run.
func (d *decision) refusal(spec belay.ToolSpec, known bool, c *Call) *event.Problem {
	st := d.Turn.Step
	last := st.Kind == KindFinal || st.Kind == KindGrace
	switch {
	case c.Check != "":
		return c.Problem
	case !known && d.rules.withholds(c.Name):
		return cmp.Or(d.Turn.sameFailure(c), d.rules.beyond(c.Name))
	case c.Problem != nil:
		return cmp.Or(d.Turn.sameFailure(c), c.Problem)
	case !known:
		hint := "call one of the tools that you were given"
		if d.rules.completionTool() == "" {
			hint += ", or answer without a call: that ends the turn"
		}
		return &event.Problem{Class: "not_found", Code: "UNKNOWN_TOOL", Message: "there is no tool " + c.Name, Hint: hint}
	case spec.Handled == "complete" && len(st.Calls) > 1:
		return &event.Problem{Class: "bad_arguments", Code: codeNotAlone, Message: c.Name + " must be the only call of an answer", Hint: "look at the results of the other calls first, then call it alone"}
	case last && spec.Handled != "complete":
		return d.refusedFinal(c.Name)
	case d.Turn.Limits.Calls > 0 && d.Turn.Calls+d.Turn.before(c) >= d.Turn.Limits.Calls && spec.Handled != "complete":
		return &event.Problem{Class: "skipped", Code: "CALL_LIMIT", Message: "this turn has no call left: " + usedUpAll(d.Turn.Limits.Calls, "call")}
	}
	if calls, capped := d.rules.Gate().CapOf(c.Name); capped && d.Turn.used(c) >= calls {
		return &event.Problem{Class: "skipped", Code: "CALL_CAP", Message: fmt.Sprintf("%s may be called %d times in a turn, and was", c.Name, calls), Hint: "go on without it"}
	}
	return d.Turn.sameFailure(c)
}

// sameFailure refuses a call that failed again and again in the same way.
func (t *Turn) sameFailure(c *Call) *event.Problem {
	switch k := t.tracked(c); {
	case k == nil || k.Fails < sameFailures || k.Unrun:
		return nil
	case k.Denied:
		return &event.Problem{Class: "skipped", Code: codeSameFailure, Message: fmt.Sprintf("%s was denied twice for exactly these arguments (%s) and was not considered again", c.Name, k.Code), Hint: "go on without it, or complete and say what is open"}
	default:
		return &event.Problem{Class: "skipped", Code: codeSameFailure, Message: fmt.Sprintf("%s failed twice with %s for exactly these arguments and was not run again", c.Name, k.Code), Hint: "change something first"}
	}
}

// before corrects the count of calls that are over for the order of the answer:
// the calls before c count also while they aren't over, those after it never.
func (t *Turn) before(c *Call) (n int) {
	first := true
	for _, o := range t.Step.Calls {
		switch {
		case o == c:
			first = false
		case first && o.Phase != CallOver:
			n++
		case !first && o.Phase == CallOver:
			n--
		}
	}
	return n
}

// codeSameFailure refuses a call that failed twice in the same way.
const codeSameFailure = "SAME_FAILURE"

// codeNotAlone refuses a completion beside other calls.
const codeNotAlone = "NOT_ALONE"

const (
	sameFailures = 2 // the same call with the same failure is not run a third time
	loopAt       = 3 // identical calls with identical results in a row
	maxFailing   = 3 // different failures in a row
	maxRefusals  = 8 // answers in a row of whose calls none ran
)

// askPermission asks a person whether a call may run, in the boundary of the verdict
// if it has one. The question says what stopped the call, or why it is asked again.
func (d *decision) askPermission(c *Call, v *policy.Verdict, q event.ActionRequired) {
	q.Kind, q.Prompt = "permission", belay.Content{Text: event.CutText(c.Name+" "+preview(c), 2*maxSaid), Ref: c.ArgsRef}
	if v.Bound != nil {
		q.Boundary, q.Bounds = v.Boundary, &v.Bound.Is
	}
	d.askPerson(c, v.Rule, q)
}

// askPerson asks a person about a call or, without one, about the turn. A question
// always has a deadline and a default.
func (d *decision) askPerson(c *Call, rule string, q event.ActionRequired) {
	ids := d.ids()
	if c != nil {
		ids.Call, q.Tool, q.ArgsHash = c.ID, c.Name, c.ArgsHash
	}
	ids.Action = belay.ActionID(d.derive(belay.PrefixAction, len(d.ready.Decided)))
	q.Lineage = d.Lineage
	q.Decisions, q.Default, q.Owner, q.Until = decisions(q.Kind), string(policy.Deny), "approver", d.now.Add(askTimeout(d.rules))
	status := "waiting_input"
	if q.Kind == "permission" {
		status = "waiting_permission"
		d.record(core.Fact{IDs: ids, Data: event.PermissionRequested{Tool: q.Tool, ArgsHash: q.ArgsHash, Rule: rule, Until: q.Until, Again: q.Again, Lineage: q.Lineage}})
	}
	d.record(
		core.Fact{IDs: ids, Data: q},
		core.Fact{IDs: ids, Data: event.RunStatus{Status: status, WaitingFor: string(ids.Action), Until: q.Until}})
}

func askTimeout(r *Rules) time.Duration {
	if d := time.Duration(r.Settings.AskTimeout); d > 0 {
		return d
	}
	return time.Duration(belay.DefaultAskTimeout)
}

// preview is the call's arguments as far as they are short.
func preview(c *Call) string {
	if len(c.Args) > 0 && json.Valid(c.Args) {
		return string(c.Args)
	}
	return "(long arguments)"
}
