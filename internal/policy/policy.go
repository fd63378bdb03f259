// Package policy decides whether a call may run. It is pure: rules and a
// request go in, a verdict comes out, and the same input always gives the same
// verdict. It knows nothing of sessions, files or the person who is asked.
//
// A matching deny beats a matching ask, which beats a matching allow, whatever
// tier they come from. Only the mode's fallback, which speaks when no rule
// matched, gives way to any of them.
package policy

import (
	"path"
	"strings"

	"github.com/belay-run/belay"
)

// Decision is what a rule or the gate says.
type Decision string

const (
	Allow Decision = "allow"
	Ask   Decision = "ask"
	Deny  Decision = "deny"
)

// Join is the stricter of two decisions; the empty decision is neutral.
func Join(a, b Decision) Decision {
	if rank(a) >= rank(b) {
		return a
	}
	return b
}

func rank(d Decision) int {
	switch d {
	case Allow:
		return 1
	case Ask:
		return 2
	case Deny:
		return 3
	}
	return 0
}

// Tiers, from the weakest to the strongest voice in an explanation.
const (
	TierDefault   = "default"
	TierAgent     = "agent"
	TierWorkspace = "workspace"
	TierUser      = "user"
	TierAdmin     = "admin"
)

// Request is a call as the gate sees it.
type Request struct {
	Tool     belay.ToolSpec
	Paths    []string // the files it touches, as the call names them; none when it names none
	Mode     belay.Mode
	Grants   []Grant
	Headless bool // nobody can be asked
	Rerun    bool // the same call was lost before: its first outcome is unknown
	Use      belay.WorkspaceUse
}

// Grant is an allow rule that a person gave.
type Grant struct {
	Tool string `json:"tool"`
	Tier string `json:"tier"`
	Kind string `json:"kind"` // rule: given beforehand; answer: given when a call asked
	By   string `json:"by,omitempty"`
}

// Verdict is the gate's answer with everything needed to explain it.
type Verdict struct {
	Decision   Decision
	Source     string // rule, grant, mode, headless
	Rule       string
	Tier       string
	ReasonCode string
	Reason     string
	Hint       string // what would change the verdict
}

// rule is a built-in: the first whose match holds in its mode speaks.
type rule struct {
	id       string
	decision Decision
	code     string
	reason   string
	fallback bool // speaks only when nothing else does
	match    func(Request) bool
}

// Evaluate is the gate. Every call gets exactly one verdict.
func Evaluate(r Request) Verdict {
	if r.Use.Use == belay.UseReader && changes(r) {
		return reader(r.Use)
	}
	v := join(r)
	if v.Decision != Ask {
		return v
	}
	switch {
	case r.Mode == belay.ModeNever:
		return Verdict{Deny, "mode", "builtin/never-asks", TierDefault, "MODE_NEVER_ASKS",
			"mode never denies what would ask (" + v.Reason + ")", "run with --mode default, or allow it: --allow " + r.Tool.Name}
	case r.Headless:
		return Verdict{Deny, "headless", v.Rule, v.Tier, "NO_PERSON",
			"this would ask (" + v.Reason + "), and no person can be asked", "allow it beforehand: --allow " + r.Tool.Name + ", or wait for an answer: --approvals=wait"}
	}
	return v
}

// reader is the verdict on a change while another session writes in the
// workspace. No grant reaches it: nobody who gave one knew of the other.
func reader(u belay.WorkspaceUse) Verdict {
	return Verdict{Deny, "rule", "builtin/one-writer", TierDefault, "OTHER_WRITER",
		"session " + string(u.Writer) + " writes in " + u.Path + ", so this one only reads",
		"go on reading; to write: --share, a session of its own with --worktree, or wait until " + string(u.Writer) + " has ended"}
}

// join collects what the rules of the mode and the grants say.
func join(r Request) Verdict {
	var won, fallback *rule
	for i := range builtin[r.Mode] {
		b := &builtin[r.Mode][i]
		if !b.match(r) {
			continue
		}
		if b.fallback {
			if fallback == nil {
				fallback = b
			}
			continue
		}
		if won == nil || rank(b.decision) > rank(won.decision) {
			won = b
		}
	}
	grant, granted := find(r)
	switch {
	case won != nil && (won.decision != Allow || !granted):
		return verdict(*won)
	case granted:
		code := "GRANTED"
		if r.Rerun {
			code = "LOST_RERUN_GRANTED"
		}
		return Verdict{Allow, "grant", "grant/" + grant.Tool, grant.Tier, code, "allowed for this session by " + orUser(grant.By), ""}
	case won != nil:
		return verdict(*won)
	case fallback != nil:
		return verdict(*fallback)
	}
	// Law: no policy, no run. An unknown mode has no rules.
	return Verdict{Deny, "mode", "builtin/no-rules", TierDefault, "NO_POLICY", "no rules are loaded for mode " + string(r.Mode), "use one of the modes that belay run --help lists"}
}

func verdict(b rule) Verdict {
	return Verdict{b.decision, "rule", "builtin/" + b.id, TierDefault, b.code, b.reason, ""}
}

// find is the grant that covers the call. A call that was lost runs again only
// by a rule: what was answered for another call doesn't count.
func find(r Request) (Grant, bool) {
	for _, g := range r.Grants {
		if g.Tool == r.Tool.Name && (!r.Rerun || g.Kind == "rule") {
			return g, true
		}
	}
	return Grant{}, false
}

func orUser(by string) string {
	if by == "" {
		return "the user"
	}
	return by
}

// Inside tells whether a path, read as text, stays below the workspace. The
// file tools hold it against the file system; the gate only needs to know what
// the call asks for.
func Inside(p string) bool {
	if p == "" || strings.HasPrefix(p, "/") || strings.ContainsRune(p, 0) {
		return false
	}
	c := path.Clean(p)
	return c != ".." && !strings.HasPrefix(c, "../")
}
