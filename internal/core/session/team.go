package session

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
)

// team is what makes a child one of several agents: they do the parts of its task, as its
// children. It asks no model itself, so it needs no place.
type team struct {
	belay.Team
	Planned   int              `json:"planned,omitempty"` // parts
	Said      []said           `json:"said,omitempty"`
	Changed   []string         `json:"changed,omitempty"`
	Artifacts []string         `json:"artifacts,omitempty"`
	Used      belay.AttemptUse `json:"used,omitzero"`
}

// said is how an agent of a team ended.
type said struct {
	Task belay.TaskID `json:"task"`
	Text string       `json:"text"`
}

// Bounds of what a team tells of its agents.
const (
	maxTeamWords   = 200
	maxTeamChanged = 100
	maxTeamTaint   = 64
)

func teamed(t *belay.Team) *team {
	if t == nil {
		return nil
	}
	own := *t
	own.Taint = slices.Clone(t.Taint)
	return &team{Team: own}
}

// plans reports whether parts of the child's task aren't planned yet.
func (c *Child) plans() bool {
	return c.Team != nil && c.open() && !c.Closing && c.Team.Planned < c.Team.Parts
}

// teamOf is the team that a child is of; nil: it is of none.
func (f Family) teamOf(c *Child) *Child {
	if p := f.ByThread(c.Parent); p != nil && p.Team != nil {
		return p
	}
	return nil
}

// leftTeam reports whether a child was of a team that has ended.
func (f Family) leftTeam(c *Child) bool {
	t := f.teamOf(c)
	return t != nil && !t.open()
}

// held reports whether nothing of what a thread's agent wants begins: it is paused, or was
// told to end.
func (f Family) held(t belay.ThreadID) bool {
	c := f.ByThread(t)
	return c != nil && (c.Paused || c.Closing)
}

// planned reports whether a task is that of a team whose parts are being planned.
func (f Family) planned(t belay.TaskID) bool {
	return f.find(func(c *Child) bool { return c.Task == t && c.plans() }) != nil
}

// expected are the agents of a turn's teams that are still to come, but for the one that a
// team is about to start.
func (f Family) expected(root belay.TurnID, parent belay.ThreadID) (n int) {
	for i := range f {
		t := &f[i]
		if t.Team == nil || !t.open() || t.Root != root {
			continue
		}
		n += max(0, t.Team.Parts-f.count(func(c *Child) bool { return c.Parent == t.Thread }))
		if t.Thread == parent {
			n--
		}
	}
	return n
}

// tooMany says why the agents of a team can't be had; empty: they can.
func (s *State) tooMany(l belay.AgentLimits, c belay.SpawnSubagent) (why, hint string) {
	open, root := 0, s.rootOf(c.Parent, c.Turn)
	for i := range s.Plan {
		if !s.Plan[i].ended() {
			open++
		}
	}
	switch depth := s.Family.depth(c.Parent) + 2; {
	case depth > l.Depth:
		return fmt.Sprintf("agents-depth is %d, and the agents of a team would be at depth %d", l.Depth, depth), "do the work yourself"
	case s.had(root)+s.Family.expected(root, "")+1+c.Team.Parts > l.Total:
		return fmt.Sprintf("agents-total is %d, and with the %d of this team the turn would have more", l.Total, c.Team.Parts), "do the work yourself"
	case open+1+c.Team.Parts > maxPlanned:
		return fmt.Sprintf("%d tasks of the session are open, and those of this team would be too many", open), "wait for some of them"
	}
	return "", ""
}

