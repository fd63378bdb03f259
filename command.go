package belay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"time"
)

// Command asks a stream for something. The names are the control plane's of
// the standard where it has one; create_session, label_session, open_thread,
// roll_back, configure_queue, reorder_queued_turns, revoke_grant, end_attempt and
// take_over are the runtime's own.
type Command interface{ command() } // sealed: only this package's types have it

type cmd struct{}

func (cmd) command() {}

// Order is a submitted command: its sender, time and id. The same id may be
// delivered again safely; with another body it is id_conflict.
type Order struct {
	ID        CommandID
	Principal string // "user:NAME", "stream:ID", "runtime"
	Time      time.Time
	Session   SessionID
	Stream    StreamID
	Command   Command
}

// Limits of a turn. Zero is none.
type Limits struct {
	Steps int      `json:"steps,omitempty"`
	Time  Duration `json:"time,omitempty"` // active time
	Calls int      `json:"calls,omitempty"`

	MicroUSD int64 `json:"microUsd,omitempty"` // what its requests cost, in millionths of a US dollar
	Tokens   int64 `json:"tokens,omitempty"`   // read and written
}

// Within are the lesser of two limits, each by itself.
func (l Limits) Within(o Limits) Limits {
	return Limits{Steps: least(l.Steps, o.Steps), Time: least(l.Time, o.Time), Calls: least(l.Calls, o.Calls),
		MicroUSD: least(l.MicroUSD, o.MicroUSD), Tokens: least(l.Tokens, o.Tokens)}
}

// Less are limits with what is left of them beside some money and tokens: at least one of
// each that is limited, because 0 is no limit.
func (l Limits) Less(a Amounts) Limits {
	if l.MicroUSD > 0 {
		l.MicroUSD = max(1, l.MicroUSD-a.MicroUSD)
	}
	if l.Tokens > 0 {
		l.Tokens = max(1, l.Tokens-a.Tokens)
	}
	return l
}

// least is the smaller of two limits; 0 is none.
func least[T int | int64 | Duration](a, b T) T {
	if a <= 0 || b > 0 && b < a {
		return b
	}
	return a
}

// DefaultLimits are the limits of a turn that sets none.
var DefaultLimits = Limits{Steps: 200, Time: Duration(time.Hour), Calls: 1000}

// DefaultAskTimeout is how long a question waits by default.
const DefaultAskTimeout = Duration(24 * time.Hour)

// DefaultToolBudget is how many KiB the definitions of tools may have together that are else
// offered by their names.
const DefaultToolBudget = 8

// DefaultRelevance is how well a chunk of a long text fits a task by default, of at
// most 1, that is shown with it.
const DefaultRelevance = 0.3

// Settings are what a session decides for its turns.
type Settings struct {
	Provider   string     `json:"provider"`
	Model      string     `json:"model,omitempty"`
	BaseURL    string     `json:"baseUrl,omitempty"`  // where the provider is reached; empty: its vendor's address
	Fallback   []string   `json:"fallback,omitempty"` // PROVIDER/MODEL, in order: tried when the model gives no answer
	Mode       Mode       `json:"mode"`
	Approvals  Approvals  `json:"approvals"`
	Completion Completion `json:"completion"`
	Limits     Limits     `json:"limits"`
	Allow      []string   `json:"allow,omitempty"` // tools that the user allowed for this session
	AskTimeout Duration   `json:"askTimeout,omitempty"`
	Share      bool       `json:"share,omitempty"` // share the workspace with other writers
	Tools      []string   `json:"tools,omitempty"` // tool sets, groups and names; empty is the default set
	Agent      string     `json:"agent,omitempty"` // kept as a file, by its name; empty: none

	Snapshot     string  `json:"snapshot,omitempty"`     // git: a hidden commit of the workspace before and after each turn
	Instructions string  `json:"instructions,omitempty"` // none: AGENTS.md and CLAUDE.md are not read
	Boundary     string  `json:"boundary,omitempty"`     // name of the programs' boundary; empty: the mode's
	ToolBudget   int     `json:"toolBudget,omitempty"`   // KiB of definitions of tools that come from outside; 0: DefaultToolBudget
	Relevance    float64 `json:"relevance,omitempty"`    // least of a chunk of a long text that is shown, up to 1; 0: DefaultRelevance
	Effort       string  `json:"effort,omitempty"`       // reasoning effort: low, medium, high; empty is the provider's default

	Queue Queueing `json:"queue,omitzero"` // how its threads queue turns

	Budget Amounts `json:"budget,omitzero"` // of the session; a kind without an amount isn't limited

	Compact Compacting `json:"compact,omitzero"` // how a conversation is shortened that fills the model's context

	Agents AgentLimits `json:"agents,omitzero"` // of its sub-agents

	Shell *Shell `json:"shell,omitempty"` // runs its command lines, chosen at creation; empty: /bin/sh
}

