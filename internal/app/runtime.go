// Package app has the use cases: what callers can ask of a store and of what drives
// its sessions, whether they come by HTTP, from the terminal or by another protocol.
// It promises that each use case is one function with typed input and output, that a
// caller without the scope is refused, and that a command repeated under one key is
// done once.
//
// command.go has the table's rows; the features below this folder define them.
package app

import (
	"context"
	"encoding/json"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app/read"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/config/agentfile"
	"github.com/belay-run/belay/internal/config/rulefile"
	"github.com/belay-run/belay/internal/core/session"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/effect/history"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/model/tokens"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/secret"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/view"
)

// Runtime is an open store and what drives its sessions: of a tenant of the server, or
// of the terminal.
type Runtime struct {
	Store      store.Store
	Engine     *engine.Engine
	Attachable func(belay.ProcessID) (tool.Attachable, bool) // a program in the background of this process
	Workspaces Workspaces
	Reads      *read.Reads
	Drives     Scheduler
	Recorder   Recorder
	Now        func() time.Time
	Tokens     *auth.Tokens // of the whole process
	Peers      Peers        // the channels that follow
	Open       bool         // a person has a conversation open: what runs in the background goes on until it ends
	Principal  string       // the person whose process this is; empty: it serves many
	Close      func() error // gives everything back; nil: the maker does

	Doctor func(context.Context) []Finding // what the machine gives; nil: this process can't say
}

// Finding is something that the machine gives, or that is missing.
type Finding struct {
	Name  string `json:"name"`
	State string `json:"state"` // ok, missing, failed, note
	What  string `json:"what"`
	Try   string `json:"try,omitempty"`
}

// SettingRow is a setting as it counts, and where it comes from.
type SettingRow = config.Row

// IgnoredRow is what a file says that doesn't count, and why.
type IgnoredRow struct {
	What  string `json:"ignored"`
	Where string `json:"from"`
	Why   string `json:"reason"`
}

// Scheduler decides when sessions run.
type Scheduler interface {
	// Enqueue makes a session run soon; the priority counts among those that wait.
	Enqueue(id belay.SessionID, priority int)
	// ApplyLanes makes the sessions of rows run that have something to do, now or
	// when their lanes say.
	ApplyLanes(rows []store.LaneRow)
}

// Recorder records in the system session what callers did.
type Recorder interface {
	// Note records a fact about a channel, and perhaps an action.
	Note(ctx context.Context, ids belay.IDs, p event.Payload) error
	// Done records how a command ended. A refused one is recorded too.
	Done(ctx context.Context, c *Call, d Outcome) error
}

// local is the Scheduler and Recorder of a process that serves one person: what runs
// is driven by the command that wants it, facts name the person, and no channel follows.
type local struct{}

func (local) Enqueue(belay.SessionID, int)                         {}
func (local) ApplyLanes([]store.LaneRow)                           {}
func (local) Note(context.Context, belay.IDs, event.Payload) error { return nil }
func (local) Done(context.Context, *Call, Outcome) error           { return nil }

// Local is the runtime of a process that serves one person, for use cases that change
// nothing: an engine and workspaces are its maker's to add.
func Local(st store.Store, principal string, now func() time.Time) *Runtime {
	return &Runtime{Store: st, Reads: read.New(st, nil, view.NewFollower(st)), Drives: local{}, Recorder: local{}, Principal: principal, Now: now}
}

// Call is a use case that the person whose process this is asks for.
func (r *Runtime) Call(name string) *Call {
	return &Call{Runtime: r, By: auth.Person(r.Principal), Command: name}
}

// Outcome is how a command ended.
type Outcome struct {
	Code    belay.Code // CodeAccepted, or why it was refused
	Request belay.CommandID
	Session belay.SessionID
	Subject string // what it is about besides a session
	Reads   bool   // the command changes nothing: refusals of a kind are recorded together
}