// openTeam records a team with its task, and opens its thread. Its agents come when their
// parts are planned.
func (s *State) openTeam(child *Child, c belay.SpawnSubagent) ([]core.Fact, []core.Send) {
	child.Team, child.Memory = teamed(c.Team), belay.MemoryNeed{}
	child.Team.Taint = c.Taint
	plan := c.Team.Plan
	plan.Priority = c.Priority
	facts, sends := s.openChild(child, c.Text, nil, c.Taint)
	facts = append(facts,
		core.Fact{IDs: child.ids(s.Session), Data: event.SubagentStatus{Status: event.SubagentWaiting, Reason: "its agents work"}},
		s.planned(event.PlannedTask{Task: child.Task, Status: "accepted", Title: event.CutText(plan.Title, maxLineageName), Parent: c.ParentTask, Input: plan.Input, Priority: &plan.Priority, CompleteAt: plan.CompleteAt}))
	return facts, append(sends, core.Send{To: child.Task.Stream(), Command: belay.CreateTask{Objective: c.Text, Plan: &plan, Parent: c.ParentTask}})
}

// planTeams plans the next part of a team's task, and wishes that its agent starts.
func (d *Decider) planTeams(rd *core.Ready) {
	s := &d.s
	for i := range s.Family {
		c := &s.Family[i]
		if !c.plans() {
			continue
		}
		all := d.members[c.Team.Members.Digest]
		if len(all) != c.Team.Parts {
			if whole := s.Plan.Find(c.Task); whole != nil && !whole.ended() && whole.Status != "verifying" {
				rd.Decided = append(rd.Decided, s.planned(event.PlannedTask{Task: c.Task, Status: "verifying"}))
				rd.Sends = append(rd.Sends, core.Send{To: c.Task.Stream(), Command: belay.FailTask{Reason: "what the team is made of is missing from the store"}})
			}
			continue
		}
		s.planMember(rd, c, all[c.Team.Planned])
		return
	}
}

func (s *State) planMember(rd *core.Ready, c *Child, m belay.TeamMember) {
	plan, why := m.Plan, "order"
	rd.Decided = append(rd.Decided, s.planned(event.PlannedTask{Task: m.Task, Status: "accepted", Title: event.CutText(plan.Title, maxLineageName), Parent: c.Task, Input: plan.Input, Optional: plan.Optional, Priority: &plan.Priority}),
		s.edge(m.Task, Edge{Relation: belay.RelationParent, Target: string(c.Task)}, event.EdgeAdded, ""))
	for _, b := range m.BlockedBy {
		why = "dependency"
		rd.Decided = append(rd.Decided, s.edge(m.Task, Edge{Relation: belay.RelationBlockedBy, Target: string(b.Task), OnFailed: b.OnFailed}, event.EdgeAdded, ""))
	}
	rd.Sends = append(rd.Sends, core.Send{To: m.Task.Stream(), Command: belay.CreateTask{Objective: m.Objective, Plan: &plan, Parent: c.Task}})
	if l := s.Settings.Agents.OrDefaults(); m.Starved == "" && beyond(l, m.Memory) {
		m.Starved = codeAgentLimit + ": " + tooBig(l, m.Memory)
	}
	if m.Starved != "" {
		rd.Sends = append(rd.Sends, core.Send{To: m.Task.Stream(), Command: belay.FailTask{Reason: m.Starved}})
		return
	}
	turn := belay.TurnID(belay.DeriveID(belay.PrefixTurn, m.Task.Stream(), 0, 0))
	agent := belay.Assigned{Subagent: belay.SubagentID(belay.DeriveID(belay.PrefixSubagent, belay.StreamID(turn), 0, 0)), Agent: m.Agent, Name: event.CutText(plan.Title, maxLineageName), Text: m.Objective, Workspace: c.Workspace}
	agent.Text.Text = event.CutText(agent.Text.Text, maxTeamObjective)
	rd.Decided = append(rd.Decided, s.planned(event.PlannedTask{Task: m.Task, Status: "queued", Thread: c.Thread, Turn: turn, Agent: &agent, Rules: &m.Rules, Memory: m.Memory}))
	rd.Sends = append(rd.Sends, core.Send{To: m.Task.Stream(), Command: belay.StartTask{Thread: c.Thread, Turn: turn, Rules: m.Rules, Reason: why}})
}

// maxTeamObjective is how much of an objective the facts about its agent have, in bytes.
const maxTeamObjective = 500

