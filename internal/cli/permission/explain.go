package permission

import (
	"context"
	"fmt"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/policies"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/config/rulefile"
	"github.com/belay-run/belay/internal/tool/exec"
	"github.com/belay-run/belay/internal/view/story"
)

type policyExplainCmd struct {
	ID       string   `arg:"" optional:"" help:"A recorded call, or the event of its decision, or the beginning of its id; it is explained by the rules of its day."`
	Now      bool     `help:"Judge the recorded call by the rules that count now."`
	Tool     string   `short:"t" placeholder:"NAME" help:"Without an id: the tool that would be called."`
	Args     string   `placeholder:"JSON" default:"{}" help:"Its arguments, as a JSON object."`
	Mode     string   `default:"default" help:"The mode of the turn."`
	Agent    string   `placeholder:"NAME" help:"The agent that makes the call."`
	Allow    []string `placeholder:"TOOL" sep:"none" help:"As belay run --allow."`
	Taint    []string `placeholder:"KIND" sep:"none" help:"What taints the conversation: web, mcp, message, tool, …, secret; KIND:ORIGIN names where from."`
	Level    string   `enum:",L0,L1,L2,L3" default:"" help:"How much of a boundary the machine can apply; this one's."`
	Boundary string   `placeholder:"NAME" help:"As belay run --boundary."`
	Alone    bool     `help:"Questions can't be answered."`
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
	*policies.Explanation
	YAML string `json:"yaml,omitempty"` // the rules of next, as a file
}

func (c *policyExplainCmd) Run(ctx context.Context, a *command.Program) (int, error) {
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
	return a.Show(x, func() {
		printExplained(&a.Env, x)
	})
}

func (c *policyExplainCmd) explain(ctx context.Context, a *command.Program) (*explained, error) {
	if c.ID != "" {
		return c.recorded(ctx, a)
	}
	p, err := a.PlaceHere(ctx)
	if err != nil {
		return nil, err
	}
	q, err := c.question(a, p)
	if err != nil {
		return nil, err
	}
	e, notes, err := policies.Explain(ctx, a.Reader(nil).Call("evaluate_permission"), a.Ground(p), q)
	if err != nil {
		return nil, command.Flagged(err)
	}
	return &explained{Explanation: e, Notes: notes}, nil
}

// question is the call that the flags describe.
func (c *policyExplainCmd) question(a *command.Program, p *app.Place) (policies.Question, error) {
	q := policies.Question{Tool: c.Tool, Args: c.Args, Tools: p.Tools.Specs(), Mode: belay.Mode(c.Mode), Agent: c.Agent, Allow: c.Allow, By: a.Principal(), Level: c.Level, Boundary: c.Boundary, Alone: c.Alone, Shell: exec.OfSession()}
	for _, t := range c.Taint {
		kind, origin, _ := strings.Cut(t, ":")
		if kind == "" {
			return q, belay.Errorf(belay.CodeUsage, "%q names no kind of taint", t).At("--taint").WithHint("--taint web, or --taint web:example.com")
		}
		q.Taint = append(q.Taint, policies.Taint{Kind: kind, Origin: origin})
	}
	var err error
	q.Instead, err = c.read(a)
	return q, err
}

// recorded explains a call of the store.
func (c *policyExplainCmd) recorded(ctx context.Context, a *command.Program) (*explained, error) {
	st, err := a.Open(ctx, false)
	if err != nil {
		return nil, err
	}
	defer st.Close()
	call := a.Reader(st).Call("evaluate_permission")
	k, err := policies.FindDecision(ctx, call, c.ID)
	if err != nil {
		return nil, err
	}
	x := &explained{Call: k.IDs.Call, Session: k.IDs.Session, Event: k.Event, Recorded: &k.Recorded, Lost: k.Lost}
	if k.Lost != "" {
		x.Notes = append(x.Notes, "it can't be judged again: "+policies.WhyLost(k.Lost)+"; what was recorded is shown")
		return x, nil
	}
	set := k.Gate
	if c.Now || len(c.Rules) > 0 {
		instead, err := c.read(a)
		if err != nil {
			return nil, err
		}
		if set, err = policies.NewGates(call, instead).Of(ctx, k.Request.Workspace); err != nil {
			return nil, err
		}
	}
	e := policies.Judge(set, k)
	x.Explanation = &e
	x.Notes = append(x.Notes, became(k, set == k.Gate, e)...)
	return x, nil
}

// became returns notes on what was recorded besides the verdict of the rules.
func became(k *policies.Case, ofItsDay bool, e policies.Explanation) (notes []string) {
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
			out("%s", story.CleanLines(strings.TrimRight(x.YAML, "\n")))
		}
	}
}

func printExplanation(e *term.Env, x *policies.Explanation) {
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
