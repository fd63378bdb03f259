// beginning lies before them.
package story

import (
	"cmp"
	"fmt"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// Kinds of items.
const (
	ItemUserMessage  = "user_message"
	ItemAgentMessage = "agent_message"
	ItemReasoning    = "reasoning"
	ItemToolCall     = "tool_call"
	ItemQuestion     = "question"
	ItemFileChange   = "file_change"
	ItemArtifact     = "artifact"
	ItemPlan         = "plan"
	ItemNotice       = "notice" // a warning, a takeover, a rollback
	ItemTurnEnd      = "turn_end"
)

// How far an item is.
const (
	started   = "started"
	updated   = "updated" // and not over
	completed = "completed"
)

// Item is one thing that happened. The texts are what the facts hold; long ones
// are cut there, and Content names the whole.
type Item struct {
	ID      string         `json:"itemId"` // stable: of the turn, step, call, question or fact that it is
	Kind    string         `json:"kind"`
	State   string         `json:"state"`            // started, updated, completed
	Status  string         `json:"status,omitempty"` // its outcome: a word of the standard, or a code
	Thread  belay.ThreadID `json:"threadId,omitempty"`
	Turn    belay.TurnID   `json:"turnId,omitempty"`
	Step    belay.StepID   `json:"stepId,omitempty"`
	Call    belay.CallID   `json:"toolCallId,omitempty"`
	Action  belay.ActionID `json:"actionId,omitempty"`
	Name    string         `json:"name,omitempty"` // of a tool, a file, an artifact
	Text    string         `json:"text,omitempty"`
	Content *belay.Ref     `json:"content,omitempty"` // the whole text, where Text is its beginning
	Args    string         `json:"args,omitempty"`    // of a call, as JSON
	Detail  string         `json:"detail,omitempty"`  // why it failed, waits, was denied
	Decided string         `json:"decided,omitempty"` // of a call: who decided about it, a rule or a person; left out: it is undecided, or nobody needed to
	Edit    *Edit          `json:"edit,omitempty"`    // of a call that runs with other arguments than the model gave, which Args has

	Attached []belay.Attachment `json:"attached,omitempty"` // sent along with the text

	Plan []event.PlanItem `json:"plan,omitempty"`

	StartedAt   time.Time     `json:"startedAt,omitzero"`
	CompletedAt time.Time     `json:"completedAt,omitzero"`
	First       belay.EventID `json:"firstEventId"`
	Last        belay.EventID `json:"lastEventId"`
	Begun       bool          `json:"begunBefore,omitempty"` // its first fact is not among those that were given
	Position    int64         `json:"position,omitempty"`    // of its first fact that was given, where who tells knows it: a window behind the one before begins with it
}

// Edit is what a call runs with in place of the model's arguments.
type Edit struct {
	By      string     `json:"by"`
	Args    string     `json:"args,omitempty"`    // as JSON
	Content *belay.Ref `json:"content,omitempty"` // where they are, when they are long
}

// Items tells facts of any number of threads, in the order of the log.
type Items struct {
	items []*Item
	by    map[string]*Item
}

// List is the items so far, in the order in which they began. They must not be
// changed.
func (f *Items) List() []*Item { return f.items }

// item finds an item, or begins it. begins means that the fact is its first.
func (f *Items) item(e event.Envelope, kind, id string, begins bool) *Item {
	key := kind + "/" + string(e.Stream) + "/" + id
	it := f.by[key]
	if it == nil {
		it = &Item{ID: id, Kind: kind, State: started, Thread: e.IDs.Thread, Turn: e.IDs.Turn, First: e.ID(), Begun: !begins}
		if begins {
			it.StartedAt = e.Time
		}
		if f.by == nil {
			f.by = map[string]*Item{}
		}
		f.by[key] = it
		f.items = append(f.items, it)
	} else if it.State == started {
		it.State = updated
	}
	it.Last = e.ID()
	return it
}

// once is an item of one fact.
func (f *Items) once(e event.Envelope, kind, id string) *Item {
	it := f.item(e, kind, id, true)
	it.done(e, "")
	return it
}

func (it *Item) done(e event.Envelope, status string) {
	it.State, it.CompletedAt = completed, e.Time
	if status != "" {
		it.Status = status
	}
}

func (it *Item) say(c belay.Content) { it.Text, it.Content, it.Attached = c.Text, c.Ref, c.Attached }

// Apply adds one more fact. It takes any fact; those that aren't shown add
// nothing.
func (f *Items) Apply(e event.Envelope) {
	switch p := e.Data.(type) {
	case event.TurnSubmitted:
		f.once(e, ItemUserMessage, string(e.IDs.Turn)).say(p.Text)
	case event.TurnCompleted:
		it := f.once(e, ItemTurnEnd, string(e.IDs.Turn))
		it.Status = string(belay.Completed)
		it.say(p.Summary)
	case event.TurnFailed:
		it := f.once(e, ItemTurnEnd, string(e.IDs.Turn))
		it.Status, it.Detail, it.Text, it.Content = string(p.Outcome), p.Reason, p.Partial, p.PartialRef
	case event.TaskProgress:
		switch {
		case p.Check == nil:
		case p.Check.Call != nil:
			f.wanted(e, p)
		case p.Check.Status != event.CheckNoted:
			f.notice(e, "check", p.Check.Text())
		}
	case event.RunStatus:
		if p.Phase == "takeover" {
			f.notice(e, "takeover", p.Reason)
		}
	case event.RuntimeWarning:
		f.notice(e, p.Code, p.Message)
	case event.HistoryRollbackCompleted:
		f.notice(e, "rollback", p.Scope)
	case event.ActionRequired:
		f.asked(e, p)
	case event.ActionResolved:
		it := f.item(e, ItemQuestion, string(e.IDs.Action), false)
		it.Action, it.Detail = e.IDs.Action, "by "+p.By
		it.done(e, p.Decision)
	case event.ArtifactChanged:
		f.changed(e, p)
	default:
		f.model(e)
		f.call(e)
	}
}

func (f *Items) notice(e event.Envelope, status, text string) {
	it := f.once(e, ItemNotice, string(e.ID()))
	it.Status, it.Text = status, text
}

func (f *Items) asked(e event.Envelope, p event.ActionRequired) {
	it := f.item(e, ItemQuestion, string(e.IDs.Action), true)
	it.Action, it.Call, it.Name, it.Status = e.IDs.Action, e.IDs.Call, p.Tool, "waiting"
	it.say(p.Prompt)
	if e.IDs.Call != "" {
		c := f.item(e, ItemToolCall, string(e.IDs.Call), false)
		c.Call, c.Status = e.IDs.Call, "waiting"
	}
}

func (f *Items) changed(e event.Envelope, p event.ArtifactChanged) {
	switch p.Kind {
	case "plan":
		it := f.once(e, ItemPlan, string(e.ID()))
		it.Plan = p.Plan
	case "artifact":
		it := f.once(e, ItemArtifact, string(e.ID()))
		it.Name, it.Status, it.Content, it.Detail = p.Name, p.Op, p.After, p.Note
	case "file":
		it := f.once(e, ItemFileChange, string(e.ID()))
		it.Name, it.Status, it.Call = p.Path, p.Op, e.IDs.Call
	}
}

// model adds what a model said and thought.
func (f *Items) model(e event.Envelope) {
	id := string(e.IDs.Step)
	var it *Item
	switch p := e.Data.(type) {
	case event.ModelRequested:
		it = f.item(e, ItemAgentMessage, id, p.Attempt <= 1)
		it.Status, it.Name, it.Text, it.Detail = "running", p.Model, "", "" // another attempt says it from the beginning
	case event.ModelDelta:
		it = f.item(e, ItemAgentMessage, id, false)
		if int64(len(it.Text)) == p.Offset || it.Begun && it.Text == "" {
			it.Text += p.Text
		}
	case event.ModelCompleted:
		it = f.item(e, ItemAgentMessage, id, false)
		it.say(p.Text)
		it.Detail = ""
		it.done(e, string(belay.Completed))
		f.searched(e, p)
		f.wanted(e, p)
	case event.ModelFailed:
		it = f.item(e, ItemAgentMessage, id, false)
		it.Status, it.Detail, it.Text, it.Content = "failed", p.Problem.Message, p.Partial, p.PartialRef
		if p.RetryAt.IsZero() {
			it.done(e, "")
		}
	case event.ReasoningSummary:
		it = f.once(e, ItemReasoning, id)
		it.say(p.Text)
	default:
		return
	}
	it.Step = e.IDs.Step
}

// searched is what the model's vendor searched the web for.
func (f *Items) searched(e event.Envelope, p event.ModelCompleted) {
	for i, s := range p.Searches {
		it := f.once(e, ItemNotice, fmt.Sprintf("%s/search/%d", e.IDs.Step, i+1))
		it.Step, it.Text, it.Detail, it.Content = e.IDs.Step, s.String(), s.Pages.Text, s.Pages.Ref
	}
}

// wanted are the calls of an answer.
func (f *Items) wanted(e event.Envelope, p event.Payload) {
	for _, c := range event.Calls(p) {
		it := f.item(e, ItemToolCall, string(c.ID), true)
		it.Step, it.Call, it.Name, it.Args, it.Status = e.IDs.Step, c.ID, c.Name, string(c.Args), "requested"
		it.Content = cmp.Or(c.ArgsRef, it.Content)
	}
}

// call tells the outcome of a call.
func (f *Items) call(e event.Envelope) {
	switch e.Data.(type) {
	case event.ToolArgs, event.ToolStarted, event.ToolProgress, event.ToolResult, event.ToolFailed:
	case event.PermissionEvaluated, event.PermissionResolved:
		f.decided(e)
		return
	default:
		return
	}
	it := f.item(e, ItemToolCall, string(e.IDs.Call), false)
	it.Step, it.Call = e.IDs.Step, e.IDs.Call
	switch p := e.Data.(type) {
	case event.ToolArgs:
		it.Name, it.Edit = p.Name, &Edit{By: p.By, Args: string(p.Args), Content: p.ArgsRef}
	case event.ToolStarted:
		it.Name, it.Status = p.Name, "running"
	case event.ToolProgress:
		it.Text = p.String()
	case event.ToolResult:
		it.Name = p.Name
		it.say(p.Output)
		it.Content = cmp.Or(p.Whole, it.Content)
		it.done(e, string(belay.Completed))
		if p.Exit != 0 {
			it.Status = p.Outcome()
		}
	case event.ToolFailed:
		it.Name, it.Detail, it.Status = p.Name, p.Problem.Message, p.Problem.Class
		it.say(p.Output)
		if p.Final {
			it.done(e, "")
		}
	}
}

// decided tells who decided about a call. It doesn't begin one: a call is where it was asked for.
func (f *Items) decided(e event.Envelope) {
	who := "rule"
	switch p := e.Data.(type) {
	case event.PermissionEvaluated:
		if p.Decision == "ask" {
			return
		}
		if p.Source == "person" {
			who = "person"
		}
	case event.PermissionResolved:
		if who = "person"; p.By == "deadline" {
			who = ""
		}
	}
	if e.IDs.Call == "" {
		return
	}
	was := started
	if it := f.by[ItemToolCall+"/"+string(e.Stream)+"/"+string(e.IDs.Call)]; it != nil {
		was = it.State
	}
	it := f.item(e, ItemToolCall, string(e.IDs.Call), false)
	it.State, it.Step, it.Call, it.Decided = was, e.IDs.Step, e.IDs.Call, who
}
