package session

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
)

// Bounds of a plan.
const (
	maxPlanned = 256 // tasks that haven't ended
	maxEnded   = 256 // tasks that have, and that an edge may still name
	maxEdges   = 64  // of a task
)

// Planned is a task that the session starts when nothing blocks it.
type Planned struct {
	event.PlannedTask
	Begun bool   `json:"begun,omitempty"` // it was started
	Edges []Edge `json:"edges,omitempty"`
}

// Edge leads from a task to what it has to do with.
type Edge struct {
	Relation belay.Relation `json:"relation"`
	Target   string         `json:"target"`
	OnFailed string         `json:"onFailed,omitempty"`
}

func (e Edge) blocks() bool { return e.Relation == belay.RelationBlockedBy }

// ended reports whether nothing more happens to the task by itself.
func (p *Planned) ended() bool {
	switch p.Status {
	case "completed", "failed", "cancelled", "timed_out", "lost":
		return true
	}
	return p.Status == "blocked" && p.Begun
}

// waits reports whether the task is to start, and hasn't.
func (p *Planned) waits() bool {
	return !p.Begun && (p.Status == "queued" || p.Status == "blocked")
}

// Plan are the planned tasks of a session, in the order in which they came.
type Plan []Planned

// Find is the task with an id; nil: it isn't planned.
func (all Plan) Find(id belay.TaskID) *Planned {
	if i := slices.IndexFunc(all, func(p Planned) bool { return p.Task == id }); i >= 0 {
		return &all[i]
	}
	return nil
}

// path is the way from a task to another one along the edges of a relation; nil: there
// is none.
func (all Plan) path(r belay.Relation, from, to belay.TaskID) []string {
	seen := map[belay.TaskID]bool{}
	var walk func(at belay.TaskID) []string
	walk = func(at belay.TaskID) []string {
		if at == to {
			return []string{string(at)}
		}
		p := all.Find(at)
		if p == nil || seen[at] {
			return nil
		}
		seen[at] = true
		for _, e := range p.Edges {
			if e.Relation != r {
				continue
			}
			if way := walk(belay.TaskID(e.Target)); way != nil {
				return append([]string{string(at)}, way...)
			}
		}
		return nil
	}
	return walk(from)
}

// obstacle is what holds a task: whether blockers may still end well, and one that
// didn't; what then becomes of the task is said by its edge.
func (all Plan) obstacle(p *Planned) (open bool, bad *Planned, onFailed string) {
	for _, e := range p.Edges {
		b := all.Find(belay.TaskID(e.Target))
		switch {
		case !e.blocks() || b == nil || b.Status == "completed":
		case !b.ended():
			open = true
		case e.OnFailed == belay.OnFailedRun:
		case bad == nil || onFailed == belay.OnFailedBlock:
			bad, onFailed = b, e.OnFailed
		}
	}
	return open, bad, onFailed
}

// Blockers are the tasks that a task waits for.
func (all Plan) Blockers(p *Planned) (open []belay.TaskID) {
	for _, e := range p.Edges {
		if b := all.Find(belay.TaskID(e.Target)); e.blocks() && b != nil && b.Status != "completed" && (!b.ended() || e.OnFailed != belay.OnFailedRun) {
			open = append(open, b.Task)
		}
	}
	return open
}

func (s *State) planned(p event.PlannedTask) core.Fact {
	return core.Fact{IDs: s.ids(), Data: event.SessionUpdated{Planned: &p}}
}

func (s *State) edge(id belay.TaskID, e Edge, op, because string) core.Fact {
	p := event.TaskDependencyUpdated{Relation: e.Relation, Op: op, OnFailed: e.OnFailed, Because: because}
	if e.Relation.Tasks() {
		p.Target = belay.TaskID(e.Target)
	} else {
		p.To = e.Target
	}
	return core.Fact{IDs: belay.IDs{Session: s.Session, Task: id}, Data: p}
}

