package session

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
)

// codeAgentLimit refuses a child that would be one too many, or too deep.
const codeAgentLimit = "AGENT_LIMIT"

// Codes that refuse input for a child.
const (
	codeAgentClosed = "AGENT_CLOSED"
	codeAgentWaits  = "AGENT_WAITS"
)

// Child is a sub-agent of the session: a thread with a task of its own.
type Child struct {
	ID         belay.SubagentID `json:"id"`
	Parent     belay.ThreadID   `json:"parent"`
	Turn       belay.TurnID     `json:"turn"` // of the parent
	Call       belay.CallID     `json:"call"`
	Thread     belay.ThreadID   `json:"thread"`
	Task       belay.TaskID     `json:"task"`
	Agent      string           `json:"agent"`
	Nickname   string           `json:"nickname,omitempty"`
	Depth      int              `json:"depth"`
	Priority   int              `json:"priority,omitempty"`
	Background bool             `json:"background,omitempty"`
	Waits      bool             `json:"waits,omitempty"`   // for a place
	Closing    bool             `json:"closing,omitempty"` // it was told to end
	Paused     bool             `json:"paused,omitempty"`
	Outcome    belay.Outcome    `json:"outcome,omitempty"` // empty: it is open
	Rules      belay.Ref        `json:"rules,omitzero"`
	Inputs     int              `json:"inputs,omitempty"` // texts that it was sent
	belay.AttemptUse
}

func (c *Child) ids(s belay.SessionID) belay.IDs {
	return belay.IDs{Session: s, Thread: c.Parent, Turn: c.Turn, Call: c.Call, Subagent: c.ID}
}

// Family is the children of a session, in the order in which they were opened.
type Family []Child

func (f Family) find(match func(*Child) bool) *Child {
	for i := range f {
		if match(&f[i]) {
			return &f[i]
		}
	}
	return nil
}

// Find is the child with an id; nil: there is none.
func (f Family) Find(id belay.SubagentID) *Child {
	return f.find(func(c *Child) bool { return c.ID == id })
}

func (f Family) byThread(t belay.ThreadID) *Child {
	return f.find(func(c *Child) bool { return c.Thread == t })
}

func (f Family) count(match func(*Child) bool) (n int) {
	for i := range f {
		if match(&f[i]) {
			n++
		}
	}
	return n
}

func (c *Child) open() bool { return c.Outcome == "" }

// awaits reports whether a thread has a call that ends when a child does.
func (f Family) awaits(t belay.ThreadID) bool {
	return f.find(func(c *Child) bool { return c.Parent == t && c.open() && !c.Background }) != nil
}

// working counts the children that have a place: those that run, but not those that
// wait for children of their own. So nesting can't use up the places for ever.
func (f Family) working() int {
	return f.count(func(c *Child) bool { return c.open() && !c.Waits && !f.awaits(c.Thread) })
}

// depth is that of a thread.
func (f Family) depth(t belay.ThreadID) int {
	if c := f.byThread(t); c != nil {
		return c.Depth
	}
	return 0
}

// refusal says why a thread can't have another child, or one again that had ended;
// empty: it can.
func (f Family) refusal(l belay.AgentLimits, parent belay.ThreadID, again bool) (why, hint string) {
	children := f.count(func(c *Child) bool { return c.Parent == parent && c.open() })
	open := f.count((*Child).open)
	switch {
	case f.depth(parent)+1 > l.Depth:
		return fmt.Sprintf("agents-depth is %d, and this agent is at depth %d", l.Depth, f.depth(parent)), "do the work yourself"
	case children >= l.Children:
		return fmt.Sprintf("agents-children is %d, and so many of this agent's children are open", l.Children), "wait for one of them, or close one"
	case !again && len(f) >= l.Total:
		return fmt.Sprintf("agents-total is %d, and the session has had so many", l.Total), "do the work yourself"
	case open >= belay.MaxOpenAgents:
		return fmt.Sprintf("%d agents of the session are open, and more can't be", open), "wait for one of them, or close one"
	}
	return "", ""
}

