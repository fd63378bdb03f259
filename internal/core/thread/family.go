package thread

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/lib/match"
	"github.com/belay-run/belay/internal/policy"
)

// familyState is what a thread knows of the children that it started.
type familyState struct {
	Depth    int              `json:"depth,omitempty"`   // of the thread itself; 0 is a main thread
	Lineage  []belay.Ancestor `json:"lineage,omitempty"` // from the main thread to this one
	Children []*child         `json:"children,omitempty"`
	Rests    bool             `json:"rests,omitempty"`  // the session knows that it waits and needs no place
	Charged  belay.Amounts    `json:"charged,omitzero"` // money and tokens, ever, with children that a turn paid for
	Borrowed borrowed         `json:"borrowed,omitzero"`
}

// borrowed is what a sub-agent got when it began, or went on after its end.
type borrowed struct {
	Limit belay.Amounts `json:"limit,omitzero"` // besides that of its rules
	After belay.Amounts `json:"after,omitzero"` // what had been charged by then
}

// child is a sub-agent as its parent sees it.
type child struct {
	ID         belay.SubagentID `json:"id"`
	Turn       belay.TurnID     `json:"turn"`
	Call       belay.CallID     `json:"call"` // that started it
	Agent      string           `json:"agent"`
	Nickname   string           `json:"nickname,omitempty"`
	Task       belay.TaskID     `json:"task,omitempty"` // if it isn't made for it
	Background bool             `json:"background,omitempty"`
	Objective  *belay.Content   `json:"objective,omitempty"` // until it is asked for
	Rules      *belay.Ref       `json:"rules,omitempty"`     // until it is asked for
	wishes
	loan
	Ended  bool              `json:"ended,omitempty"`
	Denied bool              `json:"denied,omitempty"` // it never began
	News   bool              `json:"news,omitempty"`   // it ended, and the model doesn't know yet
	Told   belay.TurnID      `json:"told,omitempty"`   // in which the model learned of its end
	End    *belay.AttemptEnd `json:"end,omitempty"`    // of the last ones that ended
}

// wishes are what a child is asked for with, besides its task and its rules, until then.
type wishes struct {
	Begin      *belay.Beginning `json:"begin,omitempty"`
	Workspace  string           `json:"workspace,omitempty"`
	Worktree   *belay.Worktree  `json:"worktree,omitempty"`
	Acceptance []belay.Check    `json:"acceptance,omitempty"`
	Retry      *belay.Retry     `json:"retry,omitempty"`
	Memory     belay.MemoryNeed `json:"memory,omitzero"`
	Team       *belay.Team      `json:"team,omitempty"`
}

// How many results of children a thread keeps, and how many children that ended it knows.
const (
	maxEnds          = 16
	maxEndedChildren = 64
)

// What Spec.Handled says of the tools that are answered here.
const (
	handledSpawn = "spawn"
	handledWait  = "wait"
	handledInput = "input"
	handledClose = "close"
	handledList  = "list"
)

func (f *familyState) child(id belay.SubagentID) *child {
	if i := slices.IndexFunc(f.Children, func(c *child) bool { return c.ID == id }); i >= 0 {
		return f.Children[i]
	}
	return nil
}

func (f *familyState) childOf(call belay.CallID) *child {
	return f.child(SubagentOf(call))
}

// SubagentOf is the id of the child that a call starts.
func SubagentOf(call belay.CallID) belay.SubagentID {
	return belay.SubagentID(belay.DeriveID(belay.PrefixSubagent, belay.StreamID(call), 0, 0))
}

// named are the children that a name or an id means.
func (f *familyState) named(name string) *child {
	for _, c := range slices.Backward(f.Children) {
		if string(c.ID) == name || c.Nickname == name {
			return c
		}
	}
	return nil
}

