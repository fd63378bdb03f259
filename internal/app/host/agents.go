package host

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
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
	"github.com/belay-run/belay/internal/lib/match"
	"github.com/belay-run/belay/internal/model/tokens"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/tool"
)

// agents are the agents of a workspace that are kept as files. What of them wasn't known
// yet is recorded.
func (h *Host) agents(ctx context.Context, p *app.Place) (*agentfile.Catalog, error) {
	c, err := p.Agents(ctx)
	if err != nil || h.opened == nil {
		return c, err
	}
	h.system.Lock()
	defer h.system.Unlock()
	known, err := h.book(ctx)
	if err != nil {
		return nil, err
	}
	w := config.TrustWriter{Store: h.opened, Owner: store.ThisProcess(), By: h.c.Principal}
	news, err := w.SeeAgents(ctx, known, c, func(content []byte) (*belay.Ref, error) {
		if !bytes.Equal(h.c.Models.Secrets.Bytes(content), content) {
			return nil, nil // it must not reach the store
		}
		ref, err := h.opened.Put(ctx, content, "text/plain; charset=utf-8")
		return &ref, err
	})
	if news {
		h.forgetTrust()
	}
	return c, err
}

// builtIn are the agents that are no files.
func builtIn() (all []agentfile.Agent) {
	for _, a := range thread.BuiltIn() {
		b := agentfile.Agent{Name: a.Name, Description: a.For, Instructions: a.Instructions}
		b.ReadOnly, b.Output = a.ReadOnly, a.Output
		all = append(all, b)
	}
	return all
}

// childAgent narrows a child's rules to an agent that is kept as a file. It is read anew,
// so that what a person changed counts from the next start on.
func (h *Host) childAgent(ctx context.Context, rules *thread.Rules, name string) error {
	p, err := h.At(ctx, rules.Configured())
	if err != nil {
		return err
	}
	cat, err := h.agents(ctx, p)
	if err != nil {
		return err
	}
	a, err := cat.Find(name)
	if err == nil && a.Origin == agentfile.BuiltIn { // which the rules of a child know
		err = belay.Errorf(belay.CodeNotFound, "there is no agent %s that a call starts", name)
	}
	if belay.CodeOf(err) == belay.CodeNotFound && !strings.Contains(name, "@") {
		kinds := thread.Kinds()
		return app.WithHint(err, match.Hint(name, append(cat.Names(), kinds...), "there are "+strings.Join(kinds, ", ")+", and those that belay agents list shows"))
	}
	if err != nil {
		return err
	}
	if a, err = h.replaced(ctx, cat, rules, a); err != nil {
		return err
	}
	if err := h.beyond(p, rules, a); err != nil {
		return err
	}
	set := rules.Gate()
	if rules.Policy != nil {
		raw, err := h.opened.Get(ctx, rules.Policy.Digest)
		if err == nil {
			set, err = policy.Decode(raw)
		}
		if err != nil {
			return err
		}
	}
	if err := h.takesWork(ctx, a.Called(), a.Path); err != nil {
		return err
	}
	if set, err = h.narrow(ctx, p, rules, set, a, true); err != nil || set == nil {
		return err
	}
	raw, err := set.Encode()
	if err == nil {
		var ref belay.Ref
		if ref, err = h.opened.Put(ctx, raw, "application/json"); err == nil {
			rules.Govern(ref, set)
		}
	}
	return err
}

