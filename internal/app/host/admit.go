package host

import (
	"context"
	"fmt"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/config/agentfile"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view"
)

// Bounds of how an agent is admitted that failed too often.
const (
	trialAfter = 5 * time.Minute // its last failure, or the trial before
	sumsWithin = 2 * time.Second // what is known of its runs may lie behind the log
)

// admit tells whether the agent of a turn may work now. What a person said of the agent
// counts first, then how its last runs ended.
func (h *Host) admit(ctx context.Context, agent string, of belay.IDs) (event.Pause, string, error) {
	turn := of.Turn
	book, err := config.ReadTrust(ctx, h.opened)
	if err != nil {
		return event.Pause{}, "", err
	}
	runs, err := h.runsOf(ctx, agent)
	if err != nil {
		return event.Pause{}, "", err
	}
	c := book.AgentControl(agent)
	if refused := c.Refuses(agent, ""); refused != nil {
		again, err := h.goesOn(ctx, of, c.At)
		if err != nil {
			return event.Pause{}, "", err
		}
		if again {
			return event.Pause{Op: event.Refused}, refused.Error(), nil
		}
	}
	p, why, try := admitted(agent, turn, c, runs, h.c.Now())
	if !try {
		return p, why, nil
	}
	w := config.TrustWriter{Store: h.opened, Owner: store.ThisProcess(), By: h.c.Principal}
	if c, err = w.TryAgent(ctx, agent, turn, c); err != nil {
		return event.Pause{}, "", err
	}
	p, why, _ = admitted(agent, turn, c, runs, h.c.Now()) // another one may be the trial
	return p, why, nil
}

// admitted is whether a turn may work, by what is known of its agent. try says that it could
// be the trial of an agent that failed too often. An empty turn is one that there isn't yet.
func admitted(agent string, turn belay.TurnID, c config.AgentControl, runs view.AgentRuns, now time.Time) (p event.Pause, why string, try bool) {
	if p, why = said(agent, c); p.Op != event.Admitted {
		return p, why, false
	}
	last, failing := runs.Failing(c.Resumed)
	switch {
	case !failing:
		return p, "", false
	case turn != "" && c.Trial == turn:
		return p, "it is the trial of an agent that failed too often", false
	case c.Tried.After(last): // another one is
		last = c.Tried
	}
	again := last.Add(trialAfter)
	return event.Pause{Op: event.Paused, Until: again},
		fmt.Sprintf("the last %d runs of agent %s failed, so it is unhealthy: one is tried five minutes after; belay agents resume %s lets all go on", view.FailedInARow, agent, agent),
		!now.Before(again)
}

// inPlace is the agent that takes new work for one: the first of its fallbacks that is well,
// while the agent itself failed too often and isn't to be tried. why is said of that one
// alone; no agent takes work for one that a person paused or stopped.
func (h *Host) inPlace(ctx context.Context, cat *agentfile.Catalog, a *agentfile.Agent) (_ *agentfile.Agent, why string, err error) {
	if !a.Trusted || len(a.Fallback) == 0 || h.opened == nil {
		return a, "", nil
	}
	book, err := config.ReadTrust(ctx, h.opened)
	if err != nil {
		return nil, "", err
	}
	works := func(a *agentfile.Agent) (works bool, why string, err error) {
		c := book.AgentControl(a.Called())
		runs, err := h.runsOf(ctx, a.Called())
		p, why, try := admitted(a.Called(), "", c, runs, h.c.Now())
		return try || p.Op == event.Admitted && c.Op != config.AgentStopped, why, err
	}
	if c := book.AgentControl(a.Called()); c.Op == config.AgentPaused || c.Op == config.AgentStopped {
		return a, "", nil
	}
	if ok, why, err := works(a); ok || why == "" || err != nil {
		return a, "", err
	}
	for i, name := range a.Fallback {
		b, err := cat.Find(name)
		if err != nil || len(b.Members) > 0 {
			continue // it can't
		}
		if ok, _, err := works(b); !ok || err != nil {
			continue
		}
		other := *b
		if len(b.Fallback) == 0 {
			other.Fallback = a.Fallback[i+1:]
		}
		return &other, fmt.Sprintf("its last %d runs failed, so it is unhealthy: %s works in its place", view.FailedInARow, b.Title()), nil
	}
	return a, "", nil
}

// said is what a person's word about an agent means for work that it has already.
func said(agent string, c config.AgentControl) (event.Pause, string) {
	switch {
	case c.Op == config.AgentPaused:
		return event.Pause{Op: event.Paused}, c.Waits(agent)
	case c.Op == config.AgentStopped && c.Now:
		return event.Pause{Op: event.Refused, Now: true}, "agent " + agent + " is " + c.String()
	}
	return event.Pause{Op: event.Admitted}, ""
}

// runsOf is what is known of an agent's runs.
func (h *Host) runsOf(ctx context.Context, agent string) (view.AgentRuns, error) {
	within, cancel := context.WithTimeout(ctx, sumsWithin)
	defer cancel()
	err := view.Projector{Store: h.opened, Of: view.Figures}.Catchup(within)
	if err != nil && within.Err() == nil {
		return view.AgentRuns{}, err
	}
	all, err := view.RunsOfAgents(ctx, h.opened, agent)
	return all[agent], err
}

// takesWork refuses new work for an agent that was stopped.
func (h *Host) takesWork(ctx context.Context, agent, path string) error {
	if h.opened == nil {
		return nil
	}
	book, err := config.ReadTrust(ctx, h.opened)
	if err != nil {
		return err
	}
	return book.AgentControl(agent).Refuses(agent, path)
}

// goesOn reports whether a turn is one with which an agent that had ended goes on, and was
// submitted after a time.
func (h *Host) goesOn(ctx context.Context, turn belay.IDs, since time.Time) (bool, error) {
	n, child := 0, false
	for e, err := range h.opened.Read(ctx, turn.Thread.Stream(), 0) {
		if err != nil {
			return false, err
		}
		switch p := e.Data.(type) {
		case event.ThreadStarted:
			child = p.Depth > 0
		case event.TurnSubmitted:
			if n++; e.IDs.Turn == turn.Turn {
				return child && n > 1 && e.Time.After(since), nil
			}
		}
	}
	return false, nil
}
