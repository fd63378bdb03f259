package policies

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/config/rulefile"
	"github.com/belay-run/belay/internal/core/simulate"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/store"
)

// Replay judges recorded decisions by other rules. Each that changes goes to changed.
func Replay(ctx context.Context, all Decisions, gates *Gates, changed func(*simulate.Change)) (*simulate.Tally, error) {
	var t simulate.Tally
	err := all.judged(ctx, gates, func(k *simulate.Case, set *policy.Set) {
		if ch := t.Take(k, set); ch != nil {
			changed(ch)
		}
	})
	return &t, err
}

// judged hands on every decision with the rules of its workspace.
func (all Decisions) judged(ctx context.Context, gates *Gates, take func(*simulate.Case, *policy.Set)) error {
	return all(ctx, func(k *simulate.Case) error {
		set, err := gates.Of(ctx, k.Request.Workspace)
		if err == nil {
			take(k, set)
		}
		return err
	})
}

// Suggest makes at most most rules for what is asked about most under the rules that
// count now; each spares at least least questions.
func Suggest(ctx context.Context, all Decisions, gates *Gates, workspace string, least, most int) (*simulate.AskStats, []*simulate.Suggestion, error) {
	var asks simulate.AskStats
	if err := all.judged(ctx, gates, asks.Take); err != nil {
		return nil, nil, err
	}
	base, err := gates.Of(ctx, workspace)
	if err != nil {
		return nil, nil, err
	}
	rules := asks.Suggest(base, least, most)
	err = all.judged(ctx, gates, func(k *simulate.Case, set *policy.Set) {
		for _, s := range rules {
			s.Take(k, set)
		}
	})
	return &asks, simulate.Sound(rules, least, most), err
}

// Recorded selects the recorded decisions that a command is about.
type Recorded struct {
	Session   belay.SessionID `json:"sessionId,omitempty" jsonschema:"those of this session"`
	Workspace string          `json:"workspace,omitempty" jsonschema:"those of the sessions in this folder; of all sessions without it and without sessionId"`
	Last      int64           `json:"last,omitempty" jsonschema:"only the newest so many; all when it is left out"`
	UpTo      int64           `json:"upTo,omitempty" jsonschema:"only those up to a position"`
	app.AsOf
}

// decisions are those that were selected, and the workspace that is meant.
func (in *Recorded) decisions(ctx context.Context, c *app.Call) (Decisions, string, error) {
	if in.Session != "" && in.Workspace != "" {
		return nil, "", input.At("workspace", belay.Errorf(belay.CodeBadCommand, "the session says which folder").WithHint("leave one of the two out"))
	}
	if in.Last < 0 || in.UpTo < 0 {
		return nil, "", input.At("last", belay.Errorf(belay.CodeBadCommand, "last and upTo aren't below zero").WithHint("leave both out for all decisions"))
	}
	of := Range{Session: in.Session, Last: int(in.Last), UpTo: store.Position(in.UpTo)}
	if in.Session != "" {
		s, err := c.Known(ctx, in.Session)
		if err != nil {
			return nil, "", err
		}
		all, err := DecisionsOf(ctx, c, of)
		return all, s.Workspace, err
	}
	ws, err := c.Workspaces.Workspace(ctx, in.Workspace)
	if err != nil {
		return nil, "", input.At("workspace", err)
	}
	if in.Workspace != "" {
		of.Workspace = ws
	}
	all, err := DecisionsOf(ctx, c, of)
	return all, ws, err
}

// ReplayPolicy is what replay_policy takes.
type ReplayPolicy struct {
	Recorded
	Rules string      `json:"rules" jsonschema:"a file of rules, as text, in place of those of a tier"`
	As    policy.Tier `json:"as,omitempty" jsonschema:"which tier: user, workspace, admin; user when it is left out"`
	Add   bool        `json:"add,omitempty" jsonschema:"beside the files of that tier, not in their place"`
}

// PolicyReplayed is what other rules would have made of recorded decisions.
type PolicyReplayed struct {
	app.Fresh
	Decisions int                `json:"decisions"`
	Same      int                `json:"same"`      // same decision by the same rule
	OtherRule int                `json:"otherRule"` // same decision by another rule
	Changed   int                `json:"changed"`
	Lost      map[string]int     `json:"lost,omitempty"` // not judged again, by reason
	Rows      []simulate.Counted `json:"rows"`           // changes that have tool, decisions and rules in common
	Changes   []DecisionChanged  `json:"changes"`        // the first of them
	More      int                `json:"more,omitempty"` // changes that aren't listed
	Digest    belay.Digest       `json:"digest"`         // of the rehearsal: save_rule takes it
}

// DecisionChanged is a recorded decision that other rules would make differently.
type DecisionChanged struct {
	Session belay.SessionID `json:"sessionId"`
	Call    belay.CallID    `json:"callId"`
	Event   belay.EventID   `json:"eventId"`
	simulate.Row
	Cause string `json:"cause"` // rules, or build: this build reads the call otherwise
	What  string `json:"what"`  // the call in a few words
}

// maxChanges bounds the changes that an answer lists.
const maxChanges = 1000

func replayPolicy(ctx context.Context, c *app.Call, f app.Fresh, in *ReplayPolicy) (*PolicyReplayed, error) {
	return rehearse(ctx, c, f, in, func(belay.EventID) {})
}

