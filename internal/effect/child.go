package effect

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/belay-run/belay"

	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/tool"
)

// prepareChild composes the rules of a sub-agent and keeps them.
func (v *performer) prepareChild(ctx context.Context, eff core.PrepareChild) []core.Fact {
	failed := func(p event.Problem) []core.Fact {
		return []core.Fact{{IDs: eff.IDs, Data: event.ToolFailed{Name: tool.SpawnName, Attempt: 1, Problem: p, Final: true}}}
	}
	fact, problem, err := v.childStatus(ctx, eff)
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
	return []core.Fact{{IDs: ids, Data: fact}}
}

func (v *performer) childStatus(ctx context.Context, eff core.PrepareChild) (p event.SubagentStatus, problem *event.Problem, err error) {
	args := eff.Args
	if eff.ArgsRef != nil {
		if args, err = v.e.c.Store.Get(ctx, eff.ArgsRef.Digest); err != nil {
			return p, nil, err
		}
	}
	var in tool.SpawnArgs
	if err := json.Unmarshal(args, &in); err != nil { // it was held against the tool's schema
		return p, nil, err
	}
	parent, err := v.rules(ctx, eff.Rules)
	if err != nil {
		return p, nil, err
	}
	complete, _ := v.e.c.Tools.Get(tool.CompleteName)
	wish := thread.ChildWish{Agent: in.Agent, Tools: in.Tools, Limits: in.Within(eff.Limits), Depth: eff.Depth, File: v.e.c.Agent != nil && !thread.IsKind(in.Agent)}
	rules, problem := parent.Child(wish, v.e.c.TaskPrompt, complete.Spec())
	if problem != nil {
		return p, problem, nil
	}
	if wish.File {
		switch found, err := v.e.c.Agent(ctx, rules, in.Agent); {
		case err != nil && ctx.Err() == nil:
			e, _ := errors.AsType[*belay.Error](err)
			if e == nil {
				return p, nil, err
			}
			return p, &event.Problem{Class: "denied", Code: "BAD_AGENT", Message: event.CutText(e.Error(), 1000), Hint: e.Hint}, nil
		case err != nil:
			return p, nil, err
		case !found:
			wish.File = false
			_, problem = parent.Child(wish, v.e.c.TaskPrompt, complete.Spec())
			return p, problem, nil
		}
	}
	ref, err := v.e.KeepRules(ctx, rules)
	if err != nil {
		return p, nil, err
	}
	objective, err := v.e.content(ctx, v.e.c.Secrets.String(in.Task), "text/plain")
	return event.SubagentStatus{Status: event.SubagentPrepared, Agent: rules.Agent, Nickname: in.Name, Background: in.Background, Objective: &objective, Rules: &ref}, nil, err
}