// spawn admits a child, or refuses it. It is the only place where a child's thread is
// opened.
func (d *Decider) spawn(o belay.Order, c belay.SpawnSubagent) ([]core.Fact, []core.Send, error) {
	s := &d.s
	if s.Family.Find(c.Subagent) != nil {
		return nil, nil, nil
	}
	if !slices.Contains(s.All(), c.Parent) {
		return nil, nil, belay.Errorf(belay.CodeNotFound, "the session has no thread %s", c.Parent)
	}
	l := s.Settings.Agents.OrDefaults()
	child := Child{ID: c.Subagent, Parent: c.Parent, Turn: c.Turn, Call: c.Call, Background: c.Background}
	if why, hint := s.Family.refusal(l, c.Parent, false); why != "" {
		end := belay.AttemptEnd{Outcome: belay.Denied, Reason: why}
		return []core.Fact{{IDs: child.ids(s.Session), Data: event.SubagentFailed{AttemptEnd: end, Code: codeAgentLimit}}},
			[]core.Send{child.tell(belay.TellParent{End: &end, Code: codeAgentLimit, Hint: hint})}, nil
	}
	child.Rules = c.Rules
	child.Thread = belay.ThreadID(belay.DeriveID(belay.PrefixThread, belay.StreamID(c.Subagent), 0, 0))
	child.Task = belay.TaskID(belay.DeriveID(belay.PrefixTask, belay.StreamID(c.Subagent), 0, 0))
	working := s.Family.working()
	if p := s.Family.byThread(c.Parent); p != nil && !c.Background && !s.Family.awaits(c.Parent) {
		working-- // the parent waits for it from now on
	}
	waits := working >= l.Running
	spawned := event.SubagentSpawned{Thread: child.Thread, Task: child.Task, Agent: c.Agent, Nickname: c.Nickname, Objective: c.Text,
		Depth: s.Family.depth(c.Parent) + 1, Background: c.Background, Priority: c.Priority, Waits: waits, Rules: c.Rules}
	facts := []core.Fact{{IDs: child.ids(s.Session), Data: spawned}}
	sends := []core.Send{{To: child.Thread.Stream(), Command: belay.OpenThread{Workspace: s.Workspace, Depth: spawned.Depth, Begin: &belay.Beginning{Taint: c.Taint}}}}
	if s.Use.Use == belay.UseReader {
		sends = append(sends, core.Send{To: child.Thread.Stream(), Command: belay.UseWorkspace{Use: &s.Use}})
	}
	if p := s.Family.byThread(c.Parent); p != nil && p.Paused { // its call was on the way
		facts = append(facts, core.Fact{IDs: child.ids(s.Session), Data: event.SubagentStatus{Status: event.Paused, Reason: "its parent is paused"}})
		sends = append(sends, core.Send{To: child.Thread.Stream(), Command: belay.PauseThread{Op: event.Paused}})
	}
	sends = append(sends, s.share(child.Thread)...)
	turn := belay.TurnID(belay.DeriveID(belay.PrefixTurn, belay.StreamID(c.Subagent), 0, 0))
	sends = append(sends,
		core.Send{To: child.Task.Stream(), Command: belay.CreateTask{Objective: c.Text, Thread: child.Thread, Turn: turn, Rules: c.Rules, Priority: c.Priority,
			Budget: s.toldBudget(), Parent: c.ParentTask, Subagent: c.Subagent, Wait: waits}},
		child.tell(belay.TellParent{}))
	return facts, sends, nil
}

// toldBudget tells a child that the session has a budget, so that it asks before it
// spends; nil: nothing is limited.
func (s *State) toldBudget() *belay.BudgetGrant {
	if !s.Budget.Limited() {
		return nil
	}
	return &belay.BudgetGrant{Limit: s.Budget.Told()}
}

// tell is a message to the parent about the child.
func (c *Child) tell(m belay.TellParent) core.Send {
	m.Subagent, m.Call = c.ID, c.Call
	return core.Send{To: c.Parent.Stream(), Command: m}
}