// applyFamily folds the facts of children.
func (s *State) applyFamily(e event.Envelope) {
	switch p := e.Data.(type) {
	case event.ThreadStarted:
		s.Depth, s.Lineage = p.Depth, p.Lineage
	case event.ModelRequested:
		for _, c := range s.Children {
			if c.News && p.Attempt == 1 {
				c.News, c.Told = false, e.IDs.Turn
			}
		}
		s.forgetChildren()
	case event.ThreadUpdated:
		if p.Place != "" {
			s.Rests = p.Place == event.SubagentWaiting
		}
	case event.ToolStarted:
		if t := s.Turn; t != nil {
			t.Acted = t.Acted || !p.ReadOnly
		}
	case event.SubagentStatus:
		s.applyChild(e, p)
	case event.ArtifactChanged:
		if p.Kind == "file" {
			s.Turn.changes(p.Path)
		}
	}
}

// maxChanged bounds the files that a turn is known to have changed.
const maxChanged = 100

// changes folds that a file was changed in a turn, by itself or by a child.
func (t *Turn) changes(files ...string) {
	for _, f := range files {
		if t != nil && len(t.Changed) < maxChanged && !slices.Contains(t.Changed, f) {
			t.Changed = append(t.Changed, f)
		}
	}
}

func (s *State) applyChild(e event.Envelope, p event.SubagentStatus) {
	c := s.child(e.IDs.Subagent)
	switch {
	case p.Status == event.SubagentRunning && c == nil && p.Agent != "":
		s.Children = append(s.Children, &child{ID: e.IDs.Subagent, Turn: e.IDs.Turn, Agent: p.Agent, Nickname: p.Nickname, Task: p.Task, Background: true})
	case p.Status == event.SubagentCopied && c == nil:
		s.Children = append(s.Children, &child{ID: e.IDs.Subagent, Turn: e.IDs.Turn, Call: e.IDs.Call, wishes: wishes{Begin: p.Begin}})
	case p.Status == event.SubagentPrepared && c == nil:
		c = &child{ID: e.IDs.Subagent, Turn: e.IDs.Turn, Call: e.IDs.Call}
		s.Children = append(s.Children, c)
		fallthrough
	case p.Status == event.SubagentPrepared:
		c.Agent, c.Nickname, c.Background, c.Objective, c.Rules = p.Agent, p.Nickname, p.Background, p.Objective, p.Rules
		c.Workspace, c.Worktree, c.Acceptance, c.Retry, c.Memory, c.Team = p.Workspace, p.Worktree, p.Acceptance, p.Retry, p.Memory, p.Team
		s.lends(c, p.Budget)
	case c == nil:
	case p.Status == event.SubagentRequested:
		c.asked()
	case p.Status == event.SubagentRunning: // again
		c.Ended, c.Denied, c.News, c.End, c.Background = false, false, false, nil, true
		s.lends(c, p.Budget)
	case p.Status == event.SubagentEnded:
		c.asked()
		s.paid(c, p.End)
		c.Ended, c.News, c.End = true, c.Background, p.End
		c.Denied = p.End != nil && p.End.Outcome == belay.Denied
		if p.End != nil && p.End.Worktree == nil {
			s.Turn.changes(p.End.Changed...)
		}
		s.forgetEnds()
		s.forgetChildren()
	}
}

// asked folds that the session was asked for the child.
func (c *child) asked() { c.Objective, c.Rules, c.wishes = nil, nil, wishes{} }

// forgetEnds keeps the results of the children that ended last, and of those whose call
// isn't answered yet.
func (s *State) forgetEnds() {
	n := 0
	for _, c := range slices.Backward(s.Children) {
		if call := s.Turn.call(c.Call); c.End == nil || call != nil && call.Phase != CallOver {
			continue
		}
		if n++; n > maxEnds {
			c.End = nil
		}
	}
}

// forgetChildren drops children that ended, if the model was told and the call is over, but
// for the newest. The session and the log know more of them.
func (s *State) forgetChildren() {
	if len(s.Children) <= maxEndedChildren {
		return
	}
	kept := 0
	for i := len(s.Children) - 1; i >= 0; i-- {
		c := s.Children[i]
		call := s.Turn.call(c.Call)
		if !c.Ended || c.News || s.waitsFor(c) && !c.Denied || call != nil && call.Phase != CallOver {
			continue
		}
		if kept++; kept > maxEndedChildren {
			s.Children = slices.Delete(s.Children, i, i+1)
		}
	}
}

