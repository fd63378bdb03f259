package effect

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/effect/history"
	"github.com/belay-run/belay/internal/model/tokens"
	"github.com/belay-run/belay/internal/tool"
)

// prepareChild composes the rules of a sub-agent and keeps them, with what it begins with
// of its parent's conversation.
func (v *performer) prepareChild(ctx context.Context, eff core.PrepareChild) []core.Fact {
	failed := func(p event.Problem) []core.Fact {
		return []core.Fact{{IDs: eff.IDs, Data: event.ToolFailed{Name: tool.SpawnName, Attempt: 1, Problem: p, Final: true}}}
	}
	facts, problem, err := v.childFacts(ctx, eff)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return failed(event.Problem{Class: tool.Internal, Code: "INTERNAL", Message: v.e.c.Secrets.String(err.Error())})
	case problem != nil:
		return failed(*problem)
	}
	ids := eff.IDs
	ids.Subagent = eff.Subagent
	out := make([]core.Fact, len(facts))
	for i, f := range facts {
		out[i] = core.Fact{IDs: ids, Data: f}
	}
	return out
}

func (v *performer) childFacts(ctx context.Context, eff core.PrepareChild) (facts []event.Payload, problem *event.Problem, err error) {
	args := eff.Args
	if eff.ArgsRef != nil {
		if args, err = v.e.c.Store.Get(ctx, eff.ArgsRef.Digest); err != nil {
			return nil, nil, err
		}
	}
	var in tool.SpawnArgs
	if err := json.Unmarshal(args, &in); err != nil { // it was held against the tool's schema
		return nil, nil, err
	}
	c := belay.SpawnSubagent{Subagent: eff.Subagent, Parent: eff.IDs.Thread}
	if problem, err = v.e.prepare(ctx, eff.Rules, in, eff.Limits, eff.Share, eff.Depth, eff.Judges, &c); problem != nil || err != nil {
		return nil, problem, err
	}
	if c.Begin != nil {
		facts = append(facts, event.SubagentStatus{Status: event.SubagentCopied, Begin: c.Begin})
	}
	var again *belay.Retry
	if c.Retry.Max > 0 || len(c.Retry.Fallback) > 0 {
		again = &c.Retry
	}
	in.Task = c.Text.Text
	objective, err := v.e.content(ctx, v.e.c.Secrets.String(in.Objective()), "text/plain")
	return append(facts, event.SubagentStatus{Status: event.SubagentPrepared, Agent: c.Agent, Nickname: in.Name, Background: in.Background || c.Background, Objective: &objective, Rules: &c.Rules,
		Workspace: c.Workspace, Worktree: c.Worktree, Retry: again, Memory: c.Memory, Budget: &c.Lent, Team: c.Team}), nil, err
}

// PrepareChild puts into c, whose ids are given, what a sub-agent is decided by that one
// with the rules of ref starts, and keeps it; its text is the task in the agent's words. left is what its parent has left; nothing:
// what its rules allow.
func (e *Performers) PrepareChild(ctx context.Context, ref belay.Ref, in tool.SpawnArgs, left belay.Limits, depth int, c *belay.SpawnSubagent) (*event.Problem, error) {
	return e.prepare(ctx, ref, in, left, left, depth, false, c)
}

