// Command recount counts what belay stats --json --all says, from the output of
// belay events --json alone. It knows what docs/events.md says of the facts and
// shares no code with the runtime, so that each holds the other to account:
//
//	belay events --json | go run ./script/recount
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

func main() {
	sum, err := recount(os.Stdin)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(sum)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "recount:", err)
		os.Exit(1)
	}
}

// fact is what the figures need of a line.
type fact struct {
	Type    string    `json:"type"`
	Time    time.Time `json:"timestamp"`
	Session string    `json:"sessionId"`
	Turn    string    `json:"turnId"`
	Step    string    `json:"stepId"`
	Call    string    `json:"toolCallId"`
	Action  string    `json:"actionId"`
	Thread  string    `json:"threadId"`
	Agent   string    `json:"subagentId"`
	Payload payload   `json:"payload"`
}

type payload struct {
	Depth      int
	Again      bool
	Settings   struct{ Agents agentLimits }
	Attempt    int
	Provider   string
	Model      string
	Usage      usage
	FirstMS    int64 `json:"firstMs"`
	TookMS     int64 `json:"tookMs"`
	Name       string
	MS         int64 `json:"ms"`
	Exit       int
	Final      bool
	Problem    struct{ Class string }
	Outcome    string
	Code       string
	Stats      struct{ ActiveMS int64 }
	Amount     amount
	Unpriced   bool
	Source     string
	For        string
	Failed     bool
	Decision   string
	By         string
	Rule       string
	ReasonCode string
}

// amount is one of money; budgets have amounts of several kinds, which aren't read here.
type amount int64

// UnmarshalJSON implements json.Unmarshaler.
func (a *amount) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '{' {
		return nil
	}
	return json.Unmarshal(data, (*int64)(a))
}

type usage struct {
	Input      int64 `json:"input,omitempty"`
	Output     int64 `json:"output,omitempty"`
	Cached     int64 `json:"cached,omitempty"`
	Reported   bool  `json:"reported,omitempty"`
	CacheWrite int64 `json:"cacheWrite,omitempty"`
	Reasoning  int64 `json:"reasoning,omitempty"`
}

func (u *usage) add(v usage) {
	u.Input, u.Output, u.Cached, u.CacheWrite, u.Reasoning = u.Input+v.Input, u.Output+v.Output, u.Cached+v.Cached, u.CacheWrite+v.CacheWrite, u.Reasoning+v.Reasoning
	u.Reported = u.Reported || v.Reported
}

type cost struct {
	MicroUSD int64 `json:"microUsd,omitempty"`
	Priced   int   `json:"priced,omitempty"`
	Unpriced int   `json:"unpriced,omitempty"`

	Estimated int `json:"estimated,omitempty"`
}

func (c *cost) add(d cost) {
	*c = cost{c.MicroUSD + d.MicroUSD, c.Priced + d.Priced, c.Unpriced + d.Unpriced, c.Estimated + d.Estimated}
}

// cost is what a record says of its request's cost.
func (p *payload) cost() cost {
	switch {
	case p.Unpriced:
		return cost{Unpriced: 1}
	case p.Source == "estimated":
		return cost{MicroUSD: int64(p.Amount), Priced: 1, Estimated: 1}
	}
	return cost{MicroUSD: int64(p.Amount), Priced: 1}
}

func (c cost) state() string {
	switch {
	case c.Priced == 0 && c.MicroUSD == 0:
		return "unknown"
	case c.Unpriced > 0:
		return "at_least"
	case c.Estimated > 0:
		return "estimated"
	}
	return "known"
}

// Sum are the figures, under the names of belay stats --json.
type Sum struct {
	Sessions int            `json:"sessions"`
	Turns    int            `json:"turns"`
	Running  int            `json:"running"`
	Outcomes map[string]int `json:"outcomes,omitempty"`
	Silent   int            `json:"silent"`
	Steps    int            `json:"steps"`
	ActiveMS int64          `json:"activeMs"`
	Usage    usage          `json:"usage,omitzero"`
	Cost     cost           `json:"cost,omitzero"`
	Tools    []*tool        `json:"tools,omitempty"`
	Models   []*model       `json:"models,omitempty"`
	Gate     gate           `json:"gate"`
	Purposes []*spent       `json:"purposes,omitempty"`
	Days     []*spent       `json:"days,omitempty"`

	SilentStops    *float64 `json:"silentStops,omitempty"`
	RetriesHelped  *float64 `json:"retriesHelped,omitempty"`
	ReasonCoverage *float64 `json:"reasonCoverage,omitempty"`
	AsksPer100     *float64 `json:"asksPer100,omitempty"`
	Recursion      int      `json:"recursionIncidents"`
	CostState      string   `json:"costState"`

	Subagents *subagents `json:"subagents,omitempty"`
}

