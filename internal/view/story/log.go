package story

import (
	"cmp"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// story is a log sorted by what its facts are about. A log that begins in the
// middle makes a story with gaps, never an error.
type story struct {
	events   []event.Envelope
	start    time.Time
	end      time.Time
	sessions group[belay.SessionID, session]
	turns    group[belay.TurnID, turn]
	tasks    group[belay.TaskID, task]
	agents   group[belay.SubagentID, agent]
	threads  map[belay.ThreadID]*agent
}

// group is things with ids, in the order in which they began.
type group[K comparable, T any] struct {
	list []*T
	by   map[K]*T
}

// get finds a thing, or begins it.
func (g *group[K, T]) get(id K, begin T) *T {
	if g.by[id] == nil {
		if g.by == nil {
			g.by = map[K]*T{}
		}
		g.by[id] = &begin
		g.list = append(g.list, &begin)
	}
	return g.by[id]
}

type session struct {
	id      belay.SessionID
	created *event.Envelope
	grants  []*event.Envelope
	refused []*event.Envelope // commands
	last    *event.Envelope
}

// turn is what happened between its beginning and its end.
type turn struct {
	ids       belay.IDs
	submitted *event.Envelope
	started   *event.Envelope
	ended     *event.Envelope // turn.completed or turn.failed
	stop      *event.Envelope // the wish to end it
	takeovers []*event.Envelope
	updates   []*event.Envelope // thread.updated
	pauses    []*event.Envelope // of these, those that hold it, or let it go on
	routing   []*event.Envelope // how its model was chosen
	budget    []*event.Envelope // limit.changed
	checks    []*event.Envelope // results of what its task must pass
	shortened []*event.Envelope // its conversation was, or was not
	steps     group[belay.StepID, step]
	called    group[belay.CallID, call]
	asks      group[belay.ActionID, ask] // about calls and about the turn itself
	last      *event.Envelope
}

// step is one request and what followed.
type step struct {
	id       belay.StepID
	n        int // from 1 in its turn
	turn     *turn
	requests []*event.Envelope
	failures []*event.Envelope
	answer   *event.Envelope
	cost     *event.Envelope // what the answer cost
	calls    []*call
}

// call is one tool call of an answer.
type call struct {
	id       belay.CallID
	name     string
	args     string
	hash     belay.Digest
	step     *step
	verdict  *event.Envelope
	edit     *event.Envelope // it runs with other arguments than the model gave
	asked    *event.Envelope // the verdict on those of the model
	ask      *ask
	starts   []*event.Envelope
	ends     []*event.Envelope // of attempts
	over     *event.Envelope   // the end after which none follows
	did      []*event.Envelope // processes and files
	boundary *event.Envelope
	rungs    []*event.Envelope // what a boundary stopped, and what was decided about it
}

// ask is one question to a person.
type ask struct {
	id       belay.ActionID
	turn     *turn
	call     *call // nil when it is about the turn
	required *event.Envelope
	resolved *event.Envelope
}

type task struct {
	id       belay.TaskID
	created  *event.Envelope
	attempts group[belay.RunID, attempt]
	retries  []*event.Envelope
	queued   *event.Envelope // it waits to be started
	begun    bool
	edges    []*event.Envelope
	cancel   *event.Envelope
	ended    *event.Envelope
}

type attempt struct {
	id      belay.RunID
	started *event.Envelope
	ended   *event.Envelope
}

// tell sorts a log.
func tell(events []event.Envelope) *story {
	s := &story{events: events}
	threads := map[belay.StreamID]*turn{} // the running turn
	for i := range events {
		e := &events[i]
		if s.start.IsZero() || e.Time.Before(s.start) {
			s.start = e.Time
		}
		if e.Time.After(s.end) {
			s.end = e.Time
		}
		s.tellSession(e)
		s.tellFamily(e)
		if _, edge := e.Data.(event.TaskDependencyUpdated); edge || e.Stream.Kind() == belay.KindTask {
			s.tellTask(e)
			continue
		}
		if t := s.tellTurn(e, threads); t != nil {
			t.last = e
			t.tellStep(e)
		}
	}
	return s
}

func (s *story) tellSession(e *event.Envelope) {
	if e.IDs.Session == "" {
		return
	}
	x := s.sessions.get(e.IDs.Session, session{id: e.IDs.Session})
	x.last = e
	switch p := e.Data.(type) {
	case event.SessionCreated:
		x.created = e
	case event.PolicyChanged:
		x.grants = append(x.grants, e)
	case event.ChannelMessage:
		if p.Kind == "audit" {
			x.refused = append(x.refused, e)
		}
	}
}

func (s *story) tellTask(e *event.Envelope) {
	if e.IDs.Task == "" {
		return
	}
	t := s.tasks.get(e.IDs.Task, task{id: e.IDs.Task})
	switch e.Data.(type) {
	case event.TaskCreated:
		t.created = e
	case event.TaskQueued:
		t.queued = e
	case event.TaskStarted:
		t.begun, t.ended = true, nil
	case event.TaskDependencyUpdated:
		t.edges = append(t.edges, e)
	case event.TaskRetrying:
		t.retries, t.ended, t.cancel = append(t.retries, e), nil, nil
	case event.TaskCancelRequested:
		t.cancel = e
	case event.TaskAttemptStarted:
		t.attempts.get(e.IDs.Run, attempt{id: e.IDs.Run}).started = e
	case event.TaskAttemptCompleted, event.TaskAttemptFailed:
		t.attempts.get(e.IDs.Run, attempt{id: e.IDs.Run}).ended = e
	case event.TaskOver:
		t.ended = e
	}
}

// tellTurn finds the turn that a fact belongs to and takes note of how far it
// is. Facts of a thread without a turn of their own belong to the running one.
func (s *story) tellTurn(e *event.Envelope, threads map[belay.StreamID]*turn) *turn {
	t := threads[e.Stream]
	if id := e.IDs.Turn; id != "" && e.Stream.Kind() == belay.KindThread {
		t = s.turns.get(id, turn{ids: e.IDs})
	}
	if t == nil {
		return nil
	}
	switch p := e.Data.(type) {
	case event.TurnSubmitted:
		t.submitted = e
	case event.TurnStarted:
		t.started, threads[e.Stream] = e, t
	case event.TurnCompleted, event.TurnFailed:
		t.ended = e
		if threads[e.Stream] == t { // a turn that never began ends beside the running one
			delete(threads, e.Stream)
		}
	case event.ThreadUpdated:
		switch {
		case p.Pause == nil:
			if p.Rules != nil || p.Limits != nil || p.Mode != "" || p.Boundary != "" { // else it says nothing of how the turn is decided
				t.updates = append(t.updates, e)
			}
		case p.Pause.Op != event.Admitted || p.Reason != "": // else nothing held it
			t.pauses = append(t.pauses, e)
		}
	case event.RoutingDecided, event.RoutingSingleCandidate, event.RoutingNotPossible, event.RoutingFallbackApplied:
		t.routing = append(t.routing, e)
	case event.LimitChanged:
		t.budget = append(t.budget, e)
	case event.ContextCompactionCompleted, event.ContextCompactionFailed:
		t.shortened = append(t.shortened, e)
	case event.RunStatus:
		if p.Status == "cancelling" {
			t.stop = e
		}
		if p.Phase == "takeover" {
			t.takeovers = append(t.takeovers, e)
		}
	}
	return t
}

// tellStep takes note of what happens in a step of the turn.
func (t *turn) tellStep(e *event.Envelope) {
	switch p := e.Data.(type) {
	case event.ModelRequested:
		st := t.step(e.IDs.Step)
		st.requests = append(st.requests, e)
	case event.ModelFailed:
		st := t.step(e.IDs.Step)
		st.failures = append(st.failures, e)
	case event.ModelCompleted:
		st := t.step(e.IDs.Step)
		st.answer, st.cost = e, nil
		t.wants(st.id, p)
	case event.TaskProgress:
		if p.Check != nil {
			t.checks = append(t.checks, e)
		}
		t.wants(e.IDs.Step, p)
	case event.CostRecorded:
		if e.IDs.Call == "" && !p.Failed { // else of a model that judged a call, or of an attempt without an answer
			t.step(e.IDs.Step).cost = e
		}
	case event.ActionRequired:
		a := t.ask(e)
		a.required = e
	case event.ActionResolved:
		a := t.ask(e)
		a.resolved = e
	default:
		t.tellCall(e)
	}
}

// wants takes note of the calls that a fact announces.
func (t *turn) wants(id belay.StepID, p event.Payload) {
	for _, c := range event.Calls(p) {
		k := t.call(id, c.ID)
		k.name, k.args, k.hash = c.Name, string(c.Args), c.ArgsHash
		if c.ArgsRef != nil {
			k.args = "(" + plural(int(c.ArgsRef.Size), "byte") + ")"
		}
	}
}

func (t *turn) tellCall(e *event.Envelope) {
	if _, ok := e.Data.(event.ToolCatalogResolved); ok || e.IDs.Call == "" {
		return // the catalog's call is a placeholder
	}
	c := t.call(e.IDs.Step, e.IDs.Call)
	switch p := e.Data.(type) {
	case event.PermissionEvaluated:
		if len(c.starts) > 0 {
			c.rungs = append(c.rungs, e)
			return
		}
		c.verdict, c.name, c.hash = e, cmp.Or(c.name, p.Tool), cmp.Or(c.hash, p.ArgsHash)
	case event.SandboxViolation:
		c.rungs = append(c.rungs, e)
	case event.ToolArgs:
		c.edit, c.asked, c.hash = e, c.verdict, p.ArgsHash
	case event.ToolStarted:
		c.starts, c.name, c.hash = append(c.starts, e), cmp.Or(c.name, p.Name), cmp.Or(c.hash, p.ArgsHash)
	case event.ToolResult:
		c.ends, c.over = append(c.ends, e), e
	case event.ToolFailed:
		c.ends, c.name = append(c.ends, e), cmp.Or(c.name, p.Name)
		if p.Final {
			c.over = e
		}
	case event.SandboxApplied:
		c.boundary = e
	case event.ArtifactChanged, event.ProcessStarted, event.ProcessCompleted, event.ProcessFailed, event.ProcessTerminated:
		c.did = append(c.did, e)
	}
}

func (t *turn) step(id belay.StepID) *step {
	return t.steps.get(id, step{id: id, n: len(t.steps.list) + 1, turn: t})
}

func (t *turn) call(in belay.StepID, id belay.CallID) *call {
	if c := t.called.by[id]; c != nil {
		return c
	}
	st := t.step(in)
	c := t.called.get(id, call{id: id, step: st})
	st.calls = append(st.calls, c)
	return c
}

func (t *turn) ask(e *event.Envelope) *ask {
	a := t.asks.get(e.IDs.Action, ask{id: e.IDs.Action, turn: t})
	if e.IDs.Call != "" && a.call == nil && a.required == nil && a.resolved == nil {
		a.call = t.call(e.IDs.Step, e.IDs.Call)
		a.call.ask = a
	}
	return a
}

// begun reports whether the turn left the queue, as far as the facts reach.
func (t *turn) begun() bool { return t.started != nil || len(t.steps.list) > 0 || t.submitted == nil }

// calls are all calls of a turn, in order.
func (t *turn) calls() []*call {
	var out []*call
	for _, st := range t.steps.list {
		out = append(out, st.calls...)
	}
	return out
}

// open is the first question that waits for an answer.
func (t *turn) open() *ask { return first(t.opens()) }

// opens are the questions that wait for an answer.
func (t *turn) opens() (all []*ask) {
	for _, a := range t.asks.list {
		if a.resolved == nil && a.required != nil && t.ended == nil {
			all = append(all, a)
		}
	}
	return all
}

// request is the fact that began the step, or nil.
func (st *step) request() (event.ModelRequested, *event.Envelope) {
	e := first(st.requests)
	return as[event.ModelRequested](e), e
}

// failed is how the call ended if it ended badly.
func (c *call) failed() (event.ToolFailed, bool) {
	p, ok := payload(c.over).(event.ToolFailed)
	return p, ok
}
