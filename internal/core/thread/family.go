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
)

// familyState is what a thread knows of the children that it started.
type familyState struct {
	Depth    int      `json:"depth,omitempty"` // of the thread itself; 0 is a main thread
	Children []*child `json:"children,omitempty"`
}

// child is a sub-agent as its parent sees it.
type child struct {
	ID         belay.SubagentID  `json:"id"`
	Turn       belay.TurnID      `json:"turn"`
	Call       belay.CallID      `json:"call"` // that started it
	Agent      string            `json:"agent"`
	Nickname   string            `json:"nickname,omitempty"`
	Background bool              `json:"background,omitempty"`
	Objective  *belay.Content    `json:"objective,omitempty"` // until it is asked for
	Rules      *belay.Ref        `json:"rules,omitempty"`     // until it is asked for
	Ended      bool              `json:"ended,omitempty"`
	News       bool              `json:"news,omitempty"` // it ended, and the model doesn't know yet
	End        *belay.AttemptEnd `json:"end,omitempty"`  // of the last ones that ended
}

// maxEnds is how many results of children a thread keeps.
const maxEnds = 16

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
		s.Depth = p.Depth
	case event.ModelRequested:
		for _, c := range s.Children {
			c.News = c.News && p.Attempt > 1
		}
	case event.SubagentStatus:
		s.applyChild(e, p)
	}
}

func (s *State) applyChild(e event.Envelope, p event.SubagentStatus) {
	c := s.child(e.IDs.Subagent)
	switch {
	case p.Status == event.SubagentPrepared && c == nil:
		s.Children = append(s.Children, &child{ID: e.IDs.Subagent, Turn: e.IDs.Turn, Call: e.IDs.Call, Agent: p.Agent, Nickname: p.Nickname,
			Background: p.Background, Objective: p.Objective, Rules: p.Rules})
	case c == nil:
	case p.Status == event.SubagentRequested:
		c.Objective, c.Rules = nil, nil
	case p.Status == event.SubagentRunning: // again
		c.Ended, c.News, c.End, c.Background = false, false, nil, true
	case p.Status == event.SubagentEnded:
		c.Objective, c.Rules = nil, nil
		c.Ended, c.News, c.End = true, c.Background, p.End
		s.forgetEnds()
	}
}

// forgetEnds keeps the results of the children that ended last.
func (f *familyState) forgetEnds() {
	n := 0
	for _, c := range slices.Backward(f.Children) {
		if c.End == nil {
			continue
		}
		if n++; n > maxEnds {
			c.End = nil
		}
	}
}

func (d *decision) childIDs(c *child) belay.IDs {
	return belay.IDs{Session: d.Session, Thread: d.Thread, Turn: c.Turn, Call: c.Call, Subagent: c.ID}
}

// startsHandled records that a call begins which the turn answers.
func (d *decision) startsHandled(c *Call) {
	d.record(core.Fact{IDs: d.callIDs(c), Data: event.ToolStarted{Name: c.Name, Attempt: 1, Effect: string(belay.Idempotent), ArgsHash: c.ArgsHash, Boundary: "none", ReadOnly: true, Waits: true}})
}