// endTeams ends the first team whose task has ended, and all that its agents did.
func (s *State) endTeams(rd *core.Ready) {
	for i := range s.Family {
		c := &s.Family[i]
		if c.Team == nil || !c.open() || c.Leaving != nil {
			continue
		}
		whole := s.Plan.Find(c.Task)
		parts, open := s.parted(c.Task)
		if open || whole != nil && !whole.ended() || s.Family.count(func(o *Child) bool { return o.Parent == c.Thread && o.open() }) > 0 {
			continue
		}
		facts, sends := s.leave(c, c.Team.end(value(whole), parts))
		rd.Decided, rd.Sends = append(rd.Decided, facts...), append(rd.Sends, sends...)
		return
	}
}

// parted are the parts of a team's task; open: some haven't ended.
func (s *State) parted(whole belay.TaskID) (parts []*Planned, open bool) {
	for i := range s.Plan {
		if p := &s.Plan[i]; p.Parent == whole {
			parts, open = append(parts, p), open || !p.ended()
		}
	}
	return parts, open
}

// end is how a team ended whose task stands so: with each part in a line.
func (t *team) end(whole Planned, parts []*Planned) belay.AttemptEnd {
	end := belay.AttemptEnd{Outcome: belay.Failed, Reason: cmp.Or(whole.Reason, whole.Status), Taint: t.Taint, Changed: t.Changed, Artifacts: t.Artifacts, AttemptUse: t.Used}
	for _, p := range parts {
		text := event.CutText(p.Status+": "+p.Reason, maxTeamWords)
		if i := slices.IndexFunc(t.Said, func(s said) bool { return s.Task == p.Task }); i >= 0 {
			text = t.Said[i].Text
		}
		end.Summary.Text += p.Title + ": " + text + "\n"
	}
	switch whole.Status {
	case "completed":
		end.Outcome, end.Reason, end.Output = belay.Completed, "", whole.Text
	case "cancelled":
		end.Outcome = belay.Cancelled
	case "":
		end.Outcome, end.Reason = belay.Lost, "its task is gone"
	}
	return end
}

// hears folds how an agent of the team ended, and what it took since it ended before.
func (t *team) hears(c *Child, end belay.AttemptEnd, took belay.Amounts) {
	took = t.Used.Charged.Add(took.Max(belay.Amounts{}))
	t.Used = t.Used.Plus(end.AttemptUse)
	t.Used.Charged = took
	text := end.Summary.Text
	if end.Outcome != belay.Completed {
		text = string(end.Outcome) + ": " + end.Reason
	}
	t.Said = slices.DeleteFunc(t.Said, func(s said) bool { return s.Task == c.Task })
	t.Said = append(t.Said, said{c.Task, event.CutText(text, maxTeamWords)})
	if end.Worktree == nil {
		t.Changed = joined(t.Changed, end.Changed, maxTeamChanged)
	}
	t.Artifacts = joined(t.Artifacts, end.Artifacts, maxTeamChanged)
	t.Taint = joined(t.Taint, end.Taint, maxTeamTaint)
}

// joined are words with those of others that aren't among them, at most so many.
func joined(have, more []string, most int) []string {
	for _, w := range more {
		if len(have) < most && !slices.Contains(have, w) {
			have = append(have, w)
		}
	}
	return have
}

// Missing names the lists of agents of teams that are to be planned.
func (d *Decider) Missing() (refs []belay.Ref) {
	for i := range d.s.Family {
		if c := &d.s.Family[i]; c.plans() && d.members[c.Team.Members.Digest] == nil {
			refs = append(refs, c.Team.Members)
		}
	}
	return refs
}

// Supply takes such a list in. One that isn't there, or can't be read, is empty.
func (d *Decider) Supply(ref belay.Ref, content []byte) error {
	all := []belay.TeamMember{}
	if json.Unmarshal(content, &all) != nil {
		all = []belay.TeamMember{}
	}
	if d.members == nil {
		d.members = map[belay.Digest][]belay.TeamMember{}
	}
	d.members[ref.Digest] = all
	return nil
}