// planTask takes in a task that starts later.
func (d *Decider) planTask(c belay.PlanTask) ([]core.Fact, []core.Send, error) {
	s := &d.s
	if s.Session == "" {
		return nil, nil, belay.Errorf(belay.CodeNotFound, "no such session")
	}
	if s.Plan.Find(c.Task) != nil {
		return nil, nil, nil
	}
	open := 0
	for i := range s.Plan {
		if !s.Plan[i].ended() {
			open++
		}
	}
	if open >= maxPlanned {
		return nil, nil, belay.Errorf(belay.CodeTooMany, "%d tasks of the session are open, and more can't be", open).WithHint("complete or cancel some of them")
	}
	if len(c.BlockedBy) > maxEdges {
		return nil, nil, belay.Errorf(belay.CodeTooLarge, "a task has at most %d edges", maxEdges)
	}
	facts := []core.Fact{s.planned(event.PlannedTask{Task: c.Task, Status: "accepted", Parent: c.Parent, Priority: &c.Plan.Priority})}
	if c.Parent != "" {
		facts = append(facts, s.edge(c.Task, Edge{Relation: belay.RelationParent, Target: string(c.Parent)}, event.EdgeAdded, ""))
	}
	for _, b := range c.BlockedBy {
		if b.Task == c.Task {
			return nil, nil, cycle([]string{string(c.Task), string(c.Task)})
		}
		if s.Plan.Find(b.Task) == nil {
			return nil, nil, s.unplanned(b.Task)
		}
		facts = append(facts, s.edge(c.Task, Edge{Relation: belay.RelationBlockedBy, Target: string(b.Task), OnFailed: b.OnFailed}, event.EdgeAdded, ""))
	}
	return facts, []core.Send{{To: c.Task.Stream(), Command: belay.CreateTask{Objective: c.Objective, Plan: &c.Plan, Parent: c.Parent}}}, nil
}

func (s *State) unplanned(id belay.TaskID) error {
	return belay.Errorf(belay.CodeNotFound, "the session has no planned task %s", id).WithHint("create_task makes one; list_tasks lists them")
}

func cycle(way []string) error {
	return belay.Errorf(belay.CodeCycle, "tasks can't wait for one another: %s", strings.Join(way, " → ")).WithHint("leave one of these edges out")
}

// beginTask is the wish to start a task. The session starts it when nothing blocks it.
func (d *Decider) beginTask(o belay.Order, c belay.BeginTask) ([]core.Fact, []core.Send, error) {
	s := &d.s
	p := s.Plan.Find(c.Task)
	switch {
	case p == nil:
		return nil, nil, s.unplanned(c.Task)
	case p.Turn == c.Turn:
		return nil, nil, nil
	case slices.Contains(s.Turns, c.Turn):
		return nil, nil, belay.Errorf(belay.CodeIDConflict, "turn %s was given to another task", c.Turn).WithHint("bring a new turn id")
	case p.Status != "accepted":
		return nil, nil, belay.Errorf(belay.CodeBadState, "task %s is %s", p.Task, p.Status).WithHint("%s", startHint(p))
	}
	why := "order"
	if open, bad, _ := s.Plan.obstacle(p); open || bad != nil {
		why = "dependency"
	}
	facts := append(s.setQuotas(o.Principal, c.Quotas), s.planned(event.PlannedTask{Task: p.Task, Status: "queued", Thread: c.Thread, Turn: c.Turn}))
	return facts, []core.Send{{To: p.Task.Stream(), Command: belay.StartTask{Thread: c.Thread, Turn: c.Turn, Rules: c.Rules, Reason: why}}}, nil
}

func startHint(p *Planned) string {
	if p.ended() {
		return "retry_task starts another attempt, create_task another task"
	}
	return "get_task says what it waits for"
}

