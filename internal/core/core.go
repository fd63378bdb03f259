// Package core is the shape that all deciders share: pure state machines that
// say which facts follow from a command or from the state, and which effects
// are wanted. A decider has no clock, context, goroutine or I/O; what it wants
// to happen it returns as a value.
package core

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// Fact is a decided event, before the engine gives it sequence and time.
type Fact struct {
	IDs  belay.IDs
	Data event.Payload
	Refs map[string]belay.Ref
}

// Send is a command for another stream of the same session. It becomes
// durable with the facts beside it, exactly once.
type Send struct {
	To      belay.StreamID
	Command belay.Command
}

// Ready is what follows from a state. Decided is appended first; Effects are
// those that should be running; nothing happens before Wake unless a fact comes.
type Ready struct {
	Decided []Fact
	Sends   []Send
	Effects []Effect
	Wake    time.Time
}

// Decider is one stream's state machine.
//
// Handle answers a command with facts; an error is a refusal and changes
// nothing. Apply folds a fact: it never fails and never decides. Next derives
// what is wanted from the state alone, every time; it is called again after
// its Decided facts were applied, until there are none.
type Decider interface {
	Handle(o belay.Order, now time.Time) ([]Fact, []Send, error)
	Apply(e event.Envelope)
	Next(now time.Time) Ready

	// Missing names content that Next needs and hasn't got; Supply hands it in.
	Missing() []belay.Ref
	Supply(ref belay.Ref, content []byte) error

	// Save and Load are the state as bytes: load(save(s)) folds on like s.
	Save() ([]byte, error)
	Load(data []byte) error
	// InFlight reports whether facts say that effects run: a new driver then
	// sends TakeOver first.
	InFlight() bool
}

// Effect is something to do in the world. Key is stable: same work, same key,
// on every node and after every crash. Wanted and not in flight: start. In
// flight and no longer wanted: cancel.
type Effect interface{ Key() string }

// CallModel asks a model. The messages are those of the stream from the boundary From up to event To.
type CallModel struct {
	Step      belay.StepID
	IDs       belay.IDs
	Attempt   int
	Failures  int   // attempts of this request that failed before
	From, To  int64 // the boundary that the conversation stands on, 1 for none; and its last fact
	Note      string
	Rules     belay.Ref
	ForceTool string // the tool that must be called, where a provider can force it
	MaxOutput int64  // tokens that the answer may have; 0: the provider's default
	Search    bool   // the model's vendor may search the web for the answer

	Provider, Model, BaseURL string     // the model asked; empty: what the settings say
	Context                  int64      // the largest context in tokens; 0: unknown
	Tokens                   int64      // estimate of the input; 0: unknown
	Instructions             *belay.Ref // of the place, behind those of the rules; nil: none
}

// Compact makes a shorter window of a conversation, as a fact announced it.
type Compact struct {
	IDs     belay.IDs
	Started int64 // the fact
	event.ContextCompactionStarted

	Within    time.Duration     // that a summary has to be made; 0: nothing limits it
	Pins      []event.PinChange // texts that a person pinned
	Plan      []event.PlanItem
	Question  belay.ActionID // about the turn itself, that is open
	Processes []string       // that run: id and command line
	Agents    []string       // that were started and haven't ended: name, id and how they are

	Instructions *belay.Ref // of the place; nil: none
}

// Key is that of the fact.
func (e Compact) Key() string { return event.CompactionKey(e.Started) }

// Timer wants nothing but another look at the time: a retry is due then.
type Timer struct {
	Name string
}

// Key is the name of the timer.
func (e Timer) Key() string { return "timer/" + e.Name }

// Key is that of one attempt of a step.
func (e CallModel) Key() string { return "model/" + string(e.Step) + "/" + strconv.Itoa(e.Attempt) }

// RunTool runs one attempt of a call.
type RunTool struct {
	IDs     belay.IDs // Call is set
	Attempt int
	Name    string
	Args    []byte // canonical JSON, or nil when ArgsRef is set
	ArgsRef *belay.Ref
	Expect  map[string]string          // path → digest the thread last saw
	Links   []event.LinkSeen           // where its paths led when the gate judged them
	Known   map[string]belay.Published // artifacts by name, for tools that publish
	Recover bool                       // find out what the attempt before did, don't just run
	Timeout time.Duration              // how long it may take; 0: as long as tools may
	Rules   belay.Ref
	Stands  *belay.ApprovalContext // what a person allowed it on; nil: there was no question
	Bound   *Bound                 // what its programs run in; nil: in nothing
	May     May                    // what they may leave in the workspace
	Quiet   bool                   // nothing holds its git to reading, so what the repository sets is silenced
	Input   *Input                 // the answer that it goes on with; nil: it begins
}