// spawn brings a child on its way: its rules are composed, the session is asked, and
// the call waits for what the session says.
func (d *decision) spawn(c *Call) {
	k := d.childOf(c.ID)
	switch {
	case c.Attempt == 0:
		d.startsHandled(c)
	case k == nil:
		d.want(core.PrepareChild{IDs: d.callIDs(c), Subagent: SubagentOf(c.ID), Args: c.Args, ArgsRef: c.ArgsRef, Rules: d.Turn.Rules, Limits: d.Turn.left(d.active()), Depth: d.Depth + 1})
	case k.Rules != nil:
		ids := d.childIDs(k)
		d.record(core.Fact{IDs: ids, Data: event.SubagentStatus{Status: event.SubagentRequested}})
		if d.Turn.Task != "" {
			ids := ids
			ids.Task, ids.Run = d.Turn.Task, d.Turn.Run
			d.record(core.Fact{IDs: ids, Data: event.TaskDelegated{To: "subagent"}})
		}
		d.send(core.Send{To: d.Session.Stream(), Command: belay.SpawnSubagent{Subagent: k.ID, Parent: d.Thread, Turn: k.Turn, Call: k.Call, ParentTask: d.Turn.Task,
			Agent: k.Agent, Nickname: k.Nickname, Text: *k.Objective, Rules: *k.Rules, Background: k.Background, Priority: d.Turn.Priority, Taint: TaintNames(d.Taint, maxTaints)}})
	}
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
	if l.MicroUSD > 0 {
		l.MicroUSD = max(1, l.MicroUSD-t.Spent.MicroUSD)
	}
	if l.Tokens > 0 {
		l.Tokens = max(1, l.Tokens-t.Spent.Tokens)
	}
	return l
}

// hearOf takes what the session says of a child.
func (h *handler) hearOf(m belay.TellParent) {
	k := h.child(m.Subagent)
	if k == nil {
		return
	}
	call := h.Turn.call(m.Call)
	if call != nil && call.Phase != CallWaits {
		call = nil
	}
	input := m.Call != k.Call // what was sent to it is answered
	switch {
	case m.Again && k.Ended:
		h.record(core.Fact{IDs: h.childIDs(k), Data: event.SubagentStatus{Status: event.SubagentRunning, Reason: "it was told more"}})
	case input && m.Code != "" && call != nil:
		h.record(h.failed(call, event.Problem{Class: "conflict", Code: m.Code, Message: "nothing was sent: " + m.End.Reason, Hint: m.Hint}))
	case k.Ended && !input:
		return
	}
	if m.End == nil {
		if call != nil && (k.Background || input) {
			h.answer(call, childResult{ID: k.ID, Name: k.Nickname, Agent: k.Agent, Status: "running"})
		}
		return
	}
	if input {
		return
	}
	h.record(core.Fact{IDs: h.childIDs(k), Data: event.SubagentStatus{Status: event.SubagentEnded, End: m.End}})
	if more := h.unknown(m.End.Taint); len(more) > 0 {
		ids := h.childIDs(k)
		ids.Subagent = ""
		h.record(core.Fact{IDs: ids, Data: event.ContextResolved{Taint: more}})
	}
	switch {
	case call == nil:
	case m.Code != "":
		h.record(h.failed(call, event.Problem{Class: "conflict", Code: m.Code, Message: "no agent was started: " + m.End.Reason, Hint: m.Hint}))
	default:
		h.answer(call, k.result(m.End))
	}
}

// childResult is what a model reads of a child.
type childResult struct {
	ID        belay.SubagentID `json:"agentId"`
	Name      string           `json:"name,omitempty"`
	Agent     string           `json:"agent,omitempty"`
	Status    string           `json:"status"` // running, or the outcome
	Summary   string           `json:"summary,omitempty"`
	Output    json.RawMessage  `json:"output,omitempty"`
	Artifacts []string         `json:"artifacts,omitempty"`
	Reason    string           `json:"reason,omitempty"`
	Whole     *belay.Ref       `json:"whole,omitempty"` // of a summary or an output that is shown in part
	Tokens    int64            `json:"tokens,omitempty"`
	CostUSD   float64          `json:"costUsd,omitempty"`
}