// SettingsInput are what a caller may set for a session's turns; what is empty stays
// what it is, or becomes what the server's settings say.
type SettingsInput struct {
	Mode      string   `json:"mode,omitempty" jsonschema:"how far it may go without asking: default, plan, accept_edits, auto, on_request, on_failure, untrusted, never, bypass"`
	Approvals string   `json:"approvals,omitempty" jsonschema:"what becomes of a question: wait (for an answer), deny"`
	Allow     []string `json:"allow,omitempty" jsonschema:"tools that need no question in this session"`
	Agent     string   `json:"agent,omitempty" jsonschema:"the agent that works, which is kept as a file: NAME, NAME@RANGE or ORIGIN:NAME; none: no such agent"`
	Tools     string   `json:"tools,omitempty" jsonschema:"which tools there are: sets, group:NAME, names, separated by commas"`
	Provider  string   `json:"provider,omitempty" jsonschema:"who serves the model"`
	Model     string   `json:"model,omitempty" jsonschema:"the model"`
	Fallback  string   `json:"fallback,omitempty" jsonschema:"who is asked when the model gives no answer: PROVIDER/MODEL, separated by commas"`
	MaxSteps  string   `json:"maxSteps,omitempty" jsonschema:"steps of a turn; 0 is no limit"`
	MaxTime   string   `json:"maxTime,omitempty" jsonschema:"active time of a turn, such as 30m"`
	MaxCalls  string   `json:"maxCalls,omitempty" jsonschema:"tool calls of a turn; 0 is no limit"`
	MaxCost   string   `json:"maxCost,omitempty" jsonschema:"what a turn's requests may cost, such as 2usd; 0 is no limit"`
	MaxTokens string   `json:"maxTokens,omitempty" jsonschema:"tokens that a turn may read and write, such as 500ktok; 0 is no limit"`
	Budget    string   `json:"budget,omitempty" jsonschema:"what the session may spend, of each kind that is named, such as 2usd,500ktok,300calls,4h"`
	Compact   string   `json:"compact,omitempty" jsonschema:"how a conversation is shortened that fills the model's context: hybrid, prune, summarise, truncate, off"`
	CompactAt string   `json:"compactAt,omitempty" jsonschema:"how full the context is when its conversation is shortened, in percent, 10 to 95"`

	CompactModel string `json:"compactModel,omitempty" jsonschema:"PROVIDER/MODEL that summarises, or none for the one that works"`

	Completion     string `json:"completion,omitempty" jsonschema:"what ends a turn well: required or conversational"`
	Effort         string `json:"effort,omitempty" jsonschema:"how much the model reasons: low, medium, high"`
	AskTimeout     string `json:"askTimeout,omitempty" jsonschema:"how long a question waits before it is denied"`
	AgentsDepth    string `json:"agentsDepth,omitempty" jsonschema:"how deep agents may start agents; 0: not at all"`
	AgentsChildren string `json:"agentsChildren,omitempty" jsonschema:"agents that one agent may have open"`
	AgentsRunning  string `json:"agentsRunning,omitempty" jsonschema:"agents that work at the same time"`
	AgentsMemory   string `json:"agentsMemory,omitempty" jsonschema:"memory that agents which work may declare together: a size such as 8GB, or a percentage of the machine's"`
	AgentsTalk     string `json:"agentsTalk,omitempty" jsonschema:"with whom agents talk besides those that they started: none, tree"`
	AgentsTotal    string `json:"agentsTotal,omitempty" jsonschema:"agents that the session may have in all"`

	Share bool `json:"share,omitempty" jsonschema:"write also where another session does"`
}

// Workspaces answers what depends on the files, settings and tools of a workspace.
// Its methods may be called at the same time.
type Workspaces interface {
	Folders
	Configuration
	Judging
	AgentFiles
	MCPServers
}

