package story

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// Stats is what was counted.
type Stats struct {
	Sessions int                   `json:"sessions"`
	Turns    int                   `json:"turns"`   // that ended
	Running  int                   `json:"running"` // that have not
	Outcomes map[belay.Outcome]int `json:"outcomes,omitempty"`
	Silent   int                   `json:"silent"` // turns whose model just stopped, though nothing made it
	Steps    int                   `json:"steps"`
	ActiveMS int64                 `json:"activeMs"`
	Usage    belay.Usage           `json:"usage,omitzero"` // of all requests, as far as providers reported it
	Cost     event.CostSum         `json:"cost,omitzero"`

	Tools  []ToolStats  `json:"tools,omitempty"`  // by name
	Models []ModelStats `json:"models,omitempty"` // by provider and model

	Purposes []SpentStats `json:"purposes,omitempty"` // step, review, sampling, summary, failed
	Days     []SpentStats `json:"days,omitempty"`     // in UTC
	Gate     GateStats    `json:"gate"`
	Agents   *Subagents   `json:"-"` // that agents started

	open     map[belay.TurnID]bool
	sessions map[belay.SessionID]bool
	tools    map[string]*ToolStats
	models   map[[2]string]*ModelStats
	asked    map[belay.TurnID]*askedModels // the models that the turn's step asked
	asks     map[belay.ActionID]bool       // questions of the gate that wait
	purposes map[string]*SpentStats
	days     map[string]*SpentStats
	unpriced map[belay.ThreadID][]answer
}

// SpentStats is what requests cost: those of a step, of models that judged calls, of
// attempts that failed; or those of a day.
type SpentStats struct {
	Of       string        `json:"of"`
	Requests int           `json:"requests"`
	Cost     event.CostSum `json:"cost,omitzero"` // of requests
}

// purposeOf is what the request of a fact was for, and how many requests are counted with it.
func purposeOf(e event.Envelope) (purpose string, requests int) {
	p, ok := e.Data.(event.CostRecorded)
	switch {
	case !ok: // an answer
		return "step", 1
	case e.Answered():
		return "step", 0
	case p.Failed:
		return "failed", 1
	case p.Summary():
		return "summary", 1
	case strings.Contains(p.For, "/sampling/"):
		return "sampling", 1
	}
	return "review", 1
}

// answer is one whose price wasn't recorded yet.
type answer struct {
	model [2]string
	day   string
}

// spend counts what a request took of a model. What an answer cost is recorded after it, maybe
// on another day; only of one that was counted the price isn't unknown any more.
func (s *Stats) spend(e event.Envelope, model [2]string) {
	purpose, requests := purposeOf(e)
	day, cost := e.Time.UTC().Format(time.DateOnly), e.Cost()
	if waits := s.unpriced[e.IDs.Thread]; e.Answered() {
		if len(waits) > 0 {
			s.count(purpose, waits[0].day, waits[0].model, 0, event.CostSum{Unpriced: cost.Unpriced})
			if s.unpriced[e.IDs.Thread] = waits[1:]; len(waits) == 1 {
				delete(s.unpriced, e.IDs.Thread)
			}
		}
		cost.Unpriced = 0
	}
	if _, is := e.Data.(event.ModelCompleted); is {
		s.unpriced[e.IDs.Thread] = append(s.unpriced[e.IDs.Thread], answer{model, day})
	}
	s.count(purpose, day, model, requests, cost)
	if used := e.Used(); used.Reported {
		m := s.model(model)
		s.Usage, m.Usage = s.Usage.Add(used), m.Usage.Add(used)
	}
}

// count adds what requests cost to all sums of it. One that failed is no answer, but its cost
// is that of a request.
func (s *Stats) count(purpose, day string, model [2]string, requests int, cost event.CostSum) {
	m := s.model(model)
	s.Cost, m.Cost = s.Cost.Add(cost), m.Cost.Add(cost)
	if purpose == "failed" && cost.Unpriced == 0 {
		cost.Priced = 1
	}
	for _, in := range []struct {
		all map[string]*SpentStats
		of  string
	}{{s.purposes, purpose}, {s.days, day}} {
		x := in.all[in.of]
		if x == nil {
			x = &SpentStats{Of: in.of}
			in.all[in.of] = x
		}
		x.Requests += requests
		x.Cost = x.Cost.Add(cost)
	}
}

