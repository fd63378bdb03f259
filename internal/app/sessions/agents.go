package sessions

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/core/session"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/model/tokens"
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
	Late    bool              `json:"late,omitempty"` // of a wait: its time was over first
}

// SubagentShown is a sub-agent and how far it is.
type SubagentShown struct {
	Subagent   belay.SubagentID `json:"subagentId"`
	Parent     belay.ThreadID   `json:"parentThreadId"`
	Thread     belay.ThreadID   `json:"threadId"`
	Task       belay.TaskID     `json:"taskId"`
	Agent      string           `json:"agent"`
	Name       string           `json:"name,omitempty"`
	Status     string           `json:"status"` // queued, running, paused, waiting_permission, waiting_input, or how it ended
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
	out := &SubagentsShown{Fresh: f, Session: in.Session, Limits: s.Settings.Agents.OrDefaults(), Agents: []SubagentShown{}}
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
	if c.Paused {
		a.Status = event.Paused
	}
	t := th.Turn
	if t == nil {
		return a
	}
	a.Steps, a.Calls, a.Usage, a.MicroUSD, a.Active = t.Steps, t.Calls, t.Usage, t.Cost.MicroUSD, belay.Duration(t.Active)
	for _, o := range th.Opens() {
		if c.Paused {
			break
		}
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
	return toAgent(ctx, r, in.Session, in.Subagent, in.Reason, belay.CloseSubagent{Subagent: in.Subagent, Reason: in.Reason})
}

// toAgent brings a command about a sub-agent to its session.
func toAgent(ctx context.Context, r *app.Call, id belay.SessionID, agent belay.SubagentID, reason string, c belay.Command) (*app.Result, error) {
	if err := cmp.Or(input.Named("subagentId", string(agent)), input.Text("reason", reason, app.MaxReason)); err != nil {
		return nil, err
	}
	if _, err := r.Known(ctx, id); err != nil {
		return nil, err
	}
	told, err := r.Send(ctx, id, id.Stream(), c)
	return told, input.At("subagentId", err)
}

// PauseSubagent is what pause_subagent takes.
type PauseSubagent struct {
	Session  belay.SessionID  `json:"sessionId"`
	Subagent belay.SubagentID `json:"subagentId"`
	Now      bool             `json:"now,omitempty" jsonschema:"what is in flight is cancelled; else it finishes"`
	Reason   string           `json:"reason,omitempty"`
}

// PauseAgent keeps a sub-agent, and those that it started, from beginning anything.
func PauseAgent(ctx context.Context, r *app.Call, in *PauseSubagent) (*app.Result, error) {
	return toAgent(ctx, r, in.Session, in.Subagent, in.Reason, belay.PauseSubagent{Subagent: in.Subagent, Now: in.Now, Reason: in.Reason})
}

// ResumeSubagent is what resume_subagent takes.
type ResumeSubagent struct {
	Session  belay.SessionID  `json:"sessionId"`
	Subagent belay.SubagentID `json:"subagentId"`
	Reason   string           `json:"reason,omitempty"`
}

// ResumeAgent ends a pause.
func ResumeAgent(ctx context.Context, r *app.Call, in *ResumeSubagent) (*app.Result, error) {
	return toAgent(ctx, r, in.Session, in.Subagent, in.Reason, belay.ResumeSubagent{Subagent: in.Subagent, Reason: in.Reason})
}

// SendSubagentInput is what send_subagent_input takes.
type SendSubagentInput struct {
	Session   belay.SessionID  `json:"sessionId"`
	Subagent  belay.SubagentID `json:"subagentId"`
	Text      string           `json:"text"`
	Interrupt bool             `json:"interrupt,omitempty" jsonschema:"what it does now ends"`
	Turn      belay.TurnID     `json:"turnId,omitempty" jsonschema:"the caller's id of its new turn"`
}

// SendInput gives a sub-agent a text.
func SendInput(ctx context.Context, r *app.Call, in *SendSubagentInput) (*app.Result, error) {
	if err := cmp.Or(input.Named("subagentId", string(in.Subagent)), input.ID("turnId", string(in.Turn)), input.Text("text", in.Text, app.MaxText)); err != nil {
		return nil, err
	}
	if strings.TrimSpace(in.Text) == "" {
		return nil, input.At("text", belay.Errorf(belay.CodeBadCommand, "the text is empty"))
	}
	s, err := r.Known(ctx, in.Session)
	if err != nil {
		return nil, err
	}
	text, err := app.Given{Text: in.Text}.Keep(ctx, r.Store, r.Workspaces.Secrets(), tokens.Profile{}, s.Settings)
	if err != nil {
		return nil, err
	}
	return r.ToSubagent(ctx, s, in.Subagent, in.Turn, text, in.Interrupt)
}

// WaitSubagents is what wait_subagents takes.
type WaitSubagents struct {
	Session   belay.SessionID    `json:"sessionId"`
	Subagents []belay.SubagentID `json:"subagentIds,omitempty" jsonschema:"all that are open when it is left out"`
	All       bool               `json:"all,omitempty" jsonschema:"until all have ended, not one"`
	Timeout   int                `json:"timeoutSeconds,omitempty" jsonschema:"at most 60, which is also the default; then they are shown as they are"`
}

// maxWait is how long an answer of wait_subagents takes at most, in seconds.
const maxWait = 60

func waitSubagents(ctx context.Context, r *app.Call, in *WaitSubagents) (*SubagentsShown, error) {
	if in.Timeout < 0 || in.Timeout > maxWait {
		return nil, input.At("timeoutSeconds", belay.Errorf(belay.CodeBadCommand, "%d seconds are none of 0 to %d", in.Timeout, maxWait))
	}
	timeout := time.After(time.Duration(cmp.Or(in.Timeout, maxWait)) * time.Second)
	for {
		changed := r.Store.Changed(ctx)
		s, err := r.Known(ctx, in.Session)
		if err != nil {
			return nil, err
		}
		over, open, err := waited(s, in.Subagents)
		late := false
		if err == nil && open > 0 && (in.All || over == 0) {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-timeout:
				late = true
			case <-changed:
				continue
			}
		}
		if err != nil {
			return nil, err
		}
		fresh, err := r.Fresh(ctx, 0)
		if err != nil {
			return nil, err
		}
		out, err := Subagents(ctx, r, fresh, &ListSubagents{Session: in.Session})
		if err != nil {
			return nil, err
		}
		out.Late = late
		if len(in.Subagents) > 0 {
			out.Agents = slices.DeleteFunc(out.Agents, func(a SubagentShown) bool { return !slices.Contains(in.Subagents, a.Subagent) })
		}
		return out, nil
	}
}

// waited counts the sub-agents that are waited for: those that have ended, and those
// that haven't.
func waited(s *session.State, ids []belay.SubagentID) (over, open int, err error) {
	for _, id := range ids {
		if s.Family.Find(id) == nil {
			return 0, 0, input.At("subagentIds", belay.Errorf(belay.CodeNotFound, "the session has no agent %s", id).WithHint("list_subagents lists them"))
		}
	}
	for _, c := range s.Family {
		switch {
		case len(ids) > 0 && !slices.Contains(ids, c.ID):
		case c.Outcome == "":
			open++
		case len(ids) > 0:
			over++
		}
	}
	return over, open, nil
}
