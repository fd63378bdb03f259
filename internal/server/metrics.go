package server

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/agents"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view/story"
)

// metrics are figures since the server's start, of all tenants. Facts are
// counted when the metrics are read, from where the last count ended.
type metrics struct {
	mu       sync.Mutex
	commands map[labels]int64
	refusals map[labels]int64
	panics   int64
	latency  histogram
	tenants  map[string]*figures
}

// labels are a metric's labels, as they are written.
type labels string

// histogram counts durations.
type histogram struct {
	counts []int64 // of each bound, and more
	sum    float64
	n      int64
}

// bounds of histograms, in seconds.
var bounds = []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300}

func (h *histogram) add(d time.Duration) {
	if h.counts == nil {
		h.counts = make([]int64, len(bounds)+1)
	}
	i, _ := slices.BinarySearch(bounds, d.Seconds())
	h.counts[i]++
	h.sum += d.Seconds()
	h.n++
}

// figures is what the facts of a tenant add up to.
type figures struct {
	from     store.Position
	turns    map[labels]int64
	calls    map[labels]int64
	usage    belay.Usage
	steps    int64
	asks     int64
	answers  int64
	cost     float64            // US dollars
	open     map[reserved]int64 // what requests that are out cost at most, in millionths of a US dollar
	model    histogram
	tool     histogram
	wait     histogram
	asked    map[belay.StepID]time.Time
	accepted map[belay.TurnID]time.Time
	agents   *story.AgentsFold
	family   *story.Subagents
}

// reserved is a request for which something is set aside.
type reserved struct {
	session belay.SessionID
	request string
}

func newMetrics() *metrics {
	return &metrics{commands: map[labels]int64{}, refusals: map[labels]int64{}, tenants: map[string]*figures{}}
}

func (m *metrics) command(name, code string, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.commands[label("command", name, "code", code)]++
	m.latency.add(took)
}

func (m *metrics) refused(code string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refusals[label("code", code)]++
}

func (m *metrics) panicked() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.panics++
}

// label writes names and values in pairs.
func label(pairs ...string) labels {
	var b strings.Builder
	for i := 0; i+1 < len(pairs); i += 2 {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(pairs[i] + "=" + strconv.Quote(strings.ToValidUTF8(pairs[i+1], "?")))
	}
	return labels(b.String())
}