// ToolStats is how the calls of a tool ended. Every ended call counts once.
type ToolStats struct {
	Name    string         `json:"name"`
	Calls   int            `json:"calls"`
	Ran     int            `json:"ran"` // calls that were started
	OK      int            `json:"ok"`
	Classes map[string]int `json:"classes,omitempty"` // failures by class, and commands by an exit code that isn't 0
	Retried int            `json:"retried"`           // calls that had more than one attempt
	Helped  int            `json:"helped"`            // those of them that ended well
	MS      int64          `json:"ms"`                // of all ended calls that ran
	MaxMS   int64          `json:"maxMs"`
}

// ModelStats is how a model's requests ended.
type ModelStats struct {
	Provider string         `json:"provider"`
	Model    string         `json:"model,omitempty"`
	Requests int            `json:"requests"` // steps that it was asked for
	Answers  int            `json:"answers"`
	Failures map[string]int `json:"failures,omitempty"` // attempts without an answer, by class
	Retried  int            `json:"retried"`            // answers that took more than one of its attempts
	Usage    belay.Usage    `json:"usage,omitzero"`
	Unknown  int            `json:"unknownUsage,omitempty"` // answers for which no usage was reported
	Cost     event.CostSum  `json:"cost,omitzero"`
	FirstMS  int64          `json:"firstMs,omitempty"` // of all answers, from the request to their first piece
	TookMS   int64          `json:"tookMs,omitempty"`  // to their end
}

// GateStats is what was decided about calls.
type GateStats struct {
	Decisions map[string]int `json:"decisions,omitempty"` // allow, ask, deny
	Reasoned  int            `json:"reasoned"`            // those with a rule and a reason code
	Allowed   int            `json:"allowed"`             // questions that were answered with yes
	Denied    int            `json:"denied"`              // with no
	Expired   int            `json:"expired"`             // that weren't answered in time
}

// NewStats counts nothing yet.
func NewStats() *Stats {
	return &Stats{
		Outcomes: map[belay.Outcome]int{}, Gate: GateStats{Decisions: map[string]int{}}, Agents: NewSubagents(),
		open: map[belay.TurnID]bool{}, sessions: map[belay.SessionID]bool{}, tools: map[string]*ToolStats{},
		models: map[[2]string]*ModelStats{}, asked: map[belay.TurnID]*askedModels{}, asks: map[belay.ActionID]bool{},
		purposes: map[string]*SpentStats{}, days: map[string]*SpentStats{}, unpriced: map[belay.ThreadID][]answer{},
	}
}

// Apply counts one fact. Facts of one stream come in their order.
func (s *Stats) Apply(e event.Envelope) {
	if e.IDs.Session != belay.SystemSession {
		s.sessions[e.IDs.Session] = true
	}
	s.Agents.Apply(e)
	switch p := e.Data.(type) {
	case event.TurnStarted:
		s.open[e.IDs.Turn] = true
	case event.TurnCompleted:
		s.ended(e, belay.Completed, p.Stats)
	case event.TurnFailed:
		s.ended(e, p.Outcome, p.Stats)
		if p.Outcome == belay.NoCompletion && p.Code == codeNoCompletion {
			s.Silent++
		}
	case event.ModelRequested, event.ModelCompleted, event.ModelFailed, event.CostRecorded:
		s.modelFact(e)
	case event.ToolResult:
		s.tool(p.Name).end(p.Outcome(), p.Attempt, p.Millis)
	case event.ToolFailed:
		if p.Final {
			s.tool(p.Name).end(cmp.Or(p.Problem.Class, "internal"), p.Attempt, p.Millis)
		}
	case event.PermissionEvaluated:
		s.Gate.Decisions[p.Decision]++
		if p.Rule != "" && p.ReasonCode != "" {
			s.Gate.Reasoned++
		}
	case event.PermissionRequested:
		s.asks[e.IDs.Action] = true
	case event.ActionResolved:
		s.answered(e.IDs.Action, p)
	}
}

// codeNoCompletion is the code of a turn whose model stopped; a loop and the limits
// of steps and calls have the same outcome and codes of their own.
const codeNoCompletion = "NO_COMPLETION"

func (s *Stats) ended(e event.Envelope, o belay.Outcome, st event.TurnStats) {
	delete(s.open, e.IDs.Turn)
	delete(s.asked, e.IDs.Turn)
	s.Turns++
	s.Outcomes[o]++
	s.Steps += st.Steps
	s.ActiveMS += st.ActiveMS
}

func (s *Stats) answered(id belay.ActionID, p event.ActionResolved) {
	if !s.asks[id] {
		return // a question of the agent, or one to go on
	}
	delete(s.asks, id)
	switch {
	case p.Decision == "allow":
		s.Gate.Allowed++
	case p.By == "deadline":
		s.Gate.Expired++
	case p.Decision == "deny":
		s.Gate.Denied++
	}
}