// linkTasks adds an edge or removes one.
func (d *Decider) linkTasks(c belay.LinkTasks) ([]core.Fact, []core.Send, error) {
	s := &d.s
	from, e := c.Task, Edge{Relation: c.Relation, Target: c.Target, OnFailed: c.OnFailed}
	switch c.Relation {
	case belay.RelationBlocks:
		from, e.Target, e.Relation = belay.TaskID(c.Target), string(c.Task), belay.RelationBlockedBy
	case belay.RelationChild:
		from, e.Target, e.Relation = belay.TaskID(c.Target), string(c.Task), belay.RelationParent
	}
	p := s.Plan.Find(from)
	if p == nil {
		return nil, nil, s.unplanned(from)
	}
	i := slices.IndexFunc(p.Edges, func(x Edge) bool { return x.Relation == e.Relation && x.Target == e.Target })
	if c.Remove {
		if i < 0 {
			return nil, nil, belay.Errorf(belay.CodeNotFound, "task %s has no edge %s to %s", from, e.Relation, e.Target).WithHint("get_task lists its edges")
		}
		return []core.Fact{s.edge(from, p.Edges[i], event.EdgeRemoved, c.Reason)}, nil, nil
	}
	if i >= 0 && p.Edges[i] == e {
		return nil, nil, nil
	}
	if e.blocks() {
		switch {
		case s.Plan.Find(belay.TaskID(e.Target)) == nil:
			return nil, nil, s.unplanned(belay.TaskID(e.Target))
		case p.Status != "accepted" && !p.waits() && p.Status != "paused":
			return nil, nil, belay.Errorf(belay.CodeBadState, "task %s is %s: nothing can block its start any more", from, p.Status)
		}
	}
	if way := s.Plan.path(e.Relation, belay.TaskID(e.Target), from); way != nil && (e.blocks() || e.Relation == belay.RelationParent) {
		return nil, nil, cycle(append([]string{string(from)}, way...))
	}
	if len(p.Edges) >= maxEdges && i < 0 {
		return nil, nil, belay.Errorf(belay.CodeTooLarge, "a task has at most %d edges", maxEdges)
	}
	return []core.Fact{s.edge(from, e, event.EdgeAdded, c.Reason)}, nil, nil
}

// markTask records how a task stands that the session planned, and which edges that
// meets.
func (d *Decider) markTask(c belay.MarkTask) ([]core.Fact, []core.Send, error) {
	s := &d.s
	p := s.Plan.Find(c.Task)
	if p == nil || p.Status == c.Status && c.Priority == nil {
		return nil, nil, nil
	}
	facts := []core.Fact{s.planned(event.PlannedTask{Task: c.Task, Status: c.Status, Reason: c.Reason, Priority: c.Priority})}
	for i := range s.Plan {
		for _, e := range s.Plan[i].Edges {
			if c.Status == "completed" && e.blocks() && e.Target == string(c.Task) {
				facts = append(facts, s.edge(s.Plan[i].Task, e, event.EdgeMet, "completed"))
			}
		}
	}
	return facts, nil, nil
}

// cancelParts cancels the open parts of a task that was cancelled; nothing of them starts
// any more.
func (s *State) cancelParts(rd *core.Ready) {
	for i := range s.Plan {
		p := &s.Plan[i]
		if p.ended() || p.Status == "cancelling" {
			continue
		}
		for _, e := range p.Edges {
			if whole := s.Plan.Find(belay.TaskID(e.Target)); e.Relation == belay.RelationParent && whole != nil && whole.Status == "cancelled" {
				why := "task " + e.Target + " was cancelled"
				rd.Decided = append(rd.Decided, s.planned(event.PlannedTask{Task: p.Task, Status: "cancelling", Reason: why}))
				rd.Sends = append(rd.Sends, core.Send{To: p.Task.Stream(), Command: belay.CancelTask{Reason: why}})
				break
			}
		}
	}
}