// rehearse judges recorded calls, and tells of each that would be decided otherwise. What
// decided it goes into its digest: the rules, those that count without them, the calls and
// what became of each.
func rehearse(ctx context.Context, c *app.Call, f app.Fresh, in *ReplayPolicy, tell func(belay.EventID)) (*PolicyReplayed, error) {
	if in.As == "" {
		in.As = policy.TierUser
	}
	if !slices.Contains([]policy.Tier{policy.TierUser, policy.TierWorkspace, policy.TierAdmin}, in.As) {
		return nil, input.At("as", belay.Errorf(belay.CodeBadCommand, "%q is none of user, workspace, admin", input.Shown(string(in.As))).WithHint("leave it out for the rules of the user"))
	}
	if err := input.Text("rules", in.Rules, rulefile.MaxBytes); err != nil {
		return nil, err
	}
	if in.UpTo == 0 {
		in.UpTo = int64(f.Position)
	}
	all, ws, err := in.decisions(ctx, c)
	if err != nil {
		return nil, err
	}
	gates := NewGates(c, rulefile.Instead{Tier: in.As, Beside: in.Add, Files: []rulefile.File{{Path: "rules", Content: []byte(in.Rules)}}})
	if _, err := gates.Of(ctx, ws); err != nil { // rules that can't be read are said before anything else is done
		return nil, input.At("rules", err)
	}
	base, err := NewGates(c, rulefile.Instead{}).Of(ctx, ws)
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %s %t %s %d\n", in.Rules, in.As, in.Add, base.Digest(), in.Last)
	out := &PolicyReplayed{Fresh: f, Changes: []DecisionChanged{}}
	t, err := Replay(ctx, all, gates, func(ch *simulate.Change) {
		fmt.Fprintf(sum, "%s %s %s\n", ch.Case.Event, ch.Old, ch.New)
		tell(ch.Case.Event)
		if len(out.Changes) == maxChanges {
			out.More++
			return
		}
		k := ch.Case
		out.Changes = append(out.Changes, DecisionChanged{Session: k.IDs.Session, Call: k.IDs.Call, Event: k.Event, Row: ch.Row, Cause: ch.Cause, What: simulate.About(k.Request)})
	})
	if err != nil {
		return nil, err
	}
	out.Decisions, out.Same, out.OtherRule, out.Changed, out.Lost, out.Rows = t.Decisions, t.Same, t.OtherRule, t.Changed, t.Lost, t.Rows()
	fmt.Fprintf(sum, "%d %d %d %d\n", t.Decisions, t.Same, t.OtherRule, t.Changed)
	out.Digest = belay.Digest("sha256:" + hex.EncodeToString(sum.Sum(nil)))
	return out, nil
}

// SuggestRules is what suggest_rules takes.
type SuggestRules struct {
	Recorded
	Least int64 `json:"least,omitempty" jsonschema:"only rules that spare at least so many questions; 3"`
	Most  int64 `json:"most,omitempty" jsonschema:"at most so many rules; 5"`
}

// RulesSuggested are rules for what is asked about most.
type RulesSuggested struct {
	app.Fresh
	Decisions int             `json:"decisions"`
	Asked     int             `json:"asked"`           // of these, by the rules that count now
	Lost      int             `json:"lost,omitempty"`  // that can't be judged again
	Unfit     map[string]int  `json:"unfit,omitempty"` // asks for which nothing is suggested, by reason
	Rules     []RuleSuggested `json:"rules"`           // the most useful first
}

// RuleSuggested is a rule that would have spared questions, and all that it speaks of.
type RuleSuggested struct {
	Text     string   `json:"rule"`     // for the list of a file's rules
	Spared   int      `json:"spared"`   // calls that are asked about, and would be allowed
	Matched  int      `json:"matched"`  // calls that it speaks of
	Allowed  int      `json:"allowed"`  // of these, allowed already
	Asked    int      `json:"asked"`    // of these, still asked about
	Denied   int      `json:"denied"`   // of these, denied as before
	Sessions int      `json:"sessions"` // with calls that it speaks of
	Seen     []string `json:"seen"`     // different commands or files of them, at most ten
	More     int      `json:"more"`     // different ones besides
}

func suggestRules(ctx context.Context, c *app.Call, f app.Fresh, in *SuggestRules) (*RulesSuggested, error) {
	if in.Least == 0 {
		in.Least = 3
	}
	if in.Most == 0 {
		in.Most = 5
	}
	if in.Least < 1 || in.Most < 1 || in.Most > 100 {
		return nil, input.At("most", belay.Errorf(belay.CodeBadCommand, "least is at least 1, and most from 1 to 100").WithHint("leave both out"))
	}
	all, ws, err := in.decisions(ctx, c)
	if err != nil {
		return nil, err
	}
	asks, rules, err := Suggest(ctx, all, NewGates(c, rulefile.Instead{}), ws, int(in.Least), int(in.Most))
	if err != nil {
		return nil, err
	}
	out := &RulesSuggested{Fresh: f, Decisions: asks.Decisions, Asked: asks.Asked, Lost: asks.Lost, Unfit: asks.Unfit, Rules: []RuleSuggested{}}
	for _, s := range rules {
		out.Rules = append(out.Rules, RuleSuggested{rulefile.WriteRules([]policy.Rule{s.Rule}), s.Spared, s.Matched, s.Allowed, s.Asked, s.Denied, s.Sessions, slices.Concat([]string{}, s.Seen), s.More})
	}
	return out, nil
}