// subagents are those that agents started and that ended, by their outcomes.
type subagents struct {
	Outcomes map[string]int `json:"outcomes,omitempty"`
}

type tool struct {
	Name    string         `json:"name"`
	Calls   int            `json:"calls"`
	Ran     int            `json:"ran"`
	OK      int            `json:"ok"`
	Classes map[string]int `json:"classes,omitempty"`
	Retried int            `json:"retried"`
	Helped  int            `json:"helped"`
	MS      int64          `json:"ms"`
	MaxMS   int64          `json:"maxMs"`
}

type model struct {
	Provider string         `json:"provider"`
	Model    string         `json:"model,omitempty"`
	Requests int            `json:"requests"`
	Answers  int            `json:"answers"`
	Failures map[string]int `json:"failures,omitempty"`
	Retried  int            `json:"retried"`
	Usage    usage          `json:"usage,omitzero"`
	Unknown  int            `json:"unknownUsage,omitempty"`
	Cost     cost           `json:"cost,omitzero"`
	FirstMS  int64          `json:"firstMs,omitempty"`
	TookMS   int64          `json:"tookMs,omitempty"`
}

type spent struct {
	Of       string `json:"of"`
	Requests int    `json:"requests"`
	Cost     cost   `json:"cost,omitzero"`
}

type gate struct {
	Decisions map[string]int `json:"decisions,omitempty"`
	Reasoned  int            `json:"reasoned"`
	Allowed   int            `json:"allowed"`
	Denied    int            `json:"denied"`
	Expired   int            `json:"expired"`
}

// ledger is every fact, sorted by subject; nothing is counted before all are
// read.
type ledger struct {
	sessions map[string]bool
	started  map[string]bool   // turns
	ends     []fact            // of turns
	steps    map[string][]fact // by step: requests, answers and failures, in order
	order    []string          // the steps
	calls    []fact            // their ends
	verdicts []fact
	asked    map[string]bool // actions that are questions about calls
	answers  []fact
	costs    []fact
	agents   []fact // of sub-agents, and of settings
}

type agentLimits struct{ Depth, Children, Total int }