// AttemptEnd is how an attempt of a task ended.
type AttemptEnd struct {
	Outcome   Outcome  `json:"outcome"`
	Summary   Content  `json:"summary,omitzero"`
	Output    *Content `json:"output,omitempty"`
	Artifacts []string `json:"artifacts,omitempty"`
	Reason    string   `json:"reason,omitempty"`
	Cause     string   `json:"cause,omitempty"`   // the code of a failure
	Agent     string   `json:"agent,omitempty"`   // whose attempt failed, with its version
	Partial   *Content `json:"partial,omitempty"` // what it said last, if it didn't complete
	Changed   []string `json:"changed,omitempty"` // files, the first ones of many
	Taint     []string `json:"taint,omitempty"`   // of the conversation, as kind:origin
	Acted     bool     `json:"acted,omitempty"`   // a call began that may change something, or a file was changed

	Worktree *Worktree `json:"worktree,omitempty"` // that it worked in, of its own
	Diff     *Diffstat `json:"diff,omitempty"`     // of the worktree, to where it began
	AttemptUse
}

// AttemptUse is what an attempt used.
type AttemptUse struct {
	Steps    int      `json:"steps,omitempty"`
	Calls    int      `json:"calls,omitempty"`
	Active   Duration `json:"active,omitempty"`
	Usage    Usage    `json:"usage,omitzero"`
	MicroUSD int64    `json:"microUsd,omitempty"` // known to be charged, in millionths of a US dollar
	Charged  Amounts  `json:"charged,omitzero"`   // money and tokens, by its thread up to then, unknown ones in full
}

// Plus is what two attempts used.
func (u AttemptUse) Plus(v AttemptUse) AttemptUse {
	return AttemptUse{Steps: u.Steps + v.Steps, Calls: u.Calls + v.Calls, Active: u.Active + v.Active, Usage: u.Usage.Add(v.Usage), MicroUSD: u.MicroUSD + v.MicroUSD, Charged: u.Charged.Max(v.Charged)}
}

// Compacting is how a thread's conversation is shortened for the model.
type Compacting struct {
	Strategy CompactStrategy `json:"strategy,omitempty"` // empty: hybrid
	At       int             `json:"at,omitempty"`       // percent of what the context has for input; 0: DefaultCompactAt
	Model    string          `json:"model,omitempty"`    // PROVIDER/MODEL that summarises; empty: the thread's own
}

// CompactStrategy is a way to shorten a conversation.
type CompactStrategy string

// The strategies. Texts of people and what else is pinned stay with all of them.
const (
	CompactHybrid    CompactStrategy = "hybrid"    // leave out old results; if that isn't enough summarise, if that fails truncate
	CompactPrune     CompactStrategy = "prune"     // leave out old results
	CompactSummarise CompactStrategy = "summarise" // let a model summarise all but the newest messages
	CompactTruncate  CompactStrategy = "truncate"  // leave out all but the newest messages
	CompactOff       CompactStrategy = "off"       // not at all, unless a person asks
)

// CompactStrategies are all of them.
var CompactStrategies = []CompactStrategy{CompactHybrid, CompactPrune, CompactSummarise, CompactTruncate, CompactOff}

// DefaultCompactAt is how full the context is when a conversation is shortened, in
// percent of what it has for input.
const DefaultCompactAt = 80

// DefaultCacheMB is how much memory a process uses at most for what can be made again.
const DefaultCacheMB = 100

