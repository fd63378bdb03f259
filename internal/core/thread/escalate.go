package thread

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/policy"
)

// CodeViolation is the code of a call that its boundary stopped. Such an attempt
// is never the call's end: the thread decides what comes of it.
const CodeViolation = "BOUNDARY_VIOLATION"

// Bounds of escalation.
const (
	maxWidened = 4  // times that one call gets a wider boundary
	maxBarred  = 64 // violations of a turn that are remembered
	maxWider   = 64 // calls of a thread that answers gave a boundary
	maxTarget  = 512
)

// blocked is an attempt that a boundary stopped.
type blocked struct {
	Problem event.Problem `json:"problem"`
	Output  belay.Content `json:"output,omitzero"`
	Whole   *belay.Ref    `json:"whole,omitempty"`
}

// Violation is a violation, and what a person said of it. Others like it in the
// turn get the same answer: a storm of them is one question.
type Violation struct {
	Key      string         `json:"key"` // tool, operation, target
	Action   belay.ActionID `json:"action"`
	Decision string         `json:"decision,omitempty"` // once it is answered
	By       string         `json:"by,omitempty"`
	Message  string         `json:"message,omitempty"`
}

// widerGrant is a boundary that a person gave exactly one call for the session.
type widerGrant struct {
	Key   string       `json:"key"` // tool and argument hash
	Bound policy.Bound `json:"bound"`

	ID   belay.EventID `json:"id,omitempty"` // the fact that gave it
	Tool string        `json:"tool,omitempty"`
	By   string        `json:"by,omitempty"`

	Exactly belay.Digest           `json:"exactly,omitempty"` // the call, which it allows too; empty: given by an older build, which asked for that
	Dialect policy.Dialect         `json:"dialect,omitempty"`
	Taint   []string               `json:"taint,omitempty"`  // as of a grant
	Stands  *belay.ApprovalContext `json:"stands,omitempty"` // what it was given for besides the arguments
}

// wish is the boundary that a call's arguments ask for.
func wish(spec belay.ToolSpec, args []byte) (w policy.RequestedBoundary) {
	if spec.Command == nil || spec.Command.Boundary == "" {
		return w
	}
	var in map[string]json.RawMessage
	if json.Unmarshal(args, &in) != nil {
		return w
	}
	_ = json.Unmarshal(in[spec.Command.Boundary], &w.Boundary) // another type asks for nothing
	_ = json.Unmarshal(in[spec.Command.Reason], &w.Reason)
	w.Reason = event.CutText(w.Reason, maxTarget)
	return w
}

// widerFor is the grant of a wider boundary to exactly this call.
func (g *gateState) widerFor(c *Call) *widerGrant {
	key := c.key()
	return find(g.Wider, func(w *widerGrant) bool { return w.Key == key })
}

// given is the boundary that a person gave exactly this call.
func (g *gateState) given(c *Call) *policy.Bound {
	if c.Again != nil { // it was given to another one
		return nil
	}
	if w := g.widerFor(c); w != nil {
		return &w.Bound
	}
	return nil
}

// violated folds that a boundary stopped something of a call.
func (c *Call) violated(p event.SandboxViolation) {
	name := p.Boundary
	if c.Bound != nil {
		name = c.Bound.Name
	}
	c.Stopped = &event.Stopped{Boundary: name, Layer: p.Layer, Op: p.Op, Target: p.Target}
}

// blocked folds that an attempt ended by that.
func (c *Call) blocked(p event.ToolFailed) {
	c.Phase = CallRan
	c.Blocked = &blocked{Problem: p.Problem, Output: p.Output, Whole: p.Whole}
	if c.Stopped == nil { // nobody could say what it was
		c.Stopped = &event.Stopped{Layer: "unknown"}
	}
}

// violationKey names a violation: what is alike has one answer.
func (c *Call) violationKey() string { return c.Name + " " + c.Stopped.Op + " " + c.Stopped.Target }

func (t *Turn) barred(key string) *Violation {
	return find(t.Stops, func(b *Violation) bool { return b.Key == key })
}

// escalate decides what comes of an attempt that a boundary stopped: a wider
// boundary that a person is asked for, the answer that another call like it got,
// or the end. Nothing is run again before that is on record.
func (d *decision) escalate(c *Call) {
	v := d.decideEscalation(c)
	if v.Decision == "" {
		return // another call asks the same
	}
	d.record(core.Fact{IDs: d.callIDs(c), Data: d.recorded(c, &v)})
	if v.Decision == policy.Ask {
		d.askPermission(c, &v, event.ActionRequired{Stopped: c.Stopped})
	}
}