func read(r io.Reader) (*ledger, error) {
	l := &ledger{sessions: map[string]bool{}, started: map[string]bool{}, steps: map[string][]fact{}, asked: map[string]bool{}}
	lines := bufio.NewReader(r)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var f fact
			if err := json.Unmarshal(line, &f); err != nil {
				return nil, fmt.Errorf("line %d: %w", n, err)
			}
			l.enter(f)
		}
		if err == io.EOF {
			return l, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func (l *ledger) enter(f fact) {
	if f.Session != "sess_runtime" { // what belongs to no session of a person
		l.sessions[f.Session] = true
	}
	switch f.Type {
	case "session.created", "session.updated", "subagent.spawned", "subagent.input", "subagent.completed", "subagent.failed":
		l.agents = append(l.agents, f)
	case "turn.started":
		l.started[f.Turn] = true
	case "turn.completed", "turn.failed":
		l.ends = append(l.ends, f)
	case "model.requested", "model.completed", "model.failed":
		if l.steps[f.Step] == nil {
			l.order = append(l.order, f.Step)
		}
		l.steps[f.Step] = append(l.steps[f.Step], f)
	case "tool.result", "tool.failed":
		if f.Type == "tool.result" || f.Payload.Final {
			l.calls = append(l.calls, f)
		}
	case "permission.evaluated":
		l.verdicts = append(l.verdicts, f)
	case "permission.requested":
		l.asked[f.Action] = true
	case "action.resolved":
		l.answers = append(l.answers, f)
	case "cost.recorded":
		l.costs = append(l.costs, f)
	}
}

func recount(r io.Reader) (*Sum, error) {
	l, err := read(r)
	if err != nil {
		return nil, err
	}
	s := &Sum{Sessions: len(l.sessions), Turns: len(l.ends), Outcomes: map[string]int{}, Gate: gate{Decisions: map[string]int{}},
		Recursion: l.beyond()}
	l.turns(s)
	l.models(s)
	l.tools(s)
	l.gate(s)
	for _, f := range l.agents {
		if (f.Type == "subagent.completed" || f.Type == "subagent.failed") && f.Payload.Code == "" {
			if s.Subagents == nil {
				s.Subagents = &subagents{map[string]int{}}
			}
			s.Subagents.Outcomes[f.Payload.Outcome]++
		}
	}
	s.SilentStops = share(s.Silent, s.Turns, 1)
	s.CostState = s.Cost.state()
	return s, nil
}

// beyond counts the sub-agents that were started beyond a limit of their session: each fact
// that opens one is held against those before it.
func (l *ledger) beyond() (n int) {
	limits := map[string]agentLimits{}
	for i, f := range l.agents {
		if f.Type == "session.created" || f.Type == "session.updated" && f.Payload.Settings.Agents != (agentLimits{}) {
			limits[f.Session] = f.Payload.Settings.Agents
		}
		if f.Type != "subagent.spawned" && !(f.Type == "subagent.input" && f.Payload.Again) {
			continue
		}
		have := limits[f.Session]
		most := agentLimits{cmp.Or(have.Depth, 3), cmp.Or(have.Children, 16), cmp.Or(have.Total, 200)}
		all, open := map[string]bool{}, map[string]bool{}
		for _, o := range l.agents[:i+1] {
			switch {
			case o.Session != f.Session || o.Agent == "":
			case o.Type == "subagent.spawned":
				all[o.Agent] = true
				open[o.Agent] = o.Thread == f.Thread
			case o.Type == "subagent.input" && o.Payload.Again:
				open[o.Agent] = o.Thread == f.Thread
			case o.Type != "subagent.input":
				open[o.Agent] = false
			}
		}
		children := 0
		for _, is := range open {
			if is {
				children++
			}
		}
		if f.Payload.Depth > max(most.Depth, 0) || children > most.Children || len(all) > most.Total {
			n++
		}
	}
	return n
}

// turns counts how turns ended. Their steps are those of the model's facts, not what the
// ends of turns say of themselves.
func (l *ledger) turns(s *Sum) {
	over := map[string]bool{}
	for _, f := range l.ends {
		over[f.Turn] = true
		outcome := f.Payload.Outcome
		if f.Type == "turn.completed" {
			outcome = "completed"
		}
		s.Outcomes[outcome]++
		if f.Payload.Code == "NO_COMPLETION" {
			s.Silent++
		}
		s.ActiveMS += f.Payload.Stats.ActiveMS
	}
	for turn := range l.started {
		if !over[turn] {
			s.Running++
		}
	}
	for _, facts := range l.steps {
		if over[facts[0].Turn] {
			s.Steps++
		}
	}
}

// alone reports whether no other fact says what the request of a cost took: it failed, a model
// judged a call, or a conversation was shortened.
func (f fact) alone() bool {
	return f.Payload.Failed || f.Call != "" || strings.HasPrefix(f.Payload.For, "compact/")
}

func (l *ledger) models(s *Sum) {
	all := map[string]*model{}
	of := func(f fact) *model {
		key := f.Payload.Provider + "\x00" + f.Payload.Model
		if all[key] == nil {
			all[key] = &model{Provider: f.Payload.Provider, Model: f.Payload.Model, Failures: map[string]int{}}
		}
		return all[key]
	}
	for _, step := range l.order {
		var now *model
		tries := map[*model]int{}
		for _, f := range l.steps[step] {
			p := f.Payload
			switch f.Type {
			case "model.requested":
				now = of(f)
				if tries[now]++; tries[now] == 1 {
					now.Requests++
				}
			case "model.failed":
				now.Failures[word(p.Problem.Class)]++
			case "model.completed":
				now.Answers++
				now.Usage.add(p.Usage)
				s.Usage.add(p.Usage)
				now.FirstMS, now.TookMS = now.FirstMS+p.FirstMS, now.TookMS+p.TookMS
				now.Cost.Unpriced, s.Cost.Unpriced = now.Cost.Unpriced+1, s.Cost.Unpriced+1
				if !p.Usage.Reported {
					now.Unknown++
				}
				if tries[now] > 1 {
					now.Retried++
				}
			}
		}
	}
	for _, f := range l.costs {
		c := f.Payload.cost()
		if f.Payload.Failed { // no answer
			c.Priced = 0
		}
		if f.alone() && f.Payload.Usage.Reported {
			s.Usage.add(f.Payload.Usage)
			of(f).Usage.add(f.Payload.Usage)
		}
		if !f.alone() { // its answer was counted without a price
			c.Unpriced--
		}
		s.Cost.add(c)
		of(f).Cost.add(c)
	}
	l.spent(s)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		s.Models = append(s.Models, all[key])
	}
}

