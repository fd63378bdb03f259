// Package block makes what a person reads of a session: its facts, and the text and
// output that flow between them, are folded into blocks, and blocks are rendered as
// lines. It promises that a block is the same however often what flows was cut or
// missed, that no text of an answer is in two blocks, that a fold holds what isn't
// finished and nothing else, and that nothing a model, a tool or a file said reaches a
// line as anything but characters. It writes to no terminal and asks nobody.
package block

import (
	"encoding/json"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// Kind is what a block is about.
type Kind string

// Kinds of blocks.
const (
	KindInput     Kind = "input"     // what a person gave; not done while it waits in the queue
	KindAnswer    Kind = "answer"    // a part of a model's answer, as Markdown
	KindReasoning Kind = "reasoning" // what a provider shows of how a model came to its answer
	KindCall      Kind = "call"      // a tool call
	KindPlan      Kind = "plan"      // the whole plan, after each change
	KindQuestion  Kind = "question"  // what an agent asks a person
	KindAgent     Kind = "agent"     // an agent that another one started
	KindNotice    Kind = "notice"    // what else happened
	KindEnd       Kind = "end"       // the end of a turn
)

// Block is one thing that happened, as it is shown. Texts in it are as they were said:
// Render makes them safe to show.
type Block struct {
	ID     string // stable: of the turn, the answer and its part, the call, the question or the fact
	Kind   Kind
	Done   bool // it doesn't change any more
	Thread belay.ThreadID
	Turn   belay.TurnID
	Began  time.Time
	Text   string // of an input, an answer, a reasoning or a notice
	By     string // the principal who gave an input
	With   string // what was sent along with an input; empty: nothing was

	Detail bool             // a notice that is shown on request only
	Call   *Call            // of a call
	Plan   []event.PlanItem // of a plan
	Asked  *Question        // of a question
	Agent  *Agent           // of an agent
	End    *End             // of an end

	step belay.StepID // of a call
}

// States of a call.
const (
	Wanted    = "wanted"    // the model asked for it
	Asking    = "asks"      // a person is asked whether it may run
	Running   = "running"   // it runs
	Succeeded = "ok"        // it gave a result
	Failed    = "failed"    // it gave none, or its program says that it failed
	Denied    = "denied"    // it was not allowed
	Lost      = "lost"      // whether it did its work isn't known
	Cancelled = "cancelled" // it was stopped, or left out
	Retrying  = "retrying"  // it failed and is tried again
)

// Call is a tool call.
type Call struct {
	ID      belay.CallID
	Tool    string
	Args    json.RawMessage // the model's; absent when they are long
	What    string          // what was called, on one line
	State   string
	Program bool          // it ran a program
	Exit    int           // of its program
	Problem event.Problem // why it failed
	Again   time.Time     // when it is tried again
	Began   time.Time     // it started to run; zero: not yet
	Took    time.Duration
	Told    string     // how far it is, as it tells itself
	Lines   int64      // that its program printed
	Tail    []string   // the last of them
	Output  int        // its number among the outputs of this session, from 1; 0: it has none
	Whole   *belay.Ref // the whole output, when a model was shown a part
	Files   []File     // that it changed
	Edited  string     // who changed its arguments
	Allowed *Allowed   // who or what allowed it; nil: it wasn't judged yet

	asked   []File // what it would change, as its question showed it
	flows   bool   // its output comes as it is printed
	printed int64  // bytes of it that came, or were left out
}

// Allowed is why a call was allowed, or asked about.
type Allowed struct {
	By    string // the principal who answered; empty: nobody was asked
	Scope string // of the answer
	Rule  string // that decided
	Mode  string
}

// Question is what an agent asks a person.
type Question struct {
	ID       belay.ActionID
	Kind     string // permission, question, continue, budget
	Call     belay.CallID
	Prompt   string
	Until    time.Time
	Rule     string // why a call is asked about
	Mode     string
	Decision string // allow, deny, answer, cancelled; empty: it waits
	By       string // who answered: a principal, deadline, turn
	Scope    string
	Answer   string
	Preview  *Preview // what an answer is about, with its version; nil until it is shown
}

// End is how a turn ended.
type End struct {
	Outcome belay.Outcome
	Code    string
	Reason  string
	Hint    string // what can be done about it
	Summary string // empty when an answer said it already
	Next    string // the next steps that it names
	Wall    time.Duration
	Stats   event.TurnStats
	Files   []File
	Left    string // of a budget; empty: there is none, or it isn't known
}