// Input is the answer to what a call asked.
type Input struct {
	State   *belay.Ref // what it goes on with
	Action  string     // accept, decline, cancel
	Content string     // with accept: the data, as JSON
	Answer  *belay.Ref // with accept, in its place: a model's answer
}

// HoldCall waits with a call whose server waits for an answer, until the attempt begins that
// brings it, and tells when the server doesn't any more. It counts only while it is wanted: an
// attempt that has the answer ends the call itself.
type HoldCall struct {
	IDs     belay.IDs // Call is set, and Action while a person is asked
	Attempt int
	Name    string
	Rules   belay.Ref
}

// Key is that of the open question, or of the call.
func (e HoldCall) Key() string {
	return "hold/" + cmp.Or(string(e.IDs.Action), string(e.IDs.Call))
}

// May is what programs may leave in a workspace of what other programs obey.
type May struct {
	Leave   []string // absolute paths of protected names
	History bool     // what git brings from elsewhere, as if it had been history before
	Held    bool     // their boundary holds the protected names that exist
	Reads   bool     // they can only read: nothing of them is looked for
}

// Bound is a boundary that programs run in, and the level without which they don't.
type Bound struct {
	Name string // as people call it
	Is   belay.Boundary

	Machine bool // what runs in it shows the machine, and here only its own call
	Least   belay.Level
}

// PrepareChild composes the rules of a sub-agent that a call starts.
type PrepareChild struct {
	IDs      belay.IDs // Call is set
	Subagent belay.SubagentID
	Args     []byte // as in RunTool
	ArgsRef  *belay.Ref
	Rules    belay.Ref    // of the parent
	Limits   belay.Limits // what the parent's turn has left
	Share    belay.Limits // of that, for a child for which nothing else is said
	Depth    int          // of the child
	Judges   bool         // it judges the parent's work
}

// Key is that of the child.
func (e PrepareChild) Key() string { return "child/" + string(e.Subagent) }

// Verify finds out whether a check of a task passes; of a command it makes the call that
// does. Or it notes what must stay unchanged.
type Verify struct {
	IDs     belay.IDs // Call is set, unless it notes
	Check   belay.Check
	Call    belay.CallID // that a command becomes
	Note    bool
	Files   []event.FileSeen // as they were noted
	Args    []byte           // of the completion, as in RunTool
	ArgsRef *belay.Ref
	Rules   belay.Ref
}

// Key is that of one check.
func (e Verify) Key() string {
	return "verify/" + string(e.IDs.Task) + "/" + string(e.IDs.Call) + "/" + e.Check.ID
}

// Admit asks whether the agent of a turn may work now.
type Admit struct {
	IDs   belay.IDs // Turn is set
	Agent string
	Until time.Time // when it was to be asked again; zero: it wasn't asked
}

// Key is that of the turn, each time that it is asked.
func (e Admit) Key() string {
	return "admit/" + string(e.IDs.Turn) + "/" + strconv.FormatInt(e.Until.UnixMicro(), 10)
}

// BindInput makes the input of a planned task from what the tasks before it ended with.
type BindInput struct {
	IDs   belay.IDs // Task is set
	Input belay.Ref // a belay.Binding
	Whole bool      // it is the output of a task of parts
}

// Key is that of the task.
func (e BindInput) Key() string { return "bind/" + string(e.IDs.Task) }

// SettleTree looks at the worktree of a sub-agent that has ended, and removes it if
// nothing changed there.
type SettleTree struct {
	IDs  belay.IDs // Subagent is set
	Tree belay.Worktree
	Keep bool // others still work there
}

// Key is that of the sub-agent.
func (e SettleTree) Key() string { return "settle/" + string(e.IDs.Subagent) }

// ShowResults makes the result of a call of what its sub-agents ended with, whose whole
// text is elsewhere; or of the tree of agents below the caller, as the session has it.
type ShowResults struct {
	IDs     belay.IDs // Call is set
	Name    string    // of the tool
	One     bool      // it is the one's result, not a list
	Results []byte    // as JSON
	Tree    bool      // it is the tree
}

// Key is that of the call.
func (e ShowResults) Key() string { return "results/" + string(e.IDs.Call) }