// waitsFor reports whether a child is of those that the running turn means if it waits for
// all.
func (s *State) waitsFor(c *child) bool {
	return s.Turn != nil && c.Background && (!c.Ended || c.News || c.Turn == s.Turn.Turn || c.Told == s.Turn.Turn)
}

func (d *decision) childIDs(c *child) belay.IDs {
	return belay.IDs{Session: d.Session, Thread: d.Thread, Turn: c.Turn, Call: c.Call, Subagent: c.ID}
}

// startsHandled records that a call begins which the turn answers.
func (d *decision) startsHandled(c *Call) {
	d.record(core.Fact{IDs: d.callIDs(c), Data: event.ToolStarted{Name: c.Name, Attempt: 1, Effect: string(belay.Idempotent), ArgsHash: c.ArgsHash, Boundary: boundaryNone, ReadOnly: true, Waits: true}})
}

// spawn brings a child on its way: its rules are composed, the session is asked, and
// the call waits for what the session says.
func (d *decision) spawn(c *Call) {
	k := d.childOf(c.ID)
	switch {
	case c.Attempt == 0:
		d.startsHandled(c)
	case k == nil || k.Begin != nil && k.Rules == nil:
		if d.lendsTo(c) {
			d.want(core.PrepareChild{IDs: d.callIDs(c), Subagent: SubagentOf(c.ID), Args: c.Args, ArgsRef: c.ArgsRef, Rules: d.Turn.Rules, Limits: d.left(d.active()), Share: d.share(), Depth: d.Depth + 1, Judges: c.Check != ""})
		}
	case k.Rules != nil:
		ids := d.childIDs(k)
		d.record(core.Fact{IDs: ids, Data: event.SubagentStatus{Status: event.SubagentRequested}})
		if d.Turn.Task != "" {
			ids := ids
			ids.Task, ids.Run = d.Turn.Task, d.Turn.Run
			d.record(core.Fact{IDs: ids, Data: event.TaskDelegated{To: "subagent"}})
		}
		var again belay.Retry
		if k.Retry != nil {
			again = *k.Retry
		}
		d.send(core.Send{To: d.Session.Stream(), Command: belay.SpawnSubagent{Retry: again, Subagent: k.ID, Parent: d.Thread, Turn: k.Turn, Call: k.Call, ParentTask: d.Turn.Task,
			Agent: k.Agent, Nickname: k.Nickname, Text: *k.Objective, Rules: *k.Rules, Background: k.Background, Priority: d.Turn.Priority, Taint: TaintNames(d.Taint, maxTaints),
			Begin: k.Begin, Workspace: k.Workspace, Worktree: k.Worktree, Acceptance: k.Acceptance, Memory: k.Memory, Team: k.Team}})
	case k.Ended && !k.Background:
		d.showChildren(c, true, k)
	}
}

// Left is what the running turn may still use at a time; nothing: there is none, or it has
// no limits.
func (s *State) Left(now time.Time) belay.Limits {
	if s.Turn == nil {
		return belay.Limits{}
	}
	return s.left((&decision{State: s, now: now}).active())
}

// left is what a turn may still use that was driven for so long.
func (t *Turn) left(active time.Duration) belay.Limits {
	l := t.Limits
	if l.Steps > 0 {
		l.Steps = max(1, l.Steps-t.Steps)
	}
	if l.Calls > 0 {
		l.Calls = max(1, l.Calls-t.Calls)
	}
	if l.Time > 0 {
		l.Time = max(belay.Duration(time.Second), l.Time-belay.Duration(active))
	}
	return l.Less(t.Spent)
}

// delivers says on a child's task where its result is.
func (d *decision) delivers(k *child, delivery string) {
	task := cmp.Or(k.Task, belay.TaskID(belay.DeriveID(belay.PrefixTask, belay.StreamID(k.ID), 0, 0)))
	d.send(core.Send{To: task.Stream(), Command: belay.NoteProgress{Delivery: delivery}})
}

