package policies

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/app/read"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/config/rulefile"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view"
)

// ListRules is what list_rules takes.
type ListRules struct {
	Workspace string    `json:"workspace,omitempty" jsonschema:"the folder; the server's own when it is left out"`
	Since     time.Time `json:"since,omitzero" jsonschema:"from when on decided calls count; 30 days when it is left out"`
	app.AsOf
}

// RulesListed are the rules that count now.
type RulesListed struct {
	app.Fresh
	Since time.Time    `json:"since"` // from when on hits are counted
	Rules []RuleListed `json:"rules"` // those of the strongest tier first, then by priority
}

// RuleListed is a rule, and the calls that it decided.
type RuleListed struct {
	Rule     string          `json:"rule"` // tier/id, as decisions name it
	Tier     policy.Tier     `json:"tier"`
	Priority int             `json:"priority"`
	Verdict  policy.Decision `json:"verdict"`
	Reason   string          `json:"reason,omitempty"`
	Where    string          `json:"where,omitempty"` // file:line:column; left out: it is built in
	Text     string          `json:"text"`            // as a file has it
	Hits     view.Hits       `json:"hits"`
}

// defaultSince is how far back hits are counted.
const defaultSince = 30 * 24 * time.Hour

func listRules(ctx context.Context, c *app.Call, f app.Fresh, in *ListRules) (*RulesListed, error) {
	ws, err := c.Workspaces.Workspace(ctx, in.Workspace)
	if err != nil {
		return nil, input.At("workspace", err)
	}
	set, err := NewGates(c, rulefile.Instead{}).Of(ctx, ws)
	if err != nil {
		return nil, err
	}
	out := &RulesListed{Fresh: f, Since: in.Since, Rules: []RuleListed{}}
	if out.Since.IsZero() {
		out.Since = c.Now().Add(-defaultSince).UTC()
	}
	if out.Stale, err = c.Reads.Summed(ctx, f); err != nil {
		return nil, err
	}
	hits := map[string]view.Hits{}
	if err := view.Hours(ctx, c.Store, out.Since, c.Now().Add(time.Hour), func(h *view.Hour) {
		for rule, n := range h.Rules {
			hits[rule] = hits[rule].Add(n)
		}
	}); err != nil {
		return nil, err
	}
	for _, r := range set.Document().Rules {
		name := r.Name()
		out.Rules = append(out.Rules, RuleListed{name, cmp.Or(r.Tier, policy.TierDefault), r.Priority, r.Verdict, r.Reason, r.Where, rulefile.WriteRules([]policy.Rule{r}), hits[name]})
	}
	slices.SortStableFunc(out.Rules, func(a, b RuleListed) int {
		return cmp.Or(slices.Index(policy.Tiers, b.Tier)-slices.Index(policy.Tiers, a.Tier), b.Priority-a.Priority)
	})
	return out, nil
}

// DecisionsListed is a part of what was decided about calls.
type DecisionsListed struct {
	app.Fresh
	Decisions []view.Verdict `json:"decisions"`
	Next      store.Position `json:"next,omitempty"` // before=NEXT has more; 0: there are none
}

func listDecisions(ctx context.Context, c *app.Call, f app.Fresh, q app.Query) (*DecisionsListed, error) {
	before, limit, err := read.Part(q)
	if err != nil {
		return nil, err
	}
	if f.Stale, err = c.Reads.Summed(ctx, f); err != nil {
		return nil, err
	}
	v := q.Values
	all, next, err := view.Verdicts(ctx, c.Store, before, func(x *view.Verdict) bool {
		is := func(name, have string) bool { return v.Get(name) == "" || v.Get(name) == have }
		return is("sessionId", string(x.Session)) && is("rule", x.Rule) && is("decision", x.Decision)
	}, limit)
	return &DecisionsListed{f, append([]view.Verdict{}, all...), next}, err
}

// SaveRule is what save_rule takes: what replay_policy was asked with add, and what it
// answered.
type SaveRule struct {
	Rules  string       `json:"rules" jsonschema:"a file of one rule, as text"`
	Last   int64        `json:"last,omitempty" jsonschema:"as it was rehearsed"`
	UpTo   int64        `json:"upTo" jsonschema:"position of the rehearsal"`
	Digest belay.Digest `json:"digest" jsonschema:"of the rehearsal"`
}

// RuleSaved is a rule that counts from the next turn on.
type RuleSaved struct {
	Rule    string `json:"rule"`
	Path    string `json:"path"`    // of its file
	Changed int    `json:"changed"` // recorded calls that it would have decided otherwise

	Repeated bool `json:"repeated,omitempty"` // it was saved before
}

// Subject is the rule as records of commands name it.
func (r *RuleSaved) Subject() string { return fmt.Sprintf("rule %s in %s", r.Rule, r.Path) }