// prepare is PrepareChild, also of an agent that judges.
func (e *Performers) prepare(ctx context.Context, ref belay.Ref, in tool.SpawnArgs, left, share belay.Limits, depth int, judges bool, c *belay.SpawnSubagent) (problem *event.Problem, err error) {
	defer func() {
		if problem != nil {
			problem.Message, problem.Hint = event.CutText(e.c.Secrets.String(problem.Message), 2000), event.CutText(e.c.Secrets.String(problem.Hint), 1000)
		}
	}()
	shared, err := e.rules.get(ref.Digest, func() ([]byte, error) { return e.c.Store.Get(ctx, ref.Digest) })
	if err != nil {
		return nil, err
	}
	parent := shared.Rules
	if left == (belay.Limits{}) {
		left, share = parent.Settings.Limits, parent.Settings.Limits
	}
	if problem := in.Check(parent.Settings); problem != nil {
		return problem, nil
	}
	if !judges {
		if team, problem, err := e.teamOf(ctx, parent, in, left, share, depth); team != nil || problem != nil || err != nil {
			if team != nil {
				c.Rules = ref // it decides nothing itself
				problem, err = team.prepareTeam(ctx, c)
			}
			return problem, err
		}
	}
	narrow := func(in tool.SpawnArgs, judges bool) (*thread.Rules, *event.Problem, error) {
		rules, wanted, problem, err := e.childRules(ctx, parent, in, left, depth, judges)
		for _, name := range wanted { // its file may have taken some of them away
			if _, has := rules.Tool(name); !has {
				return nil, thread.NotCovered("agent "+rules.Agent+" can't have "+name+" here", "its file doesn't name this tool: leave it out, or start another agent"), nil
			}
		}
		if problem == nil && err == nil {
			rules.Settings.Limits = sharing(rules.Settings.Limits, in.Within(belay.Limits{}), left, share)
		}
		return rules, problem, err
	}
	rules, problem, err := narrow(in, judges)
	if problem == nil && err == nil {
		problem = checkInput(rules.Agent, rules.Input, in.Input)
	}
	if problem == nil && err == nil && rules.AgentFile != nil { // its file says so, where the call doesn't
		in.Isolation, in.Context = cmp.Or(in.Isolation, rules.AgentFile.Isolation), cmp.Or(in.Context, rules.AgentFile.Context)
		c.Background = c.Background || rules.AgentFile.Background
	}
	if problem == nil && err == nil && in.Isolation == tool.IsolationWorktree {
		problem, err = e.childTree(ctx, c, rules)
	}
	if problem == nil && err == nil && in.Context == event.ContextFork {
		c.Begin, err = e.copyOfParent(ctx, c.Parent, rules)
	}
	if problem != nil || err != nil {
		return problem, err
	}
	if c.Agent = rules.Agent; rules.AgentFile != nil && !judges {
		for _, name := range rules.AgentFile.Fallback {
			in.Agent = name
			other, problem, err := narrow(in, false)
			if problem != nil || err != nil {
				return problem, err
			}
			other.Origin, other.Workspace, other.Worktree, other.Cwd = rules.Origin, rules.Workspace, rules.Worktree, rules.Cwd
			if err := e.substitute(ctx, rules, other); err != nil {
				return nil, err
			}
		}
	}
	c.Retry, c.Memory = rules.Retry(), rules.Memory()
	c.Lent = belay.Amounts{MicroUSD: rules.Settings.Limits.MicroUSD, Tokens: rules.Settings.Limits.Tokens}
	c.Text.Text = rules.Worded(in.Task)
	c.Rules, err = e.KeepRules(ctx, rules)
	return nil, err
}

// substitute keeps the rules of an agent that tries a task after the one that rules are of.
func (e *Performers) substitute(ctx context.Context, rules, other *thread.Rules) error {
	ref, err := e.KeepRules(ctx, other)
	rules.AgentFile.Retry.Fallback = append(rules.AgentFile.Retry.Fallback, belay.Substitute{Agent: other.Agent, Rules: ref})
	return err
}

// sharing leaves an agent its share of the money and the tokens that are left, if neither the
// call nor its file says how much it may use.
func sharing(l, named, left, share belay.Limits) belay.Limits {
	if l.MicroUSD == left.MicroUSD && named.MicroUSD == 0 {
		l.MicroUSD = share.MicroUSD
	}
	if l.Tokens == left.Tokens && named.Tokens == 0 {
		l.Tokens = share.Tokens
	}
	return l
}

// childRules are the parent's narrowed to what an agent is and what a call leaves it, with the
// tools that the call names one by one.
func (e *Performers) childRules(ctx context.Context, parent *thread.Rules, in tool.SpawnArgs, left belay.Limits, depth int, judges bool) (_ *thread.Rules, wanted []string, _ *event.Problem, _ error) {
	complete, _ := e.c.Tools.Get(tool.CompleteName)
	wish := thread.ChildWish{Agent: in.Agent, Limits: in.Within(left), Depth: depth, Judges: judges, File: e.c.Agent != nil && in.Agent != ""}
	for _, term := range in.Tools { // a group or a pattern is those of the parent's tools that it covers
		if names := tool.Expand(term, parent.Tools); len(names) > 0 {
			wish.Tools = append(wish.Tools, names...)
		} else {
			wish.Tools = append(wish.Tools, term)
		}
	}
	rules, problem := parent.Child(wish, e.c.TaskPrompt, complete.Spec())
	if problem != nil || !wish.File {
		return rules, nil, problem, nil
	}
	switch err := e.c.Agent(ctx, rules, in.Agent); {
	case belay.CodeOf(err) == belay.CodeNotFound:
		wish.File = false
		if rules, problem = parent.Child(wish, e.c.TaskPrompt, complete.Spec()); problem != nil && problem.Code == thread.CodeUnknownAgent {
			said, _ := errors.AsType[*belay.Error](err)
			problem.Message, problem.Hint = said.Message, said.Hint
		}
		return rules, nil, problem, nil
	case err != nil:
		problem, err := agentProblem(ctx, err)
		return nil, nil, problem, err
	}
	if judges { // its work isn't judged again
		rules.Gates = nil
	}
	if of := rules.AgentFile; judges && of != nil && strings.HasPrefix(rules.Agent, of.Origin+":") && !strings.HasPrefix(in.Agent, of.Origin+":") { // a stranger's file of this name
		wish.File = false
		if own, problem := parent.Child(wish, e.c.TaskPrompt, complete.Spec()); problem == nil {
			return own, nil, nil, nil
		}
		return nil, nil, thread.NotCovered("agent "+rules.Agent+" can't judge the work: its file isn't trusted", "belay trust "+of.Path+", or name another agent as the verifier"), nil
	}
	return rules, wish.Tools, nil, nil
}