// endChild records how a child ended and tells its parent.
func (d *Decider) endChild(c belay.EndSubagent) ([]core.Fact, []core.Send, error) {
	s := &d.s
	child := s.Family.Find(c.Subagent)
	if child == nil || !child.open() || c.Inputs < child.Inputs { // it goes on with what it was sent
		return nil, nil, nil
	}
	var end event.Payload = event.SubagentFailed{AttemptEnd: c.End}
	if c.End.Outcome == belay.Completed {
		end = event.SubagentCompleted{AttemptEnd: c.End}
	}
	return []core.Fact{{IDs: child.ids(s.Session), Data: end}}, []core.Send{child.tell(belay.TellParent{End: &c.End})}, nil
}

// sendInput gives a child a text. One that has ended goes on, if the limits allow it.
func (d *Decider) sendInput(o belay.Order, c belay.SendSubagentInput) ([]core.Fact, []core.Send, error) {
	s := &d.s
	child := s.Family.Find(c.Subagent)
	if child == nil {
		return nil, nil, belay.Errorf(belay.CodeNotFound, "the session has no agent %s", c.Subagent).WithHint("belay agents ps lists them")
	}
	l := s.Settings.Agents.OrDefaults()
	again := !child.open()
	var code, why, hint string
	switch {
	case child.Closing:
		code, why, hint = codeAgentClosed, "the agent was closed", "start another one"
	case child.Waits:
		code, why, hint = codeAgentWaits, "the agent waits for a place and hasn't begun", "send it when it runs"
	case again:
		if why, hint = s.Family.refusal(l, child.Parent, true); why != "" {
			code = codeAgentLimit
		}
	}
	if code != "" && c.Call != "" {
		return nil, []core.Send{{To: c.Parent.Stream(), Command: belay.TellParent{Subagent: child.ID, Call: c.Call, Code: code, Hint: hint,
			End: &belay.AttemptEnd{Outcome: belay.Denied, Reason: why}}}}, nil
	}
	if code != "" {
		return nil, nil, belay.Errorf(belay.CodeBadState, "%s: %s", code, why).WithHint("%s", hint)
	}
	waits := again && s.Family.working() >= l.Running
	queue := belay.QueueSteer
	if c.Interrupt {
		queue = belay.QueueInterrupt
	}
	facts := []core.Fact{{IDs: child.ids(s.Session), Data: event.SubagentInput{By: o.Principal, Text: c.Text, Turn: c.Turn, Again: again, Waits: waits,
		Agent: child.Agent, Nickname: child.Nickname, Depth: child.Depth}}}
	sends := []core.Send{{To: child.Task.Stream(), Command: belay.ContinueTask{Input: child.Inputs + 1, Turn: c.Turn, Text: c.Text, Rules: child.Rules, Queue: queue,
		Priority: child.Priority, Wait: waits, Budget: s.toldBudget(), Taint: c.Taint, Limits: c.Limits}}}
	if c.Call != "" || again {
		sends = append(sends, core.Send{To: child.Parent.Stream(), Command: belay.TellParent{Subagent: child.ID, Call: c.Call, Again: again}})
	}
	return facts, sends, nil
}

// closeChild makes a child end. What it started ends with its turn.
func (d *Decider) closeChild(o belay.Order, c belay.CloseSubagent) ([]core.Fact, []core.Send, error) {
	s := &d.s
	child := s.Family.Find(c.Subagent)
	if child == nil {
		return nil, nil, belay.Errorf(belay.CodeNotFound, "the session has no agent %s", c.Subagent).WithHint("belay agents ps lists them")
	}
	reason := cmp.Or(c.Reason, "it was closed by "+o.Principal)
	var facts []core.Fact
	var sends []core.Send
	for _, c := range s.Family.below(child) {
		facts = append(facts, core.Fact{IDs: c.ids(s.Session), Data: event.SubagentClosed{By: o.Principal, Reason: reason}})
		sends = append(sends, core.Send{To: c.Task.Stream(), Command: belay.CancelTask{Reason: reason}})
	}
	return facts, sends, nil
}

