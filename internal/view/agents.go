package view

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

// AgentRuns is what the turns of an agent came to that have ended.
type AgentRuns struct {
	Runs      int        `json:"runs"`
	Completed int        `json:"completed"`
	Ends      []AgentEnd `json:"ends,omitempty"` // the last ones that tell of its health, the newest last
}

// AgentEnd is the end of a turn that tells of its agent's health.
type AgentEnd struct {
	At      time.Time       `json:"at"`
	Good    bool            `json:"good,omitempty"`
	Session belay.SessionID `json:"sessionId,omitempty"`
}

// FailedInARow is how many failed runs in a row make an agent unhealthy.
const FailedInARow = 3

func (r *AgentRuns) plus(o AgentRuns) {
	r.Runs, r.Completed = r.Runs+o.Runs, r.Completed+o.Completed
	r.Ends = append(r.Ends, o.Ends...)
	slices.SortStableFunc(r.Ends, func(a, b AgentEnd) int { return a.At.Compare(b.At) })
	r.Ends = slices.Clip(r.Ends[max(0, len(r.Ends)-FailedInARow):])
}

// Failing reports whether so many runs in a row have failed since a time that the agent is
// unhealthy, and when the last of them ended.
func (r AgentRuns) Failing(since time.Time) (last time.Time, failing bool) {
	ends := slices.DeleteFunc(slices.Clone(r.Ends), func(e AgentEnd) bool { return !e.At.After(since) })
	if len(ends) < FailedInARow || slices.ContainsFunc(ends, func(e AgentEnd) bool { return e.Good }) {
		return time.Time{}, false
	}
	return ends[len(ends)-1].At, true
}

// agentEnded counts the end of a turn for its agent. One that a person ended, or that wasn't
// let in, tells nothing of the agent's health.
func (f *figuresFolding) agentEnded(ctx context.Context, e event.Envelope, o *open) error {
	how, code := belay.Completed, ""
	switch p := e.Data.(type) {
	case event.TurnCompleted:
	case event.TurnFailed:
		how, code = p.Outcome, p.Code
	default:
		return nil
	}
	name, is := o.Agents[e.IDs.Turn]
	if !is {
		return nil
	}
	delete(o.Agents, e.IDs.Turn)
	r, err := figure[AgentRuns](ctx, f, agentKey+name+"/"+string(e.IDs.Session))
	if err != nil {
		return err
	}
	one := AgentRuns{Runs: 1}
	if how == belay.Completed {
		one.Completed = 1
	}
	if how != belay.Cancelled && !strings.EqualFold(code, string(belay.CodeAgentStopped)) {
		one.Ends = []AgentEnd{{e.Time, how == belay.Completed, e.IDs.Session}}
	}
	r.plus(one)
	return nil
}

// RunsOfAgents are the runs of agents by their names: of all, or of one.
func RunsOfAgents(ctx context.Context, st store.Store, agent string) (map[string]AgentRuns, error) {
	all := map[string]AgentRuns{}
	prefix := agentKey
	if agent != "" {
		prefix += agent + "/"
	}
	for key, data := range st.ViewRows(ctx, figuresName, prefix) {
		rest, is := strings.CutPrefix(key, prefix)
		if !is {
			break
		}
		var r AgentRuns
		if err := decode(key, data, &r); err != nil {
			return nil, err
		}
		name, _, _ := strings.Cut(rest, "/")
		if agent != "" {
			name = agent
		}
		sum := all[name]
		sum.plus(r)
		all[name] = sum
	}
	return all, ctx.Err()
}

// AgentTurn is a turn of an agent that hasn't ended.
type AgentTurn struct {
	Session belay.SessionID `json:"sessionId"`
	Thread  belay.ThreadID  `json:"threadId"`
	Turn    belay.TurnID    `json:"turnId"`
	Steps   int             `json:"steps"`
	Calls   int             `json:"calls"`
	Usage   belay.Usage     `json:"usage,omitzero"`
	Active  belay.Duration  `json:"active,omitempty"`

	Programs Programs `json:"-"`
}

// TurnsOf are the turns of an agent that have begun and not ended, as far as the view of
// sessions is folded.
func TurnsOf(ctx context.Context, st store.Store, agent string) (all []AgentTurn, err error) {
	for key, data := range st.ViewRows(ctx, Name, sessionKey) {
		if !strings.HasPrefix(key, sessionKey) {
			break
		}
		var s Session
		if err := decode(key, data, &s); err != nil {
			return nil, err
		}
		for _, th := range s.Threads {
			if t := th.Turn; t != nil && t.Status != Ended && t.Agent == agent {
				all = append(all, AgentTurn{s.ID, th.ID, t.ID, t.Steps, t.Calls, t.Usage, t.Active, th.Programs})
			}
		}
	}
	slices.SortFunc(all, func(a, b AgentTurn) int { return cmp.Compare(a.Thread, b.Thread) })
	return all, ctx.Err()
}