// Shell is what runs the command lines of a session.
type Shell struct {
	Path    string `json:"path"`    // absolute
	Dialect string `json:"dialect"` // bash, sh
}

// Duration is a time.Duration that is text in JSON ("24h0m0s").
type Duration time.Duration

// String implements fmt.Stringer.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	*d = Duration(v)
	return err
}

type (
	// CreateSession opens a session on a workspace.
	CreateSession struct {
		cmd
		Workspace string     `json:"workspace"` // absolute path
		Title     string     `json:"title,omitempty"`
		Settings  Settings   `json:"settings"`
		Thread    ThreadID   `json:"thread,omitempty"` // open this thread too, with a history
		Begin     *Beginning `json:"begin,omitempty"`  // the history

		Pins []PinContext `json:"pins,omitempty"` // texts that stay in the thread's conversation
	}

	// SubmitWork makes the session open the thread if it is new, create a task
	// and start it; the task submits the turn.
	SubmitWork struct {
		cmd
		Thread ThreadID `json:"thread"`
		Task   TaskID   `json:"task"`
		Turn   TurnID   `json:"turn"`
		Text   Content  `json:"text"`
		Rules  Ref      `json:"rules"` // the thread's rules, a blob

		Queue    QueueMode `json:"queue,omitempty"`    // if the thread is busy; empty: as the thread does
		Priority int       `json:"priority,omitempty"` // when threads wait for budget; higher is first
		Quotas   []Quota   `json:"quotas,omitempty"`   // that the session spends from, for the principal who submits

		Template *TemplateRef `json:"template,omitempty"` // what the text was made from

		Acceptance []Check `json:"acceptance,omitempty"` // of the task
		Retry      Retry   `json:"retry,omitzero"`       // of the task
	}

	// UpdateSession changes settings; the old ones stay in the log.
	UpdateSession struct {
		cmd
		Settings Settings `json:"settings"`
		Spent    Amounts  `json:"spent,omitzero"` // before the session had a budget, if the settings bring one
	}

	// LabelSession changes what lists call a session and where they show it.
	LabelSession struct {
		cmd
		Title    string   `json:"title,omitempty"`
		Tag      []string `json:"tag,omitempty"`
		Untag    []string `json:"untag,omitempty"`
		Archived *bool    `json:"archived,omitempty"`
	}

	// UseWorkspace records how a session uses its workspace from now on, and
	// the outcome of the worktree that was made for it.
	UseWorkspace struct {
		cmd
		Use      *WorkspaceUse `json:"use,omitempty"`
		Worktree *Worktree     `json:"worktree,omitempty"`
		Subagent SubagentID    `json:"subagentId,omitempty"` // whose worktree it is; empty: the session's
	}

	// ShareWorkspace tells a thread that it isn't alone in its session: from now
	// on it asks the session before it changes something.
	ShareWorkspace struct{ cmd }

	// AskGrants asks a session for grants: holds of the workspace for calls, a part of its
	// budget, or the use of a counted allowance. Joined answers ShareWorkspace: the calls
	// run already. Share gives the session an allowance for the agents that it covers.
	// Place says that an agent goes on that gave its place back.
	AskGrants struct {
		cmd
		Thread ThreadID     `json:"thread"`
		Calls  []Hold       `json:"calls,omitempty"`
		Joined bool         `json:"joined,omitempty"`
		Budget *BudgetAsk   `json:"budget,omitempty"`
		Share  *SharedGrant `json:"share,omitempty"`
		Use    *GrantUse    `json:"use,omitempty"`
		Place  bool         `json:"place,omitempty"`
	}

	// GiveGrant gives a thread what it asked for: the hold of a call, with what the
	// programs of the session's other threads took up to then, or budget.
	GiveGrant struct {
		cmd
		Call   CallID       `json:"call,omitempty"`
		Others *ProgramUse  `json:"others,omitempty"`
		Budget *BudgetGrant `json:"budget,omitempty"`
		Shared *SharedGrant `json:"shared,omitempty"` // an allowance that another thread of the tree got
		Use    *GrantUse    `json:"use,omitempty"`
	}

	// CompactThread shortens what the model is shown of a thread's conversation.
	CompactThread struct {
		cmd
		Focus string `json:"focus,omitempty"` // what is to be kept above all
		Rules Ref    `json:"rules"`           // the thread's rules, a blob
	}

	// PinContext keeps a text in a thread's conversation, word for word.
	PinContext struct {
		cmd
		Pin  string `json:"pin"` // its id, of the caller
		Text string `json:"text"`
	}

	// UnpinContext takes a pinned text out of a thread's conversation.
	UnpinContext struct {
		cmd
		Pin string `json:"pin"`
	}

	// RecallGrants asks a thread to give back the budget that it doesn't need now; one that
	// waits for budget itself, behind others: all that isn't in use.
	RecallGrants struct {
		cmd
		Waits bool `json:"waits,omitempty"`
	}

	// ReturnGrant gives a hold back, or takes back that it was asked for; or it says
	// what the programs of the thread took, from its beginning; or what became of the
	// thread's budget. Place gives back that of an agent that waits.
	ReturnGrant struct {
		cmd
		Thread ThreadID      `json:"thread"`
		Call   CallID        `json:"call,omitempty"`
		Used   *ProgramUse   `json:"used,omitempty"`
		Budget *BudgetReturn `json:"budget,omitempty"`
		Place  bool          `json:"place,omitempty"`
	}

	// SetBudget changes what a session may spend.
	SetBudget struct {
		cmd
		Budget Amounts `json:"budget"`          // the kinds that it names; the others stay as they are
		Raise  bool    `json:"raise,omitempty"` // by so much, rather than to so much
		Spent  Amounts `json:"spent,omitzero"`  // before the session had a budget
	}

	// AskQuota asks for a slice of the quotas that a session spends from.
	AskQuota struct {
		cmd
		Session SessionID     `json:"session"`
		User    string        `json:"user"`
		ID      string        `json:"id"`
		Least   Amounts       `json:"least"`          // less is of no use
		Most    Amounts       `json:"most"`           // more isn't needed
		Drawn   Amounts       `json:"drawn,omitzero"` // was spent already, and the quotas aren't told
		Windows []QuotaWindow `json:"windows"`        // that count for the session now
	}

	// ReturnQuota says what became of a session's slices.
	ReturnQuota struct {
		cmd
		Session SessionID     `json:"session"`
		User    string        `json:"user"`
		Return  BudgetReturn  `json:"return"`
		Windows []QuotaWindow `json:"windows"`
	}

	// OpenThread starts a thread.
	OpenThread struct {
		cmd
		Workspace string     `json:"workspace"`
		Begin     *Beginning `json:"begin,omitempty"` // what it has before its first fact
		Queue     Queueing   `json:"queue,omitzero"`
		Depth     int        `json:"depth,omitempty"`   // of a child; 0: it is no child
		Lineage   []Ancestor `json:"lineage,omitempty"` // of a child: from the main thread to itself

		Pins []PinContext `json:"pins,omitempty"` // texts that stay in its conversation
	}

	// ConfigureQueue sets how a thread takes turns while one runs.
	ConfigureQueue struct {
		cmd
		Queue Queueing `json:"queue"`
	}

	// PromoteTurn moves a waiting turn to a place in the row.
	PromoteTurn struct {
		cmd
		Turn     TurnID `json:"turn"`
		Position int    `json:"position,omitempty"` // from 1; 0 is 1
	}

	// ReorderTurns names all waiting turns in the order in which they are to run.
	ReorderTurns struct {
		cmd
		Order []TurnID `json:"order"`
	}

	// SubmitTurn gives a thread something to do. Repeating it with the same
	// turn id changes nothing.
	SubmitTurn struct {
		cmd
		Turn  TurnID   `json:"turn"`
		Kind  TurnKind `json:"kind"`
		Task  TaskID   `json:"task,omitempty"`
		Run   RunID    `json:"run,omitempty"`
		Text  Content  `json:"text"`
		Rules Ref      `json:"rules"`

		Queue QueueMode `json:"queue,omitempty"` // if the thread is busy; empty: as the thread does
		Place int64     `json:"place,omitempty"` // in the order in which the session accepted turns; 0: it comes last

		Priority int          `json:"priority,omitempty"` // when threads wait for budget; higher is first
		Budget   *BudgetGrant `json:"budget,omitempty"`   // that the session gives the thread with it
		Taint    []string     `json:"taint,omitempty"`    // of where the text comes from
		Limits   Limits       `json:"limits,omitzero"`    // besides those of its rules
		Rest     bool         `json:"rest,omitempty"`     // of those, what a sub-agent hasn't spent of money and tokens

		Note string `json:"note,omitempty"` // to the model, with the first request

		Checks []Check `json:"checks,omitempty"` // that must pass before the turn completes
		Rounds int     `json:"rounds,omitempty"` // of checks that may fail before the turn ends; 0: DefaultRounds
		Again  bool    `json:"again,omitempty"`  // it isn't the first attempt of its task
	}

	// InterruptTurn ends the running turn as cancelled; partial text is kept. A turn
	// that is part of the running one ends with it, so that one is interrupted.
	InterruptTurn struct {
		cmd
		Turn   TurnID `json:"turn,omitempty"`  // empty: whichever runs
		Grace  bool   `json:"grace,omitempty"` // it gets one more step, in which it can only complete
		Reason string `json:"reason,omitempty"`
		Queued bool   `json:"queued,omitempty"` // only if it hasn't begun
	}

	// ResumeThread continues with an unfinished turn under new rules, if Rules is set.
	ResumeThread struct {
		cmd
		Rules  Ref     `json:"rules,omitzero"`
		Limits *Limits `json:"limits,omitempty"` // of the new rules
	}

	// RollBack takes the files, and with scope thread the conversation too, back
	// to the end of a turn, or to before the first.
	RollBack struct {
		cmd
		Scope  string   `json:"scope"`           // thread, files
		To     TurnID   `json:"to,omitempty"`    // the last turn that stays; empty: before the first
		After  int64    `json:"after"`           // the thread's last fact when the plan was made
		Plan   *Ref     `json:"plan,omitempty"`  // which file becomes what; nil: none
		Files  int      `json:"files,omitempty"` // how many
		Kept   []string `json:"kept,omitempty"`  // effects that stay in the world
		Reason string   `json:"reason,omitempty"`
	}

	// RespondAction answers an ask. Decision is allow, deny or answer.
	RespondAction struct {
		cmd
		Action   ActionID `json:"action"`
		Decision string   `json:"decision"`
		Scope    string   `json:"scope,omitempty"`   // once (default), session, prefix, count, until
		Message  string   `json:"message,omitempty"` // for the model; the answer of an ask_user
		Clear    bool     `json:"clear,omitempty"`   // with allow: the person looked at what the conversation has from outside and vouches for it

		Seen string          `json:"seen,omitempty"` // the version of the request that the answer is for; another one is refused
		Args json.RawMessage `json:"args,omitempty"` // with allow: what the call runs with, in place of the model's arguments
		Asks bool            `json:"asks,omitempty"` // with args: who changes the call may ask for it and not allow it, so it is judged as any other

		Prefix string    `json:"prefix,omitempty"` // with scope prefix: the first words of the commands, or the folder of the files, that are allowed
		Count  int       `json:"count,omitempty"`  // how many calls are allowed, this one among them
		Until  time.Time `json:"until,omitzero"`   // and until when
		Only   bool      `json:"only,omitempty"`   // for the agent that asks and those below it, not for its whole tree
		Budget Amounts   `json:"budget,omitzero"`  // with allow, of kind budget: by so much, rather than by what was proposed
	}

	// RevokeGrant takes back what a person allowed. It counts from the next call
	// that is judged. A session sends it to its threads with the tool's name.
	RevokeGrant struct {
		cmd
		Grant  string `json:"grant"` // the id of the fact that gave it
		Tool   string `json:"tool,omitempty"`
		Reason string `json:"reason,omitempty"`
	}

	// WriteProcessStdin gives a process input that runs in the background of a
	// thread.
	WriteProcessStdin struct {
		cmd
		Process ProcessID `json:"process"`
		Input   string    `json:"input,omitempty"`
		End     bool      `json:"end,omitempty"` // no more comes after it
	}

	// TerminateProcess ends such a process with everything it started.
	TerminateProcess struct {
		cmd
		Process ProcessID `json:"process"`
		Reason  string    `json:"reason,omitempty"`
	}

	// CreateTask gives a task its objective and starts the first attempt.
	CreateTask struct {
		cmd
		Objective Content `json:"objective"`

		Template *TemplateRef `json:"template,omitempty"`
		Thread   ThreadID     `json:"thread"`
		Turn     TurnID       `json:"turn"`
		Rules    Ref          `json:"rules"`

		Queue QueueMode `json:"queue,omitempty"` // of the first attempt's turn
		Place int64     `json:"place,omitempty"` // of that turn, as in SubmitTurn

		Priority int          `json:"priority,omitempty"` // of the turn, as in SubmitTurn
		Budget   *BudgetGrant `json:"budget,omitempty"`   // that goes with the turn

		Plan *TaskPlan `json:"plan,omitempty"` // the session starts it, and is told how it ends
		By   string    `json:"by,omitempty"`   // of a planned one: sessions say it

		Parent   TaskID     `json:"parent,omitempty"`     // of the agent that wants it done
		Subagent SubagentID `json:"subagentId,omitempty"` // that does it
		Wait     bool       `json:"wait,omitempty"`       // until StartTask
		Reason   string     `json:"reason,omitempty"`     // why it waits

		Acceptance []Check `json:"acceptance,omitempty"` // of a task that isn't planned
		Retry      Retry   `json:"retry,omitzero"`       // of a task that isn't planned
	}

	// RetryTask starts a new attempt of a task that ended without success.
	RetryTask struct {
		cmd
		Turn   TurnID `json:"turn"`
		Reason string `json:"reason,omitempty"`
		Rules  Ref    `json:"rules"`
	}

	// CancelTask records the wish to stop and interrupts the thread.
	CancelTask struct {
		cmd
		Reason string `json:"reason,omitempty"`
		Grace  bool   `json:"grace,omitempty"` // as of InterruptTurn

		Task TaskID `json:"taskId,omitempty"` // of a planned one, whose session tells its parts too
		By   string `json:"by,omitempty"`     // sessions say it
	}

	// EndAttempt tells a task how its attempt ended. Threads send it.
	EndAttempt struct {
		cmd
		Run  RunID  `json:"run"`
		Turn TurnID `json:"turn"`
		AttemptEnd
	}

	// StartTask starts the first attempt of a task that was created to wait. With a turn it
	// says of one that was planned what is to be started later.
	StartTask struct {
		cmd
		Budget *BudgetGrant `json:"budget,omitempty"` // that goes with the turn

		Thread ThreadID `json:"thread,omitempty"`
		Turn   TurnID   `json:"turn,omitempty"`
		Rules  Ref      `json:"rules,omitzero"`
		Reason string   `json:"reason,omitempty"` // why it waits
		Note   string   `json:"note,omitempty"`   // to the agent: what it has to do without
		Taint  []string `json:"taint,omitempty"`  // of what its objective was made of

		Subagent SubagentID `json:"subagentId,omitempty"` // that does it, on its thread, from now on
	}

	// TakeOver tells a stream that a new process drives it: nothing that was in
	// flight is any more.
	TakeOver struct {
		cmd
		Epoch int64 `json:"epoch"`
	}
)