// pause makes a child and those below it begin nothing more, or resumes them.
func (d *Decider) pause(o belay.Order, id belay.SubagentID, c belay.PauseThread) ([]core.Fact, []core.Send, error) {
	s := &d.s
	child := s.Family.Find(id)
	if child == nil {
		return nil, nil, belay.Errorf(belay.CodeNotFound, "the session has no agent %s", id).WithHint("belay agents ps lists them")
	}
	if !child.open() {
		return nil, nil, belay.Errorf(belay.CodeBadState, "agent %s has ended: %s", id, child.Outcome).WithHint("belay agents ps lists those that are open")
	}
	c.Reason = cmp.Or(c.Reason, "by "+o.Principal)
	var facts []core.Fact
	var sends []core.Send
	for _, k := range s.Family.below(child) {
		if k.Paused != (c.Op == event.Paused) || c.Now {
			facts = append(facts, core.Fact{IDs: k.ids(s.Session), Data: event.SubagentStatus{Status: c.Op, Reason: c.Reason}})
			sends = append(sends, core.Send{To: k.Thread.Stream(), Command: c})
		}
	}
	return facts, sends, nil
}

// below are a child and its descendants that aren't told to end, the deepest first.
func (f Family) below(c *Child) (all []*Child) {
	for i := range f {
		if f[i].Parent == c.Thread {
			all = append(all, f.below(&f[i])...)
		}
	}
	if c.open() && !c.Closing {
		all = append(all, c)
	}
	return all
}

// givePlaces starts children that wait when there are places: by priority, then age.
func (s *State) givePlaces(rd *core.Ready) {
	l := s.Settings.Agents.OrDefaults()
	if s.Family.working() >= l.Running {
		return
	}
	var next *Child
	for i := range s.Family {
		if c := &s.Family[i]; c.Waits && c.open() && !c.Paused && (next == nil || c.Priority > next.Priority) {
			next = c
		}
	}
	if next == nil {
		return
	}
	rd.Decided = append(rd.Decided, core.Fact{IDs: next.ids(s.Session), Data: event.SubagentStatus{Status: event.SubagentRunning}})
	rd.Sends = append(rd.Sends, core.Send{To: next.Task.Stream(), Command: belay.StartTask{Budget: s.toldBudget()}})
}

// applyFamily folds the facts of children.
func (s *State) applyFamily(e event.Envelope) {
	c := s.Family.Find(e.IDs.Subagent)
	switch p := e.Data.(type) {
	case event.SubagentSpawned:
		if c == nil {
			s.joins()
			s.Family = append(s.Family, Child{ID: e.IDs.Subagent, Parent: e.IDs.Thread, Turn: e.IDs.Turn, Call: e.IDs.Call, Thread: p.Thread, Task: p.Task,
				Agent: p.Agent, Nickname: p.Nickname, Depth: p.Depth, Priority: p.Priority, Background: p.Background, Waits: p.Waits, Rules: p.Rules})
		}
	case event.SubagentInput:
		if c != nil {
			c.Inputs++
			if p.Again {
				c.Outcome, c.Background, c.Waits = "", true, p.Waits
			}
		}
	case event.SubagentStatus:
		switch {
		case c == nil:
		case p.Status == event.SubagentRunning:
			c.Waits = false
		case p.Status == event.Paused, p.Status == event.Resumed:
			c.Paused = p.Status == event.Paused
		}
	case event.SubagentClosed:
		if c != nil {
			c.Closing = true
		}
	case event.SubagentCompleted:
		if c != nil {
			c.Outcome, c.AttemptUse = p.Outcome, c.Plus(p.AttemptUse)
		}
	case event.SubagentFailed:
		if c != nil {
			c.Outcome, c.AttemptUse = p.Outcome, c.Plus(p.AttemptUse)
		}
	}
}
