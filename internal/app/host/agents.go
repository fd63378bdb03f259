package host

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/config/agentfile"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/tool"
)

// childAgent narrows a child's rules to an agent that is kept as a file. It is read anew,
// so that what a person changed counts from the next start on.
func (h *Host) childAgent(ctx context.Context, rules *thread.Rules, name string) (bool, error) {
	p, err := h.At(ctx, rules.Workspace)
	if err != nil {
		return false, err
	}
	cat, err := p.Agents(ctx, "")
	if err != nil {
		return false, err
	}
	a, err := cat.Find(name)
	switch {
	case belay.CodeOf(err) == belay.CodeNotFound && !strings.Contains(name, "@"):
		return false, nil
	case err != nil:
		return false, err
	}
	set := rules.Gate()
	if rules.Policy != nil {
		raw, err := h.opened.Get(ctx, rules.Policy.Digest)
		if err == nil {
			set, err = policy.Decode(raw)
		}
		if err != nil {
			return false, err
		}
	}
	if set, err = h.narrow(p, rules, set, a); err != nil || set == nil {
		return true, err
	}
	raw, err := set.Encode()
	if err == nil {
		var ref belay.Ref
		if ref, err = h.opened.Put(ctx, raw, "application/json"); err == nil {
			rules.Govern(ref, set)
		}
	}
	return true, err
}

// mainAgent narrows the draft of a turn to the agent that its settings name.
func (h *Host) mainAgent(ctx context.Context, p *app.Place, d *app.Draft, given []string) error {
	name := d.Rules.Settings.Agent
	cat, err := p.Agents(ctx, "")
	if err != nil {
		return err
	}
	a, err := cat.Find(name)
	if err != nil {
		return err
	}
	if a.Trusted && len(given) == 0 && (len(a.Tools) > 0) { // nobody chose other tools
		s := d.Rules.Settings
		s.Tools = []string{"full"}
		d.Rules.Tools = offered(p, s)
	}
	set, err := h.narrow(p, d.Rules, d.Under.Set, a)
	if err != nil || set == nil {
		return err
	}
	raw, err := set.Encode()
	if err == nil {
		d.Under = &config.Rules{Set: set, Raw: raw, Untrusted: d.Under.Untrusted}
		d.Rules.Govern(d.Under.Ref(), set)
	}
	return err
}

// narrow makes rules those of an agent that is kept as a file: no tool, mode or limit that
// they hadn't. It returns the gate's rules with those that the file adds; nil: it adds none.
func (h *Host) narrow(p *app.Place, r *thread.Rules, set *policy.Set, a *agentfile.Agent) (*policy.Set, error) {
	s := &r.Settings
	if r.Agent = a.Name; !a.Trusted { // rules about another agent of the name aren't about it
		r.Agent = a.Origin + ":" + a.Name
	}
	r.AgentFile = &thread.AgentFile{Version: a.Version, Origin: a.Origin, Path: a.Path, Digest: a.Digest}
	r.UntrustedWorkspace = r.UntrustedWorkspace || !a.Trusted
	r.Tools = toolsOf(a, r.Tools)
	s.Mode = config.Narrower(a.Mode, s.Mode)
	if a.Effort != "" && (a.Trusted || a.Effort == "low") {
		s.Effort = a.Effort
	}
	h.model(p, r, a)
	s.Limits = leastLimits(s.Limits, a.Limits)
	if a.Limits.MicroUSD > 0 {
		if r.Profile.Priced = true; !slices.ContainsFunc(r.Routes, func(c core.Candidate) bool { return c.Prices != nil }) {
			return nil, belay.Errorf(belay.CodeNoPrice, "the agent's money is limited, and nothing says what %s costs", strings.TrimSuffix(s.Provider+"/"+s.Model, "/")).At(a.Path).
				WithHint("write its prices into models.yaml (docs/models.md), or limit tokens instead: budget: {tokens: {optimal: 500000}}")
		}
	}
	if text := h.c.Models.Secrets.String(instructions(a)); text != "" {
		r.System = strings.TrimRight(r.System, "\n") + "\n\n# Your part\n" + text + "\n"
	}
	if a.Output != nil && r.Output == nil {
		r.Output = a.Output
		askOutput(r)
	}
	return agentRules(r, set, a)
}

// instructions are what the agent is told, with what it is to do when it is told nothing
// else.
func instructions(a *agentfile.Agent) string {
	text := a.Instructions
	if len(a.Tasks) > 0 {
		text += "\n\n## Tasks, unless you are told others\n"
	}
	for _, t := range a.Tasks {
		text += "- " + t.Description
		if t.Priority != "" {
			text += " (" + t.Priority + ")"
		}
		text += "\n"
	}
	return strings.TrimSpace(text)
}

// toolsOf are those of some tools that an agent has. What steers the turn stays.
func toolsOf(a *agentfile.Agent, have []belay.ToolSpec) []belay.ToolSpec {
	terms := slices.Clone(a.Tools)
	switch {
	case a.NoTools:
		terms = []string{"-*"}
	case len(terms) == 0:
		terms = []string{"*"}
	}
	for _, t := range a.Without {
		terms = append(terms, "-"+t)
	}
	return tool.Choose(terms, have)
}

