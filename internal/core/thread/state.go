// Package thread is the agent loop as a pure state machine: which model
// request, tool call or question follows from the facts so far, and when a turn
// has ended. It promises that every accepted turn ends or waits, that nothing
// runs that the log didn't announce, and that its state is bounded: it holds no
// conversation, only where in the log the conversation is.
//
// Read next.go first: it lists the stages in order, a file each.
package thread

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/grant"
	"github.com/belay-run/belay/internal/policy"
)

// Bounds of the state.
const (
	maxFiles   = 1000    // files whose content the thread remembers by digest
	maxKnown   = 256     // turn ids remembered for idempotence
	maxAnswers = 64      // answered actions remembered for "already answered"
	maxMessage = 4 << 10 // bytes of an answer, as a fact holds them
	maxSaid    = 2 << 10 // bytes of any other text in a fact
	maxTracked = 64      // calls tracked for loops and repeated failures
)

// State is everything the thread knows, in six parts: which thread it is and the
// turn that runs, and five that have their functions beside them.
type State struct {
	Stream    belay.StreamID  `json:"stream"`
	Session   belay.SessionID `json:"session"`
	Thread    belay.ThreadID  `json:"thread"`
	Workspace string          `json:"workspace"`
	Open      bool            `json:"open"`
	Seq       int64           `json:"seq"`
	Last      time.Time       `json:"last"`

	queueState
	Turn  *Turn        `json:"turn,omitempty"`
	Pause *event.Pause `json:"pause,omitempty"` // it begins nothing
	Purse purse        `json:"purse,omitzero"`
	gateState
	programState
	fileState
	windowState
	Counts counts `json:"counts,omitzero"`
	surroundings
	familyState
}

// queueState is the turns: those that wait, and what is known of those before.
type queueState struct {
	Queue   []Queued       `json:"queue,omitempty"`
	Line    belay.Queueing `json:"line,omitzero"`     // how turns are taken while one runs
	Dropped *dropped       `json:"dropped,omitempty"` // what made room, as far as the model knows of it
	Undo    belay.TurnID   `json:"undo,omitempty"`    // the turn that ended and is taken back before the next begins
	Prev    *Ended         `json:"prev,omitempty"`    // the turn that ended last, of those in force
	Back    bool           `json:"back,omitempty"`    // the conversation went back and nothing was said since
	Known   []Known        `json:"known,omitempty"`
}

// gateState is what calls are decided by besides the rules.
type gateState struct {
	Grants   []policy.Grant `json:"grants,omitempty"` // given by answers
	Policy   belay.Digest   `json:"policy,omitempty"` // of the rules that people wrote, as they took effect last
	Taint    []policy.Taint `json:"taint,omitempty"`  // untrusted origins of what is in the conversation
	Widest   belay.Mode     `json:"widest,omitempty"` // of a sub-agent: the widest mode; empty: that of its rules
	Outer    string         `json:"outer,omitempty"`  // the same of its boundary
	Answers  []answer       `json:"answers,omitempty"`
	LostKeys []string       `json:"lostKeys,omitempty"` // calls whose outcome is unknown
	Revoked  []revoked      `json:"revoked,omitempty"`  // allowances of the rules that a person took back
	Wider    []widerGrant   `json:"wider,omitempty"`    // boundaries that answers gave single calls
}

// programState is what runs, what it used, and what of the workspace it holds.
type programState struct {
	Pace     []throughput               `json:"pace,omitempty"`    // of the tools, the latest last
	Took     belay.ProgramUse           `json:"took,omitzero"`     // by programs
	Reported belay.ProgramUse           `json:"reported,omitzero"` // of that, to the session
	Others   belay.ProgramUse           `json:"others,omitzero"`   // by programs of the session's other threads, when it granted last
	Use      belay.WorkspaceUse         `json:"use,omitzero"`      // how the session uses the workspace
	Shared   bool                       `json:"shared,omitempty"`  // by other threads of the session too
	Holds    grant.Book[belay.ThreadID] `json:"holds,omitempty"`   // what its calls have of it, or asked for
	Procs    []Proc                     `json:"procs,omitempty"`   // that run
	Gone     []endedProcess             `json:"gone,omitempty"`    // that ended, and the model doesn't know yet
}