// result is how a child ended; nil: it is kept no more.
func (c *child) result(end *belay.AttemptEnd) childResult {
	r := childResult{ID: c.ID, Name: c.Nickname, Agent: c.Agent}
	if end == nil {
		r.Status = "ended"
		return r
	}
	r.Status, r.Summary, r.Artifacts, r.Reason = string(end.Outcome), end.Summary.Text, end.Artifacts, end.Reason
	r.Whole, r.Tokens, r.CostUSD = end.Summary.Ref, end.Usage.Total(), float64(end.MicroUSD)/1e6
	if end.Output != nil {
		r.Whole = cmp.Or(r.Whole, end.Output.Ref)
		if r.Output = json.RawMessage(end.Output.Text); !json.Valid(r.Output) { // it is shown in part
			r.Output, _ = json.Marshal(end.Output.Text)
		}
	}
	return r
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
// open, or that this turn started.
func (d *decision) meant(names []string) (children []*child, problem *event.Problem) {
	for _, name := range names {
		k := d.named(name)
		if k == nil {
			return nil, &event.Problem{Class: "not_found", Code: "NOT_FOUND", Message: "you started no agent " + event.CutText(name, maxWord), Hint: "list_agents lists yours"}
		}
		children = append(children, k)
	}
	if len(names) == 0 {
		for _, k := range d.Children {
			if k.Background && (!k.Ended || k.Turn == d.Turn.Turn) {
				children = append(children, k)
			}
		}
	}
	return children, nil
}

// waitFor answers when one of the children ended, or all did, or the time is over.
func (d *decision) waitFor(c *Call, args []byte) {
	var in agentsArgs
	_ = json.Unmarshal(args, &in) // it was held against the tool's schema
	children, problem := d.meant(in.Agents)
	ended := slices.ContainsFunc(children, func(k *child) bool { return k.Ended })
	open := slices.ContainsFunc(children, func(k *child) bool { return !k.Ended })
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
	case open && !late && (in.All || !ended):
		if !until.IsZero() {
			d.want(core.Timer{Name: "tool/" + string(c.ID)})
			d.wakeAt(until)
		}
	default:
		d.answer(c, results(children))
	}
}

// results are children for a model, in the order in which they were named. What
// doesn't fit is left out of the last ones; another call gets it.
func results(children []*child) []childResult {
	out := []childResult{}
	const room = 10 << 10
	size := 0
	for _, k := range children {
		r := childResult{ID: k.ID, Name: k.Nickname, Agent: k.Agent, Status: "running"}
		if k.Ended {
			r = k.result(k.End)
		}
		text, _ := json.Marshal(r)
		if size += event.TextLen(string(text)); size > room {
			r = childResult{ID: k.ID, Name: k.Nickname, Status: r.Status, Reason: "wait for it alone to read its result"}
		}
		out = append(out, r)
	}
	return out
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
	d.startsHandled(c)
	r := childResult{ID: k.ID, Name: k.Nickname, Agent: k.Agent, Status: "closing"}
	if k.Ended {
		r = k.result(k.End)
	} else {
		d.send(core.Send{To: d.Session.Stream(), Command: belay.CloseSubagent{Subagent: k.ID, Reason: "its parent closed it"}})
	}
	d.answer(c, r)
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
	children, problem := d.meant([]string{in.Agent})
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
	d.send(core.Send{To: d.Session.Stream(), Command: belay.SendSubagentInput{Subagent: children[0].ID, Parent: d.Thread, Call: c.ID,
		Turn: belay.TurnID(belay.DeriveID(belay.PrefixTurn, belay.StreamID(c.ID), 0, 0)), Text: belay.Content{Text: in.Text}, Interrupt: in.Interrupt,
		Taint: TaintNames(d.Taint, maxTaints), Limits: d.Turn.left(d.active())}})
}

func (d *decision) listAgents(c *Call) {
	d.startsHandled(c)
	out := []childResult{}
	for _, k := range d.Children {
		r := childResult{ID: k.ID, Name: k.Nickname, Agent: k.Agent, Status: "running"}
		if k.Ended {
			r.Status = "ended"
		}
		if k.End != nil {
			r.Status = string(k.End.Outcome)
		}
		out = append(out, r)
	}
	if n := len(out) - maxListed; n > 0 {
		out = out[n:]
	}
	d.answer(c, out)
}

// maxListed is how many children a list has: the newest.
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
