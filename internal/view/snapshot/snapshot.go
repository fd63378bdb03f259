// Package snapshot folds a session's facts into the standard's snapshot: what a
// client shows before it follows the events. It promises a document that both
// snapshot schemas accept, that follows from the facts alone, and that says
// unknown, unavailable, stale or not_applicable where the facts say nothing. It
// is bounded: of a long history it has the end, and a cursor to the rest.
package snapshot

import (
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// Bounds of the window. What is older is counted.
const (
	maxTurns     = 50  // of a thread
	maxSteps     = 200 // of a turn
	maxCalls     = 500 // of a turn
	maxTasks     = 200 // of a session
	maxIncidents = 50  // of a thread
	maxText      = 400 // bytes of a text
	maxArgv      = 16  // arguments of a program
)

// Words for what the facts don't tell.
const (
	unavailable   = "unavailable"    // this build doesn't measure it
	notApplicable = "not_applicable" // the session has none
)

// State is a part of which only the state is known.
type State struct {
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
}

// Session is the snapshot.
type Session struct {
	SchemaVersion string          `json:"schemaVersion"`
	RuntimeID     belay.RuntimeID `json:"runtimeId"`
	SessionID     belay.SessionID `json:"sessionId"`
	Title         string          `json:"title,omitempty"`
	Workspace     string          `json:"workspaceId,omitempty"`
	CreatedAt     time.Time       `json:"createdAt,omitzero"`
	UpdatedAt     time.Time       `json:"updatedAt"`
	Cursor        []Cursor        `json:"cursor"` // the last fact of each stream that is in it

	Threads     []*Thread   `json:"threads"`
	Tasks       []*Task     `json:"tasks"`
	TaskSummary TaskSummary `json:"taskSummary"`
	Graph       TaskGraph   `json:"taskGraph"`

	Environment Environment     `json:"executionEnvironment"`
	Permission  PermissionState `json:"permissionState"`
	Sandbox     SandboxState    `json:"sandboxState"`
	Outputs     Outputs         `json:"outputSummary"`

	Routing   Routing   `json:"routingLimitSummary"`
	Subagents Subagents `json:"subagentJobSummary"`
	Channels  State     `json:"channelSummary"`
	Telemetry Telemetry `json:"telemetrySummary"`
	History   History   `json:"historySummary"`
	Evidence  []string  `json:"evidenceRefs"`
}

// Cursor is where a reader of events continues.
type Cursor struct {
	Stream   belay.StreamID `json:"stream"`
	Sequence int64          `json:"sequence"`
	EventID  belay.EventID  `json:"eventId"`
}

// Routing is which model was asked, and what that used.
type Routing struct {
	Profile  *Profile `json:"taskProfile,omitempty"` // of the newest turn
	Provider string   `json:"provider,omitempty"`
	Model    string   `json:"selectedModel,omitempty"`
	Decision string   `json:"decision"` // unknown: no turn has begun; single_candidate, decided, fallback, not_possible

	Reason     string           `json:"reason,omitempty"`
	Candidates int              `json:"candidateCount"`
	Excluded   []event.Excluded `json:"excluded,omitempty"`
	Gap        []string         `json:"capabilityGap,omitempty"`

	Usage belay.Usage `json:"usage"`
	Cost  CostState   `json:"costState"`
	Quota State       `json:"quotaState"`
	Limit *RateLimit  `json:"rateLimitState,omitempty"` // the last one that a provider told of
}

// Profile is what a task wants of a model.
type Profile struct {
	Kind         string   `json:"kind"`
	Source       string   `json:"source"`
	Capabilities []string `json:"capabilities,omitempty"`
	Fallback     string   `json:"fallback,omitempty"`
}

// CostState is what the session's answers cost, as far as it is known.
type CostState struct {
	Status   string `json:"status"` // known, estimated, at_least, unknown
	MicroUSD int64  `json:"microUsd"`
	Unpriced int    `json:"unpriced,omitempty"` // answers without a known price
}

// RateLimit is a provider's wish for fewer requests.
type RateLimit struct {
	Provider string    `json:"provider"`
	Model    string    `json:"model,omitempty"`
	RetryAt  time.Time `json:"retryAt,omitzero"`
}

// Telemetry is what was counted.
type Telemetry struct {
	Status   string `json:"status"`
	Facts    int    `json:"facts"`
	Turns    int    `json:"turns"`
	Steps    int    `json:"steps"`
	Calls    int    `json:"toolCalls"`
	Failures int    `json:"failedToolCalls"`
	Lost     int    `json:"lostToolCalls"`
}

// History is where the conversation comes from and how much of it is here.
type History struct {
	Turns     int           `json:"turns"` // in all
	Shown     int           `json:"shown"` // of them, in this snapshot
	Truncated bool          `json:"truncated"`
	Forked    *belay.Fork   `json:"forkedFrom,omitempty"`
	Imported  *belay.Import `json:"importedFrom,omitempty"`
	Rollbacks int           `json:"rollbacks,omitempty"`
}

// Fold makes a snapshot of a session's facts, which come in the order of the
// log.
type Fold struct {
	s       *Session
	streams map[belay.StreamID]int // places of the cursors
	threads map[belay.StreamID]*Thread
	tasks   map[belay.TaskID]*Task
	dropped map[string]int // tasks that left the window, by status
	cost    event.CostSum
}

// New begins a snapshot.
func New(runtime belay.RuntimeID, session belay.SessionID) *Fold {
	return &Fold{
		s: &Session{SchemaVersion: event.SchemaVersion, RuntimeID: runtime, SessionID: session, Cursor: []Cursor{}, Threads: []*Thread{}, Tasks: []*Task{}, Evidence: []string{},
			Environment: Environment{Status: "unknown", Roots: []string{}}, Outputs: Outputs{Outputs: []*Output{}},
			Permission: PermissionState{Grants: []Grant{}, Recent: []Verdict{}, Violations: []Violation{}}, Sandbox: SandboxState{Status: "unknown", Reason: "no call has run"},
			Routing:   Routing{Decision: "unknown", Cost: CostState{Status: "unknown"}, Quota: State{unavailable, "no provider has told of a quota"}},
			Subagents: Subagents{Status: notApplicable, Agents: []*Subagent{}}, Channels: State{notApplicable, ""}, Telemetry: Telemetry{Status: "available"}},
		streams: map[belay.StreamID]int{}, threads: map[belay.StreamID]*Thread{}, tasks: map[belay.TaskID]*Task{}, dropped: map[string]int{},
	}
}

// Apply folds one fact.
func (f *Fold) Apply(e event.Envelope) {
	s := f.s
	s.Telemetry.Facts++
	if e.Time.After(s.UpdatedAt) {
		s.UpdatedAt = e.Time
	}
	at, ok := f.streams[e.Stream]
	if !ok {
		at = len(s.Cursor)
		f.streams[e.Stream] = at
		s.Cursor = append(s.Cursor, Cursor{})
	}
	s.Cursor[at] = Cursor{e.Stream, e.Seq, e.ID()}
	f.permission(e)
	f.environment(e)
	f.output(e)
	if _, ok := e.Data.(event.TaskArchived); ok && e.IDs.Task != "" {
		f.taskOf(e).Status = "archived"
		return
	}
	if p, ok := e.Data.(event.TaskDependencyUpdated); ok && e.IDs.Task != "" {
		f.taskOf(e).relate(e, p)
		return
	}
	switch e.Stream.Kind() {
	case belay.KindThread:
		f.cost = f.cost.Add(e.Cost())
		f.routing(e.Data)
		f.thread(e)
	case belay.KindTask:
		f.task(e)
	default:
		f.session(e)
		f.subagent(e)
	}
}

// session folds a fact of the session's own stream.
func (f *Fold) session(e event.Envelope) {
	s := f.s
	switch p := e.Data.(type) {
	case event.SessionCreated:
		s.Title, s.Workspace, s.CreatedAt = cut(p.Title), p.Workspace, e.Time
		f.settings(p.Settings)
	case event.SessionUpdated:
		if p.Title != "" {
			s.Title = cut(p.Title)
		}
		if p.Settings != nil {
			f.settings(*p.Settings)
		}
	}
}

func (f *Fold) settings(b belay.Settings) {
	f.s.Permission.Mode, f.s.Permission.Approvals = b.Mode, b.Approvals
	f.s.Routing.Provider, f.s.Routing.Model = b.Provider, b.Model
}

// Done is the snapshot of what was folded. driven reports whether the session is
// driven now; if not, what looks as if it ran is stale.
func (f *Fold) Done(driven bool) *Session {
	s := f.s
	s.Permission.Pending, s.Environment.Programs.Running = 0, 0
	s.Routing.Cost = CostState{f.cost.State(), f.cost.MicroUSD, f.cost.Unpriced}
	s.History.Turns, s.History.Shown = s.Telemetry.Turns, 0
	for _, t := range s.Threads {
		t.finish(driven)
		s.Permission.Pending += len(t.Pending)
		s.Environment.Programs.Running += len(t.Processes)
		s.History.Shown += len(t.Turns) + len(t.Queue)
	}
	s.History.Truncated = s.History.Shown < s.History.Turns
	s.TaskSummary = TaskSummary{Total: len(s.Tasks), Shown: len(s.Tasks), ByStatus: map[string]int{}}
	for status, n := range f.dropped {
		s.TaskSummary.ByStatus[status] += n
		s.TaskSummary.Total += n
	}
	for _, t := range s.Tasks {
		if !driven && t.Status == "running" {
			t.Status, t.Reason = "stale", "the session isn't running now"
		}
		s.TaskSummary.ByStatus[t.Status]++
	}
	s.Graph = graphOf(s.Tasks)
	s.Subagents.finish()
	return s
}

// cut is a text's beginning.
func cut(s string) string {
	if event.TextLen(s) <= maxText {
		return s
	}
	return event.CutText(s, maxText) + "…"
}