// model takes the agent's model, if a provider has it. What doesn't count is said in the
// facts of the turn's context.
func (h *Host) model(p *app.Place, r *thread.Rules, a *agentfile.Agent) {
	if a.Model == "" {
		return
	}
	why := "no provider has it: the agent works with the model of who starts it"
	provider, name, ok := strings.Cut(a.Model, "/")
	switch {
	case !a.Trusted:
		why = "its file isn't trusted: the agent works with the model of who starts it"
	case ok:
		s := r.Settings
		s.Provider, s.Model = provider, name
		if provider != r.Settings.Provider {
			s.BaseURL = ""
		}
		if all := h.c.Models.Routes(p.Workspace, s); len(all) > 0 && all[0].Lacks == "" {
			r.Settings, r.Routes = s, all
			return
		}
	}
	r.LeftOut = append(r.LeftOut, event.ContextOmission{Kind: "model", Name: a.Model, Reason: why})
}

// leastLimits are the smaller ones of two; 0 is none.
func leastLimits(a, b belay.Limits) belay.Limits {
	a.Steps, a.Calls = least(a.Steps, b.Steps), least(a.Calls, b.Calls)
	a.Time, a.Tokens, a.MicroUSD = least(a.Time, b.Time), least(a.Tokens, b.Tokens), least(a.MicroUSD, b.MicroUSD)
	return a
}

func least[T int | int64 | belay.Duration](a, b T) T {
	if a <= 0 || b > 0 && b < a {
		return b
	}
	return a
}

// agentRules are the gate's rules with those that an agent's file adds: rules that deny,
// and a boundary with its limits. nil: it adds none.
func agentRules(r *thread.Rules, set *policy.Set, a *agentfile.Agent) (*policy.Set, error) {
	var more []policy.Rule
	if len(a.Can) > 0 {
		rules, err := policy.CapabilityRules(policy.TierAgent, a.Can)
		if err != nil {
			return nil, belay.Errorf(belay.CodeBadManifest, "%v", err).At(a.Path)
		}
		more = append(more, rules...)
	}
	programs := func(id string, m policy.CommandMatch) {
		more = append(more, policy.Rule{ID: id, Tier: policy.TierAgent, Match: policy.Match{Tool: []string{"exec"}, Command: &m}, Verdict: policy.Deny, Code: "CAPABILITY", Reason: "the agent's file doesn't let it run this program", Tags: []string{"capability"}})
	}
	if len(a.Programs) > 0 {
		programs("agent-programs", policy.CommandMatch{NotProgram: a.Programs})
	}
	if len(a.Forbidden) > 0 {
		programs("agent-forbidden", policy.CommandMatch{Program: a.Forbidden})
	}
	limited := a.Process != (belay.ProcessLimits{})
	if len(more) == 0 && !limited {
		return nil, nil
	}
	doc := *set.Document()
	doc.Rules = slices.Clone(doc.Rules)
	for i, m := range more {
		m.ID = fmt.Sprintf("%s-%s-%d", m.ID, a.Digest.Short(), i) // the parent may be such an agent too
		if !slices.ContainsFunc(doc.Rules, func(x policy.Rule) bool { return x.Tier == m.Tier && x.ID == m.ID }) {
			doc.Rules = append(doc.Rules, m)
		}
	}
	if limited {
		have, ok := set.Bound(r.Settings.Boundary)
		if !ok {
			have, _ = set.Bound(policy.ModeBoundary(r.Settings.Mode))
		}
		if have.Unbounded() {
			r.LeftOut = append(r.LeftOut, event.ContextOmission{Kind: "limit", Name: policy.LimitsText(a.Process), Reason: "nothing confines the programs of this turn"})
		} else {
			own := have
			own.Is.Limits = a.Process
			meet := policy.Meet(have, own)
			b := policy.Boundary{Boundary: meet.Is, Base: meet.Is.Name, Tier: policy.TierAgent}
			b.Name = "agent-" + a.Digest.Short()
			doc.Boundaries = append(slices.Clone(doc.Boundaries), b)
			r.Settings.Boundary = b.Name
		}
	}
	return policy.Compile(doc)
}

// agentsToStart is what a model that can start agents is told of those that are kept as
// files.
func agentsToStart(cat *agentfile.Catalog) string {
	const most = 8000
	var b strings.Builder
	left := 0
	for _, a := range cat.InForce() {
		line := "- " + a.Name + ": " + event.CutText(strings.Join(strings.Fields(a.Description), " "), 300) + "\n"
		if b.Len()+len(line) > most {
			left++
			continue
		}
		b.WriteString(line)
	}
	if b.Len() == 0 {
		return ""
	}
	text := "\n# Agents that spawn_agent starts by their names, besides its own kinds\n" + b.String()
	if left > 0 {
		text += fmt.Sprintf("- %d more\n", left)
	}
	return text
}