// spent counts requests by what they were for, and by day. What became of an
// answer's price is said by the record that names its request.
func (l *ledger) spent(s *Sum) {
	purposes, days := map[string]*spent{}, map[string]*spent{}
	count := func(f fact, purpose string, n int, c cost) {
		for _, in := range []struct {
			all map[string]*spent
			of  string
		}{{purposes, purpose}, {days, f.Time.UTC().Format("2006-01-02")}} {
			if in.all[in.of] == nil {
				in.all[in.of] = &spent{Of: in.of}
			}
			x := in.all[in.of]
			x.Requests += n
			x.Cost.add(c)
		}
	}
	for _, step := range l.order {
		for _, f := range l.steps[step] {
			if f.Type == "model.completed" {
				count(f, "step", 1, cost{Unpriced: 1})
			}
		}
	}
	for _, f := range l.costs {
		known := f.Payload.cost()
		switch {
		case f.Payload.Failed:
			count(f, "failed", 1, known)
		case f.alone() && f.Call == "":
			count(f, "summary", 1, known)
		case strings.Contains(f.Payload.For, "/sampling/"):
			count(f, "sampling", 1, known)
		case f.Call != "":
			count(f, "review", 1, known)
		default:
			known.Unpriced--
			count(f, "step", 0, known)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(purposes)) {
		s.Purposes = append(s.Purposes, purposes[name])
	}
	for _, name := range slices.Sorted(maps.Keys(days)) {
		s.Days = append(s.Days, days[name])
	}
}

func (l *ledger) tools(s *Sum) {
	all := map[string]*tool{}
	helped, retried := 0, 0
	for _, f := range l.calls {
		p := f.Payload
		t := all[p.Name]
		if t == nil {
			t = &tool{Name: p.Name, Classes: map[string]int{}}
			all[p.Name] = t
		}
		t.Calls++
		t.MS, t.MaxMS = t.MS+p.MS, max(t.MaxMS, p.MS)
		if p.Attempt > 0 {
			t.Ran++
		}
		if p.Attempt > 1 {
			t.Retried++
			retried++
		}
		switch {
		case f.Type == "tool.failed":
			t.Classes[word(p.Problem.Class)]++
		case p.Exit != 0:
			t.Classes[fmt.Sprint("exit ", p.Exit)]++
		default:
			t.OK++
			if p.Attempt > 1 {
				t.Helped++
				helped++
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s.Tools = append(s.Tools, all[name])
	}
	s.RetriesHelped = share(helped, retried, 1)
}

func (l *ledger) gate(s *Sum) {
	for _, f := range l.verdicts {
		s.Gate.Decisions[f.Payload.Decision]++
		if f.Payload.Rule != "" && f.Payload.ReasonCode != "" {
			s.Gate.Reasoned++
		}
	}
	for _, f := range l.answers {
		switch p := f.Payload; {
		case !l.asked[f.Action]: // a question of the agent, or whether to go on
		case p.Decision == "allow":
			s.Gate.Allowed++
		case p.By == "deadline":
			s.Gate.Expired++
		case p.Decision == "deny":
			s.Gate.Denied++
		}
	}
	s.ReasonCoverage = share(s.Gate.Reasoned, len(l.verdicts), 1)
	s.AsksPer100 = share(s.Gate.Decisions["ask"], len(l.verdicts), 100)
}

func share(part, all int, of float64) *float64 {
	if all == 0 {
		return nil
	}
	v := of * (float64(part) / float64(all))
	return &v
}

func word(class string) string {
	if class == "" {
		return "internal"
	}
	return class
}