// askedModels are the models that one step asked, and how often each.
type askedModels struct {
	step     belay.StepID
	last     [2]string // whose answer it waits for
	attempts map[[2]string]int
}

// of is what the running step of a fact's turn has asked.
func (s *Stats) of(ids belay.IDs) *askedModels {
	a := s.asked[ids.Turn]
	if a == nil || a.step != ids.Step {
		a = &askedModels{step: ids.Step, attempts: map[[2]string]int{}}
		s.asked[ids.Turn] = a
	}
	return a
}

func (s *Stats) modelFact(e event.Envelope) {
	switch p := e.Data.(type) {
	case event.ModelRequested:
		key, a := [2]string{p.Provider, p.Model}, s.of(e.IDs)
		a.last = key
		if a.attempts[key]++; a.attempts[key] == 1 {
			s.model(key).Requests++
		}
	case event.ModelCompleted:
		a := s.of(e.IDs)
		m := s.model(a.last)
		m.Answers++
		if !p.Usage.Reported {
			m.Unknown++
		}
		m.FirstMS += p.FirstMS
		m.TookMS += p.TookMS
		s.spend(e, a.last)
		if a.attempts[a.last] > 1 {
			m.Retried++
		}
	case event.CostRecorded:
		s.spend(e, [2]string{p.Provider, p.Model})
	case event.ModelFailed:
		s.model(s.of(e.IDs).last).Failures[cmp.Or(p.Problem.Class, "internal")]++
	}
}

func (s *Stats) tool(name string) *ToolStats {
	if s.tools[name] == nil {
		s.tools[name] = &ToolStats{Name: name, Classes: map[string]int{}}
	}
	return s.tools[name]
}

func (s *Stats) model(key [2]string) *ModelStats {
	if s.models[key] == nil {
		s.models[key] = &ModelStats{Provider: key[0], Model: key[1], Failures: map[string]int{}}
	}
	return s.models[key]
}

// end counts a call by how it ended: ok, or what was wrong.
func (t *ToolStats) end(how string, attempt int, ms int64) {
	t.Calls++
	if attempt > 0 {
		t.Ran++
	}
	t.MS += ms
	t.MaxMS = max(t.MaxMS, ms)
	if attempt > 1 {
		t.Retried++
	}
	if how != "ok" {
		t.Classes[how]++
		return
	}
	t.OK++
	if attempt > 1 {
		t.Helped++
	}
}

// Sum is what was counted so far; more can be counted after it.
func (s *Stats) Sum() Stats {
	out := *s
	out.Sessions, out.Running = len(s.sessions), len(s.open)
	out.Tools, out.Models = nil, nil
	for _, name := range slices.Sorted(maps.Keys(s.tools)) {
		out.Tools = append(out.Tools, *s.tools[name])
	}
	out.Purposes, out.Days = sorted(s.purposes), sorted(s.days)
	for _, key := range slices.SortedFunc(maps.Keys(s.models), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		out.Models = append(out.Models, *s.models[key])
	}
	return out
}

// sorted are figures in the order of their names.
func sorted(by map[string]*SpentStats) (all []SpentStats) {
	for _, name := range slices.Sorted(maps.Keys(by)) {
		all = append(all, *by[name])
	}
	return all
}

// SilentStops is the share of ended turns whose model just stopped: no limit, loop
// or failure ended them. ok is false when none has ended.
func (s Stats) SilentStops() (share float64, ok bool) { return ratio(s.Silent, s.Turns) }

// UnknownUsage is how many answers have no usage: what all used is more than the
// sum says.
func (s Stats) UnknownUsage() (n int) {
	for _, m := range s.Models {
		n += m.Unknown
	}
	return n
}

// RetriesHelped is the share of retried calls that ended well.
func (s Stats) RetriesHelped() (share float64, ok bool) {
	var helped, retried int
	for _, t := range s.Tools {
		helped, retried = helped+t.Helped, retried+t.Retried
	}
	return ratio(helped, retried)
}

// ReasonCoverage is the share of decisions that name a rule and a reason.
func (s Stats) ReasonCoverage() (share float64, ok bool) {
	return ratio(s.Gate.Reasoned, s.decisions())
}

// AskRate is how many calls of a hundred asked a person.
func (s Stats) AskRate() (perHundred float64, ok bool) {
	share, ok := ratio(s.Gate.Decisions["ask"], s.decisions())
	return 100 * share, ok
}

func (s Stats) decisions() int {
	n := 0
	for _, k := range s.Gate.Decisions {
		n += k
	}
	return n
}

func ratio(part, all int) (float64, bool) {
	if all == 0 {
		return 0, false
	}
	return float64(part) / float64(all), true
}