// showMetrics writes the figures in Prometheus' text format: of the whole server
// for an owner of the default tenant, of the own tenant for everybody else.
func (s *Server) showMetrics(w http.ResponseWriter, r *http.Request) {
	t, p, err := s.caller(r)
	if err == nil {
		err = s.metrics.count(r, t)
	}
	if err != nil {
		input.WriteProblem(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	e := &exposition{w: w}
	s.metrics.mu.Lock()
	defer s.metrics.mu.Unlock()
	t.expose(r.Context(), e, s.metrics.tenants[t.name])
	if p.May(auth.Admin) {
		s.expose(e)
	}
}

// expose writes what is of the process.
func (s *Server) expose(e *exposition) {
	e.counter("belay_commands_total", "Commands by name and the code they were answered with.", s.metrics.commands)
	e.counter("belay_requests_refused_total", "Requests that were turned away, by code.", s.metrics.refusals)
	e.counter("belay_panics_total", "Requests whose handler panicked, which is a fault of the server; its log has each.", map[labels]int64{"": s.metrics.panics})
	e.histogram("belay_command_duration_seconds", "How long commands took to be answered.", s.metrics.latency)
	e.gauge("belay_uptime_seconds", "Time since the start.", s.c.Now().Sub(s.started).Seconds())
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	e.gauge("belay_goroutines", "Goroutines of the process.", float64(runtime.NumGoroutine()))
	e.gauge("belay_memory_bytes", "Memory that the process got from the system.", float64(mem.Sys))
}

// expose writes what is of a tenant.
func (t *tenant) expose(ctx context.Context, e *exposition, c *figures) {
	ready, running, asleep, oldest := t.drives.Counts()
	e.gauge("belay_sessions_ready", "Sessions that wait for a place to run.", float64(ready))
	e.gauge("belay_sessions_running", "Sessions that run.", float64(running))
	e.gauge("belay_sessions_asleep", "Sessions that wake at a time.", float64(asleep))
	e.gauge("belay_queue_oldest_seconds", "How long the session that has waited longest waits for a place.", oldest.Seconds())
	e.gauge("belay_streams", "Streams that clients follow.", float64(t.Reads.Hub.Readers()))
	if lag, err := t.Reads.Views.Lag(ctx); err == nil {
		e.gauge("belay_views_lag", "Positions of the log that the view of sessions hasn't folded yet.", float64(lag))
	}
	if lag, err := t.Reads.Words.Lag(ctx); err == nil {
		e.gauge("belay_words_lag", "Positions of the log that the view of words hasn't folded yet.", float64(lag))
	}
	if lag, err := t.Reads.Sums.Lag(ctx); err == nil {
		e.gauge("belay_figures_lag", "Positions of the log that the view of figures hasn't folded yet.", float64(lag))
	}
	if all, err := t.Quotas(ctx); err == nil {
		e.quotas(all)
	}
	if c == nil {
		return
	}
	e.counter("belay_turns_total", "Turns that ended, by outcome.", c.turns)
	e.counter("belay_steps_total", "Model requests that were answered.", map[labels]int64{"": c.steps})
	e.counter("belay_tool_calls_total", "Tool calls that are over, by tool and result.", c.calls)
	tokens := map[labels]int64{} // none: no provider reported any, which isn't zero
	if c.usage.Reported {
		tokens = map[labels]int64{label("kind", "input"): c.usage.Input, label("kind", "output"): c.usage.Output, label("kind", "cached"): c.usage.Cached}
	}
	e.counter("belay_tokens_total", "Tokens by kind, as far as providers reported them.", tokens)
	e.agents(story.Most(c.agents.Sum(), maxAgents))
	if all, err := agents.Known(ctx, t.Runtime); err == nil {
		e.health(all)
	}
	e.counter("belay_effects_given_up_total", "Tools, requests and checkers that didn't end when their time was up.", map[labels]int64{"": t.Engine.Stuck()})
	e.labelled("belay_subagents", "Agents that agents started and that are open, by state.", "gauge", counts("state", c.family.States))
	e.counter("belay_subagents_ended_total", "Agents that agents started and that ended, by outcome.", counts("outcome", c.family.Outcomes))
	e.counter("belay_subagents_refused_total", "Agents that were not started, by the limit or the code.", counts("by", c.family.Refused))
	e.counter("belay_subagents_beyond_limits_total", "Agents that were started beyond a limit, by recount.", map[labels]int64{"": int64(c.family.Incidents)})
	e.gauge("belay_approvals_waiting", "Questions that wait for a person.", float64(c.asks-c.answers))
	e.gauge("belay_store_position", "Position of the last fact.", float64(c.from))
	e.float("belay_cost_usd_total", "What models cost as far as it is known, in US dollars.", "counter", c.cost)
	open := 0.0
	for _, amount := range c.open {
		open += float64(amount) / 1e6
	}
	e.gauge("belay_cost_reserved_usd", "What requests that are out cost at most, as far as prices are known, in US dollars.", open)
	e.histogram("belay_model_duration_seconds", "How long models took to answer.", c.model)
	e.histogram("belay_tool_duration_seconds", "How long tools took.", c.tool)
	e.histogram("belay_turn_wait_seconds", "How long accepted turns waited until they began.", c.wait)
}

// count folds the facts that came since the last count.
func (m *metrics) count(r *http.Request, t *tenant) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.tenants[t.name]
	if c == nil {
		c = &figures{turns: map[labels]int64{}, calls: map[labels]int64{}, open: map[reserved]int64{}, asked: map[belay.StepID]time.Time{}, accepted: map[belay.TurnID]time.Time{}, family: story.NewSubagents(), agents: story.NewAgentsFold(time.Time{}, time.Time{})}
		m.tenants[t.name] = c
	}
	from := c.from
	for rec, err := range t.Store.Scan(r.Context(), c.from) {
		if err != nil {
			return err
		}
		c.from = rec.Position
		c.fold(rec.Event)
	}
	gone, err := t.Store.Tombstones(r.Context(), from)
	for _, g := range gone {
		maps.DeleteFunc(c.open, func(k reserved, _ int64) bool { return k.session == g.Session })
	}
	return err
}

func (c *figures) fold(ev event.Envelope) {
	if used := ev.Used(); used.Reported {
		c.usage = c.usage.Add(used)
	}
	c.agents.Apply(ev)
	c.family.Apply(ev)
	switch p := ev.Data.(type) {
	case event.TurnSubmitted:
		c.accepted[ev.IDs.Turn] = ev.Time
	case event.TurnStarted:
		c.waited(ev)
	case event.TurnCompleted:
		c.waited(ev)
		c.turns[label("outcome", string(belay.Completed))]++
	case event.TurnFailed:
		c.waited(ev)
		c.turns[label("outcome", string(p.Outcome))]++
	case event.ModelRequested:
		c.asked[ev.IDs.Step] = ev.Time
	case event.ModelFailed:
		delete(c.asked, ev.IDs.Step)
	case event.ModelCompleted:
		c.steps++
		if at, ok := c.asked[ev.IDs.Step]; ok {
			c.model.add(ev.Time.Sub(at))
			delete(c.asked, ev.IDs.Step)
		}
	case event.ToolResult:
		c.called(p.Name, p.Outcome(), p.Millis)
	case event.ToolFailed:
		if p.Final {
			c.called(p.Name, p.Problem.Class, p.Millis)
		}
	case event.ActionRequired:
		c.asks++
	case event.ActionResolved:
		c.answers++
	case event.CostRecorded:
		c.cost += float64(p.Sum().MicroUSD) / 1e6
		delete(c.open, reserved{ev.IDs.Session, p.For})
	case event.CostEstimated:
		c.open[reserved{ev.IDs.Session, p.For}] = p.Amount
	}
}

func (c *figures) waited(ev event.Envelope) {
	if at, ok := c.accepted[ev.IDs.Turn]; ok {
		c.wait.add(ev.Time.Sub(at))
		delete(c.accepted, ev.IDs.Turn)
	}
}

// maxAgents bounds the agents that are counted apart; the others are "other".
const maxAgents = 200

// agents writes what the turns of agents add up to.
func (e *exposition) agents(all []story.AgentStats) {
	runs, spent, again, reds := map[labels]int64{}, map[labels]int64{}, map[labels]int64{}, map[labels]int64{}
	cost, use := map[labels]float64{}, map[labels]float64{}
	for _, a := range all {
		name := label("agent", a.Agent)
		for o, n := range a.Ends {
			runs[label("agent", a.Agent, "outcome", string(o))] = int64(n)
		}
		again[name], reds[name] = int64(a.Retries), int64(a.GateReds)
		if a.Tokens != nil { // else it isn't known
			spent[name] = *a.Tokens
		}
		if a.Cost.State() != "unknown" {
			cost[name] = float64(a.Cost.MicroUSD) / 1e6
		}
		if a.Context != nil {
			use[name] = *a.Context
		}
	}
	e.counter("belay_agent_runs_total", "Runs of agents that ended, by outcome.", runs)
	e.counter("belay_agent_tokens_total", "Tokens that agents read and wrote, without those of agents that they started, as far as providers reported them.", spent)
	e.counter("belay_agent_retries_total", "Runs of agents that were not the first attempt of their task.", again)
	e.counter("belay_agent_checks_failed_total", "Checks of agents' tasks that didn't pass.", reds)
	e.floats("belay_agent_cost_usd_total", "What agents cost, without those that they started, as far as it is known, in US dollars.", "counter", cost)
	e.floats("belay_agent_context_efficiency", "Tokens that agents' models wrote for each token that they read.", "gauge", use)
	e.head("belay_agent_run_seconds", "Active time of runs of agents; the quantiles are of the newest ones.", "summary")
	for _, a := range all {
		name := label("agent", a.Agent)
		for _, percent := range []int{50, 95} {
			fmt.Fprintf(e.w, "belay_agent_run_seconds{%s,quantile=\"0.%d\"} %g\n", name, percent, a.Percentile(percent).Seconds())
		}
		fmt.Fprintf(e.w, "belay_agent_run_seconds_sum{%s} %g\nbelay_agent_run_seconds_count{%s} %d\n", name, a.Active().Seconds(), name, a.Runs)
	}
}

// health writes how agents are.
func (e *exposition) health(all []agents.AgentFile) {
	out := map[labels]int64{}
	for i, a := range all {
		name := a.Called()
		if i >= maxAgents {
			name = "other"
		}
		out[label("agent", name, "status", a.Health.Status)]++
	}
	e.labelled("belay_agent_health", "Agents of the server's own workspace by their health: each is 1.", "gauge", out)
}

// maxTools bounds the pairs of tools and results that are counted apart.
const maxTools = 500

func (c *figures) called(tool, result string, millis int64) {
	if len(c.calls) >= maxTools { // models call what isn't there, too
		tool = "other"
	}
	c.calls[label("tool", tool, "result", result)]++
	c.tool.add(time.Duration(millis) * time.Millisecond)
}

// exposition is the text format.
type exposition struct{ w io.Writer }

func (e *exposition) head(name, help, kind string) {
	fmt.Fprintf(e.w, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

// counts are numbers by one label.
func counts[K ~string](name string, of map[K]int) map[labels]int64 {
	out := map[labels]int64{}
	for value, n := range of {
		out[label(name, string(value))] = int64(n)
	}
	return out
}

func (e *exposition) counter(name, help string, values map[labels]int64) {
	e.labelled(name, help, "counter", values)
}

func (e *exposition) labelled(name, help, kind string, values map[labels]int64) {
	e.head(name, help, kind)
	for _, l := range slices.Sorted(maps.Keys(values)) {
		if l == "" {
			fmt.Fprintf(e.w, "%s %d\n", name, values[l])
			continue
		}
		fmt.Fprintf(e.w, "%s{%s} %d\n", name, l, values[l])
	}
}

// quotas writes what quotas have in their windows.
func (e *exposition) quotas(all []app.QuotaShown) {
	for _, g := range []struct {
		name, help string
		of         func(q *app.QuotaShown) int64
	}{
		{"limit", "The limit of a quota, in US dollars, tokens, calls or seconds.", func(q *app.QuotaShown) int64 { return q.Limit }},
		{"spent", "What was spent of a quota in its window.", func(q *app.QuotaShown) int64 { return q.Spent }},
		{"lent", "What sessions have of a quota, and may give back.", func(q *app.QuotaShown) int64 { return q.Lent }},
	} {
		e.head("belay_quota_"+g.name, g.help, "gauge")
		for i := range all {
			q := &all[i]
			v := float64(g.of(q)) / map[belay.BudgetKind]float64{belay.BudgetCost: 1e6, belay.BudgetTokens: 1, belay.BudgetCalls: 1, belay.BudgetTime: 1e3}[q.Kind]
			fmt.Fprintf(e.w, "belay_quota_%s{%s} %s\n", g.name, label("of", q.Of, "user", q.User, "kind", string(q.Kind), "per", q.Per, "zone", q.Zone, "action", q.Action), strconv.FormatFloat(v, 'g', -1, 64))
		}
	}
}

func (e *exposition) gauge(name, help string, v float64) { e.float(name, help, "gauge", v) }

func (e *exposition) float(name, help, kind string, v float64) {
	e.head(name, help, kind)
	fmt.Fprintf(e.w, "%s %s\n", name, strconv.FormatFloat(v, 'g', -1, 64))
}

func (e *exposition) floats(name, help, kind string, values map[labels]float64) {
	e.head(name, help, kind)
	for _, l := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(e.w, "%s{%s} %s\n", name, l, strconv.FormatFloat(values[l], 'g', -1, 64))
	}
}

func (e *exposition) histogram(name, help string, h histogram) {
	e.head(name, help, "histogram")
	var sum int64
	for i, b := range bounds {
		if h.counts != nil {
			sum += h.counts[i]
		}
		fmt.Fprintf(e.w, "%s_bucket{le=%q} %d\n", name, strconv.FormatFloat(b, 'g', -1, 64), sum)
	}
	fmt.Fprintf(e.w, "%s_bucket{le=\"+Inf\"} %d\n%s_sum %s\n%s_count %d\n", name, h.n, name, strconv.FormatFloat(h.sum, 'g', -1, 64), name, h.n)
}
