package app

import (
	"cmp"
	"context"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/core/session"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/lib/match"
	"github.com/belay-run/belay/internal/tool"
)

// maxTaints is how many origins of what is untrusted an agent begins with.
const maxTaints = 64

// PrepareChild puts into c, which names the parent's thread, what a child of that thread is
// decided by.
func (r *Call) PrepareChild(ctx context.Context, s *session.State, in tool.SpawnArgs, c *belay.SpawnSubagent) error {
	var rules belay.Ref
	depth := 0
	if p := s.Family.ByThread(c.Parent); p != nil {
		rules, depth = p.Rules, p.Depth
	}
	th, err := r.Thread(ctx, c.Parent)
	if err != nil {
		return err
	}
	c.Taint = thread.TaintNames(th.Taint, maxTaints)
	switch t := th.Turn; {
	case t != nil:
		c.Turn, c.ParentTask, c.Priority, rules = t.Turn, t.Task, t.Priority, t.Rules
	case rules == belay.Ref{}:
		if rules, err = r.Workspaces.Rules(ctx, r.By.String(), s.Workspace, s.Settings); err != nil {
			return err
		}
	}
	err = r.Workspaces.PrepareChild(ctx, rules, in, th.Left(r.Now()), depth+1, c)
	switch code := belay.CodeOf(err); {
	case code == belay.CodeUnknownAgent, code == belay.CodeBadAgent, code == belay.CodeAgentStopped:
		return input.At("agent", err)
	case code == belay.CodeBadInput:
		return input.At("input", err)
	case code == belay.CodeNoWorktree:
		return input.At("isolation", err)
	case code == belay.CodeNotCovered && len(in.Tools) > 0:
		return input.At("tools", err)
	}
	return err
}

// Background names the programs in the background of a thread and of the agents below it: a
// pause of these doesn't hold them.
func (r *Call) Background(ctx context.Context, s *session.State, thread belay.ThreadID) (string, error) {
	var names []string
	threads := []belay.ThreadID{thread}
	for i := 0; i < len(threads); i++ {
		th, err := r.Thread(ctx, threads[i])
		if err != nil {
			return "", err
		}
		if name := th.Background(); name != "" {
			names = append(names, name)
		}
		for _, k := range s.Family {
			if k.Parent == threads[i] && k.Outcome == "" {
				threads = append(threads, k.Thread)
			}
		}
	}
	return strings.Join(names, ", "), nil
}

// NoAgent refuses a sub-agent that a session hasn't got.
func NoAgent(s *session.State, id belay.SubagentID) error {
	var names []string
	for _, c := range s.Family {
		names = append(names, cmp.Or(c.Nickname, string(c.ID)))
	}
	return belay.Errorf(belay.CodeNotFound, "the session has no agent %s", input.Shown(string(id))).WithHint("%s", match.Hint(string(id), names, "list_subagents lists them"))
}