// team is the team of a name, if it is one.
func (h *Host) team(ctx context.Context, parent *thread.Rules, name string) (*agentfile.Agent, []*agentfile.Part, error) {
	p, err := h.At(ctx, parent.Configured())
	if err != nil {
		return nil, nil, err
	}
	cat, err := h.agents(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	a, err := cat.Find(name)
	if err != nil || len(a.Members) == 0 { // who starts one agent says what is wrong with it
		return nil, nil, nil
	}
	if err := h.takesWork(ctx, a.Called(), a.Path); err != nil {
		return nil, nil, err
	}
	parts, err := cat.Cast(a)
	return a, agentfile.InOrder(parts), err
}

// replaced is the agent that takes new work for another; the facts of the turn's context say
// so.
func (h *Host) replaced(ctx context.Context, cat *agentfile.Catalog, r *thread.Rules, a *agentfile.Agent) (*agentfile.Agent, error) {
	b, why, err := h.inPlace(ctx, cat, a)
	if why != "" {
		r.LeftOut = append(r.LeftOut, event.ContextOmission{Kind: "agent", Name: a.Name, Reason: why})
	}
	return b, err
}

// beyond refuses an agent whose file names a mode or a provider that who starts it hasn't
// got.
func (h *Host) beyond(p *app.Place, r *thread.Rules, a *agentfile.Agent) error {
	if s := r.Settings; policy.Narrower(a.Mode, s.Mode) != cmp.Or(a.Mode, s.Mode) {
		return belay.Errorf(belay.CodeNotCovered, "agent %s works in mode %s, which allows more than %s, the mode here", a.Title(), a.Mode, s.Mode).At(a.Path).
			WithHint("start another agent, or do the work yourself; its file may leave mode out")
	}
	s, routes := h.named(p, r, a)
	if len(routes) > 0 && s.Provider != r.Settings.Provider && !slices.ContainsFunc(r.Routes, func(c core.Candidate) bool { return c.Provider == s.Provider }) {
		return belay.Errorf(belay.CodeNotCovered, "agent %s works with %s, and this turn has no model of %s", a.Title(), a.Model, s.Provider).At(a.Path).
			WithHint("start another agent, or do the work yourself; a person can add the model to the setting fallback")
	}
	return nil
}

// named are the settings and routes with the model that an agent's trusted file names; no
// routes: no provider has it.
func (h *Host) named(p *app.Place, r *thread.Rules, a *agentfile.Agent) (belay.Settings, []core.Candidate) {
	s := r.Settings
	provider, name, ok := strings.Cut(a.Model, "/")
	if !ok || !a.Trusted {
		return s, nil
	}
	to := p.Of(s, provider, name)
	s.Provider, s.Model, s.BaseURL = to.Provider, to.Model, to.BaseURL
	all := h.c.Models.Routes(p.Workspace, s)
	if len(all) == 0 || all[0].Lacks != "" {
		return s, nil
	}
	return s, all
}

// mainAgent narrows the draft of a turn to the agent that its settings name.
func (h *Host) mainAgent(ctx context.Context, p *app.Place, d *app.Draft, given []string) error {
	name := d.Rules.Settings.Agent
	cat, err := h.agents(ctx, p)
	if err != nil {
		return err
	}
	a, err := cat.Find(name)
	if err != nil {
		return err
	}
	if a, err = h.replaced(ctx, cat, d.Rules, a); err != nil {
		return err
	}
	if a.Trusted && len(given) == 0 && (len(a.Tools) > 0) { // nobody chose other tools
		s := d.Rules.Settings
		s.Tools = []string{"full"}
		d.Rules.Tools = offered(p, s)
	}
	set, err := h.narrow(ctx, p, d.Rules, d.Under.Set, a, false)
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
func (h *Host) narrow(ctx context.Context, p *app.Place, r *thread.Rules, set *policy.Set, a *agentfile.Agent, child bool) (*policy.Set, error) {
	if len(a.Members) > 0 {
		return nil, belay.Errorf(belay.CodeBadManifest, "%s is a team: no single agent does its work", a.Title()).At(a.Path).WithHint("belay agents run %s, or start its members", a.Name)
	}
	s := &r.Settings
	r.Agent = a.Called()
	if a.Broken != nil {
		r.LeftOut = append(r.LeftOut, event.ContextOmission{Kind: "agent", Name: a.Path, Reason: "the file can't be used (" + a.Broken[0].Code + "): what it held before counts"})
	}
	r.AgentFile = &thread.AgentFile{Version: a.Version, Origin: a.Origin, Path: a.Path, Digest: a.Digest, Wording: a.Wording}
	if a.Process.Memory > 0 {
		r.AgentFile.Memory = belay.MemoryNeed{Declared: a.Process.Memory, Machine: h.c.Memory()}
	}
	switch {
	case a.Trusted:
		r.AgentFile.Retry, r.AgentFile.Fallback = a.Retry, a.Fallback
		r.AgentFile.Context, r.AgentFile.Isolation, r.AgentFile.Background = a.Context, a.Isolation, a.Background
	case a.Retry.Max > 0 || len(a.Fallback) > 0:
		r.LeftOut = append(r.LeftOut, event.ContextOmission{Kind: "retry", Name: a.Name, Reason: "its file isn't trusted: neither it nor another agent tries again"})
	}
	r.UntrustedWorkspace = r.UntrustedWorkspace || !a.Trusted
	r.Tools, r.Withheld = toolsOf(a, r.Tools), withheld(a, p.Tools.Specs(), r.Withheld)
	if s.Mode = policy.Narrower(a.Mode, s.Mode); a.Mode != "" && s.Mode != a.Mode {
		r.LeftOut = append(r.LeftOut, event.ContextOmission{Kind: "mode", Name: string(a.Mode), Reason: "it allows more than " + string(s.Mode) + ", the mode here"})
	}
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
	skills, err := h.ownSkills(ctx, p, r, a)
	if err != nil {
		return nil, err
	}
	if text := h.c.Models.Secrets.String(instructions(a) + skills); text != "" {
		r.System = strings.TrimRight(r.System, "\n") + "\n\n# Your part\n" + text + "\n"
		if !a.Trusted { // a stranger's words
			r.Context = append(slices.Clip(r.Context), event.ContextItem{Kind: "agent", Name: a.Path, Tokens: tokens.Text(text)})
		}
	}
	r.Input = a.Input
	if a.Output != nil && r.Output == nil {
		r.Output = a.Output
		r.AskOutput()
	}
	switch {
	case len(a.Gates) == 0:
	case !a.Trusted:
		r.LeftOut = append(r.LeftOut, event.ContextOmission{Kind: "gate", Name: a.Name, Reason: "its file isn't trusted: its gates don't count"})
	default:
		r.Gates = a.Gates
		if err := app.Verifiable(r, a.Gates); err != nil {
			return nil, belay.Errorf(belay.CodeBadManifest, "the agent's gates can't be held: %v", err).At(a.Path).WithHint("give it what they need, or take them out")
		}
	}
	return agentRules(r, set, a, child)
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
	if len(a.Servers) > 0 {
		have = slices.DeleteFunc(slices.Clone(have), func(t belay.ToolSpec) bool {
			rest, of := strings.CutPrefix(t.Name, "mcp__")
			return of && !slices.ContainsFunc(a.Servers, func(s string) bool { return strings.HasPrefix(rest, s+"__") })
		})
	}
	have = tool.Choose(terms, have)
	if a.ReadOnly {
		have = slices.DeleteFunc(slices.Clone(have), func(t belay.ToolSpec) bool { return t.Handled == "" && !t.ReadOnly })
	}
	return have
}

// withheld are the names of tools that are kept from an agent: those of some before, and those
// of all that its file doesn't let it have.
func withheld(a *agentfile.Agent, all []belay.ToolSpec, before []string) []string {
	has := map[string]bool{}
	for _, t := range toolsOf(a, all) {
		has[t.Name] = true
	}
	names := slices.Clone(before)
	for _, t := range all {
		if !has[t.Name] {
			names = append(names, t.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// model takes the agent's model, if a provider has it. What doesn't count is said in the
// facts of the turn's context.
func (h *Host) model(p *app.Place, r *thread.Rules, a *agentfile.Agent) {
	if a.Model == "" || r.Settings.Provider == config.Direct { // a person's call asks none
		return
	}
	why := "no provider has it: the agent works with the model of who starts it"
	if !a.Trusted {
		why = "its file isn't trusted: the agent works with the model of who starts it"
	}
	if s, all := h.named(p, r, a); len(all) > 0 {
		r.Settings, r.Routes = s, all
		return
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

// agentRules are the gate's rules with those that an agent's file adds: its own, of which
// those that allow count only where a person starts it and trusts the file; rules that deny;
// and a boundary with its limits. nil: it adds none.
func agentRules(r *thread.Rules, set *policy.Set, a *agentfile.Agent, child bool) (*policy.Set, error) {
	more, ignored, err := config.AgentRules(a, a.Trusted && !child)
	if err != nil {
		return nil, belay.Errorf(belay.CodeBadManifest, "the agent's rules can't be used: %v", err).At(a.Path).WithHint("belay agents check")
	}
	for _, i := range ignored {
		r.LeftOut = append(r.LeftOut, event.ContextOmission{Kind: "rule", Name: i.What, Reason: "an agent's rule that allows counts only in a file that is trusted, and where a person starts the agent"})
	}
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
	if len(a.Skills) > 0 {
		names, err := json.Marshal(a.Skills)
		if err != nil {
			return nil, err
		}
		more = append(more, policy.Rule{ID: "agent-skills", Tier: policy.TierAgent, Match: policy.Match{Tool: []string{tool.SkillName}, If: "!(args.name in " + string(names) + ")"}, Verdict: policy.Deny, Code: "CAPABILITY", Reason: "the agent's file names other skills", Tags: []string{"capability"}})
	}
	limited := a.Process != (belay.ProcessLimits{}) || a.Boundary != ""
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
		have, own, err := bounds(set, r.Settings, a)
		if err != nil {
			return nil, err
		}
		wide := own
		wide.Is.Limits = have.Is.Limits // the smaller ones count anyway
		beyond := !wide.Within(have)
		if beyond && !child {
			r.LeftOut = append(r.LeftOut, event.ContextOmission{Kind: "boundary", Name: a.Boundary, Reason: "it allows more than " + have.Is.Name + ", the boundary here"})
		}
		switch {
		case beyond && child:
			return nil, belay.Errorf(belay.CodeNotCovered, "agent %s works in boundary %s, which allows more than %s, the boundary here", a.Title(), a.Boundary, have.Is.Name).At(a.Path).
				WithHint("start another agent, or do the work yourself; its file may leave boundary out")
		case have.Unbounded() && own.Unbounded():
			r.LeftOut = append(r.LeftOut, event.ContextOmission{Kind: "limit", Name: policy.LimitsText(a.Process), Reason: "nothing confines the programs of this turn"})
		default:
			meet := policy.Meet(have, own)
			b := policy.Boundary{Boundary: meet.Is, Base: meet.Is.Name, Tier: policy.TierAgent}
			b.Name = "agent-" + a.Digest.Short()
			doc.Boundaries = append(slices.Clone(doc.Boundaries), b)
			r.Settings.Boundary = b.Name
		}
	}
	return policy.Compile(doc)
}

// bounds are the boundary of settings, and the one of an agent's file with its limits.
func bounds(set *policy.Set, s belay.Settings, a *agentfile.Agent) (have, own policy.Bound, err error) {
	have, ok := set.Bound(s.Boundary)
	if !ok {
		have, _ = set.Bound(policy.ModeBoundary(s.Mode))
	}
	own = have
	if a.Boundary != "" {
		if own, ok = set.Bound(a.Boundary); !ok {
			return have, own, belay.Errorf(belay.CodeBadManifest, "there is no boundary %s", a.Boundary).At(a.Path).WithHint("read-only, workspace-write, or one of policy.yaml")
		}
	}
	own.Is.Limits = a.Process
	return have, own, nil
}

// tellAgents tells a model that can start agents of those that are kept as files.
func (h *Host) tellAgents(rules *thread.Rules, cat *agentfile.Catalog) {
	all := slices.DeleteFunc(cat.InForce(), func(a *agentfile.Agent) bool { return a.Origin == agentfile.BuiltIn })
	text := h.c.Models.Secrets.String(agentsToStart(all))
	if rules.System += text; slices.ContainsFunc(all, func(a *agentfile.Agent) bool { return !a.Trusted }) { // a stranger's words
		rules.Context = append(rules.Context, event.ContextItem{Kind: "agent", Name: fmt.Sprintf("%d agents", len(all)), Tokens: tokens.Text(text)})
	}
}

// agentsToStart is what a model is told of agents.
func agentsToStart(all []*agentfile.Agent) string {
	const most = 8000
	var b strings.Builder
	left := 0
	for _, a := range all {
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