// fileState is what the thread knows of files, of the plan and of artifacts.
type fileState struct {
	Files     knownFiles                 `json:"files,omitzero"`
	Restore   *restore                   `json:"restore,omitempty"`
	Keep      *core.TakeSnapshot         `json:"keep,omitempty"` // the workspace after the turn that ended last
	Plan      []event.PlanItem           `json:"plan,omitempty"`
	PlanAt    int64                      `json:"planAt,omitempty"` // the fact that says so
	Recall    bool                       `json:"recall,omitempty"` // the next step is reminded of the plan
	Noted     []noted                    `json:"noted,omitempty"`  // files that checks want unchanged, as they were
	Published map[string]belay.Published `json:"published,omitempty"`
}

// Known is a turn that was submitted, and for which attempt.
type Known struct {
	Turn    belay.TurnID  `json:"turn"`
	Run     belay.RunID   `json:"run,omitempty"`
	Start   int64         `json:"start,omitempty"` // the fact that began it
	End     int64         `json:"end,omitempty"`   // the fact that ended it
	Outcome belay.Outcome `json:"outcome,omitempty"`
	Back    bool          `json:"back,omitempty"`   // it was taken back
	Tokens  int64         `json:"tokens,omitempty"` // of the conversation at its end; 0: not counted
}

// Ended is a turn that ended.
type Ended struct {
	Turn    belay.TurnID  `json:"turn"`
	Outcome belay.Outcome `json:"outcome"`
	Reason  string        `json:"reason,omitempty"`
}

// answer is an action that was resolved.
type answer struct {
	Action   belay.ActionID `json:"action"`
	Decision string         `json:"decision"`
	By       string         `json:"by"`
	At       time.Time      `json:"at"`
}

// Turn is the running turn.
type Turn struct {
	Queued
	Joined     []Queued         `json:"joined,omitempty"` // turns that are part of it
	Begun      bool             `json:"begun"`            // turn.started is in the log
	Completion belay.Completion `json:"completion,omitempty"`
	Limits     belay.Limits     `json:"limits"`
	Agent      *event.AgentUsed `json:"agent,omitempty"` // whose turn it is, as it was when the turn began
	turnUse
	turnRoute
	admission
	Nudged  bool             `json:"nudged,omitempty"`
	Looks   int              `json:"looks,omitempty"`   // at where it works
	Kept    string           `json:"kept,omitempty"`    // how the workspace was kept before it
	KeptNot string           `json:"keptNot,omitempty"` // why it was not
	Step    *Step            `json:"step,omitempty"`
	Stop    *Stop            `json:"stop,omitempty"`  // it is to be ended
	Low     belay.BudgetKind `json:"low,omitempty"`   // of which there is no more, and won't be
	Short   bool             `json:"short,omitempty"` // it waits for what its children don't use
	trouble
	Stops       []Violation `json:"stops,omitempty"`   // what boundaries stopped, and what was said of it
	Ask         *Ask        `json:"ask,omitempty"`     // a question about the turn itself
	GaveUp      bool        `json:"gaveUp,omitempty"`  // the answer to it was no
	Partial     *belay.Ref  `json:"partial,omitempty"` // text that was cut
	PartialText string      `json:"partialText,omitempty"`
	Red         int         `json:"red,omitempty"`      // rounds of checks that failed
	Reds        int         `json:"reds,omitempty"`     // checks that failed
	Verified    []verdict   `json:"verified,omitempty"` // what is known of the checks of this round
}

// admission is whether the turn's agent may work, if that is kept as a file.
type admission struct {
	Admitted bool         `json:"admitted,omitempty"` // it was asked, and may
	Held     *event.Pause `json:"held,omitempty"`     // it may not, or not now
	Why      string       `json:"why,omitempty"`
}

// turnUse is what a turn has used.
type turnUse struct {
	Active  time.Duration `json:"active"`           // driven time up to the last fact
	Waited  time.Duration `json:"waited,omitempty"` // time between requests that failed and their repetition, up to the last fact
	Steps   int           `json:"steps"`
	Calls   int           `json:"calls"`
	Used    []used        `json:"used,omitempty"` // calls by tool
	Usage   belay.Usage   `json:"usage"`
	Failed  int           `json:"failed,omitempty"`  // requests that failed
	Lost    int64         `json:"lost,omitempty"`    // bytes of text that they left
	Answers int           `json:"answers,omitempty"` // requests that were answered
	Cost    event.CostSum `json:"cost,omitzero"`

	Below event.AgentsUse `json:"below,omitzero"` // of usage and cost: by children that ended

	Spent   belay.Amounts `json:"spent,omitzero"`    // money and tokens that were charged
	Changed []string      `json:"changed,omitempty"` // files, by it and by children that work in the same folder
	Acted   bool          `json:"acted,omitempty"`   // a call began that may change something
}

