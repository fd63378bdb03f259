package cli

import (
	"cmp"
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/tool/exec"
)

// Config is what a person may set for a session's turns. Everything is text as
// it was typed; empty is not given. Precedence: flag, environment, the files of
// the workspace, the person and the machine, the default. A session that exists
// has its own settings instead of all but the flags.
type Config struct {
	Mode         string   `placeholder:"MODE" help:"How far it may go without asking: default, plan, accept_edits, auto, on_request, on_failure, untrusted, never, bypass. [$$BELAY_MODE]"`
	Boundary     string   `placeholder:"NAME" help:"What programs run in: read-only, workspace-write, full (nothing confines them), or one of policy.yaml; the mode's. [$$BELAY_BOUNDARY]"`
	Allow        []string `placeholder:"TOOL" sep:"none" help:"Allow a tool, or group:NAME, for the whole session; may be repeated. [$$BELAY_ALLOW, separated by commas]"`
	Tools        string   `placeholder:"LIST" help:"Which tools there are: a set (minimal, coding, messaging, full), group:NAME, names with *; - before one takes it away. Separated by commas. [$$BELAY_TOOLS]"`
	Approvals    string   `placeholder:"HOW" help:"What to do when a permission is needed: ask (on this terminal), wait (for an answer), deny. [$$BELAY_APPROVALS]"`
	Provider     string   `placeholder:"NAME" help:"Who serves the model. [$$BELAY_PROVIDER]"`
	Model        string   `placeholder:"NAME" help:"The model. [$$BELAY_MODEL]"`
	BaseURL      string   `name:"base-url" placeholder:"URL" help:"Where the provider is reached, such as http://127.0.0.1:8080/v1. [$$BELAY_BASE_URL]"`
	Fallback     string   `placeholder:"LIST" help:"Who is asked when the model gives no answer: PROVIDER/MODEL, separated by commas, in order. [$$BELAY_FALLBACK]"`
	Script       string   `placeholder:"FILE" help:"Play a scripted model from a file instead. [$$BELAY_SCRIPT]"`
	MaxSteps     string   `placeholder:"N" help:"Steps of a turn; 0 is no limit; 200. [$$BELAY_MAX_STEPS]"`
	MaxTime      string   `placeholder:"TIME" help:"Active time of a turn, such as 30m; 0 is no limit; 1h. [$$BELAY_MAX_TIME]"`
	MaxCalls     string   `placeholder:"N" help:"Tool calls of a turn; 0 is no limit; 1000. [$$BELAY_MAX_CALLS]"`
	Completion   string   `placeholder:"HOW" help:"What ends a turn well: required (complete_task) or conversational (any answer). [$$BELAY_COMPLETION]"`
	OutputSchema string   `placeholder:"FILE" help:"JSON Schema that the result must fit. [$$BELAY_OUTPUT_SCHEMA]"`
	Snapshot     string   `placeholder:"HOW" help:"Keep the whole workspace before and after each turn, so that undo covers what commands change: git (hidden commits), none. [$$BELAY_SNAPSHOT]"`
	Instructions string   `placeholder:"HOW" help:"Whether AGENTS.md and CLAUDE.md are read: auto, none. [$$BELAY_INSTRUCTIONS]"`
	Share        bool     `help:"Write also where another session does: what each has read keeps them from overwriting each other."`
	FailOnDenied bool     `help:"End with exit code 4 if a call was denied, also when the task was completed."`
	Effort       string   `placeholder:"HOW" help:"How much the model reasons: low, medium, high; the provider's default. [$$BELAY_EFFORT]"`
	AskTimeout   string   `placeholder:"TIME" help:"How long a question waits before it is denied; 24h. [$$BELAY_ASK_TIMEOUT]"`
	Queue        string   `placeholder:"MODE" help:"What becomes of a task that comes while another one runs: enqueue, steer, collect, interrupt, rollback, reject. Given more to do (run --session), of this one task. [$$BELAY_QUEUE]"`
	QueueCap     string   `placeholder:"N" help:"How many tasks may wait, 1 to 100; 100. [$$BELAY_QUEUE_CAP]"`
	QueueDrop    string   `placeholder:"WHICH" help:"Which turn to drop when the queue is full: new, old, summarise (old, with its first line kept for the model). [$$BELAY_QUEUE_DROP]"`
	QueueQuiet   string   `placeholder:"TIME" help:"With collect: how long nothing must come before what came is one task; 500ms. [$$BELAY_QUEUE_QUIET]"`
}

// setting is one value of a Config: its flag, its variable, where it is.
type setting struct {
	flag, env string
	value     *string
	once      bool // belongs to one call: no file sets it
}

// name is the setting's name in files: its flag without the hyphens before it.
func (s setting) name() string { return strings.TrimPrefix(s.flag, "--") }