// startPlanned starts the first of the tasks that nothing blocks any more, by priority,
// then age; or says of one that it can't start.
func (s *State) startPlanned(rd *core.Ready) {
	var next *Planned
	for i := range s.Plan {
		p := &s.Plan[i]
		if !p.waits() {
			continue
		}
		open, bad, onFailed := s.Plan.obstacle(p)
		if bad != nil {
			why := fmt.Sprintf("task %s is %s", bad.Task, bad.Status)
			switch {
			case onFailed == belay.OnFailedSkip:
				rd.Decided = append(rd.Decided, s.planned(event.PlannedTask{Task: p.Task, Status: "cancelled", Reason: "skipped: " + why}))
				rd.Sends = append(rd.Sends, core.Send{To: p.Task.Stream(), Command: belay.CancelTask{Reason: "skipped: " + why}})
				return
			case p.Status == "queued":
				rd.Decided = append(rd.Decided, s.planned(event.PlannedTask{Task: p.Task, Status: "blocked", Reason: why}))
				rd.Sends = append(rd.Sends, core.Send{To: p.Task.Stream(), Command: belay.BlockTask{Reason: why}})
				return
			}
			continue
		}
		if !open && (next == nil || value(p.Priority) > value(next.Priority)) {
			next = p
		}
	}
	if next == nil {
		return
	}
	given := event.SessionUpdated{Thread: next.Thread, Task: next.Task, Turn: next.Turn, Planned: &event.PlannedTask{Task: next.Task, Status: "running"}}
	gift, budget := s.advance(s.Budget, next.Thread, len(rd.Decided)+1)
	rd.Sends = append(rd.Sends, s.opens(next.Thread)...)
	rd.Decided = append(append(rd.Decided, core.Fact{IDs: s.ids(), Data: given}), gift...)
	rd.Sends = append(rd.Sends, core.Send{To: next.Task.Stream(), Command: belay.StartTask{Budget: budget}})
}

func value(p *int) int {
	if p == nil {
		return 0
	}
	return *p
}

// opens opens a thread that the session hasn't got.
func (s *State) opens(thread belay.ThreadID) []core.Send {
	if slices.Contains(s.All(), thread) {
		return nil
	}
	sends := []core.Send{{To: thread.Stream(), Command: belay.OpenThread{Workspace: s.Workspace, Queue: s.Settings.Queue}}}
	if s.Use.Use == belay.UseReader {
		sends = append(sends, core.Send{To: thread.Stream(), Command: belay.UseWorkspace{Use: &s.Use}})
	}
	return append(sends, s.share(thread)...)
}

// applyPlan folds the facts of planned tasks.
func (s *State) applyPlan(e event.Envelope) {
	switch p := e.Data.(type) {
	case event.SessionUpdated:
		if p.Planned != nil {
			s.mark(*p.Planned)
		}
	case event.TaskDependencyUpdated:
		t := s.Plan.Find(e.IDs.Task)
		if t == nil {
			return
		}
		edge := Edge{Relation: p.Relation, Target: cmp.Or(string(p.Target), p.To), OnFailed: p.OnFailed}
		same := func(x Edge) bool { return x.Relation == edge.Relation && x.Target == edge.Target }
		switch p.Op {
		case event.EdgeAdded:
			t.Edges = append(slices.DeleteFunc(t.Edges, same), edge)
		case event.EdgeRemoved:
			t.Edges = slices.DeleteFunc(t.Edges, same)
		}
	}
}

func (s *State) mark(m event.PlannedTask) {
	p := s.Plan.Find(m.Task)
	if p == nil {
		s.Plan = append(s.Plan, Planned{PlannedTask: m})
		s.forgetEnded()
		return
	}
	p.Status, p.Reason = m.Status, m.Reason
	p.Begun = p.Begun || m.Status == "running"
	if m.Turn != "" {
		p.Thread, p.Turn = m.Thread, m.Turn
	}
	if m.Priority != nil {
		p.Priority = m.Priority
	}
}

// forgetEnded drops the oldest tasks that ended and that nothing open waits for.
func (s *State) forgetEnded() {
	ended := 0
	needed := map[string]bool{}
	for i := range s.Plan {
		if s.Plan[i].ended() {
			ended++
			continue
		}
		for _, e := range s.Plan[i].Edges {
			needed[e.Target] = true
		}
	}
	s.Plan = slices.DeleteFunc(s.Plan, func(p Planned) bool {
		if ended <= maxEnded || !p.ended() || needed[string(p.Task)] {
			return false
		}
		ended--
		return true
	})
}