// turnRoute is the model that requests are sent to.
type turnRoute struct {
	Route   event.Route   `json:"route,omitzero"`    // none: the settings name it
	Tried   []event.Route `json:"tried,omitempty"`   // that were given up
	NoRoute string        `json:"noRoute,omitempty"` // why no model can be asked
}

// trouble is what a turn keeps running into.
type trouble struct {
	Loop     string    `json:"loop,omitempty"`     // the call that repeats itself
	Tracked  []tracked `json:"tracked,omitempty"`  // recent calls, oldest first
	Failing  []string  `json:"failing,omitempty"`  // different failures in a row
	Refusals int       `json:"refusals,omitempty"` // answers in a row of whose calls none ran
	Denied   bool      `json:"denied,omitempty"`   // the last call was denied
	Denials  int       `json:"denials,omitempty"`  // calls that were denied
}

// Stop is the wish to end a turn.
type Stop struct {
	By     string `json:"by"`
	Reason string `json:"reason,omitempty"`
	Back   bool   `json:"back,omitempty"`  // and what it did is taken back
	Grace  bool   `json:"grace,omitempty"` // after one more step
}

// tracked is a call seen before in this turn.
type tracked struct {
	Key    string       `json:"key"` // tool and argument hash
	Result belay.Digest `json:"result,omitempty"`
	Same   int          `json:"same,omitempty"` // times in a row with this result
	Code   string       `json:"code,omitempty"` // of its last failure
	Fails  int          `json:"fails,omitempty"`
	Denied bool         `json:"denied,omitempty"` // they were denials: only other rules change that
	Unrun  bool         `json:"unrun,omitempty"`  // it was refused for what it isn't about itself, and may run when that has changed
	Step   int          `json:"step,omitempty"`   // the step it was seen in last
}

// StepPhase is how far a step's request has come.
type StepPhase string

// The phases of a step.
const (
	stepOpen      StepPhase = ""          // no request is out: none was sent, or it was cancelled
	stepRequested StepPhase = "requested" // one is out
	stepOrphaned  StepPhase = "orphaned"  // one was out when its driver ended
	stepFailed    StepPhase = "failed"    // the last one failed
	stepAnswered  StepPhase = "answered"  // its calls are open until they are over
)

// Step is one request and what follows from its answer.
type Step struct {
	ID        belay.StepID   `json:"id"`
	Phase     StepPhase      `json:"phase,omitempty"`
	Kind      string         `json:"kind"`
	Note      string         `json:"note,omitempty"`
	Limit     string         `json:"limit,omitempty"` // why it is final: time, steps, calls, loop, or a budget
	From      int64          `json:"from"`
	To        int64          `json:"to"`
	Attempt   int            `json:"attempt"`
	Failures  int            `json:"failures,omitempty"` // attempts with this route that failed, crashes not counted
	Failed    int            `json:"failed,omitempty"`   // attempts that failed, with any
	Problem   *event.Problem `json:"problem,omitempty"`
	RetryAt   time.Time      `json:"retryAt,omitzero"`
	Stop      string         `json:"stop,omitempty"`      // why the answer ended
	Misfit    string         `json:"misfit,omitempty"`    // why its text isn't the output that is asked for
	Text      belay.Content  `json:"text,omitzero"`       // kept only when no call follows
	Begun     time.Duration  `json:"begun"`               // what the turn had used of its time when it was requested
	MaxOutput int64          `json:"maxOutput,omitempty"` // tokens that its answer may have; 0: the provider's default
	Tokens    int64          `json:"tokens,omitempty"`    // estimate of the input of the last request; 0: none
	Fixed     int64          `json:"fixed,omitempty"`     // of its instructions and tools
	Asked     event.Route    `json:"asked,omitzero"`      // the model of the last request
	Search    string         `json:"search,omitempty"`    // the rule by which its vendor may search the web; empty: it may not
	Searched  bool           `json:"searched,omitempty"`  // it did
	Calls     []*Call        `json:"calls,omitempty"`
	Worked    bool           `json:"worked,omitempty"` // one of them gave a result: those beside it that fail are no row of failures, whichever ended first
}