func (c *Config) settings() []setting {
	return []setting{
		{"--mode", "BELAY_MODE", &c.Mode, false},
		{"--boundary", "BELAY_BOUNDARY", &c.Boundary, false},
		{"--tools", "BELAY_TOOLS", &c.Tools, false},
		{"--approvals", "BELAY_APPROVALS", &c.Approvals, false},
		{"--provider", "BELAY_PROVIDER", &c.Provider, false},
		{"--model", "BELAY_MODEL", &c.Model, false},
		{"--base-url", "BELAY_BASE_URL", &c.BaseURL, false},
		{"--fallback", "BELAY_FALLBACK", &c.Fallback, false},
		{"--script", "BELAY_SCRIPT", &c.Script, true},
		{"--max-steps", "BELAY_MAX_STEPS", &c.MaxSteps, false},
		{"--max-time", "BELAY_MAX_TIME", &c.MaxTime, false},
		{"--max-calls", "BELAY_MAX_CALLS", &c.MaxCalls, false},
		{"--completion", "BELAY_COMPLETION", &c.Completion, false},
		{"--output-schema", "BELAY_OUTPUT_SCHEMA", &c.OutputSchema, true},
		{"--snapshot", "BELAY_SNAPSHOT", &c.Snapshot, false},
		{"--instructions", "BELAY_INSTRUCTIONS", &c.Instructions, false},
		{"--effort", "BELAY_EFFORT", &c.Effort, false},
		{"--ask-timeout", "BELAY_ASK_TIMEOUT", &c.AskTimeout, false},
		{"--queue", "BELAY_QUEUE", &c.Queue, false},
		{"--queue-cap", "BELAY_QUEUE_CAP", &c.QueueCap, false},
		{"--queue-drop", "BELAY_QUEUE_DROP", &c.QueueDrop, false},
		{"--queue-quiet", "BELAY_QUEUE_QUIET", &c.QueueQuiet, false},
	}
}

// resolved is a Config after it was held against what is possible.
type resolved struct {
	belay.Settings
	Schema   []byte // of the output; nil is none
	baseFrom string // the variable that names the address; empty: none does
}

// defaults returns the settings of a session that sets none.
func (a *app) defaults() belay.Settings {
	s := belay.Settings{Mode: belay.ModeDefault, Approvals: belay.ApprovalsDeny, Completion: belay.CompletionRequired, Limits: belay.DefaultLimits, Shell: exec.OfSession()}
	if a.Interactive() {
		s.Approvals = belay.ApprovalsAsk
	}
	return s
}

// fresh are the settings of a new session.
func (a *app) fresh(ctx context.Context, c Config) (resolved, error) {
	l, err := a.layered(ctx, c)
	if err != nil {
		return resolved{}, err
	}
	a.nameIgnored(l)
	cfg, origin := l.config()
	cfg.Share = c.Share // for one session: it is in no file
	r, err := a.check(cfg, a.defaults(), origin)
	if err != nil || r.Mode != belay.ModeBypass && r.Boundary == "" {
		return r, err
	}
	ws, err := a.workspace() // refused before anything is made
	if err != nil {
		return r, err
	}
	g, err := a.governs(ctx, ws, a.specs())
	if err != nil {
		return r, err
	}
	return r, cmp.Or(g.permits(r.Mode), g.knownBoundary(r.Boundary, origin["--boundary"]))
}

// over are a session's settings with what was given now over them.
func (a *app) over(c Config, have belay.Settings) (resolved, error) {
	return a.check(c, have, nil)
}

// check is the one place where settings are validated.
func (a *app) check(c Config, base belay.Settings, origin map[string]string) (resolved, error) {
	r := resolved{Settings: base}
	p := parse{origin: origin}
	if c.Mode != "" {
		r.Mode = p.mode(c.Mode)
	}
	if c.Approvals != "" {
		r.Approvals = belay.Approvals(p.oneOf("--approvals", c.Approvals, "ask", "wait", "deny"))
	}
	if c.Completion != "" {
		r.Completion = belay.Completion(p.oneOf("--completion", c.Completion, "required", "conversational"))
	}
	switch p.snapshot(c.Snapshot) {
	case "none":
		r.Snapshot = ""
	case "git":
		r.Snapshot = "git"
	}
	switch p.instructions(c.Instructions) {
	case "none":
		r.Instructions = "none"
	case "auto":
		r.Instructions = ""
	}
	if c.Boundary != "" {
		r.Boundary = c.Boundary
	}
	if c.Effort != "" {
		r.Effort = p.oneOf("--effort", c.Effort, "low", "medium", "high")
	}
	if c.MaxSteps != "" {
		r.Limits.Steps = p.number("--max-steps", c.MaxSteps)
	}
	if c.MaxCalls != "" {
		r.Limits.Calls = p.number("--max-calls", c.MaxCalls)
	}
	if c.MaxTime != "" {
		r.Limits.Time = p.duration("--max-time", c.MaxTime, 0)
	}
	if c.AskTimeout != "" {
		r.AskTimeout = p.duration("--ask-timeout", c.AskTimeout, time.Second)
	}
	r.Queue = p.queueing(base.Queue, c)
	r.Share = r.Share || c.Share
	specs := a.specs()
	if c.Tools != "" {
		r.Tools = p.tools(specs, c.Tools)
	}
	r.Allow = p.allow(specs, base.Allow, c.Allow)
	if c.Model != "" {
		r.Model = c.Model
	}
	p.provider(a, &r, c)
	r.Fallback = p.fallback(a, base.Fallback, c.Fallback)
	if c.OutputSchema != "" {
		r.Schema = p.schema(a, c.OutputSchema)
	}
	return r, p.err
}

// abs makes a path absolute, relative to the working directory.
func (a *app) abs(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(a.Dir, path)
}
