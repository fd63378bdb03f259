package effect

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/config/agentfile"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/tool"
)

// composing is a team that is about to be started by a call.
type composing struct {
	e      *Performers
	file   *agentfile.Agent
	parts  []*agentfile.Part
	in     tool.SpawnArgs
	parent *thread.Rules
	tree   thread.Rules // of where its agents work
	limits belay.Limits // of all of them together, as far as money and tokens go
	depth  int          // of its agents
}

// prepareTeam puts into c what the agents of a team are decided by, and what their parts of
// its task are. Each narrows the rules of who starts the team, as an agent does that is
// started alone.
func (t *composing) prepareTeam(ctx context.Context, c *belay.SpawnSubagent) (*event.Problem, error) {
	if t.in.Context == event.ContextFork {
		return &event.Problem{Class: tool.BadArguments, Code: tool.CodeBadArguments, Message: t.file.Title() + " is a team: none of its agents begins with a conversation", Hint: "leave context out, and say in the task what they have to know"}, nil
	}
	if problem := checkInput(t.file.Called(), t.file.Input, t.in.Input); problem != nil {
		return problem, nil
	}
	c.Background = c.Background || t.file.Trusted && t.file.Background
	if t.in.Isolation == tool.IsolationWorktree || t.file.Trusted && t.file.Isolation == tool.IsolationWorktree {
		if problem, err := t.e.childTree(ctx, c, &t.tree); problem != nil || err != nil {
			return problem, err
		}
	}
	c.Lent = belay.Amounts{MicroUSD: t.limits.MicroUSD, Tokens: t.limits.Tokens}
	agentfile.Allot(c.Lent, t.parts)
	for i, p := range t.parts {
		p.Task = belay.TaskID(belay.DeriveID(belay.PrefixTask, belay.StreamID(c.Subagent), 0, i+1))
	}
	members := make([]belay.TeamMember, len(t.parts))
	for i, p := range t.parts {
		problem, err := t.member(ctx, p, &members[i])
		if problem != nil || err != nil {
			return problem, err
		}
	}
	plan, output := t.file.Whole(t.parts, t.in.Input)
	if err := t.bind(ctx, output, &plan); err != nil {
		return nil, err
	}
	list, err := t.keep(ctx, members)
	c.Agent, c.Text.Text = t.file.Called(), t.in.Task
	c.Team = &belay.Team{Version: t.file.Version, Digest: t.file.Digest, Plan: plan, Members: list, Parts: len(members)}
	return nil, err
}

// member is a part of the team's task, and what its agent is decided by.
func (t *composing) member(ctx context.Context, p *agentfile.Part, m *belay.TeamMember) (*event.Problem, error) {
	*m = belay.TeamMember{Task: p.Task, Agent: p.Called(), Plan: p.Plan(), BlockedBy: p.Blockers(), Starved: p.Starved}
	text := t.in.Task
	if p.Starved == "" {
		rules, problem, err := t.rules(ctx, p, p.Exactly())
		if problem != nil || err != nil {
			return problem, err
		}
		if len(rules.Input) > 0 && len(p.Spec.Input) == 0 {
			return &event.Problem{Class: tool.BadArguments, Code: "BAD_INPUT", Message: fmt.Sprintf("member %s gets no input, and its agent wants some", p.Spec.Name), Hint: "its file, " + t.file.Path + ", has to say what the input is made of"}, nil
		}
		others := slices.Clone(p.Spec.Fallback)
		if !t.file.Trusted {
			others = nil
		}
		if rules.AgentFile != nil {
			others = slices.Concat(rules.AgentFile.Fallback, others)
		}
		again := rules.Retry()
		for _, name := range others[:min(len(others), belay.MaxFallback)] {
			other, problem, err := t.rules(ctx, p, name)
			if problem != nil || err != nil {
				return problem, err
			}
			ref, err := t.e.KeepRules(ctx, other)
			if err != nil {
				return nil, err
			}
			again.Fallback = append(slices.Clip(again.Fallback), belay.Substitute{Agent: other.Agent, Rules: ref})
		}
		m.Agent, m.Memory, m.Plan.Retry, text = rules.Agent, rules.Memory(), again, rules.Worded(text)
		if m.Rules, err = t.e.KeepRules(ctx, rules); err != nil {
			return nil, err
		}
		if err := t.bind(ctx, p.Binding(text, t.in.Input, m.Rules), &m.Plan); err != nil {
			return nil, err
		}
	}
	var err error
	m.Objective, err = t.e.content(ctx, t.e.c.Secrets.String(text), "text/plain")
	return nil, err
}

