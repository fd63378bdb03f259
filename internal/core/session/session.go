// Package session is the decider of the container a person sees: which
// workspace, which settings and grants, and which work was given to it. It
// opens threads and tasks by sending; it runs nothing itself.
package session

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/grant"
	"github.com/belay-run/belay/internal/policy"
)

// Version names what folding depends on besides the facts.
const Version = "session/15"

// maxKnown bounds the turn ids remembered for idempotence.
const maxKnown = 256

// State is a session.
type State struct {
	Stream    belay.StreamID   `json:"stream"`
	Session   belay.SessionID  `json:"session"`
	Workspace string           `json:"workspace"`
	Title     string           `json:"title,omitempty"`
	Tags      []string         `json:"tags,omitempty"` // sorted
	Archived  bool             `json:"archived,omitempty"`
	Settings  belay.Settings   `json:"settings"`
	Grants    []policy.Grant   `json:"grants,omitempty"`
	Threads   []belay.ThreadID `json:"threads,omitempty"` // but for children
	Task      belay.TaskID     `json:"task,omitempty"`    // the newest
	Turns     []belay.TurnID   `json:"turns,omitempty"`
	Seq       int64            `json:"seq"`

	Holds   grant.Book[belay.ThreadID] `json:"holds,omitempty"`   // of the workspace, by calls
	Awaited []belay.ThreadID           `json:"awaited,omitempty"` // threads that haven't said yet what they are changing

	Used []event.ThreadUse `json:"used,omitempty"` // by programs, of each thread that reported
	Past belay.ProgramUse  `json:"past,omitzero"`  // by programs of children that are forgotten

	Budget grant.Ledger `json:"budget,omitzero"`

	Family Family        `json:"family,omitempty"`
	Roots  []rootTurn    `json:"roots,omitempty"`
	Shared []SharedGrant `json:"shared,omitempty"` // what people allowed, by trees
	Plan   Plan          `json:"plan,omitempty"`

	Paused []event.TaskPause `json:"paused,omitempty"` // tasks

	ModeChanged     bool `json:"modeChanged,omitempty"` // since the session began: rules may be of before
	BoundaryChanged bool `json:"boundaryChanged,omitempty"`

	Use      belay.WorkspaceUse `json:"use,omitzero"`
	Worktree *belay.Worktree    `json:"worktree,omitempty"`
}

// Decider is the session's decider.
type Decider struct {
	s       State
	members map[belay.Digest][]belay.TeamMember // of teams that are being planned
}

var _ core.Decider = (*Decider)(nil)

// New is the decider of an empty stream.
func New(stream belay.StreamID) *Decider { return &Decider{s: State{Stream: stream}} }

// State is a look at the state; the caller must not change it.
func (d *Decider) State() *State { return &d.s }

// Handle answers a command.
func (d *Decider) Handle(o belay.Order, now time.Time) ([]core.Fact, []core.Send, error) {
	switch c := o.Command.(type) {
	case belay.CreateSession:
		return d.create(o, c)
	case belay.SubmitWork:
		return d.submit(o, c)
	case belay.UpdateSession:
		return d.update(o, c)
	case belay.LabelSession:
		return d.label(c)
	case belay.RevokeGrant:
		return d.revoke(o, c)
	case belay.UseWorkspace:
		return d.use(c)
	case belay.AskGrants:
		return d.s.ask(c, o.Time)
	case belay.ReturnGrant:
		return d.s.takeBack(c), nil, nil
	case belay.SetBudget:
		return d.s.setBudget(c, o.Principal)
	case belay.PlanTask:
		return d.planTask(o, c)
	case belay.BeginTask:
		return d.beginTask(o, c)
	case belay.CompleteTask:
		return d.completeTask(o, c)
	case belay.CancelTask:
		return d.cancelTask(o, c)
	case belay.PauseTask:
		return d.pauseTask(o, c)
	case belay.LinkTasks:
		return d.linkTasks(c)
	case belay.MarkTask:
		return d.markTask(c)
	case belay.SpawnSubagent:
		return d.spawn(o, c)
	case belay.EndSubagent:
		return d.endChild(c)
	case belay.SendSubagentInput:
		return d.sendInput(o, c)
	case belay.PauseSubagent:
		return d.pause(o, c.Subagent, belay.PauseThread{Op: event.Paused, Now: c.Now, Reason: c.Reason})
	case belay.ResumeSubagent:
		return d.pause(o, c.Subagent, belay.PauseThread{Op: event.Resumed, Reason: c.Reason})
	case belay.CloseSubagent:
		return d.closeChild(o, c)
	}
	return nil, nil, belay.Errorf(belay.CodeBadCommand, "a session doesn't take %s", belay.CommandName(o.Command))
}