// CallPhase is how far a call has come.
type CallPhase string

// The phases of a call. A question about it can be open in each but the last.
const (
	CallProposed CallPhase = ""         // the gate hasn't judged it, or has to again
	CallJudged   CallPhase = "judged"   // it has a verdict; an allowed one begins, or is tried again, when there is room
	CallRunning  CallPhase = "running"  // an attempt is in flight
	CallOrphaned CallPhase = "orphaned" // one was when its driver ended
	CallWaits    CallPhase = "waits"    // the turn answers it, and what it waits for hasn't come
	CallRan      CallPhase = "ran"      // an attempt ended and the call isn't closed: what comes of it is decided
	CallOver     CallPhase = "over"
)

// Call is one tool call of the running step.
type Call struct {
	ID       belay.CallID     `json:"id"`
	Phase    CallPhase        `json:"phase,omitempty"`
	Name     string           `json:"name"`
	Args     json.RawMessage  `json:"args,omitempty"`
	ArgsRef  *belay.Ref       `json:"argsRef,omitempty"`
	ArgsHash belay.Digest     `json:"argsHash"`
	Path     string           `json:"path,omitempty"`  // the file it names
	Paths    []string         `json:"paths,omitempty"` // or the files
	Links    []event.LinkSeen `json:"links,omitempty"` // where paths of it led
	Problem  *event.Problem   `json:"problem,omitempty"`
	Ask      *Ask             `json:"ask,omitempty"`
	Bound    *policy.Bound    `json:"bound,omitempty"` // what its programs run in
	judgement
	attempt
	violation

	Check string   `json:"check,omitempty"` // that it finds out; empty: the model made the call
	Ended *callEnd `json:"ended,omitempty"` // of such a call

	Input  *event.InputAsked `json:"input,omitempty"`  // what it has to know before it goes on
	Rounds int               `json:"rounds,omitempty"` // attempts that ended with that
	Sample sampled           `json:"sample,omitzero"`  // if it is a model's answer
	Use    *grantUse         `json:"use,omitempty"`    // of a grant that the session counts
}

// judgement is what the gate and people said of a call.
type judgement struct {
	Verdict policy.Decision        `json:"verdict,omitempty"` // after an answer: allow or deny
	Reason  string                 `json:"reason,omitempty"`  // of a denial
	Hint    string                 `json:"hint,omitempty"`
	Tags    []string               `json:"tags,omitempty"` // risks that the gate saw in it
	Checks  []checked              `json:"checks,omitempty"`
	Least   belay.Level            `json:"least,omitempty"`  // the boundary's level without which it doesn't run
	Stands  *belay.ApprovalContext `json:"stands,omitempty"` // what a person's answer is for
	Again   *event.Again           `json:"again,omitempty"`  // why the answer that it had doesn't count any more
}

// attempt is the last start of a call.
type attempt struct {
	Attempt int  `json:"attempt,omitempty"`
	Recover bool `json:"recover,omitempty"`

	Internal bool `json:"internal,omitempty"` // the runtime answers it itself

	RetryAt time.Time        `json:"retryAt,omitzero"`
	Expect  string           `json:"expect,omitempty"`  // digest its file must still have
	Expects []event.FileSeen `json:"expects,omitempty"` // of several files
	Changes bool             `json:"changes,omitempty"` // it can change things
	Polls   bool             `json:"polls,omitempty"`   // repeating it is its purpose
	Since   time.Time        `json:"since,omitzero"`    // of one that waits
	Taint   []string         `json:"taint,omitempty"`   // what its result brings into the conversation
	Told    string           `json:"told,omitempty"`    // how far it said last that it is
}

// violation is what a boundary stopped of a call.
type violation struct {
	Stopped *event.Stopped `json:"stopped,omitempty"` // last
	Blocked *blocked       `json:"blocked,omitempty"` // an attempt ended by that, until something is decided
	Widened int            `json:"widened,omitempty"` // times that it got a wider boundary
}

// inFlight reports whether an attempt began and nothing says how it ended.
func (c *Call) inFlight() bool {
	return c.Phase == CallRunning || c.Phase == CallOrphaned || c.Phase == CallWaits
}

// begun reports whether an attempt of it was started, and it isn't over.
func (c *Call) begun() bool { return c.Attempt > 0 && c.Phase != CallOver }