// CheckCall asks a checker about a call. It may be asked again after a crash.
type CheckCall struct {
	IDs      belay.IDs // Call is set
	Checker  string    // its id
	Spec     []byte    // what it is, as JSON
	Dir      string    // the workspace whose settings count
	Question []byte    // what it is asked, as JSON

	Request   *belay.Ref // what a model is to answer to an MCP server, in place of a question about the call
	BaseURL   string     // where that model is reached; empty: its provider's own address
	MaxOutput int64      // tokens that a model's answer may have; 0: the provider's default
}

// Key is that of one checker and call.
func (e CheckCall) Key() string { return "check/" + string(e.IDs.Call) + "/" + e.Checker }

// LookAround looks up what a turn's model is told of where it works, in the
// conversation.
type LookAround struct {
	IDs  belay.IDs // Turn is set
	Look int       // of the turn, from 1
	Dir  string    // the workspace

	Environment bool     // where the turn works is to be told
	Lines       []string // what its rules say of that, as name: value
	Known       []string // what the model was told before

	Changed []event.ContextItem // instructions that aren't what the model was given
	Gone    []string            // instructions that it was given, and that are no more
	Nested  []string            // files of instructions for folders that it works in now
	Again   []event.ContextItem // those of folders that it was given before: they may have changed

	From   int64   // the boundary that the conversation stands on, 1 for none
	Recall int64   // tokens that what stands behind it may have, as far as it fits the turn
	Least  float64 // relevance that it must have
}

// Key is that of one look of a turn.
func (e LookAround) Key() string { return "look/" + string(e.IDs.Turn) + "/" + strconv.Itoa(e.Look) }

// TakeSnapshot keeps the workspace as it is before or after a turn.
type TakeSnapshot struct {
	IDs  belay.IDs // Turn is set
	How  string    // git
	When string    // before, after
	Dir  string    // the workspace
}

// Key is that of one end of a turn.
func (e TakeSnapshot) Key() string { return "snapshot/" + string(e.IDs.Turn) + "/" + e.When }

// KeepProcess sees a process to its end that continues after its call, and ends
// it when it isn't wanted any more.
type KeepProcess struct {
	IDs belay.IDs // Process is set
}

// Key is that of the process.
func (e KeepProcess) Key() string { return ProcessKey(e.IDs.Process) }

// ProcessKey is the key of the effect that keeps a process.
func ProcessKey(id belay.ProcessID) string { return "process/" + string(id) }

// SendInput gives a process input, on request.
type SendInput struct {
	IDs    belay.IDs // Process is set
	Number int
	Text   string
	End    bool // no more comes after it
}

// Key is that of one input.
func (e SendInput) Key() string {
	return "input/" + string(e.IDs.Process) + "/" + strconv.Itoa(e.Number)
}

// GoBack looks what it means to take back a turn that was cancelled: how the
// thread's rollback to before it begins is what it finds.
type GoBack struct {
	IDs  belay.IDs
	Turn belay.TurnID

	To     belay.TurnID // the turn before it; empty: there is none
	Target int64        // the fact that ended that one
	Dir    string       // the workspace
}

// Key is that of the turn.
func (e GoBack) Key() string { return "goback/" + string(e.Turn) }

// AskQuota asks the quotas for a slice that a session may spend, or what they said of it.
type AskQuota struct {
	IDs         belay.IDs
	ID          string
	Try         int  // from 1
	Needed      bool // a thread waits for it: what the quotas haven't now others may return
	User        string
	Least, Most belay.Amounts
	Drawn       belay.Amounts // was spent, and the quotas don't know of it
	Quotas      []belay.Quota
}

// Key is that of the slice: what the quotas say of one is told once.
func (e AskQuota) Key() string { return "quota/" + e.ID }

// ReturnQuota says what became of a session's slices.
type ReturnQuota struct {
	IDs    belay.IDs
	User   string
	Return belay.BudgetReturn
	Quotas []belay.Quota
}

// Key is that of the slices.
func (e ReturnQuota) Key() string { return "quota/return/" + strings.Join(e.Return.Closed, "/") }

// RestoreFiles makes files what they were, by a plan that is content.
type RestoreFiles struct {
	IDs     belay.IDs
	Started int64 // the fact that announced it
	Plan    belay.Ref
	Event   event.HistoryRollbackCompleted // how it ends, but for what becomes of the files
	Dir     string                         // the workspace
}

// Key is that of the announcement.
func (e RestoreFiles) Key() string { return "restore/" + strconv.Itoa(int(e.Started)) }

// Key is that of one attempt of a call.
func (e RunTool) Key() string { return "tool/" + string(e.IDs.Call) + "/" + strconv.Itoa(e.Attempt) }