func (d *Decider) create(o belay.Order, c belay.CreateSession) ([]core.Fact, []core.Send, error) {
	if d.s.Session != "" {
		return nil, nil, nil
	}
	ids := belay.IDs{Session: belay.SessionID(o.Stream.ID())}
	facts := []core.Fact{{IDs: ids, Data: event.SessionCreated{Workspace: c.Workspace, Title: c.Title, Settings: c.Settings, Thread: c.Thread}}}
	var sends []core.Send
	if c.Thread != "" {
		sends = append(sends, core.Send{To: c.Thread.Stream(), Command: belay.OpenThread{Workspace: c.Workspace, Begin: c.Begin, Queue: c.Settings.Queue, Pins: c.Pins}})
	}
	if c.Settings.Budget != (belay.Amounts{}) {
		facts = append(facts, core.Fact{IDs: ids, Data: event.LimitChanged{Op: event.LimitSet, Scope: "session", Limit: c.Settings.Budget, By: o.Principal}})
	}
	return append(facts, granted(ids, nil, c.Settings, o.Principal)...), sends, nil
}

// granted are the facts of allow rules that a person gave and that aren't there yet.
func granted(ids belay.IDs, have []policy.Grant, set belay.Settings, by string) []core.Fact {
	var facts []core.Fact
	for _, tool := range set.Allow {
		if slices.ContainsFunc(have, func(g policy.Grant) bool { return g.Tool == tool }) {
			continue
		}
		facts = append(facts, core.Fact{IDs: ids, Data: event.PolicyChanged{Kind: "grant", Op: "granted", Tool: tool, Tier: policy.TierUser, Scope: "session", By: by, Dialect: string(policy.DialectOf(set.Shell))}})
	}
	return facts
}

// submit opens the thread, if it is new, and gives the task its objective.
func (d *Decider) submit(o belay.Order, c belay.SubmitWork) ([]core.Fact, []core.Send, error) {
	s := &d.s
	if s.Session == "" {
		return nil, nil, belay.Errorf(belay.CodeNotFound, "no such session").WithHint("belay sessions list shows those of this workspace")
	}
	if slices.Contains(s.Turns, c.Turn) {
		return nil, nil, nil
	}
	sends := s.opens(c.Thread)
	quotas := s.setQuotas(o.Principal, c.Quotas)
	ledger := s.Budget
	ledger.Shared = c.Quotas
	gift, budget := s.advance(ledger, c.Thread, 1+len(quotas))
	sends = append(sends, core.Send{To: c.Task.Stream(), Command: belay.CreateTask{Objective: c.Text, Thread: c.Thread, Turn: c.Turn, Rules: c.Rules, Template: c.Template, Queue: c.Queue, Place: s.Seq + 1, Priority: c.Priority, Budget: budget, Acceptance: c.Acceptance, Retry: c.Retry}})
	given := event.SessionUpdated{Thread: c.Thread, Task: c.Task, Turn: c.Turn}
	if s.Archived { // who works on it wants to see it
		given.Archived = new(bool)
	}
	return slices.Concat([]core.Fact{{IDs: s.ids(), Data: given}}, quotas, gift), sends, nil
}

func (d *Decider) update(o belay.Order, c belay.UpdateSession) ([]core.Fact, []core.Send, error) {
	s := &d.s
	if s.Session == "" {
		return nil, nil, belay.Errorf(belay.CodeNotFound, "no such session")
	}
	c.Settings.Shell = s.Settings.Shell // what its grants were given for, and what its threads know
	var facts []core.Fact
	var sends []core.Send
	if b := c.Settings.Budget; b != s.Settings.Budget {
		var err error
		if facts, sends, err = s.setBudget(belay.SetBudget{Budget: b, Spent: c.Spent}, o.Principal); err != nil {
			return nil, nil, err
		}
	}
	facts = append(facts, core.Fact{IDs: s.ids(), Data: event.SessionUpdated{Settings: &c.Settings}})
	if after := s.with(c.Settings); c.Settings.Mode != s.Settings.Mode || c.Settings.Boundary != s.Settings.Boundary {
		for i := range s.Family {
			sends = append(sends, after.limits(s.Family[i].Thread)...)
		}
	}
	if c.Settings.Queue != s.Settings.Queue {
		for _, thread := range s.Threads {
			sends = append(sends, core.Send{To: thread.Stream(), Command: belay.ConfigureQueue{Queue: c.Settings.Queue}})
		}
	}
	return append(facts, granted(s.ids(), s.Grants, c.Settings, o.Principal)...), sends, nil
}

