package policy

import (
	"fmt"
	"slices"
	"strings"
)

// Kinds of taint that have a meaning of their own.
const (
	TaintWorkspace = "workspace" // files of an untrusted workspace: counts only together with a secret
	TaintSecret    = "secret"    // no content from outside, but a secret was read

	TaintMCP = "mcp" // of the server that is the origin
	TaintWeb = "web" // of the host that is the origin
)

// Taint is the origin of untrusted content in a thread.
type Taint struct {
	Kind   string `json:"kind"`   // web, mcp, message, tool, child, memory, import, workspace; secret: a secret was read
	Origin string `json:"origin"` // a host, a tool, a folder
	Seq    int64  `json:"seq"`    // the fact that brought it
}

// MaxOrigin bounds an origin of taint, in bytes. A longer one is cut: of whom that is
// can't be told for sure.
const MaxOrigin = 64

// tainted reports whether content from outside is in a thread.
func tainted(taint []Taint) bool { return slices.ContainsFunc(taint, Taint.fromOutside) }

func (t Taint) fromOutside() bool { return t.Kind != TaintWorkspace && t.Kind != TaintSecret }

// untrustedWorkspace reports whether a thread contains files of an untrusted workspace.
// They count for secrets only.
func untrustedWorkspace(taint []Taint) bool {
	return slices.ContainsFunc(taint, func(t Taint) bool { return t.Kind == TaintWorkspace })
}

// mayLeakSecret reports whether a thread has outside content and a secret: what it sends
// out could be that secret, on behalf of the content's author.
func mayLeakSecret(taint []Taint) bool {
	secret := slices.ContainsFunc(taint, func(t Taint) bool { return t.Kind == TaintSecret })
	return secret && slices.ContainsFunc(taint, func(t Taint) bool { return t.Kind != TaintSecret })
}

// Codes of the built-in rules about taint.
const (
	codeEgress = "TAINTED_EGRESS"
	codeSecret = "TAINTED_SECRET"
	codeLeak   = "TAINTED_LEAK"
)

// inConversation is where the reasons of these rules have room for what it is.
const inConversation = "in the conversation"

// TagTaint marks verdicts that taint is the reason of.
const TagTaint = "taint"

// explainTaint says of a verdict that taint is the reason of what the conversation has
// from outside, whence, and what helps. A rule or grant that doesn't count because of it
// makes it the reason too.
func (s *Set) explainTaint(v *Verdict, r *Request) {
	relevant := func(t Taint) bool { return true }
	switch v.ReasonCode {
	case codeSecret, codeLeak:
	case codeEgress:
		relevant = Taint.fromOutside
	default:
		clean := *r
		clean.Taint = nil
		if rank(s.settled(&clean).Decision) >= rank(v.Decision) {
			return
		}
		v.Reason += "; what would allow it doesn't count, because untrusted content is " + inConversation
		v.Tags = union(v.Tags, []string{TagTaint})
	}
	v.Reason = strings.Replace(v.Reason, inConversation, inConversation+" ("+taintNames(r.Taint, relevant)+")", 1)
	v.ways = "trust what was read: t in the chat, or belay approve ID --clear-taint"
	if v.ReasonCode == codeSecret && !tainted(r.Taint) {
		v.ways += "; or trust the folder: trusted: in your policy.yaml"
	}
	if v.ReasonCode != codeLeak {
		v.ways += "; or allow such calls by a rule with taint: docs/policy.md"
	}
	if r.Tool.Server != "" && r.Tool.Bounds != nil && Changes(r.Tool) {
		v.ways += "; or believe what server " + r.Tool.Server + " says of its tools, if this one only reads: trust-hints: true"
	}
	if v.Decision == Ask {
		v.Hint = strings.TrimPrefix(v.Hint+"; "+v.ways, "; ")
	}
}

// mostTaint is how many origins a reason names.
const mostTaint = 6

// taintNames are origins as kind:origin, the last ones first.
func taintNames(taint []Taint, relevant func(Taint) bool) string {
	var names []string
	for _, t := range slices.Backward(taint) {
		if relevant(t) {
			names = append(names, t.Kind+":"+t.Origin)
		}
	}
	if more := len(names) - mostTaint; more > 0 {
		names = append(names[:mostTaint], fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}