// deliversNews says of the children whose ends the next request tells that it does.
func (d *decision) deliversNews() {
	for _, k := range d.Children {
		if k.News {
			d.delivers(k, event.Delivered)
		}
	}
}

// hearOf takes what the session says of a child.
func (h *handler) hearOf(m belay.TellParent) {
	k := h.child(m.Subagent)
	if k == nil && m.Agent != "" {
		h.adopt(m)
	}
	call := h.Turn.call(m.Call)
	if call != nil && call.Phase != CallWaits {
		call = nil
	}
	if k == nil {
		h.hearOfOther(m, call)
		return
	}
	input := m.Call != k.Call // what was sent to it is answered
	switch {
	case m.Again && k.Ended:
		h.record(core.Fact{IDs: h.childIDs(k), Data: event.SubagentStatus{Status: event.SubagentRunning, Reason: "it was told more", Budget: m.Budget}})
	case input && m.Code != "" && call != nil:
		h.record(h.failed(call, event.Problem{Class: "conflict", Code: m.Code, Message: "nothing was sent: " + m.End.Reason, Hint: m.Hint}))
	case k.Ended && !input:
		return
	}
	if m.End == nil {
		if call != nil && (k.Background || input) {
			h.answer(call, ChildResult{ID: k.ID, Name: k.Nickname, Agent: k.Agent, Status: "running"})
		}
		return
	}
	if input {
		return
	}
	h.record(core.Fact{IDs: h.childIDs(k), Data: event.SubagentStatus{Status: event.SubagentEnded, End: m.End}})
	if more := h.unknown(m.End.Taint); len(more) > 0 {
		if slices.ContainsFunc(more, fromOutside) {
			more = append(more, h.unknown([]string{tainted("child", cmp.Or(k.Nickname, k.Agent))})...)
		}
		ids := h.lastIDs()
		ids.Turn, ids.Call = cmp.Or(k.Turn, ids.Turn), k.Call
		h.record(core.Fact{IDs: ids, Data: event.ContextResolved{Taint: more}})
	}
	switch { // a call that waits is answered when nothing else is to be done
	case call == nil && h.Turn == nil:
		h.delivers(k, event.ParentMissing)
	case call == nil:
		h.delivers(k, event.DeliveryPending)
	case m.Code != "":
		h.record(h.failed(call, event.Problem{Class: "conflict", Code: m.Code, Message: "no agent was started: " + m.End.Reason, Hint: m.Hint}))
	default:
		h.delivers(k, event.Delivered)
	}
}

// fromOutside reports whether a taint is of content that came from outside. What a child
// read of its parent's own workspace is no less trusted than what the parent reads there.
func fromOutside(taint string) bool {
	kind, _, _ := strings.Cut(taint, ":")
	return kind != policy.TaintWorkspace && kind != policy.TaintSecret
}

// hearOfOther takes the answer to what was sent to an agent that this one didn't start.
func (h *handler) hearOfOther(m belay.TellParent, call *Call) {
	switch {
	case call == nil:
	case m.Code != "":
		h.record(h.failed(call, event.Problem{Class: "conflict", Code: m.Code, Message: "nothing was sent: " + m.End.Reason, Hint: m.Hint}))
	default:
		h.answer(call, ChildResult{ID: m.Subagent, Status: "running"})
	}
}

// adopt takes in a child that somebody else started here.
func (h *handler) adopt(m belay.TellParent) {
	ids := h.threadIDs()
	ids.Subagent = m.Subagent
	if t := h.Turn; t != nil {
		ids.Turn = t.Turn
	}
	h.record(core.Fact{IDs: ids, Data: event.SubagentStatus{Status: event.SubagentRunning, Agent: m.Agent, Nickname: m.Nickname, Task: m.Task, Background: true, Reason: "it was started from outside"}})
	if t := h.Turn; t != nil && t.Task != "" {
		ids.Task, ids.Run = t.Task, t.Run
		h.record(core.Fact{IDs: ids, Data: event.TaskDelegated{To: "subagent"}})
	}
}