// with is the state with other settings.
func (s State) with(settings belay.Settings) State {
	s.ModeChanged = s.ModeChanged || settings.Mode != s.Settings.Mode
	s.BoundaryChanged = s.BoundaryChanged || settings.Boundary != s.Settings.Boundary
	s.Settings = settings
	return s
}

// limits tells a child what of the settings changed since the session began, because its
// rules are those that its parent had.
func (s *State) limits(child belay.ThreadID) []core.Send {
	var c belay.LimitMode
	if s.ModeChanged {
		c.Mode = s.Settings.Mode
	}
	if s.BoundaryChanged {
		c.Boundary = cmp.Or(s.Settings.Boundary, policy.ModeBoundary(s.Settings.Mode))
	}
	if c == (belay.LimitMode{}) {
		return nil
	}
	return []core.Send{{To: child.Stream(), Command: c}}
}

// revoke removes an allowance from the settings and sends the change to the
// threads, whose turns have rules that name it.
func (d *Decider) revoke(o belay.Order, c belay.RevokeGrant) ([]core.Fact, []core.Send, error) {
	s := &d.s
	i := slices.IndexFunc(s.Grants, func(g policy.Grant) bool { return string(g.ID) == c.Grant })
	if g := s.shared(belay.EventID(c.Grant)); g != nil {
		facts, sends := s.revokeShared(g, o.Principal, c.Reason)
		return facts, sends, nil
	}
	if i < 0 && strings.HasPrefix(o.Principal, "stream:") { // it was used up meanwhile
		return nil, nil, nil
	}
	if i < 0 {
		return nil, nil, belay.Errorf(belay.CodeNotFound, "the session has no such grant").At(c.Grant)
	}
	g := s.Grants[i]
	settings := s.Settings
	settings.Allow = slices.DeleteFunc(slices.Clone(settings.Allow), func(tool string) bool { return tool == g.Tool })
	facts := []core.Fact{
		{IDs: s.ids(), Data: event.PolicyChanged{Kind: "grant", Op: "revoked", Grant: g.ID, Tool: g.Tool, Tier: g.Tier, Scope: "session", By: o.Principal, Reason: event.CutText(c.Reason, 2<<10)}},
		{IDs: s.ids(), Data: event.SessionUpdated{Settings: &settings}},
	}
	var sends []core.Send
	for _, th := range s.All() {
		sends = append(sends, core.Send{To: th.Stream(), Command: belay.RevokeGrant{Grant: c.Grant, Tool: g.Tool, Reason: c.Reason}})
	}
	return facts, sends, nil
}

// use records a use or a worktree that isn't the one recorded last, and tells
// the threads whether they may write.
func (d *Decider) use(c belay.UseWorkspace) ([]core.Fact, []core.Send, error) {
	s := &d.s
	if s.Session == "" {
		return nil, nil, belay.Errorf(belay.CodeNotFound, "no such session")
	}
	if c.Subagent != "" {
		return s.settle(c)
	}
	if c.Use != nil && *c.Use == s.Use {
		c.Use = nil
	}
	if c.Worktree != nil && s.Worktree != nil && *c.Worktree == *s.Worktree {
		c.Worktree = nil
	}
	if c.Use == nil && c.Worktree == nil {
		return nil, nil, nil
	}
	var sends []core.Send
	if c.Use != nil && (c.Use.Use == belay.UseReader || s.Use.Use == belay.UseReader) {
		for _, thread := range s.All() {
			if s.Family.tree(thread) == "" {
				sends = append(sends, core.Send{To: thread.Stream(), Command: belay.UseWorkspace{Use: c.Use}})
			}
		}
	}
	return []core.Fact{{IDs: s.ids(), Data: event.SessionUpdated{Use: c.Use, Worktree: c.Worktree}}}, sends, nil
}