// rules are what an agent is decided by that works for a part of the team's task.
func (t *composing) rules(ctx context.Context, p *agentfile.Part, agent string) (*thread.Rules, *event.Problem, error) {
	in := tool.SpawnArgs{Task: t.in.Task, Agent: agent, Tools: t.in.Tools}
	if p.Origin == agentfile.BuiltIn && agent == p.Exactly() {
		in.Agent = p.Name
	}
	rules, _, problem, err := t.e.childRules(ctx, t.parent, in, t.limits, t.depth, false)
	if problem != nil || err != nil {
		return nil, problem, err
	}
	rules.Settings.Limits = rules.Settings.Limits.Within(belay.Limits{MicroUSD: p.Allowed.MicroUSD, Tokens: p.Allowed.Tokens})
	rules.UntrustedWorkspace = rules.UntrustedWorkspace || !t.file.Trusted
	rules.Origin, rules.Workspace, rules.Worktree, rules.Cwd = t.tree.Origin, t.tree.Workspace, t.tree.Worktree, t.tree.Cwd
	if t.limits.MicroUSD > 0 {
		if rules.Profile.Priced = true; !slices.ContainsFunc(rules.Routes, func(c core.Candidate) bool { return c.Prices != nil }) {
			return nil, &event.Problem{Class: tool.Denied, Code: "BAD_AGENT", Message: fmt.Sprintf("the money of team %s is limited, and nothing says what the model of member %s costs", t.file.Title(), p.Spec.Name), Hint: "docs/models.md says how prices are written; a limit of tokens needs none"}, nil
		}
	}
	return rules, nil, nil
}

// bind keeps what the input of a plan is made of; nil: it has none.
func (t *composing) bind(ctx context.Context, b *belay.Binding, plan *belay.TaskPlan) error {
	if b == nil {
		return nil
	}
	ref, err := t.keep(ctx, b)
	plan.Input = &ref
	return err
}

func (t *composing) keep(ctx context.Context, v any) (belay.Ref, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return belay.Ref{}, err
	}
	return t.e.c.Store.Put(ctx, t.e.c.Secrets.Bytes(raw), "application/json")
}

// teamOf is the team that a call starts; nil: what it starts is none.
func (e *Performers) teamOf(ctx context.Context, parent *thread.Rules, in tool.SpawnArgs, left, share belay.Limits, depth int) (*composing, *event.Problem, error) {
	if e.c.Team == nil || in.Agent == "" {
		return nil, nil, nil
	}
	file, parts, err := e.c.Team(ctx, parent, in.Agent)
	if err != nil {
		problem, err := agentProblem(ctx, err)
		return nil, problem, err
	}
	if file == nil {
		return nil, nil, nil
	}
	t := &composing{e: e, file: file, parts: parts, in: in, parent: parent, tree: *parent, depth: depth + 1}
	t.limits = sharing(in.Within(left).Within(file.Limits), in.Within(belay.Limits{}).Within(file.Limits), left, share)
	return t, nil, nil
}

// agentProblem is what a model is told of an agent that can't be started.
func agentProblem(ctx context.Context, err error) (*event.Problem, error) {
	said, _ := errors.AsType[*belay.Error](err)
	if said == nil || ctx.Err() != nil {
		return nil, cmp.Or(ctx.Err(), err)
	}
	code := belay.CodeBadAgent
	if said.Code == belay.CodeNotCovered || said.Code == belay.CodeAgentStopped {
		code = said.Code
	}
	return &event.Problem{Class: tool.Denied, Code: strings.ToUpper(string(code)), Message: event.CutText(said.Error(), 1000), Hint: said.Hint}, nil
}