// Folders finds and prepares the folders that sessions work in.
type Folders interface {
	// Workspace is the real path of a folder to work on; empty is the server's
	// own. Folders outside of those that the server was given are refused.
	Workspace(ctx context.Context, dir string) (string, error)
	// Root is where claims of a workspace are made: its repository, or itself.
	Root(workspace string) string
	// Planner is what a rollback of a workspace's files is planned with. The caller
	// closes its root.
	Planner(workspace string) (history.Planner, error)
	// RemoveWorktree takes a session's worktree away and reports whether its branch
	// stays. One with changes that are in no commit is refused, unless force.
	RemoveWorktree(ctx context.Context, t belay.Worktree, force bool) (branchKept bool, err error)
	// Secrets are the registered secrets.
	Secrets() *secret.Scrubber
}

// Configuration is what counts in a workspace.
type Configuration interface {
	// Settings are a session's settings: have with the choices over them, or,
	// when have is nil, those of a new session in a workspace.
	Settings(ctx context.Context, workspace string, have *belay.Settings, c SettingsInput) (belay.Settings, error)
	// SettingRows lists the settings of a new session in a workspace, and what files say
	// that doesn't count.
	SettingRows(ctx context.Context, workspace string) ([]SettingRow, []IgnoredRow, error)
	// Quotas are those that work in a workspace spends from.
	Quotas(ctx context.Context, workspace string) ([]belay.Quota, error)
	// Counts is how the model of the settings counts tokens, as far as it is known.
	Counts(ctx context.Context, workspace string, s belay.Settings) tokens.Profile
	// KeepRules keeps rules in a file of their own beside the person's other ones, if ready
	// says nothing against it, and returns its path. A file that is there stays; had reports
	// that it has this content. One after another is kept: ready sees those before.
	KeepRules(ctx context.Context, name string, content []byte, ready func() error) (path string, had bool, err error)
}

// Judging is what the calls of a session are decided by.
type Judging interface {
	// Rules keeps, as content, what a turn under these settings is decided by.
	Rules(ctx context.Context, by, workspace string, s belay.Settings) (belay.Ref, error)
	// CompletionRules keeps what a turn is decided by that checks whether a task is done.
	// It asks no model; agents that judge the work are asked with the models of s.
	CompletionRules(ctx context.Context, by, workspace string, s belay.Settings) (belay.Ref, error)
	// MayChange reports whether a session's rules allow changes of its workspace,
	// and makes the workspace's tools known. more are allowances given by answers.
	MayChange(ctx context.Context, s *session.State, more []policy.Grant) (bool, error)
	// Tools are the tools of a workspace under the settings.
	Tools(ctx context.Context, workspace string, s belay.Settings) ([]belay.ToolSpec, error)
	// Ground is what calls in a workspace are judged on now.
	Ground(ctx context.Context, workspace string) (*Ground, error)
}

// AgentFiles are the agents and skills of a workspace that are kept as files.
type AgentFiles interface {
	// Agents are the agents of a workspace that are kept as files.
	Agents(ctx context.Context, workspace string) (*agentfile.Catalog, error)
	// AgentRecords are what is known of agents besides their files: what people made of
	// them, and their runs.
	AgentRecords(ctx context.Context) (*config.TrustBook, map[string]view.AgentRuns, error)
	// CheckHealth runs the health command of an agent in a workspace, records what it said
	// and returns that; nothing: the agent is well.
	CheckHealth(ctx context.Context, workspace string, a *agentfile.Agent) (sick string, err error)
	// WatchAgents records what has changed of the agents in the workspaces that were used.
	WatchAgents(ctx context.Context) error
	// Skills are those that agents of a workspace can read.
	Skills(ctx context.Context, workspace string) (*agentfile.Skills, error)
	// PrepareChild keeps, as content, what an agent is decided by that one with the rules
	// of parent starts, and puts it into c. left is what the parent has left.
	PrepareChild(ctx context.Context, parent belay.Ref, in tool.SpawnArgs, left belay.Limits, depth int, c *belay.SpawnSubagent) error
}

