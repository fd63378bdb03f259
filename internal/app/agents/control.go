package agents

import (
	"cmp"
	"context"
	"errors"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/core/session"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view"
)

// PauseAgent is what pause_agent takes.
type PauseAgent struct {
	Agent     string `json:"agent" jsonschema:"NAME, NAME@RANGE or ORIGIN:NAME of one that is kept as a file"`
	Workspace string `json:"workspace,omitempty" jsonschema:"the folder; the server's own when it is left out"`
	Now       bool   `json:"now,omitempty" jsonschema:"what is in flight is cancelled; else it finishes"`
	Reason    string `json:"reason,omitempty"`
}

// ResumeAgent is what resume_agent takes.
type ResumeAgent struct {
	Agent     string `json:"agent" jsonschema:"NAME, NAME@RANGE or ORIGIN:NAME of one that is kept as a file"`
	Workspace string `json:"workspace,omitempty" jsonschema:"the folder; the server's own when it is left out"`
	Reason    string `json:"reason,omitempty"`
}

// StopAgent is what stop_agent takes.
type StopAgent struct {
	Agent     string `json:"agent" jsonschema:"NAME, NAME@RANGE or ORIGIN:NAME of one that is kept as a file"`
	Workspace string `json:"workspace,omitempty" jsonschema:"the folder; the server's own when it is left out"`
	Now       bool   `json:"now,omitempty" jsonschema:"what it does is cancelled; else it ends what it has"`
	Reason    string `json:"reason,omitempty"`
}

// AgentControlled is an agent as a person's word left it.
type AgentControlled struct {
	Position store.Position   `json:"position"`
	Agent    string           `json:"agent"`  // as facts call it
	Status   string           `json:"status"` // paused, stopped, working
	Turns    []ControlledTurn `json:"turns"`  // of it that have begun and not ended
}

// ControlledTurn is a turn of an agent.
type ControlledTurn struct {
	Session  belay.SessionID  `json:"sessionId"`
	Thread   belay.ThreadID   `json:"threadId"`
	Turn     belay.TurnID     `json:"turnId"`
	Subagent belay.SubagentID `json:"subagentId,omitempty"`
}

// Subject is the agent as records of commands name it.
func (c *AgentControlled) Subject() string { return c.Agent }

// CheckAgent is what check_agent takes.
type CheckAgent struct {
	Agent     string `json:"agent" jsonschema:"NAME, NAME@RANGE or ORIGIN:NAME of one that is kept as a file"`
	Workspace string `json:"workspace,omitempty" jsonschema:"the folder where its health command runs; the server's own when it is left out"`
}

// AgentChecked is what an agent's health command said.
type AgentChecked struct {
	Position store.Position `json:"position"`
	Agent    string         `json:"agent"`
	Well     bool           `json:"well"`
	Said     string         `json:"said,omitempty"` // of one that isn't well
}

// Subject is the agent as records of commands name it.
func (c *AgentChecked) Subject() string { return c.Agent }

// Check runs the health command of an agent.
func Check(ctx context.Context, r *app.Call, in *CheckAgent) (*AgentChecked, error) {
	if err := input.Text("agent", in.Agent, app.MaxTitle); err != nil {
		return nil, err
	}
	ws, err := r.Workspaces.Workspace(ctx, in.Workspace)
	if err != nil {
		return nil, input.At("workspace", err)
	}
	cat, err := r.Workspaces.Agents(ctx, ws)
	if err != nil {
		return nil, err
	}
	a, err := cat.Find(in.Agent)
	if err != nil {
		return nil, input.At("agent", err)
	}
	out := &AgentChecked{Agent: a.Called()}
	if out.Said, err = r.Workspaces.CheckHealth(ctx, ws, a); err != nil {
		return nil, input.At("agent", err)
	}
	out.Well = out.Said == ""
	out.Position, err = r.Store.End(ctx)
	return out, err
}

// Pause holds what an agent does, in all sessions, and what is new waits.
func Pause(ctx context.Context, r *app.Call, in *PauseAgent) (*AgentControlled, error) {
	return control(ctx, r, in, event.Paused)
}

// Resume lets an agent go on that was paused or stopped, or that is unhealthy.
func Resume(ctx context.Context, r *app.Call, in *ResumeAgent) (*AgentControlled, error) {
	return control(ctx, r, &PauseAgent{Agent: in.Agent, Workspace: in.Workspace, Reason: in.Reason}, event.Resumed)
}

// Stop lets an agent take nothing new. It ends what it has.
func Stop(ctx context.Context, r *app.Call, in *StopAgent) (*AgentControlled, error) {
	return control(ctx, r, &PauseAgent{Agent: in.Agent, Workspace: in.Workspace, Now: in.Now, Reason: in.Reason}, config.AgentStopped)
}

