package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/config/rulefile"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/policy/simulate"
	"github.com/belay-run/belay/internal/policy/symlinks"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/exec"
	"github.com/belay-run/belay/internal/tool/file"
	"github.com/belay-run/belay/internal/view/explain"
)

type policyExplainCmd struct {
	ID       string       `arg:"" optional:"" help:"A recorded call, or the event of its decision, or the beginning of its id; it is explained by the rules of its day."`
	Now      bool         `help:"Judge the recorded call by the rules that count now."`
	Tool     string       `short:"t" placeholder:"NAME" help:"Without an id: the tool that would be called."`
	Args     string       `placeholder:"JSON" default:"{}" help:"Its arguments, as a JSON object."`
	Mode     string       `default:"default" help:"The mode of the turn."`
	Agent    string       `placeholder:"NAME" help:"Whose turn it is."`
	Allow    []string     `placeholder:"TOOL" sep:"none" help:"As belay run --allow."`
	Taint    []string     `placeholder:"KIND" sep:"none" help:"What taints the conversation: web, mcp, message, tool, …, secret; KIND:ORIGIN names where from."`
	Level    string       `enum:",L0,L1,L2,L3" default:"" help:"How much of a boundary the machine can apply; this one's."`
	Boundary string       `placeholder:"NAME" help:"As belay run --boundary."`
	Alone    bool         `help:"Questions can't be answered."`
	shell    *belay.Shell // that would run it; nil: that of a new session here
	ruleFiles
}

// explained is an explanation, as JSON.
type explained struct {
	Call     belay.CallID               `json:"call,omitempty"`
	Session  belay.SessionID            `json:"session,omitempty"`
	Event    belay.EventID              `json:"event,omitempty"`
	Recorded *event.PermissionEvaluated `json:"recorded,omitempty"`
	Lost     string                     `json:"lost,omitempty"` // why it can't be judged again
	Notes    []string                   `json:"notes,omitempty"`
	*simulate.Explanation
	YAML string `json:"yaml,omitempty"` // the rules of next, as a file
}

func (c *policyExplainCmd) run(ctx context.Context, a *app) (int, error) {
	if (c.ID == "") == (c.Tool == "") {
		return 0, belay.Errorf(belay.CodeUsage, "one call must be named: a recorded one by its id, or one by its tool").
			WithHint(`belay policy explain ID, or --tool exec --args '{"command":"git push"}'`)
	}
	x, err := c.explain(ctx, a)
	if err != nil {
		return 0, err
	}
	if x.Explanation != nil {
		for _, n := range x.Next {
			if len(n.Rules) > 0 {
				x.YAML = rulefile.Write(n.Rules)
			}
		}
	}
	if a.JSON {
		a.PrintJSON(x)
		return belay.ExitOK, nil
	}
	printExplained(&a.Env, x)
	return belay.ExitOK, nil
}

func (c *policyExplainCmd) explain(ctx context.Context, a *app) (*explained, error) {
	if c.ID != "" {
		return c.recorded(ctx, a)
	}
	x := &explained{}
	p, err := a.placeHere(ctx)
	if err != nil {
		return nil, err
	}
	set, r, err := c.asked(ctx, a, p, x)
	if err != nil {
		return nil, err
	}
	e := simulate.Explain(set, r)
	x.Explanation = &e
	return x, nil
}

// asked is the call that the flags describe, and the rules that judge it in this
// workspace.
func (c *policyExplainCmd) asked(ctx context.Context, a *app, p *place, x *explained) (*policy.Set, policy.Request, error) {
	var none policy.Request
	spec, err := p.find(c.Tool)
	if err != nil {
		return nil, none, err
	}
	r, err := c.request(a, p, spec, x)
	if err != nil {
		return nil, none, err
	}
	set, err := a.setFor(ctx, p, c.ruleFiles)
	return set, r, err
}

// setFor are the rules that count in a workspace, some perhaps replaced.
func (a *app) setFor(ctx context.Context, p *place, instead ruleFiles) (*policy.Set, error) {
	l, err := p.RulesWith(ctx, instead.files())
	if err != nil {
		return nil, err
	}
	a.sayIgnored(config.IgnoredIn(l))
	if l.Empty() {
		return policy.Builtin(), nil
	}
	return l.Set(p.Groups())
}