// ChildResult is what a model reads of a child.
type ChildResult struct {
	ID     belay.SubagentID `json:"agentId"`
	Name   string           `json:"name,omitempty"`
	Agent  string           `json:"agent,omitempty"`
	Status string           `json:"status"` // running, closing, or the outcome
	*ChildEnd
}

// ChildEnd is how a child ended.
type ChildEnd struct {
	Summary   string          `json:"summary"`
	Output    json.RawMessage `json:"output,omitempty"`
	Artifacts []string        `json:"artifacts"`
	Changed   []string        `json:"changed"` // files
	Branch    string          `json:"branch,omitempty"`
	Diffstat  *belay.Diffstat `json:"diffstat,omitempty"`
	Usage     childUsage      `json:"usage"`
	CostUSD   float64         `json:"cost"` // in US dollars
	Reason    string          `json:"reason,omitempty"`
	Partial   string          `json:"partial,omitempty"` // what it said last, if it didn't complete
	Whole     *belay.Ref      `json:"whole,omitempty"`   // of a summary and an output that are here in part
	More      *belay.Ref      `json:"more,omitempty"`    // of a partial text that is
}

type childUsage struct {
	Tokens int64 `json:"tokens"`
	Steps  int   `json:"steps"`
	Calls  int   `json:"calls"`
}

// result is how a child is, and how it ended; of one that ended long ago no more than
// that it did.
func (c *child) result() ChildResult {
	r := ChildResult{ID: c.ID, Name: c.Nickname, Agent: c.Agent, Status: "running"}
	if c.Ended {
		r.Status = "ended"
	}
	end := c.End
	if end == nil {
		return r
	}
	r.Status = string(end.Outcome)
	r.ChildEnd = &ChildEnd{Summary: end.Summary.Text, Artifacts: append([]string{}, end.Artifacts...), Changed: append([]string{}, end.Changed...), Diffstat: end.Diff,
		Usage: childUsage{end.Usage.Total(), end.Steps, end.Calls}, CostUSD: float64(end.MicroUSD) / 1e6, Reason: end.Reason, Whole: end.Summary.Ref}
	if t := end.Worktree; t != nil && !t.Removed {
		r.Branch = t.Branch
	}
	if end.Output != nil {
		r.Whole = cmp.Or(r.Whole, end.Output.Ref)
		if r.Output = json.RawMessage(end.Output.Text); !json.Valid(r.Output) { // it is here in part
			r.Output, _ = json.Marshal(end.Output.Text)
		}
	}
	if end.Partial != nil {
		r.Partial, r.More = end.Partial.Text, end.Partial.Ref
	}
	return r
}

// maxAnswer is how long an answer is that fits into a fact.
const maxAnswer = 8 << 10

// showChildren answers a call with how children are: with a list, or with the one's result alone.
// What is too long, or here in part only, is put together from where it is.
func (d *decision) showChildren(c *Call, one bool, children ...*child) {
	results := []ChildResult{}
	for _, k := range children {
		results = append(results, k.result())
	}
	d.showResults(c, one, results)
}

func (d *decision) showResults(c *Call, one bool, results []ChildResult) {
	whole := !slices.ContainsFunc(results, func(r ChildResult) bool { return r.ChildEnd != nil && (r.Whole != nil || r.More != nil) })
	text, _ := json.Marshal(results) // plain data: can't fail
	switch {
	case !whole || event.TextLen(string(text)) > maxAnswer:
		d.want(core.ShowResults{IDs: d.callIDs(c), Name: c.Name, One: one, Results: text})
	case one:
		d.answer(c, results[0])
	default:
		d.answer(c, results)
	}
}

// answer ends a call with a value as JSON.
func (d *decision) answer(c *Call, v any) {
	text, _ := json.Marshal(v) // plain data: can't fail
	d.record(core.Fact{IDs: d.callIDs(c), Data: event.ToolResult{Name: c.Name, Attempt: 1, Output: belay.Content{Text: string(text)}, Digest: belay.DigestOf(text)}})
}