var commands = map[string]reflect.Type{
	"create_session":  reflect.TypeFor[CreateSession](),
	"submit_work":     reflect.TypeFor[SubmitWork](),
	"update_session":  reflect.TypeFor[UpdateSession](),
	"label_session":   reflect.TypeFor[LabelSession](),
	"use_workspace":   reflect.TypeFor[UseWorkspace](),
	"share_workspace": reflect.TypeFor[ShareWorkspace](),
	"ask_grants":      reflect.TypeFor[AskGrants](),
	"give_grant":      reflect.TypeFor[GiveGrant](),
	"compact_thread":  reflect.TypeFor[CompactThread](),
	"pin_context":     reflect.TypeFor[PinContext](),
	"unpin_context":   reflect.TypeFor[UnpinContext](),
	"recall_grants":   reflect.TypeFor[RecallGrants](),
	"return_grant":    reflect.TypeFor[ReturnGrant](),
	"set_budget":      reflect.TypeFor[SetBudget](),
	"ask_quota":       reflect.TypeFor[AskQuota](),
	"return_quota":    reflect.TypeFor[ReturnQuota](),
	"open_thread":     reflect.TypeFor[OpenThread](),
	"submit_turn":     reflect.TypeFor[SubmitTurn](),
	"interrupt_turn":  reflect.TypeFor[InterruptTurn](),
	"resume_thread":   reflect.TypeFor[ResumeThread](),
	"roll_back":       reflect.TypeFor[RollBack](),

	"configure_queue":      reflect.TypeFor[ConfigureQueue](),
	"promote_queued_turn":  reflect.TypeFor[PromoteTurn](),
	"reorder_queued_turns": reflect.TypeFor[ReorderTurns](),

	"write_process_stdin": reflect.TypeFor[WriteProcessStdin](),
	"terminate_process":   reflect.TypeFor[TerminateProcess](),
	"revoke_grant":        reflect.TypeFor[RevokeGrant](),
	"respond_action":      reflect.TypeFor[RespondAction](),
	"create_task":         reflect.TypeFor[CreateTask](),
	"retry_task":          reflect.TypeFor[RetryTask](),
	"cancel_task":         reflect.TypeFor[CancelTask](),
	"spawn_subagent":      reflect.TypeFor[SpawnSubagent](),
	"tell_parent":         reflect.TypeFor[TellParent](),
	"end_subagent":        reflect.TypeFor[EndSubagent](),
	"continue_task":       reflect.TypeFor[ContinueTask](),
	"send_subagent_input": reflect.TypeFor[SendSubagentInput](),
	"pause_task":          reflect.TypeFor[PauseTask](),
	"pause_subagent":      reflect.TypeFor[PauseSubagent](),
	"resume_subagent":     reflect.TypeFor[ResumeSubagent](),
	"pause_thread":        reflect.TypeFor[PauseThread](),
	"limit_mode":          reflect.TypeFor[LimitMode](),
	"close_subagent":      reflect.TypeFor[CloseSubagent](),
	"plan_task":           reflect.TypeFor[PlanTask](),
	"update_task":         reflect.TypeFor[UpdateTask](),
	"note_progress":       reflect.TypeFor[NoteProgress](),
	"complete_task":       reflect.TypeFor[CompleteTask](),
	"fail_task":           reflect.TypeFor[FailTask](),
	"begin_task":          reflect.TypeFor[BeginTask](),
	"link_tasks":          reflect.TypeFor[LinkTasks](),
	"mark_task":           reflect.TypeFor[MarkTask](),
	"block_task":          reflect.TypeFor[BlockTask](),
	"start_task":          reflect.TypeFor[StartTask](),
	"end_attempt":         reflect.TypeFor[EndAttempt](),
	"take_over":           reflect.TypeFor[TakeOver](),
}

// formerCommands are names that earlier releases gave commands, which may wait in
// an inbox still.
var formerCommands = map[string]string{
	"hold_workspace": "ask_grants", "grant_workspace": "give_grant", "release_workspace": "return_grant", "report_use": "return_grant",
}

// CommandName is the wire name of a command.
func CommandName(c Command) string {
	t := reflect.TypeOf(c)
	for name, ct := range commands {
		if ct == t {
			return name
		}
	}
	return fmt.Sprintf("%T", c)
}

// EncodeCommand is the wire form: the name and the body.
func EncodeCommand(c Command) (name string, body []byte, err error) {
	body, err = json.Marshal(c)
	return CommandName(c), body, err
}

// DecodeCommand reads the wire form. Unknown names and fields are errors.
func DecodeCommand(name string, body []byte) (Command, error) {
	if now, renamed := formerCommands[name]; renamed {
		name = now
	}
	t, ok := commands[name]
	if !ok {
		return nil, Errorf(CodeBadCommand, "unknown command %q", name)
	}
	v := reflect.New(t)
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v.Interface()); err != nil {
		return nil, Errorf(CodeBadCommand, "command %s", name).Wrap(err)
	}
	return v.Elem().Interface().(Command), nil
}