// admitAgain is when it is asked again whether an agent may work, after it couldn't be
// found out.
const admitAgain = time.Second

// admit asks whether the agent of a turn may work.
func (v *performer) admit(ctx context.Context, eff core.Admit) []core.Fact {
	p, why := event.Pause{Op: event.Admitted}, ""
	if v.e.c.Admit != nil {
		var err error
		p, why, err = v.e.c.Admit(ctx, eff.Agent, eff.IDs)
		switch {
		case ctx.Err() != nil:
			return nil // the next drive asks
		case err != nil: // the store is busy, say
			p, why = event.Pause{Op: event.Paused, Until: v.e.c.Now().Add(admitAgain)}, "whether the agent may work can't be found out: "+v.e.c.Secrets.String(err.Error())
		}
	}
	p.Agent = eff.Agent
	return []core.Fact{{IDs: eff.IDs, Data: event.ThreadUpdated{Pause: &p, Reason: event.CutText(why, 1000)}}}
}

// checkInput holds what an agent is started with against the schema that it has for it.
func checkInput(agent string, schema, input json.RawMessage) *event.Problem {
	if len(schema) == 0 {
		return nil
	}
	said := "it is missing"
	if len(input) > 0 {
		var err error
		if said, err = tool.Misfit(schema, input); err != nil {
			said = err.Error()
		}
	}
	if said == "" {
		return nil
	}
	return &event.Problem{Class: tool.BadArguments, Code: "BAD_INPUT", Message: "the input of agent " + agent + " doesn't fit its schema: " + said, Hint: "its schema is " + string(schema)}
}

// childTree makes the rules of a sub-agent those of a worktree of its own. It is made when
// it is needed first.
func (e *Performers) childTree(ctx context.Context, c *belay.SpawnSubagent, r *thread.Rules) (*event.Problem, error) {
	if e.c.Trees == nil {
		return &event.Problem{Class: tool.Denied, Code: "NO_WORKTREE", Message: "nothing here can make a worktree", Hint: "leave isolation out"}, nil
	}
	plan, inside, err := e.c.Trees.Plan(ctx, r.Workspace, string(c.Subagent))
	if e, ok := errors.AsType[*belay.Error](err); ok {
		return &event.Problem{Class: tool.Conflict, Code: "NO_WORKTREE", Message: e.Error(), Hint: "leave isolation out: the agent then works in your folder, under the same order of changes as you"}, nil
	}
	if err != nil {
		return nil, err
	}
	if r.Worktree != nil {
		plan.Repository = r.Worktree.Repository // which outlives the worktree of the parent
	}
	r.Origin, r.Workspace, r.Worktree, r.Cwd = r.Configured(), inside, &plan, ""
	c.Workspace, c.Worktree = inside, &plan
	return nil, nil
}

// copyOfParent is how a sub-agent begins that has its parent's conversation before the
// call.
func (e *Performers) copyOfParent(ctx context.Context, parent belay.ThreadID, r *thread.Rules) (*belay.Beginning, error) {
	past, err := history.ReadPast(ctx, e.c.Store, parent)
	if err != nil {
		return nil, err
	}
	counts := tokens.Profile{}
	if e.c.Counts != nil {
		counts = e.c.Counts(r.Settings)
	}
	b, err := past.ForkNow(ctx, counts, "The conversation up to here is that of the agent that started you. You are another one now, "+r.Agent+": the task follows, and that agent alone reads what you do.")
	return &b, err
}
