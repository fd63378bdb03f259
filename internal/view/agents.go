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
func (f *figuresFolding) agentEnded(ctx context.Context, rec store.Record, o *open) error {
	e, how, code := rec.Event, belay.Completed, ""
	var stats event.TurnStats
	switch p := e.Data.(type) {
	case event.TurnCompleted:
		stats = p.Stats
	case event.TurnFailed:
		how, code, stats = p.Outcome, p.Code, p.Stats
	default:
		return nil
	}
	if stats.Agent != "" {
		f.kept[ranKey+back(rec.Position)+"/"+string(e.IDs.Session)] = &AgentRun{e.Time, stats}
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

// entry is the row as it is saved: its agent's runs are counted, and those sessions in which
// it ended last are found first.
func (r *AgentRuns) entry(key string) (row store.ViewRow) {
	name := strings.TrimSuffix(strings.TrimPrefix(key, agentKey), "/"+string(store.About(key)))
	row.In = []string{worksList(name)}
	if n := len(r.Ends); n > 0 {
		row.Rank = r.Ends[n-1].At.UnixNano()
	}
	row.Adds = []store.Sum{{Kind: agentRuns, Name: name, N: int64(r.Runs)}, {Kind: agentCompleted, Name: name, N: int64(r.Completed)}}
	return row
}

// Sums of the runs of agents.
const (
	agentRuns      = "agent runs"
	agentCompleted = "agent runs completed"
)

// RunsOfAgents are the runs of agents by their names: of all, or of one.
func RunsOfAgents(ctx context.Context, st store.Store, agent string) (map[string]AgentRuns, error) {
	all := map[string]AgentRuns{}
	for _, kind := range []string{agentRuns, agentCompleted} {
		q := store.ViewSums{Kind: kind}
		if agent != "" {
			q.From, q.Most = agent, 1
		}
		sums, err := st.ViewSums(ctx, figuresName, q)
		if err != nil {
			return nil, err
		}
		for _, s := range sums {
			r := all[s.Name]
			if agent != "" && s.Name != agent {
				continue
			}
			if kind == agentRuns {
				r.Runs = int(s.N)
			} else {
				r.Completed = int(s.N)
			}
			all[s.Name] = r
		}
	}
	for name, r := range all {
		part, err := st.ViewList(ctx, figuresName, store.ViewList{In: []string{worksList(name)}, Most: FailedInARow})
		if err != nil {
			return nil, err
		}
		for _, row := range part {
			var in AgentRuns
			if err := decode(row.Key, row.Data, &in); err != nil {
				return nil, err
			}
			r.plus(AgentRuns{Ends: in.Ends})
		}
		all[name] = r
	}
	return all, nil
}

// AgentRun is a turn of an agent that has ended.
type AgentRun struct {
	At    time.Time       `json:"at"`
	Stats event.TurnStats `json:"stats"`
}

// EachAgentRun hands on the turns of agents that have ended, the newest first, until take
// has enough.
func EachAgentRun(ctx context.Context, st store.Store, take func(AgentRun) bool) error {
	for key, data := range st.ViewRows(ctx, figuresName, ranKey) {
		var r AgentRun
		if !strings.HasPrefix(key, ranKey) {
			break
		}
		if err := decode(key, data, &r); err != nil {
			return err
		}
		if !take(r) {
			break
		}
	}
	return ctx.Err()
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
	in, err := In(ctx, st, worksList(agent), 0)
	for _, s := range in {
		for _, th := range s.Threads {
			if t := th.Turn; t != nil && t.Status != Ended && t.Agent == agent {
				all = append(all, AgentTurn{s.ID, th.ID, t.ID, t.Steps, t.Calls, t.Usage, t.Active, th.Programs})
			}
		}
	}
	slices.SortFunc(all, func(a, b AgentTurn) int { return cmp.Compare(a.Thread, b.Thread) })
	return all, err
}