// closes makes the child end whose end a call waits for, because the call is ended.
func (d *decision) closes(c *Call, why string) {
	if k := d.childOf(c.ID); k != nil && !k.Ended && !k.Background && k.Rules == nil {
		d.send(core.Send{To: d.Session.Stream(), Command: belay.CloseSubagent{Subagent: k.ID, Reason: why}})
	}
}

// agentsArgs is what the tools take that are about children.
type agentsArgs struct {
	Agent   string   `json:"agent"`
	Agents  []string `json:"agents"`
	All     bool     `json:"all"`
	Timeout int      `json:"timeout"` // seconds
}

// meant are the children that names mean; none named: all in the background that are
// open, that this turn started, or whose ends it was told.
func (d *decision) meant(names []string) (children []*child, problem *event.Problem) {
	for _, name := range names {
		k := d.named(name)
		if k == nil {
			var have []string
			for _, c := range d.Children {
				have = append(have, cmp.Or(c.Nickname, string(c.ID)))
			}
			return nil, &event.Problem{Class: "not_found", Code: "NOT_FOUND", Message: "you started no agent " + event.CutText(name, maxWord), Hint: match.Hint(name, have, "list_agents lists yours")}
		}
		children = append(children, k)
	}
	if len(names) == 0 {
		for _, k := range d.Children {
			if d.waitsFor(k) {
				children = append(children, k)
			}
		}
	}
	if len(children) == 0 {
		return nil, &event.Problem{Class: "not_found", Code: "NO_AGENTS", Message: "no agent of yours works in the background", Hint: "spawn_agent with background starts one; list_agents lists yours"}
	}
	return children, nil
}

// awaited are the children that a call waits for. open: it does so until one of them ends,
// or all of them have.
func (d *decision) awaited(in agentsArgs) (children []*child, open bool, problem *event.Problem) {
	children, problem = d.meant(in.Agents)
	ended := slices.ContainsFunc(children, func(k *child) bool { return k.Ended })
	open = slices.ContainsFunc(children, func(k *child) bool { return !k.Ended })
	return children, open && (in.All || !ended), problem
}

// waitFor answers when one of the children ended, or all did, or the time is over.
func (d *decision) waitFor(c *Call, args []byte) {
	var in agentsArgs
	_ = json.Unmarshal(args, &in) // it was held against the tool's schema
	children, open, problem := d.awaited(in)
	var until time.Time
	if in.Timeout > 0 && !c.Since.IsZero() {
		until = c.Since.Add(time.Duration(in.Timeout) * time.Second)
	}
	late := !until.IsZero() && !d.now.Before(until)
	switch {
	case problem != nil:
		d.record(d.failed(c, *problem))
	case c.Attempt == 0:
		d.startsHandled(c)
	case open && !late:
		if !until.IsZero() {
			d.want(core.Timer{Name: "tool/" + string(c.ID)})
			d.wakeAt(until)
		}
	default:
		d.showChildren(c, false, children...)
	}
}

func (d *decision) closeAgent(c *Call, args []byte) {
	var in agentsArgs
	_ = json.Unmarshal(args, &in)
	children, problem := d.meant([]string{in.Agent})
	if problem != nil {
		d.record(d.failed(c, *problem))
		return
	}
	k := children[0]
	if c.Attempt == 0 {
		d.startsHandled(c)
	}
	if k.Ended {
		d.showChildren(c, true, k)
		return
	}
	d.send(core.Send{To: d.Session.Stream(), Command: belay.CloseSubagent{Subagent: k.ID, Reason: "its parent closed it"}})
	d.answer(c, ChildResult{ID: k.ID, Name: k.Nickname, Agent: k.Agent, Status: "closing"})
}

// maxSent bounds what an agent is told at once, in bytes.
const maxSent = 8 << 10