// request is the call that the flags describe.
func (c *policyExplainCmd) request(a *app, p *place, spec belay.ToolSpec, x *explained) (policy.Request, error) {
	var none policy.Request
	if !slices.Contains(belay.Modes, belay.Mode(c.Mode)) {
		return none, belay.Errorf(belay.CodeUsage, "there is no mode %q", c.Mode).At("--mode").WithHint("belay run --help lists the modes")
	}
	args, _, problem := p.set.Check(spec.Name, c.Args)
	if len(args) == 0 || args[0] != '{' {
		return none, belay.Errorf(belay.CodeUsage, "the arguments are no JSON object").At("--args").WithHint("belay tool show %s lists its arguments", spec.Name)
	}
	if problem != nil {
		x.Notes = append(x.Notes, "the tool would refuse these arguments whatever the gate says: "+problem.Message)
	}
	ws := p.Path()
	level := cmp.Or(c.Level, a.boundary().Level)
	paths, at := tool.Paths(spec, args), policy.Place{Workspace: ws, Home: a.Getenv("HOME"), Dialect: policy.DialectOf(cmp.Or(c.shell, exec.OfSession())), Shadowed: p.Shadowed(), Bare: policy.Bare(level, c.Boundary)}
	for i, p := range paths {
		paths[i] = file.Within(ws, p)
	}
	at.Links = symlinks.Of(spec, args, paths, at)
	r := policy.Request{Tool: spec, Args: args, Paths: paths, Links: at.Links, Mode: belay.Mode(c.Mode), Agent: c.Agent, Headless: c.Alone, Workspace: ws, Dialect: at.Dialect, Level: level, Network: belay.NetworkFull, Confine: true, Boundary: c.Boundary,
		Commands: policy.CommandsOf(spec, args, at)}
	for _, name := range c.Allow {
		r.Grants = append(r.Grants, policy.Grant{Tool: name, Tier: policy.TierUser, Kind: "rule", By: a.principal(), Dialect: at.Dialect})
	}
	for _, t := range c.Taint {
		kind, origin, _ := strings.Cut(t, ":")
		if kind == "" {
			return none, belay.Errorf(belay.CodeUsage, "%q names no kind of taint", t).At("--taint").WithHint("--taint web, or --taint web:example.com")
		}
		r.Taint = append(r.Taint, policy.Taint{Kind: kind, Origin: origin})
	}
	return r, nil
}

// recorded explains a call of the store.
func (c *policyExplainCmd) recorded(ctx context.Context, a *app) (*explained, error) {
	st, err := a.open(ctx, false)
	if err != nil {
		return nil, err
	}
	defer st.Close()
	found, err := decisionOf(ctx, st, c.ID)
	if err != nil {
		return nil, err
	}
	k, err := caseOf(ctx, st, found)
	if err != nil {
		return nil, err
	}
	x := &explained{Call: k.IDs.Call, Session: k.IDs.Session, Event: k.Event, Recorded: &k.Recorded, Lost: k.Lost}
	if k.Lost != "" {
		x.Notes = append(x.Notes, "it can't be judged again: "+simulate.LostWords[k.Lost]+"; what was recorded is shown")
		return x, nil
	}
	set := k.Gate
	if c.Now || len(c.Rules) > 0 {
		p, err := a.workspaces().get(ctx, k.Request.Workspace)
		if err != nil {
			return nil, err
		}
		if set, err = a.setFor(ctx, p, c.ruleFiles); err != nil {
			return nil, err
		}
	}
	e := simulate.Explain(set, k.Request)
	x.Explanation = &e
	x.Notes = append(x.Notes, became(k, set == k.Gate, e)...)
	return x, nil
}

// became returns notes on what was recorded besides the verdict of the rules.
func became(k *simulate.Case, ofItsDay bool, e simulate.Explanation) (notes []string) {
	p := k.Recorded
	said, rule := k.RecordedDecision()
	switch {
	case p.Source == "person" || p.Source == "runtime":
		notes = append(notes, fmt.Sprintf("recorded: %s (%s), because %s", p.Decision, p.ReasonCode, p.Reason))
	case ofItsDay && (said != e.Decision || rule != e.Rule):
		notes = append(notes, fmt.Sprintf("recorded: %s by %s; this build reads the call otherwise than the one that judged it", said, rule))
	case !ofItsDay:
		notes = append(notes, fmt.Sprintf("recorded: %s by %s; below are the rules that were named, or that count now", said, rule))
	}
	return notes
}

// decisionOf finds the newest decision that an id is about. More than one call
// is an error that names some.
func decisionOf(ctx context.Context, st store.Store, id string) (event.Envelope, error) {
	var found event.Envelope
	calls := map[belay.CallID]bool{}
	for r, err := range st.Scan(ctx, 0) {
		if err != nil {
			return found, err
		}
		e := r.Event
		if e.Type() != "permission.evaluated" || !names(e, id) {
			continue
		}
		if string(e.ID()) == id || string(e.IDs.Call) == id {
			found, calls = e, map[belay.CallID]bool{e.IDs.Call: true}
			if string(e.ID()) == id {
				break
			}
			continue
		}
		if string(found.IDs.Call) == id { // a whole id wins over beginnings
			continue
		}
		if found = e; len(calls) <= 4 {
			calls[e.IDs.Call] = true
		}
	}
	switch len(calls) {
	case 0:
		return found, belay.Errorf(belay.CodeNotFound, "no decision in this store is about it").At(term.Line(id)).WithHint("belay events shows the ids of calls; belay why explains other things")
	case 1:
		return found, nil
	}
	var ids []string
	for c := range calls {
		ids = append(ids, string(c))
	}
	slices.Sort(ids)
	return found, belay.Errorf(belay.CodeUsage, "more than one call is meant").At(term.Line(id)).WithHint("name one of them: %s", strings.Join(ids[:min(4, len(ids))], ", "))
}