// MCPServers are those of a workspace.
type MCPServers interface {
	// Servers are the MCP servers of a workspace, by name.
	Servers(ctx context.Context, workspace string) ([]Server, error)
	// Mentioned sends along the resources of MCP servers that a text names.
	Mentioned(ctx context.Context, workspace string, g *Given) error
	// TestServer starts an MCP server, reads what it has and ends it. accept says that
	// what it has is accepted. What is wrong with the server is in the answer.
	TestServer(ctx context.Context, workspace, name string, accept bool) (*ServerTest, error)
	// LoginServer begins a login to an MCP server, which a person goes on with in a
	// browser.
	LoginServer(ctx context.Context, in *LoginAsked) (*LoginBegun, error)
	// FinishLogin ends a login with the address that the browser was sent to, and looks
	// at the server.
	FinishLogin(ctx context.Context, login, address string) (*ServerTest, error)
	// LogoutServer forgets the login to an MCP server and reports whether there was one.
	LogoutServer(ctx context.Context, workspace, name string) (bool, error)
}

// Ground is what calls in a workspace are judged on.
type Ground struct {
	Workspace string
	Home      string // the HOME of programs
	Tools     *tool.Set
	Shadowed  bool   // programs are looked for in folders that the workspace can change
	Level     string // of the boundary that the machine can apply

	// Rules are those of the files that count, the files of one tier perhaps
	// replaced.
	Rules func(ctx context.Context, instead rulefile.Instead) (*policy.Set, error)
}

// Session folds a session; its Session is empty when there is none.
func (r *Runtime) Session(ctx context.Context, id belay.SessionID) (*session.State, error) {
	d, _, _, err := engine.Load(ctx, r.Store, id.Stream())
	if err != nil {
		return nil, err
	}
	return d.(*session.Decider).State(), nil
}

// StateOf folds a session; what it was accepted with counts if no more has happened.
// Its Session is empty when there is none.
func StateOf(ctx context.Context, st store.Store, id belay.SessionID) (*session.State, error) {
	d, _, _, err := engine.Load(ctx, st, id.Stream())
	if err != nil {
		return nil, err
	}
	s := d.(*session.Decider).State()
	if s.Session != "" {
		return s, nil
	}
	orders, err := st.Inbox(ctx, id.Stream())
	if err != nil {
		return nil, err
	}
	for _, o := range orders {
		switch c := o.Command.(type) {
		case belay.CreateSession:
			s.Session, s.Workspace, s.Title, s.Settings = id, c.Workspace, c.Title, c.Settings
			s.Budget.Limit = c.Settings.Budget
			if c.Thread != "" {
				s.Threads = append(s.Threads, c.Thread)
			}
		case belay.SubmitWork:
			s.Threads, s.Task = append(s.Threads, c.Thread), c.Task
		}
	}
	return s, nil
}

// Thread folds a thread.
func (r *Runtime) Thread(ctx context.Context, id belay.ThreadID) (*thread.State, error) {
	d, _, _, err := engine.Load(ctx, r.Store, id.Stream())
	if err != nil {
		return nil, err
	}
	return d.(*thread.Decider).State(), nil
}

// RulesOf are the rules that a turn of a thread was begun under last.
func (r *Runtime) RulesOf(ctx context.Context, ref belay.Ref) (*thread.Rules, error) {
	raw, err := r.Store.Get(ctx, ref.Digest)
	if err != nil {
		return nil, err
	}
	var rules thread.Rules
	if err := json.Unmarshal(raw, &rules); err != nil {
		return nil, belay.Errorf(belay.CodeRequires, "the rules can't be read").At(string(ref.Digest)).Wrap(err)
	}
	return &rules, nil
}

// Clean takes registered secrets out of a text.
func (r *Runtime) Clean(text string) string { return r.Workspaces.Secrets().String(text) }

// Retained is what a round of retention did.
type Retained struct {
	Outputs  int   // that expired: facts say so
	Contents int   // that were removed
	Bytes    int64 // of those
	More     bool  // outputs are due that the round had no room for
}
