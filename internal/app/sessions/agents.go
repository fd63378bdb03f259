package sessions

import (
	"context"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/core/session"
	"github.com/belay-run/belay/internal/core/thread"
)

// ListSubagents is what list_subagents takes.
type ListSubagents struct {
	Session belay.SessionID `json:"sessionId"`
	app.AsOf
}

// SubagentsShown are the sub-agents of a session, in the order in which they were opened.
type SubagentsShown struct {
	app.Fresh
	Session belay.SessionID   `json:"sessionId"`
	Limits  belay.AgentLimits `json:"limits"`
	Agents  []SubagentShown   `json:"agents"`
}

// SubagentShown is a sub-agent and how far it is.
type SubagentShown struct {
	Subagent   belay.SubagentID `json:"subagentId"`
	Parent     belay.ThreadID   `json:"parentThreadId"`
	Thread     belay.ThreadID   `json:"threadId"`
	Task       belay.TaskID     `json:"taskId"`
	Agent      string           `json:"agent"`
	Name       string           `json:"name,omitempty"`
	Status     string           `json:"status"` // queued, running, waiting_permission, waiting_input, or how it ended
	Depth      int              `json:"depth"`  // 1 is a child of a main thread
	Background bool             `json:"background,omitempty"`
	Doing      string           `json:"doing,omitempty"` // the call that runs
	Steps      int              `json:"steps"`
	Calls      int              `json:"calls"`
	Usage      belay.Usage      `json:"usage"`
	MicroUSD   int64            `json:"microUsd,omitempty"` // known to be charged, in millionths of a US dollar
	Active     belay.Duration   `json:"active,omitempty"`
}

// Subagents lists the sub-agents of a session.
func Subagents(ctx context.Context, r *app.Call, f app.Fresh, in *ListSubagents) (*SubagentsShown, error) {
	s, err := r.Known(ctx, in.Session)
	if err != nil {
		return nil, err
	}
	out := &SubagentsShown{f, in.Session, s.Settings.Agents.OrDefaults(), []SubagentShown{}}
	for _, c := range s.Family {
		th, err := r.Thread(ctx, c.Thread)
		if err != nil {
			return nil, err
		}
		out.Agents = append(out.Agents, subagent(c, th))
	}
	return out, nil
}

func subagent(c session.Child, th *thread.State) SubagentShown {
	a := SubagentShown{Subagent: c.ID, Parent: c.Parent, Thread: c.Thread, Task: c.Task, Agent: c.Agent, Name: c.Nickname, Status: "running", Depth: c.Depth, Background: c.Background}
	switch {
	case c.Outcome != "":
		a.Status = string(c.Outcome)
		a.Steps, a.Calls, a.Usage, a.MicroUSD, a.Active = c.Steps, c.Calls, c.Usage, c.MicroUSD, c.Active
		return a
	case c.Waits:
		a.Status = "queued"
	}
	t := th.Turn
	if t == nil {
		return a
	}
	a.Steps, a.Calls, a.Usage, a.MicroUSD, a.Active = t.Steps, t.Calls, t.Usage, t.Cost.MicroUSD, belay.Duration(t.Active)
	for _, o := range th.Opens() {
		a.Status = "waiting_input"
		if o.Ask.Kind == "permission" {
			a.Status = "waiting_permission"
		}
	}
	if t.Step != nil {
		for _, call := range t.Step.Calls {
			if call.Phase == thread.CallRunning || call.Phase == thread.CallWaits {
				a.Doing = call.Name
			}
		}
	}
	return a
}

// CloseSubagent is what close_subagent takes.
type CloseSubagent struct {
	Session  belay.SessionID  `json:"sessionId"`
	Subagent belay.SubagentID `json:"subagentId"`
	Reason   string           `json:"reason,omitempty"`
}

// CloseAgent ends a sub-agent, with those that it started.
func CloseAgent(ctx context.Context, r *app.Call, in *CloseSubagent) (*app.Result, error) {
	if err := input.Named("subagentId", string(in.Subagent)); err != nil {
		return nil, err
	}
	if err := input.Text("reason", in.Reason, app.MaxReason); err != nil {
		return nil, err
	}
	if _, err := r.Known(ctx, in.Session); err != nil {
		return nil, err
	}
	told, err := r.Send(ctx, in.Session, in.Session.Stream(), belay.CloseSubagent{Subagent: in.Subagent, Reason: in.Reason})
	return told, input.At("subagentId", err)
}