// Apply folds one fact.
func (d *Decider) Apply(e event.Envelope) {
	s := &d.s
	s.Seq, s.Stream = e.Seq, e.Stream
	s.applyFamily(e)
	s.applyPlan(e)
	switch p := e.Data.(type) {
	case event.SessionCreated:
		s.Session, s.Workspace, s.Title, s.Settings = e.IDs.Session, p.Workspace, p.Title, p.Settings
		if p.Thread != "" {
			s.Threads = append(s.Threads, p.Thread)
		}
	case event.SessionUpdated:
		s.updated(p)
	case event.LimitChanged:
		if s.Budget.Apply(p); p.Op == event.LimitSet && p.Scope != grant.ScopeQuota {
			s.Settings.Budget = p.Limit
		}
	case event.PolicyChanged:
		switch {
		case p.Kind == "grant" && p.Thread != "":
			s.applyShared(p, e.Time)
		case p.Kind == "grant" && p.Op == "granted":
			s.Grants = append(s.Grants, policy.Grant{Tool: p.Tool, Tier: p.Tier, Kind: "rule", By: p.By, ID: e.ID(), Scope: "session", Dialect: policy.Dialect(p.Dialect)})
		case p.Kind == "grant" && p.Op == "revoked":
			s.Grants = slices.DeleteFunc(s.Grants, func(g policy.Grant) bool { return g.ID == p.Grant })
		}
	}
}

func (s *State) updated(p event.SessionUpdated) {
	if p.Settings != nil {
		*s = s.with(*p.Settings)
	}
	if p.Title != "" {
		s.Title = p.Title
	}
	s.Tags = tagged(s.Tags, p)
	if p.Archived != nil {
		s.Archived = *p.Archived
	}
	if p.Use != nil {
		s.Use = *p.Use
	}
	if p.Worktree != nil {
		s.Worktree = p.Worktree
	}
	if p.Hold != nil {
		s.applyHold(*p.Hold)
	}
	if p.Pause != nil {
		s.applyPause(*p.Pause)
	}
	if p.Used != nil {
		s.applyUsed(*p.Used)
	}
	if p.Turn == "" {
		return
	}
	if !slices.Contains(s.Threads, p.Thread) {
		s.joins()
		s.Threads = append(s.Threads, p.Thread)
	}
	s.Task = p.Task
	s.Turns = append(s.Turns, p.Turn)
	if n := len(s.Turns); n > maxKnown {
		s.Turns = s.Turns[n-maxKnown:]
	}
}

// All are the session's threads: those that people talk to, and their children.
func (s *State) All() []belay.ThreadID {
	all := slices.Clone(s.Threads)
	for _, c := range s.Family {
		all = append(all, c.Thread)
	}
	return all
}

// joins is called before another thread comes: one that was alone says what it is
// changing.
func (s *State) joins() {
	if all := s.All(); len(all) == 1 {
		s.Awaited = all
	}
}

// Next answers what threads ask for.
func (d *Decider) Next(now time.Time) (rd core.Ready) {
	d.s.givePlaces(&rd)
	d.s.settleTrees(&rd)
	if len(rd.Decided) == 0 {
		d.planTeams(&rd)
	}
	if len(rd.Decided) == 0 {
		d.s.endTeams(&rd)
	}
	if len(rd.Decided) == 0 {
		d.s.cancelParts(&rd)
	}
	if len(rd.Decided) == 0 {
		d.s.endWholes(&rd)
	}
	if len(rd.Decided) == 0 {
		d.s.startPlanned(&rd, now)
	}
	if len(rd.Decided) == 0 {
		d.s.archive(&rd, now)
	}
	d.s.grantHolds(&rd)
	d.s.grantBudget(&rd)
	if len(rd.Decided) > 0 {
		rd.Effects = nil
	}
	return rd
}

func (s *State) ids() belay.IDs { return belay.IDs{Session: s.Session} }

// InFlight reports that nothing runs.
func (d *Decider) InFlight() bool { return false }

// Save is the state as bytes.
func (d *Decider) Save() ([]byte, error) { return json.Marshal(&d.s) }

// Load takes the state from bytes.
func (d *Decider) Load(data []byte) error { return json.Unmarshal(data, &d.s) }