// decideEscalation is the decision about one violation. No decision means that a question
// about one like it is open.
func (d *decision) decideEscalation(c *Call) policy.Verdict {
	v := policy.Verdict{Decision: policy.Deny, Source: "rule", Rule: "builtin/escalation", Tier: policy.TierDefault, ReasonCode: CodeViolation, BoundBy: "violation", MinLevel: c.Least}
	what := describe(c.Stopped)
	wider, why := policy.Bound{}, "no boundary was decided for it"
	if c.Bound != nil {
		wider, why = policy.Widen(*c.Bound, c.Stopped.Op, c.Stopped.Target, d.rules.Workspace)
		v.Boundary = c.Bound.Name
	}
	known := d.Turn.barred(c.violationKey())
	switch {
	case why != "":
		v.Reason = what + "; " + why
	case c.Widened >= maxWidened:
		v.Reason = what + "; its boundary was widened often enough"
	case known != nil && known.Decision == "":
		return policy.Verdict{}
	case known != nil:
		v.Source, v.ReasonCode, v.Reason = "person", "ANSWERED", cmp.Or(known.By, "a person")+" answered the same question before"
		if known.Decision == "allow" {
			v.Decision = policy.Allow
		} else if v.Reason += " with no"; known.Message != "" {
			v.Reason += ": " + known.Message
		}
	case d.rules.Settings.Mode == belay.ModePlan:
		v.Reason, v.Hint = what+"; mode plan only reads", "run with --mode on_failure"
	case d.rules.Settings.Mode == belay.ModeNever:
		v.Source, v.Rule, v.ReasonCode = "mode", "builtin/never-asks", "MODE_NEVER_ASKS"
		v.Reason, v.Hint = what+"; mode never asks nobody for a wider one", "run with --mode on_failure"
	case d.rules.Settings.Mode == belay.ModeOnRequest && c.Stopped.Op != policy.OpObeyed: // no boundary that it can ask for lets that stay
		v.Reason, v.Hint = what, "do without it; if it must be, repeat the call and ask for a wider boundary, with the reason"
	case d.rules.headless():
		v.Source, v.ReasonCode = "headless", "NO_PERSON"
		v.Reason, v.Hint = what+"; boundary "+wider.Name+" would be asked for, and no person can be asked", "give it beforehand: a boundary of your own in policy.yaml, or --boundary full with --allow "+c.Name+"; or wait for an answer: --approvals=wait"
		if c.Stopped.Op == policy.OpObeyed {
			v.Hint = "do without it; a person can put it back from where it was moved, or wait for an answer: --approvals=wait"
		}
	default:
		v.Decision, v.Reason = policy.Ask, what+"; boundary "+wider.Name+" would let it pass"
		if c.Stopped.Op == policy.OpObeyed {
			v.Reason = what + "; a yes runs it again and lets it leave that"
		}
	}
	if v.Decision != policy.Deny {
		v.Bound, v.Boundary = &wider, wider.Name
	}
	return v
}

// describe says what a boundary stopped.
func describe(p *event.Stopped) string {
	said := "boundary " + cmp.Or(p.Boundary, "of the call") + " stopped "
	switch {
	case p.Op == policy.OpObeyed:
		return "it left " + p.Target + ", which another program runs or obeys, and that was moved aside"
	case p.Op == "" && p.Target == "":
		return said + "it"
	case p.Target == "":
		return said + "it: " + p.Op
	}
	return said + "it: " + cmp.Or(p.Op, "access to") + " " + p.Target
}

// decided folds what was decided about an attempt that a boundary stopped.
func (c *Call) decided(p event.PermissionEvaluated) {
	if c.Ask != nil && c.Ask.Open && c.Ask.Kind == "permission" { // other rules say another one while the question stands
		c.Ask.bounded(p.Boundary, p.Bounds)
	}
	if c.bounded(p); c.Phase == CallRan && p.Decision == string(policy.Allow) {
		c.Phase, c.Blocked = CallJudged, nil
		c.Widened++
	}
}

// bounded folds the boundary that a decision gives a call.
func (c *Call) bounded(p event.PermissionEvaluated) {
	if p.Bounds == nil || c.Phase == CallRan && p.Decision != string(policy.Allow) {
		return
	}
	c.Bound, c.Least = &policy.Bound{Name: p.Boundary, Is: *p.Bounds}, belay.Level(p.Least)
}

// askedWider folds the question about a wider boundary.
func (t *Turn) askedWider(c *Call, a *Ask, p event.ActionRequired) {
	if p.Stopped == nil || p.Bounds == nil {
		return
	}
	a.Wider = &policy.Bound{Name: p.Boundary, Is: *p.Bounds}
	t.Stops = keep(append(t.Stops, Violation{Key: c.violationKey(), Action: a.Action}), maxBarred)
}

// answeredWider folds the answer to it.
func (t *Turn) answeredWider(c *Call, a *Ask, p event.ActionResolved) {
	if a.Wider == nil {
		return
	}
	if b := find(t.Stops, func(b *Violation) bool { return b.Action == a.Action }); b != nil {
		b.Decision, b.By, b.Message = p.Decision, p.By, event.CutText(p.Message.Text, maxTarget)
		if p.By == "deadline" {
			b.By = "nobody, in time,"
		}
	}
	if p.Decision == "allow" {
		c.Bound, c.Phase, c.Blocked = a.Wider, CallJudged, nil
		c.Widened++
	}
}

// denyViolation is the end of a call that its boundary stopped, with what it said. It is
// a denial with a name, never a failure of the tool.
func (s *State) denyViolation(c *Call) core.Fact {
	f := s.failed(c, event.Problem{Class: "denied", Code: CodeViolation, Message: "not allowed: " + c.Reason, Hint: cmp.Or(c.Hint, c.Blocked.Problem.Hint)})
	p := f.Data.(event.ToolFailed)
	p.Output, p.Whole = c.Blocked.Output, c.Blocked.Whole
	f.Data = p
	return f
}

// wider folds such a grant.
func (gs *gateState) wider(id belay.EventID, p event.PolicyChanged) {
	g := widerGrant{Key: p.Tool + " " + string(p.ArgsHash), Bound: policy.Bound{Name: p.Boundary, Is: *p.Bounds}, ID: id, Tool: p.Tool, By: p.By, Exactly: p.Bound, Dialect: policy.Dialect(p.Dialect), Taint: p.Taint, Stands: p.Stands}
	gs.Wider = slices.DeleteFunc(gs.Wider, func(o widerGrant) bool { return o.Key == g.Key })
	gs.Wider = keep(append(gs.Wider, g), maxWider)
}