// sendInput sends a child a text. The call ends when the session has taken it.
func (d *decision) sendInput(c *Call, args []byte) {
	if c.Phase == CallWaits {
		return
	}
	var in struct {
		Agent     string `json:"agent"`
		Text      string `json:"text"`
		Interrupt bool   `json:"interrupt"`
	}
	_ = json.Unmarshal(args, &in) // it was held against the tool's schema
	var to belay.SubagentID
	name, problem := "", d.above(in.Agent)
	if k := d.named(in.Agent); k != nil {
		to, problem = k.ID, nil
	} else if name = in.Agent; problem == nil && d.rules.Settings.Agents.Talk != belay.TalkTree {
		_, problem = d.meant([]string{in.Agent})
	}
	switch {
	case problem != nil:
	case strings.TrimSpace(in.Text) == "":
		problem = &event.Problem{Class: "bad_arguments", Code: "BAD_ARGUMENTS", Message: "text is empty"}
	case event.TextLen(in.Text) > maxSent:
		problem = &event.Problem{Class: "bad_arguments", Code: string(belay.CodeTooLarge), Message: fmt.Sprintf("text has %d bytes; at most %d are taken", len(in.Text), maxSent), Hint: "write it to a file and name the file"}
	}
	if problem != nil {
		d.record(d.failed(c, *problem))
		return
	}
	d.startsHandled(c)
	d.send(core.Send{To: d.Session.Stream(), Command: belay.SendSubagentInput{Subagent: to, Name: name, Parent: d.Thread, Call: c.ID,
		Turn: belay.TurnID(belay.DeriveID(belay.PrefixTurn, belay.StreamID(c.ID), 0, 0)), Text: belay.Content{Text: in.Text}, Interrupt: in.Interrupt,
		Taint: TaintNames(d.Taint, maxTaints), Limits: d.share()}})
}

// above refuses a name that is that of the agent itself, or of one above it: those read
// how it ends.
func (d *decision) above(name string) *event.Problem {
	for i, a := range d.Lineage {
		if name != string(a.Thread) && name != string(a.Subagent) && name != a.Name || name == "" {
			continue
		}
		if i == len(d.Lineage)-1 {
			return &event.Problem{Class: "conflict", Code: "AGENT_SELF", Message: event.CutText(name, maxWord) + " is you", Hint: "name another agent"}
		}
		return &event.Problem{Class: "conflict", Code: "AGENT_ABOVE", Message: event.CutText(name, maxWord) + " is an agent above you", Hint: "complete_task tells it what you found; ask_user asks a person"}
	}
	return nil
}

// listAgents has the tree of agents below this one shown, which the session knows.
func (d *decision) listAgents(c *Call) {
	if c.Attempt == 0 {
		d.startsHandled(c)
	}
	d.want(core.ShowResults{IDs: d.callIDs(c), Name: c.Name, Tree: true})
}

// openAgents are the children that haven't ended, the newest last, a line each.
func (f *familyState) openAgents() (lines []string) {
	for _, c := range f.Children {
		if !c.Ended {
			lines = append(lines, strings.TrimSpace(c.Nickname+" "+string(c.ID))+" ("+c.Agent+") is running")
		}
	}
	return lines[max(0, len(lines)-maxListed):]
}

// maxListed is how many children are kept when a conversation is shortened: the newest.
const maxListed = 64

// agentsRunning is the refusal of a completion while children work in the background.
func (f *familyState) agentsRunning() *event.Problem {
	var names []string
	for _, c := range f.Children {
		if c.Background && !c.Ended {
			names = append(names, cmp.Or(c.Nickname, string(c.ID)))
		}
	}
	if len(names) == 0 {
		return nil
	}
	return &event.Problem{Class: "conflict", Code: "AGENTS_RUNNING", Message: event.CutText("still working: "+strings.Join(names, ", "), maxSaid),
		Hint: "wait for them with wait_agent, or end them with close_agent"}
}

// endsNote is the note to a step about children that ended since the one before.
func (f *familyState) endsNote() string {
	var lines []string
	for _, c := range f.Children {
		if !c.News {
			continue
		}
		how := "ended"
		if c.End != nil {
			how = string(c.End.Outcome)
		}
		lines = append(lines, fmt.Sprintf("%s %s: %s", cmp.Or(c.Nickname, c.Agent), c.ID, how))
	}
	if len(lines) == 0 {
		return ""
	}
	return "Agents that ended since your last step; wait_agent gives their results:\n" + strings.Join(lines, "\n")
}