func saveRule(ctx context.Context, c *app.Call, in *SaveRule) (*RuleSaved, error) {
	rule, err := one(in.Rules)
	if err != nil {
		return nil, input.At("rules", err)
	}
	fresh, err := c.Fresh(ctx, 0)
	if err != nil {
		return nil, err
	}
	again := func(why string) error {
		return input.At("digest", belay.Errorf(belay.CodeConflict, "%s", why).WithHint("replay_policy with add and without upTo rehearses it; send its digest, last and position as upTo"))
	}
	if in.Digest == "" || in.UpTo <= 0 {
		return nil, again("the rule wasn't rehearsed")
	}
	out := &RuleSaved{Rule: rule.Name()}
	out.Path, out.Repeated, err = c.Workspaces.KeepRules(ctx, rule.ID, []byte(in.Rules), func() error {
		seen := map[belay.EventID]bool{}
		have, err := rehearse(ctx, c, fresh, &ReplayPolicy{Recorded: Recorded{Last: in.Last, UpTo: in.UpTo}, Rules: in.Rules, Add: true}, func(e belay.EventID) { seen[e] = true })
		if err != nil {
			return err
		}
		if out.Changed = have.Changed; have.Digest != in.Digest {
			return again("this isn't what was rehearsed: the text, the other rules or the recorded calls have changed since")
		}
		unseen := 0
		_, err = rehearse(ctx, c, fresh, &ReplayPolicy{Recorded: Recorded{Last: in.Last}, Rules: in.Rules, Add: true}, func(e belay.EventID) {
			if !seen[e] {
				unseen++
			}
		})
		if err == nil && unseen > 0 {
			err = again(fmt.Sprintf("the rehearsal didn't have the newest calls: %d of them would be decided otherwise, too", unseen))
		}
		return err
	})
	if err == nil && !out.Repeated {
		err = config.TrustWriter{Store: c.Store, Owner: store.ThisProcess(), By: c.By.String()}.SavedRule(ctx, out.Path, []byte(in.Rules))
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// one is the rule of a file that has one, and nothing else.
func one(text string) (*policy.Rule, error) {
	l := &rulefile.Layers{}
	if err := l.Add("rules", []byte(text), policy.TierUser, true); err != nil {
		return nil, err
	}
	doc := l.Document(nil)
	doc.Rules = slices.DeleteFunc(doc.Rules, func(r policy.Rule) bool { return r.Where == "" }) // built in
	if len(doc.Rules) != 1 || len(doc.Checkers)+len(doc.Groups)+len(doc.Caps)+len(doc.OwnerOnly)+len(doc.Boundaries)+len(l.Trusted()) > 0 {
		return nil, belay.Errorf(belay.CodeBadPolicy, "a file that is saved so has one rule and nothing else: no checkers, groups, caps, boundaries").WithHint("version: 1, rules: [one rule]; others are written into policy.yaml by hand")
	}
	return &doc.Rules[0], nil
}

// RehearseGrant is what rehearse_grant takes.
type RehearseGrant struct {
	Action belay.ActionID `json:"actionId" jsonschema:"the open question"`
	Scope  string         `json:"scope" jsonschema:"session, prefix, or exact: the same call again"`
	Prefix string         `json:"prefix,omitempty" jsonschema:"of the scope prefix"`
	Last   int64          `json:"last,omitempty" jsonschema:"among the newest so many decisions of all sessions; 200"`
	app.AsOf
}

// GrantRehearsed is what an answer would have spared.
type GrantRehearsed struct {
	app.Fresh
	Decisions int      `json:"decisions"` // that were looked at
	Asked     int      `json:"asked"`     // of these, by their rules
	Covered   int      `json:"covered"`   // of these, questions that it would have answered
	Calls     []string `json:"calls"`     // different ones of them, at most 20
}

const mostCovered = 20

func rehearseGrant(ctx context.Context, c *app.Call, f app.Fresh, in *RehearseGrant) (*GrantRehearsed, error) {
	at, err := view.ActionByID(ctx, c.Store, string(in.Action))
	if err == nil && at.Call == "" {
		err = belay.Errorf(belay.CodeBadState, "the question isn't about a call")
	}
	if err != nil {
		return nil, input.At("actionId", err)
	}
	var asked *Case
	own, err := DecisionsOf(ctx, c, Range{Session: at.Session})
	if err == nil {
		err = own(ctx, func(k *Case) error {
			if k.IDs.Call == at.Call {
				asked = k
			}
			return nil
		})
	}
	if err == nil && (asked == nil || asked.Lost != "") {
		err = belay.Errorf(belay.CodeBadState, "the call can't be judged again")
	}
	if err != nil {
		return nil, input.At("actionId", err)
	}
	grant := policy.Grant{Tool: asked.Request.Tool.Name, Tier: policy.TierUser, Kind: "answer", ID: "rehearsed", Scope: in.Scope, Dialect: asked.Request.Dialect}
	switch in.Scope {
	case "session", "exact":
	case "prefix":
		g, err := policy.Prefixed(asked.Request, in.Prefix)
		if err != nil {
			return nil, input.At("prefix", err)
		}
		grant.Prefix, grant.Worst = g.Prefix, g.Worst
	default:
		return nil, input.At("scope", belay.Errorf(belay.CodeBadCommand, "%q is none of session, prefix, exact", input.Shown(in.Scope)).WithHint("scope: session"))
	}
	recorded, err := DecisionsOf(ctx, c, Range{Last: int(cmp.Or(max(in.Last, 0), 200)), UpTo: f.Position})
	if err != nil {
		return nil, err
	}
	out := &GrantRehearsed{Fresh: f, Calls: []string{}}
	return out, recorded(ctx, func(k *Case) error { out.take(k, asked, grant); return nil })
}

// take looks at a decision.
func (o *GrantRehearsed) take(k, asked *Case, g policy.Grant) {
	o.Decisions++
	if old, _ := k.RecordedDecision(); k.Lost != "" || old != policy.Ask {
		return
	}
	o.Asked++
	r := k.Request
	r.Grants = append(slices.Clone(r.Grants), g)
	covers := g.Scope == "exact" && r.Tool.Name == g.Tool && k.Recorded.ArgsHash == asked.Recorded.ArgsHash ||
		g.Scope != "exact" && policy.Evaluate(k.Gate, &r).Decision == policy.Allow
	if !covers {
		return
	}
	o.Covered++
	if what := strings.TrimSpace(r.Tool.Name + " " + About(k)); len(o.Calls) < mostCovered && !slices.Contains(o.Calls, what) {
		o.Calls = append(o.Calls, what)
	}
}