// caseOf puts a decision together with its question.
func caseOf(ctx context.Context, st store.Store, found event.Envelope) (*simulate.Case, error) {
	reader := simulate.NewReader(contentOf(ctx, st))
	for e, err := range st.Read(ctx, found.Stream, 0) {
		if err != nil {
			return nil, err
		}
		k, err := reader.Apply(e)
		if err != nil {
			return nil, err
		}
		if e.Seq == found.Seq && k != nil {
			return k, nil
		}
	}
	return nil, belay.Errorf(belay.CodeNotFound, "the decision is gone").At(string(found.ID())).WithHint("belay events %s", found.IDs.Session)
}

// contentOf reads content of a store.
func contentOf(ctx context.Context, st store.Blobs) simulate.Content {
	return func(d belay.Digest) ([]byte, error) {
		b, err := st.Get(ctx, d)
		if errors.Is(err, store.ErrNotFound) {
			return nil, simulate.ErrGone
		}
		return b, err
	}
}

func printExplained(e *term.Env, x *explained) {
	out := func(format string, args ...any) { fmt.Fprintf(e.Out, format+"\n", args...) }
	if x.Call != "" {
		out("%s  of %s", term.Line(string(x.Call)), term.Line(string(x.Session)))
	}
	if x.Explanation == nil {
		p := x.Recorded
		out("%s: %s  by %s (%s, tier %s)", term.Line(p.Tool), p.Decision, term.Line(p.Rule), term.Line(p.ReasonCode), term.Line(p.Tier))
		out("  %s", term.Line(p.Reason))
	} else {
		printExplanation(e, x.Explanation)
	}
	for _, n := range x.Notes {
		out("  note: %s", term.Line(n))
	}
	if x.Explanation == nil {
		return
	}
	out("\nWhat would change it:")
	for _, n := range x.Next {
		switch {
		case n.Place != "":
			out("  %s\n      %s", term.Line(n.Place), term.Line(n.Effect))
		case n.Command != "":
			out("  %s\n      %s", term.Line(n.Command), term.Line(n.Effect))
		default:
			out("  a rule that was tried; it %s:\n", term.Line(n.Effect))
			out("%s", explain.CleanLines(strings.TrimRight(x.YAML, "\n")))
		}
	}
}

func printExplanation(e *term.Env, x *simulate.Explanation) {
	out := func(format string, args ...any) { fmt.Fprintf(e.Out, format+"\n", args...) }
	out("%s: %s  (%s)", term.Line(x.Tool), x.Decision, term.Line(x.Code))
	out("  %s", term.Line(x.Reason))
	out("  rule %s%s, tier %s, priority %d, mode %s", term.Line(x.Rule), term.Line(after(" at ", x.Where)), term.Line(x.Tier), x.Priority, term.Line(x.Mode))
	if x.Boundary != "" {
		out("  boundary %s%s%s", term.Line(x.Boundary), term.Line(after(" of ", x.BoundaryBy)), term.Line(after(", at least level ", string(x.Least))))
		if x.Limits != "" {
			out("  limits %s", term.Line(x.Limits))
		}
	}
	if len(x.Tags) > 0 {
		out("  tags: %s", term.Line(strings.Join(x.Tags, ", ")))
	}
	if len(x.Taint) > 0 {
		out("  taint: %s", term.Line(strings.Join(x.Taint, ", ")))
	}
	for i, c := range x.Commands {
		if i == 0 {
			out("\nCommands:")
		}
		out("  %-6s %s", c.Decision, term.Line(c.Command))
		out("         %s%s; rule %s", c.Class, term.Line(after(": ", c.Reason)), term.Line(c.Rule))
	}
	for i, h := range x.Matched {
		if i == 0 {
			out("\nRules that spoke, the strongest first:")
		}
		out("  %-6s %s  (tier %s, priority %d%s)", h.Decision, term.Line(h.Rule), term.Line(h.Tier), h.Priority, term.Line(after(", ", h.Where)))
		out("         %s", term.Line(h.Why))
	}
	for i, s := range x.Silent {
		if i == 0 {
			out("\nRules that did not:")
		}
		out("  %s%s\n         %s", term.Line(s.Rule), term.Line(after("  ", s.Where)), term.Line(s.Misses))
	}
	if x.Omitted > 0 {
		out("  … and %d more", x.Omitted)
	}
}

// after is a text behind another one, or nothing.
func after(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}
