package story

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// AgentStats is what the runs of one agent add up to, without those of agents that it started.
// A run is an attempt of a task: a turn that ended.
type AgentStats struct {
	Agent    string                `json:"agent"`
	Versions []string              `json:"versions,omitempty"` // that ran
	Runs     int                   `json:"runs"`
	Ends     map[belay.Outcome]int `json:"ends,omitempty"`
	P50MS    int64                 `json:"p50Ms"` // active time: half of the runs took at most this
	P95MS    int64                 `json:"p95Ms"`
	Tokens   *int64                `json:"tokens,omitempty"`       // of runs whose usage is known; nil: there is none
	Unknown  int                   `json:"unknownUsage,omitempty"` // runs that sent requests, and no provider reported what they used
	Cost     event.CostSum         `json:"cost,omitzero"`
	Retries  int                   `json:"retries"`  // runs that were not the first attempt of their task
	GateReds int                   `json:"gateReds"` // checks of tasks that didn't pass
	Week     AgentWeek             `json:"week"`     // the last seven days
	Before   AgentWeek             `json:"before"`   // the seven before

	// Context is how many tokens models wrote for each one that they read; nil: no run's usage
	// is known.
	Context *float64 `json:"contextEfficiency,omitempty"`

	read, wrote int64   // tokens of runs whose usage is known
	ms          []int64 // active time of the runs that tell how long they take
	active      int64   // milliseconds of all runs
}

// Active is the active time of all runs.
func (a *AgentStats) Active() time.Duration { return time.Duration(a.active) * time.Millisecond }

// Percentile is the active time that so many percent of the runs took at most.
func (a *AgentStats) Percentile(percent int) time.Duration {
	return time.Duration(rank(slices.Sorted(slices.Values(a.ms)), percent)) * time.Millisecond
}

// use counts tokens that a run reported.
func (a *AgentStats) use(read, wrote int64) {
	a.read, a.wrote = a.read+read, a.wrote+wrote
	sum := a.read + a.wrote
	a.Tokens = &sum
}

// efficient sets what tokens tell.
func (a *AgentStats) efficient() {
	if a.read > 0 {
		share := float64(a.wrote) / float64(a.read)
		a.Context = &share
	}
}

// AgentWeek is a week of an agent.
type AgentWeek struct {
	Runs      int   `json:"runs"`
	Completed int   `json:"completed"`
	Tokens    int64 `json:"tokens,omitempty"` // of runs whose usage is known
	MicroUSD  int64 `json:"microUsd"`
}

// AgentsFold counts the turns of agents by their ends.
type AgentsFold struct {
	since, now time.Time
	agents     map[string]*AgentStats
}

// newest is how many runs tell how long an agent takes, where nothing but a sum is kept.
const newest = 1000

// NewAgentsFold counts turns that end after since; zero: all. Without a time that is now
// it counts no weeks, and only the newest runs of an agent tell how long it takes.
func NewAgentsFold(since, now time.Time) *AgentsFold {
	return &AgentsFold{since: since, now: now, agents: map[string]*AgentStats{}}
}

// Apply counts one fact.
func (f *AgentsFold) Apply(e event.Envelope) {
	switch p := e.Data.(type) {
	case event.TurnCompleted:
		f.Ended(e.Time, p.Stats)
	case event.TurnFailed:
		f.Ended(e.Time, p.Stats)
	}
}

// Ended counts a turn that ended.
func (f *AgentsFold) Ended(at time.Time, st event.TurnStats) {
	if st.Agent == "" {
		return
	}
	st = st.Own() // what agents below it took, their own runs say
	a := f.agents[st.Agent]
	if a == nil {
		a = &AgentStats{Agent: st.Agent, Ends: map[belay.Outcome]int{}}
		f.agents[st.Agent] = a
	}
	for _, w := range []struct {
		week *AgentWeek
		ago  time.Duration
	}{{&a.Week, 0}, {&a.Before, 7 * 24 * time.Hour}} {
		to := f.now.Add(-w.ago)
		if !at.After(to.Add(-7*24*time.Hour)) || at.After(to) {
			continue
		}
		w.week.Runs++
		if st.Outcome == belay.Completed {
			w.week.Completed++
		}
		w.week.Tokens += st.Usage.Total()
		w.week.MicroUSD += st.Cost.MicroUSD
	}
	if !f.since.IsZero() && !at.After(f.since) {
		return
	}
	if v := st.Version; v != "" && !slices.Contains(a.Versions, v) {
		a.Versions = append(a.Versions, v)
	}
	a.Runs++
	a.Ends[st.Outcome]++
	if a.ms = append(a.ms, st.ActiveMS); f.now.IsZero() && len(a.ms) >= 2*newest {
		a.ms = slices.Clone(a.ms[len(a.ms)-newest:])
	}
	a.active += st.ActiveMS
	switch {
	case st.Usage.Reported:
		a.use(st.Usage.Input, st.Usage.Output)
	case st.Steps > 0:
		a.Unknown++
	}
	a.Cost = a.Cost.Add(st.Cost)
	a.Retries += st.Retries
	a.GateReds += st.GateReds
}

// Sum is what was counted so far, by name. Agents without a turn in the time, and in the two
// weeks, are left out.
func (f *AgentsFold) Sum() (all []AgentStats) {
	for _, name := range slices.Sorted(maps.Keys(f.agents)) {
		a := *f.agents[name]
		if a.Runs+a.Week.Runs+a.Before.Runs == 0 {
			continue
		}
		slices.Sort(a.Versions)
		a.P50MS, a.P95MS = a.Percentile(50).Milliseconds(), a.Percentile(95).Milliseconds()
		a.efficient()
		all = append(all, a)
	}
	return all
}

// rank is the smallest value that so many percent of sorted values are at most.
func rank(sorted []int64, percent int) int64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max((len(sorted)*percent+99)/100, 1)-1]
}

// Most are at most n agents, those with the most runs; the others are one, with the name
// other.
func Most(all []AgentStats, n int) []AgentStats {
	if len(all) <= n {
		return all
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b AgentStats) int { return cmp.Compare(b.Runs, a.Runs) })
	other := AgentStats{Agent: "other", Ends: map[belay.Outcome]int{}}
	for _, a := range all[n:] {
		other.Runs += a.Runs
		for o, k := range a.Ends {
			other.Ends[o] += k
		}
		if other.Unknown += a.Unknown; a.Tokens != nil {
			other.use(a.read, a.wrote)
		}
		other.Cost = other.Cost.Add(a.Cost)
		other.Retries += a.Retries
		other.GateReds += a.GateReds
		other.active += a.active
		other.ms = append(other.ms, a.ms...)
	}
	other.efficient()
	return append(all[:n], other)
}