// Ask is a question that waits for a person.
type Ask struct {
	Action belay.ActionID `json:"action"`
	Kind   string         `json:"kind"` // permission, question, form, continue, budget
	Until  time.Time      `json:"until"`
	Open   bool           `json:"open"`

	Decision string `json:"decision,omitempty"` // once it is answered
	Message  string `json:"message,omitempty"`

	Boundary string       `json:"boundary,omitempty"` // by its name, that a yes gives the call
	Within   belay.Digest `json:"within,omitempty"`   // and what it is
	Again    *event.Again `json:"again,omitempty"`    // why it is asked once more

	Wider  *policy.Bound      `json:"wider,omitempty"`  // what a call that was stopped gets, if it is allowed
	Budget *event.BudgetAsked `json:"budget,omitempty"` // what a yes raises
}

// key names a call by what it would do.
func (c *Call) key() string { return c.Name + " " + string(c.ArgsHash) }

// ids are the identities of a fact about the running turn. Task and run are on
// the facts of the turn itself only: the turn leads to them.
func (s *State) ids() belay.IDs {
	ids := belay.IDs{Session: s.Session, Thread: s.Thread}
	if s.Turn != nil {
		ids.Turn = s.Turn.Turn
		if s.Turn.Step != nil {
			ids.Step = s.Turn.Step.ID
		}
	}
	return ids
}

func (s *State) callIDs(c *Call) belay.IDs {
	ids := s.ids()
	ids.Call = c.ID
	return ids
}

// derive makes an id from the sequence that the n-th fact decided now will get.
func (s *State) derive(prefix string, n int) string {
	return belay.DeriveID(prefix, s.Stream, s.Seq+1+int64(n), 0)
}

// driven reports whether the turn's clock runs: something is in flight that no
// person is needed for. A model that is asked about a call, and a compaction that the next
// request waits for, are; in a pause they aren't waited for.
func (s *State) driven() bool {
	t := s.Turn
	switch {
	case t == nil:
		return false
	case t.attempts():
		return true
	case s.Paused() != nil:
		return false
	case slices.ContainsFunc(t.calls(), (*Call).questioned):
		return true
	case !s.Compacting.runs() || t.Short || t.Ask != nil && t.Ask.Open:
		return false
	}
	st := t.Step
	return st == nil || st.settled() || st.Phase == stepFailed && !st.Problem.Retryable
}

// attempts reports whether an attempt of the turn's request or of a call is under way.
func (t *Turn) attempts() bool {
	return t.Step != nil && t.Step.Phase == stepRequested || slices.ContainsFunc(t.calls(), func(c *Call) bool { return c.Phase == CallRunning })
}

// questioned reports whether a checker is asked about the call, or a model for its server.
func (c *Call) questioned() bool {
	return c.Sample.Asked && c.wantsModel() || c.Phase == CallProposed && slices.ContainsFunc(c.Checks, func(k checked) bool { return !k.Done })
}

// active is the turn's driven time as of now.
func (d *decision) active() time.Duration {
	if !d.driven() || d.now.Before(d.Last) {
		return d.Turn.Active
	}
	return d.Turn.Active + d.now.Sub(d.Last)
}

// retryWait is how much of the time from one moment to another the turn waits to
// repeat a request that failed.
func (t *Turn) retryWait(from, to time.Time) time.Duration {
	if t == nil || t.Step == nil || t.Step.Phase != stepFailed || !t.Step.Problem.Retryable {
		return 0
	}
	if t.Step.RetryAt.Before(to) {
		to = t.Step.RetryAt
	}
	return max(0, to.Sub(from))
}

// settled reports whether the step was answered and all its calls are over.
func (st *Step) settled() bool {
	return st.Phase == stepAnswered && !slices.ContainsFunc(st.Calls, func(c *Call) bool { return c.Phase != CallOver })
}

// fact is a fact about the running turn.
func (s *State) fact(p event.Payload) core.Fact { return core.Fact{IDs: s.ids(), Data: p} }

// threadFact is a fact about the thread.
func (s *State) threadFact(p event.Payload) core.Fact {
	return core.Fact{IDs: belay.IDs{Session: s.Session, Thread: s.Thread}, Data: p}
}

// idsOf are the identities of facts about a turn that waits, or waited.
func (s *State) idsOf(q Queued) belay.IDs {
	return belay.IDs{Session: s.Session, Thread: s.Thread, Turn: q.Turn, Task: q.Task, Run: q.Run}
}
