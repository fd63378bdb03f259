package snapshot

import (
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// PermissionState is how far the session may go without asking, and what the gate said.
type PermissionState struct {
	Mode       belay.Mode      `json:"mode,omitempty"`
	Approvals  belay.Approvals `json:"approvals,omitempty"`
	Grants     []Grant         `json:"grants"` // that were neither taken back nor used up, the oldest first
	Pending    int             `json:"pendingApprovals"`
	Allowed    int             `json:"allowed"` // verdicts of the gate
	Asked      int             `json:"asked"`
	Denied     int             `json:"denied"`
	Recent     []Verdict       `json:"recent"`           // the newest that asked or denied, the last one last
	Violated   int             `json:"violated"`         // how often a boundary stopped something
	Violations []Violation     `json:"violations"`       // the newest, the last one last
	Policy     *belay.Ref      `json:"policy,omitempty"` // the rules that were loaded last
}

// Grant is something that may be done without asking.
type Grant struct {
	GrantID  belay.EventID  `json:"grantId"`
	ThreadID belay.ThreadID `json:"threadId,omitempty"` // where it counts; the whole session when it is left out
	Tool     string         `json:"tool"`
	Scope    string         `json:"scope,omitempty"`
	Prefix   string         `json:"prefix,omitempty"`
	Boundary string         `json:"boundary,omitempty"`
	Count    int            `json:"count,omitempty"` // of calls that it covers; left out: it counts none
	Used     int            `json:"used,omitempty"`  // verdicts that it gave
	Until    time.Time      `json:"until,omitzero"`  // from then on it covers none
	By       string         `json:"by,omitempty"`
}

// Verdict is what the gate said of a call.
type Verdict struct {
	ThreadID belay.ThreadID `json:"threadId"`
	CallID   belay.CallID   `json:"toolCallId,omitempty"`
	Tool     string         `json:"tool"`
	Decision string         `json:"decision"` // ask, deny
	Source   string         `json:"source"`
	Rule     string         `json:"rule,omitempty"`
	Code     string         `json:"reasonCode,omitempty"`
	Resolved string         `json:"resolved,omitempty"` // allow, deny: the outcome of a question
	By       string         `json:"resolvedBy,omitempty"`
	At       time.Time      `json:"at"`
}

// Violation is something that a boundary stopped.
type Violation struct {
	EventID  belay.EventID  `json:"eventId"`
	ThreadID belay.ThreadID `json:"threadId"`
	CallID   belay.CallID   `json:"toolCallId,omitempty"`
	Layer    string         `json:"layer"`
	Op       string         `json:"op,omitempty"`
	Target   string         `json:"target,omitempty"`
	Boundary string         `json:"boundary,omitempty"`
	Reason   string         `json:"reason,omitempty"`
	At       time.Time      `json:"at"`
}

// SandboxState is the boundary that the last call got.
type SandboxState struct {
	Status   string            `json:"status"` // applied, unknown
	Level    string            `json:"level,omitempty"`
	Boundary string            `json:"boundary,omitempty"`
	Network  string            `json:"network,omitempty"`
	Layers   map[string]string `json:"layers,omitempty"`
	Reason   string            `json:"reason,omitempty"`
	CallID   belay.CallID      `json:"toolCallId,omitempty"`
	At       time.Time         `json:"at,omitzero"`
}

// Bounds of what is shown; the rest is counted.
const (
	maxGrants     = 256 // of a session; a thread has 128 at most
	maxVerdicts   = 50
	maxViolations = 50
)

// permission folds verdicts, grants and boundaries.
func (f *Fold) permission(e event.Envelope) {
	s := &f.s.Permission
	switch p := e.Data.(type) {
	case event.PermissionEvaluated:
		s.judged(e, p)
	case event.PermissionResolved:
		for i := len(s.Recent) - 1; i >= 0; i-- {
			if v := &s.Recent[i]; v.CallID == e.IDs.Call && v.ThreadID == e.IDs.Thread && v.Decision == "ask" {
				v.Resolved, v.By = p.Decision, p.By
				break
			}
		}
	case event.PolicyChanged:
		s.changed(e, p)
	case event.SandboxApplied:
		f.s.Sandbox = SandboxState{"applied", p.Level, p.Boundary, p.Network, p.Layers, cut(p.Why), e.IDs.Call, e.Time}
	case event.SandboxViolation:
		s.Violated++
		s.Violations = last(append(s.Violations, Violation{e.ID(), e.IDs.Thread, e.IDs.Call, p.Layer, p.Op, cut(p.Target), p.Boundary, cut(p.Reason), e.Time}), maxViolations)
	}
}

// judged counts a verdict, and keeps one that isn't simply allowed.
func (s *PermissionState) judged(e event.Envelope, p event.PermissionEvaluated) {
	switch p.Decision {
	case "allow":
		s.Allowed++
		if i := slices.IndexFunc(s.Grants, func(g Grant) bool { return p.Grant != "" && g.GrantID == p.Grant }); i >= 0 {
			s.Grants[i].Used++
		}
		return
	case "ask":
		s.Asked++
	case "deny":
		s.Denied++
	}
	s.Recent = slices.Clone(last(append(s.Recent, Verdict{ThreadID: e.IDs.Thread, CallID: e.IDs.Call, Tool: p.Tool, Decision: p.Decision, Source: p.Source,
		Rule: p.Rule, Code: p.ReasonCode, At: e.Time}), maxVerdicts))
}

// changed folds what people allowed, and took back.
func (s *PermissionState) changed(e event.Envelope, p event.PolicyChanged) {
	switch {
	case p.Kind == "rules" && p.Op == "loaded":
		s.Policy = p.Digest
	case p.Kind != "grant", p.Op == "granted" && p.Grant != "": // a copy for another thread
	case p.Op == "granted":
		s.Grants = slices.Clone(last(append(s.Grants, Grant{GrantID: e.ID(), ThreadID: e.IDs.Thread, Tool: p.Tool, Scope: p.Scope, Prefix: cut(p.Prefix), Boundary: p.Boundary,
			Count: p.Count, Until: p.Until, By: p.By}), maxGrants))
	case p.Op == "revoked", p.Op == "used_up":
		s.Grants = slices.DeleteFunc(s.Grants, func(g Grant) bool { return g.GrantID == p.Grant })
	}
}
