package session

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

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
	Begun bool      `json:"begun,omitempty"` // it was started
	Since time.Time `json:"since,omitzero"`  // of one that is to start: when that was wished
	Over  time.Time `json:"over,omitzero"`   // when it ended
	Edges []Edge    `json:"edges,omitempty"`
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

// Goal is the session's goal that is open; nil: it has none.
func (all Plan) Goal() *Planned {
	if i := slices.IndexFunc(all, func(p Planned) bool { return p.Goal && !p.ended() }); i >= 0 {
		return &all[i]
	}
	return nil
}

// LastGoal is the goal that is open, or the newest one; nil: there was none.
func (all Plan) LastGoal() *Planned {
	for i := range slices.Backward(all) {
		if all[i].Goal {
			return &all[i]
		}
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

// missing says which results a task has to do without that it was to start after; empty:
// none.
func (all Plan) missing(p *Planned) string {
	var b strings.Builder
	for _, e := range p.Edges {
		if x := all.Find(belay.TaskID(e.Target)); e.blocks() && x != nil && x.ended() && x.Status != "completed" {
			fmt.Fprintf(&b, "\n- %s %s", cmp.Or(x.Title, string(x.Task)), x.Status)
			if x.Reason != "" {
				b.WriteString(": " + event.CutText(x.Reason, 200))
			}
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return event.CutText("You go on without the results of these, which were to be done before:"+b.String(), 2<<10)
}

// bound is the taint of the results that a task's input was made of.
func (all Plan) bound(p *Planned) (taint []string) {
	for _, e := range p.Edges {
		if b := all.Find(belay.TaskID(e.Target)); p.Input != nil && e.blocks() && b != nil {
			taint = joined(taint, b.Taint, maxTeamTaint)
		}
	}
	return taint
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
func (d *Decider) planTask(o belay.Order, c belay.PlanTask) ([]core.Fact, []core.Send, error) {
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
	if g := s.Plan.Goal(); c.Plan.Goal && g != nil {
		return nil, nil, belay.Errorf(belay.CodeBadState, "the session has a goal: task %s", g.Task).WithHint("belay goal clear ends it")
	}
	facts := []core.Fact{s.planned(event.PlannedTask{Task: c.Task, Status: "accepted", Title: event.CutText(c.Plan.Title, maxLineageName), Parent: c.Parent, Input: c.Plan.Input, Optional: c.Plan.Optional, Priority: &c.Plan.Priority, Goal: c.Plan.Goal, CompleteAt: c.Plan.CompleteAt})}
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
	return facts, []core.Send{{To: c.Task.Stream(), Command: belay.CreateTask{Objective: c.Objective, Plan: &c.Plan, Parent: c.Parent, By: o.Principal}}}, nil
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
	case p.CompleteAt > 0:
		return nil, nil, belay.Errorf(belay.CodeBadState, "task %s has no work of its own", p.Task).WithHint("start its parts")
	case c.Refused != nil:
		return nil, nil, c.Refused
	}
	queued := event.PlannedTask{Task: p.Task, Status: "queued", Thread: c.Thread, Turn: c.Turn, Memory: c.Memory, Text: c.Text}
	if c.Agent != nil {
		if why, hint := s.refusal(c.Thread, c.Turn, false, c.Memory); why != "" {
			return nil, nil, event.Problem{Code: codeAgentLimit, Message: why, Hint: hint}.Refusal()
		}
		queued.Agent, queued.Rules = c.Agent, &c.Rules
	}
	why := "order"
	if open, bad, _ := s.Plan.obstacle(p); open || bad != nil {
		why = "dependency"
	}
	facts := append(s.setQuotas(o.Principal, c.Quotas), s.planned(queued))
	return facts, []core.Send{{To: p.Task.Stream(), Command: belay.StartTask{Thread: c.Thread, Turn: c.Turn, Rules: c.Rules, Reason: why}}}, nil
}

func startHint(p *Planned) string {
	if p.ended() {
		return "retry_task starts another attempt, create_task another task"
	}
	return "get_task says what it waits for"
}

// completeTask brings the word that a task is done to it, once the thread is open that
// checks it.
func (d *Decider) completeTask(o belay.Order, c belay.CompleteTask) ([]core.Fact, []core.Send, error) {
	s := &d.s
	c.By = o.Principal
	if s.Session == "" {
		return nil, nil, belay.Errorf(belay.CodeNotFound, "no such session")
	}
	if slices.Contains(s.Turns, c.Turn) {
		return nil, nil, nil
	}
	given := event.SessionUpdated{Thread: c.Thread, Task: c.Task, Turn: c.Turn}
	return []core.Fact{{IDs: s.ids(), Data: given}}, append(s.opens(c.Thread), core.Send{To: c.Task.Stream(), Command: c}), nil
}

// archiveAfter is how long a task that has ended stays in the lists.
const archiveAfter = 7 * 24 * time.Hour

// archive takes tasks out of the lists that ended long ago. Their history stays.
func (s *State) archive(rd *core.Ready, now time.Time) {
	for i := range s.Plan {
		p := &s.Plan[i]
		if p.ended() && !p.Over.IsZero() && !now.Before(p.Over.Add(archiveAfter)) && !s.Plan.needed(p.Task) {
			rd.Decided = append(rd.Decided, core.Fact{IDs: belay.IDs{Session: s.Session, Task: p.Task}, Data: event.TaskArchived{Reason: "it ended more than 7 days ago"}})
		}
	}
}

// needed reports whether an open task has an edge to another one.
func (all Plan) needed(id belay.TaskID) bool {
	return slices.ContainsFunc(all, func(p Planned) bool {
		return !p.ended() && slices.ContainsFunc(p.Edges, func(e Edge) bool { return e.Target == string(id) })
	})
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
	facts := []core.Fact{s.planned(event.PlannedTask{Task: c.Task, Status: c.Status, Reason: c.Reason, Priority: c.Priority, Taint: joined(nil, c.Taint, maxTeamTaint)})}
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

// endWholes ends tasks of parts whose parts have all ended.
func (s *State) endWholes(rd *core.Ready) {
	for i := range s.Plan {
		p := &s.Plan[i]
		if p.CompleteAt <= 0 || p.ended() || p.Status == "verifying" || s.Family.planned(p.Task) {
			continue
		}
		all, over, well := 0, 0, 0
		for j := range s.Plan {
			part := &s.Plan[j]
			if !slices.ContainsFunc(part.Edges, func(e Edge) bool { return e.Relation == belay.RelationParent && e.Target == string(p.Task) }) {
				continue
			}
			all++
			if part.ended() {
				over++
			}
			if part.Status == "completed" || part.Optional && part.ended() {
				well++
			}
		}
		if all == 0 || over < all {
			continue
		}
		said := fmt.Sprintf("%d of %d parts were completed", well, all)
		c := belay.Command(belay.CompleteTask{Summary: belay.Content{Text: said}, Output: p.Text})
		if p.Status == event.PlanUnbound {
			c = belay.FailTask{Reason: said + "; " + p.Reason}
		}
		if float64(well) < p.CompleteAt*float64(all)-1e-9 {
			c = belay.FailTask{Reason: fmt.Sprintf("%s; %d %% are needed", said, int(p.CompleteAt*100))}
		}
		if _, completes := c.(belay.CompleteTask); completes && p.Input != nil && p.Text == nil {
			rd.Effects = append(rd.Effects, core.BindInput{IDs: belay.IDs{Session: s.Session, Task: p.Task}, Input: *p.Input, Whole: true})
			continue
		}
		rd.Decided = append(rd.Decided, s.planned(event.PlannedTask{Task: p.Task, Status: "verifying"}))
		rd.Sends = append(rd.Sends, core.Send{To: p.Task.Stream(), Command: c})
	}
}

// aging is how long a task waits until it goes before those of one priority more.
const aging = 5 * time.Minute

// urgency is a task's priority with what its waiting adds.
func (p *Planned) urgency(now time.Time) int {
	n := value(p.Priority)
	if !p.Since.IsZero() && now.After(p.Since) {
		n += int(now.Sub(p.Since) / aging)
	}
	return n
}

// startPlanned starts the first of the tasks that nothing blocks any more, by priority,
// then age; or says of one that it can't start. Those that run are at most as many as
// agents may; those that declare memory don't overtake one that waits for some.
func (s *State) startPlanned(rd *core.Ready, now time.Time) {
	var next, light *Planned // light declares no memory
	most, running := s.Settings.Agents.OrDefaults().Running, 0
	for i := range s.Plan {
		if p := &s.Plan[i]; p.Begun && !p.ended() {
			running++
		}
	}
	for i := range s.Plan {
		p := &s.Plan[i]
		if p.Status == event.PlanUnbound && p.CompleteAt == 0 { // what it was to be given can't be
			rd.Decided = append(rd.Decided, s.planned(event.PlannedTask{Task: p.Task, Status: "failed", Reason: p.Reason}))
			rd.Sends = append(rd.Sends, core.Send{To: p.Task.Stream(), Command: belay.FailTask{Reason: p.Reason}})
			return
		}
		if !p.waits() || s.pauseOf(p.Task) != nil || s.Family.held(p.Thread) {
			continue
		}
		open, bad, onFailed := s.Plan.obstacle(p)
		why := s.noRoom(p)
		if bad != nil {
			why = fmt.Sprintf("task %s is %s", bad.Task, bad.Status)
		}
		if bad != nil || !open && why != "" {
			switch {
			case bad != nil && onFailed == belay.OnFailedSkip:
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
		if !open && p.Input != nil && p.Text == nil {
			rd.Effects = append(rd.Effects, core.BindInput{IDs: belay.IDs{Session: s.Session, Task: p.Task}, Input: *p.Input})
			continue
		}
		if p.Agent != nil && s.working() >= most || p.Agent == nil && running >= most {
			continue // but the others may: an agent waits for its own without a place
		}
		if !open && (next == nil || p.urgency(now) > next.urgency(now)) {
			next = p
		}
		if !open && p.Memory.Declared == 0 && (light == nil || p.urgency(now) > light.urgency(now)) {
			light = p
		}
	}
	if next != nil {
		if why := s.crowded(next.Memory); why != "" && next.Reason != why {
			rd.Decided = append(rd.Decided, s.planned(event.PlannedTask{Task: next.Task, Status: "queued", Reason: why}))
			rd.Sends = append(rd.Sends, core.Send{To: next.Task.Stream(), Command: belay.StartTask{Thread: next.Thread, Turn: next.Turn, Rules: value(next.Rules), Reason: why}})
			return
		} else if why != "" {
			next = light
		}
	}
	if next == nil {
		return
	}
	if next.Text != nil {
		rd.Sends = append(rd.Sends, core.Send{To: next.Task.Stream(), Command: belay.UpdateTask{Objective: next.Text}})
	}
	if next.Agent != nil {
		s.startAgent(rd, next)
		return
	}
	given := event.SessionUpdated{Thread: next.Thread, Task: next.Task, Turn: next.Turn, Planned: &event.PlannedTask{Task: next.Task, Status: "running"}}
	gift, budget := s.advance(s.Budget, next.Thread, len(rd.Decided)+1)
	rd.Sends = append(rd.Sends, s.opens(next.Thread)...)
	rd.Decided = append(append(rd.Decided, core.Fact{IDs: s.ids(), Data: given}), gift...)
	rd.Sends = append(rd.Sends, core.Send{To: next.Task.Stream(), Command: belay.StartTask{Budget: budget, Note: s.Plan.missing(next), Taint: s.Plan.bound(next)}})
}

// noRoom says why the agent that is to do a task can't work, however long it waits; empty:
// it can.
func (s *State) noRoom(p *Planned) (why string) {
	l := s.Settings.Agents.OrDefaults()
	switch {
	case p.Agent != nil:
		why, _ = s.refusal(p.Thread, p.Turn, false, p.Memory)
	case beyond(l, p.Memory):
		why = tooBig(l, p.Memory)
	}
	if why != "" {
		return codeAgentLimit + ": " + why
	}
	return ""
}

// startAgent opens the sub-agent that is to do a task, as a child of the thread that the
// task was given to, and starts the task there. In a team that is the team's thread.
func (s *State) startAgent(rd *core.Ready, p *Planned) {
	child := Child{ID: p.Agent.Subagent, Parent: p.Thread, Turn: p.Turn, Task: p.Task, Agent: p.Agent.Agent, Priority: value(p.Priority), Background: true,
		childPlace: childPlace{Workspace: p.Agent.Workspace, Worktree: p.Agent.Worktree}}
	child.Memory = p.Memory
	child.Thread, _ = OfSubagent(child.ID)
	if p.Rules != nil {
		child.Rules = *p.Rules
	}
	taint, given := p.Agent.Taint, event.SessionUpdated{Planned: &event.PlannedTask{Task: p.Task, Status: "running"}}
	in := s.Family.teamOf(&child)
	if in != nil {
		child.Turn, child.ParentTask, child.Nickname, child.Background = in.Turn, in.Task, p.Agent.Name, false
		taint = in.Team.Taint
	} else {
		given.Thread, given.Task, given.Turn = p.Thread, p.Task, p.Turn
		rd.Sends = append(rd.Sends, s.opens(p.Thread)...)
	}
	facts, sends := s.openChild(&child, p.Agent.Text, nil, taint)
	rd.Decided = append(append(rd.Decided, core.Fact{IDs: s.ids(), Data: given}), facts...)
	rd.Sends = append(append(rd.Sends, sends...),
		core.Send{To: p.Task.Stream(), Command: belay.StartTask{Subagent: child.ID, Thread: child.Thread, Budget: s.toldBudget(), Note: s.Plan.missing(p)}})
	if in == nil {
		rd.Sends = append(rd.Sends, child.tell(belay.TellParent{Agent: child.Agent, Nickname: child.Nickname, Task: child.Task}))
	}
}

// value is what a pointer leads to; zero: nowhere.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
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
	case event.TaskArchived:
		s.Plan = slices.DeleteFunc(s.Plan, func(t Planned) bool { return t.Task == e.IDs.Task })
	case event.SessionUpdated:
		if p.Planned != nil {
			s.mark(*p.Planned, e.Time)
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

func (s *State) mark(m event.PlannedTask, at time.Time) {
	p := s.Plan.Find(m.Task)
	if p == nil {
		if t := s.Family.find(func(c *Child) bool { return c.Team != nil && c.Task == m.Parent }); t != nil {
			t.Team.Planned++
		}
		s.Plan = append(s.Plan, Planned{PlannedTask: m})
		s.forgetEnded()
		return
	}
	p.Status, p.Reason = m.Status, m.Reason
	if m.Text != nil {
		p.Text = m.Text
	}
	p.Taint = joined(p.Taint, m.Taint, maxTeamTaint)
	p.Begun = p.Begun || m.Status == "running"
	if p.ended() {
		p.Over = at
	}
	if m.Status == "queued" && p.Since.IsZero() {
		p.Since = at
	}
	if m.Turn != "" {
		p.Thread, p.Turn, p.Agent, p.Rules, p.Memory = m.Thread, m.Turn, m.Agent, m.Rules, m.Memory
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