// control records a person's word about an agent, and tells it to what the agent does. The
// fact comes first: a turn that begins later asks for it.
func control(ctx context.Context, r *app.Call, in *PauseAgent, op string) (*AgentControlled, error) {
	if err := cmp.Or(input.Text("agent", in.Agent, app.MaxTitle), input.Text("reason", in.Reason, app.MaxReason)); err != nil {
		return nil, err
	}
	name, err := Called(ctx, r, in.Workspace, in.Agent)
	if err != nil {
		return nil, err
	}
	w := config.TrustWriter{Store: r.Store, Owner: store.ThisProcess(), By: r.By.String()}
	if err := w.ControlAgent(ctx, name, op, in.Now, r.Clean(in.Reason)); err != nil {
		return nil, err
	}
	if err := view.Catchup(ctx, r.Store); err != nil {
		return nil, err
	}
	turns, err := view.TurnsOf(ctx, r.Store, name)
	if err != nil {
		return nil, err
	}
	out := &AgentControlled{Agent: name, Status: map[string]string{event.Paused: "paused", config.AgentStopped: "stopped"}[op], Turns: []ControlledTurn{}}
	out.Status = cmp.Or(out.Status, "working")
	said := config.AgentControl{Op: op, Reason: r.Clean(in.Reason)}
	reason := "agent " + name + " is " + said.String()
	if op == event.Paused {
		reason = said.Waits(name)
	}
	for _, t := range turns {
		s, err := r.Session(ctx, t.Session)
		if err != nil {
			return nil, err
		}
		told := ControlledTurn{Session: t.Session, Thread: t.Thread, Turn: t.Turn}
		if c := s.Family.ByThread(t.Thread); c != nil {
			told.Subagent = c.ID
		}
		if err := tell(ctx, r, s, told, belay.PauseThread{Op: op, Now: in.Now, Agent: name, Reason: reason}); err != nil {
			return nil, err
		}
		out.Turns = append(out.Turns, told)
	}
	out.Position, err = r.Store.End(ctx)
	return out, err
}

// tell tells a turn of an agent, and those of the agents that it started, what became of it.
// A session that was deleted, and a turn that has ended meanwhile, need nothing.
func tell(ctx context.Context, r *app.Call, s *session.State, t ControlledTurn, c belay.PauseThread) error {
	done := func(_ *app.Result, err error) error {
		if code := belay.CodeOf(err); code == belay.CodeDeleted || code == belay.CodeBadState {
			return nil
		}
		return err
	}
	if c.Op == config.AgentStopped && c.Now && t.Subagent != "" {
		return done(r.Send(ctx, t.Session, t.Session.Stream(), belay.CloseSubagent{Subagent: t.Subagent, Reason: c.Reason}))
	}
	if c.Op == config.AgentStopped && c.Now {
		return done(r.Send(ctx, t.Session, t.Thread.Stream(), belay.InterruptTurn{Turn: t.Turn, Reason: c.Reason}))
	}
	if c.Op == config.AgentStopped { // what it has it ends, also what was paused
		c.Op = event.Resumed
	}
	threads := []belay.ThreadID{t.Thread}
	for i := 0; i < len(threads); i++ {
		for _, k := range s.Family {
			if k.Parent == threads[i] && k.Outcome == "" {
				threads = append(threads, k.Thread)
			}
		}
	}
	var all error
	for _, th := range threads {
		all = errors.Join(all, done(r.Send(ctx, t.Session, th.Stream(), c)))
	}
	return all
}

// Called is what facts call the agent that a name means: one that is kept as a file, or
// one that was and has worked.
func Called(ctx context.Context, r *app.Call, workspace, name string) (string, error) {
	ws, err := r.Workspaces.Workspace(ctx, workspace)
	if err != nil {
		return "", input.At("workspace", err)
	}
	cat, err := r.Workspaces.Agents(ctx, ws)
	if err != nil {
		return "", err
	}
	a, missing := cat.Find(name)
	if missing == nil {
		return a.Called(), nil
	}
	if err := (view.Projector{Store: r.Store, Of: view.Figures}).Catchup(ctx); err != nil {
		return "", err
	}
	runs, err := view.RunsOfAgents(ctx, r.Store, name)
	if err == nil && runs[name].Runs == 0 {
		var book *config.TrustBook
		if book, err = config.ReadTrust(ctx, r.Store); err == nil && book.AgentControl(name) == (config.AgentControl{}) {
			return "", input.At("agent", missing)
		}
	}
	return name, err
}
