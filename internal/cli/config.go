package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/model/direct"
	"github.com/belay-run/belay/internal/model/wire"
	"github.com/belay-run/belay/internal/tool"
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
	Approvals    string   `placeholder:"HOW" help:"What happens when it would ask: ask (on this terminal), wait (for somebody), deny. [$$BELAY_APPROVALS]"`
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
	Effort       string   `placeholder:"HOW" help:"How much the model reasons: low, medium, high; the provider's default. [$$BELAY_EFFORT]"`
	AskTimeout   string   `placeholder:"TIME" help:"How long a question waits before it is denied; 24h. [$$BELAY_ASK_TIMEOUT]"`
	Queue        string   `placeholder:"MODE" help:"What becomes of a task that comes while another one runs: enqueue, steer, collect, interrupt, rollback, reject. Given more to do (run --session), of this one task. [$$BELAY_QUEUE]"`
	QueueCap     string   `placeholder:"N" help:"How many tasks may wait, 1 to 100; 100. [$$BELAY_QUEUE_CAP]"`
	QueueDrop    string   `placeholder:"WHICH" help:"Which doesn't run when more come: new, old, summarise (old, and the model is told its first line). [$$BELAY_QUEUE_DROP]"`
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

// checked is a Config after it was held against what is possible.
type checked struct {
	belay.Settings
	Schema   []byte // of the output; nil is none
	baseFrom string // the variable that names the address; empty: none does
}

// defaults are the settings of a session for which nobody said otherwise.
func (a *app) defaults() belay.Settings {
	s := belay.Settings{Mode: belay.ModeDefault, Approvals: belay.ApprovalsDeny, Completion: belay.CompletionRequired, Limits: belay.DefaultLimits}
	if a.interactive() {
		s.Approvals = belay.ApprovalsAsk
	}
	return s
}

// interactive tells whether a person can be asked here.
func (a *app) interactive() bool {
	return !a.JSON && a.Stdin != nil && a.IsTerminal(a.Stdin) && a.IsTerminal(a.Stderr)
}

// fresh are the settings of a new session.
func (a *app) fresh(ctx context.Context, c Config) (checked, error) {
	l, err := a.layered(ctx, c)
	if err != nil {
		return checked{}, err
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
func (a *app) over(c Config, have belay.Settings) (checked, error) {
	return a.check(c, have, nil)
}

// check is the one place where settings are validated.
func (a *app) check(c Config, base belay.Settings, origin map[string]string) (checked, error) {
	r := checked{Settings: base}
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

// parse collects the first mistake.
type parse struct {
	origin map[string]string
	err    error
}

func (p *parse) bad(flag string, code belay.Code, hint, format string, args ...any) {
	if p.err != nil {
		return
	}
	where := flag
	if env := p.origin[flag]; env != "" {
		where = env
	}
	p.err = belay.Errorf(code, format, args...).At(where).WithHint("%s", hint)
}

func (p *parse) mode(v string) belay.Mode {
	var names []string
	for _, m := range belay.Modes {
		names = append(names, string(m))
	}
	return belay.Mode(p.oneOf("--mode", v, names...))
}

func (p *parse) oneOf(flag, v string, allowed ...string) string {
	if !slices.Contains(allowed, v) {
		p.bad(flag, belay.CodeUsage, flag+"="+allowed[0], "%q is none of %s", v, strings.Join(allowed, ", "))
	}
	return v
}

func (p *parse) snapshot(v string) string {
	if v == "" {
		return ""
	}
	return p.oneOf("--snapshot", v, "git", "none")
}

func (p *parse) instructions(v string) string {
	if v == "" {
		return ""
	}
	return p.oneOf("--instructions", v, "auto", "none")
}

func (p *parse) number(flag, v string) int {
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 || n > 1_000_000_000 {
		p.bad(flag, belay.CodeUsage, flag+"=0 is no limit", "%q is not a number from 0", v)
	}
	return n
}

func (p *parse) duration(flag, v string, least time.Duration) belay.Duration {
	if v == "0" && least == 0 {
		return 0
	}
	d, err := time.ParseDuration(v)
	if err != nil || d < least || d > 10*365*24*time.Hour {
		hint := flag + "=30m"
		if least == 0 {
			hint += "; 0 is no limit"
		}
		p.bad(flag, belay.CodeUsage, hint, "%q is not a length of time such as 90s, 30m or 2h", v)
	}
	return belay.Duration(d)
}

// tools is a choice of tools; each term must name something.
func (p *parse) tools(specs []belay.ToolSpec, list string) []string {
	terms := strings.Split(list, ",")
	for i := range terms {
		terms[i] = strings.TrimSpace(terms[i])
	}
	if err := tool.CheckTerms(terms, specs); err != nil {
		e, _ := errors.AsType[*belay.Error](err)
		p.bad("--tools", e.Code, e.Hint, "%s", e.Message)
	}
	return terms
}

// allow adds tools to those allowed; each must exist. A group or a pattern
// stands for the tools it names now, not for those to come.
func (p *parse) allow(specs []belay.ToolSpec, have, more []string) []string {
	out := slices.Clone(have)
	specs = slices.DeleteFunc(slices.Clone(specs), func(s belay.ToolSpec) bool { return s.Handled != "" })
	for _, name := range more {
		name = strings.TrimSpace(name)
		found := []string{name}
		if strings.Contains(name, "*") || strings.HasPrefix(name, "group:") {
			found = tool.Expand(name, specs)
		} else if !slices.ContainsFunc(specs, func(s belay.ToolSpec) bool { return s.Name == name }) {
			found = nil
		}
		if len(found) == 0 {
			names := make([]string, len(specs))
			for i, s := range specs {
				names[i] = s.Name
			}
			p.bad("--allow", belay.CodeUsage, "--allow "+names[0], "there is no tool %q; the tools are %s", name, strings.Join(names, ", "))
		}
		for _, n := range found {
			if !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	return out
}

// provider settles who serves the model. A script is named by its absolute
// path, so that a resume from anywhere finds it.
func (p *parse) provider(a *app, r *checked, c Config) {
	if c.Script != "" && c.Provider != "" {
		p.bad("--script", belay.CodeUsage, "leave --provider out", "a script is a provider of its own; --provider %s names another", c.Provider)
		return
	}
	if c.Provider != "" && c.Provider != r.Provider {
		r.Provider, r.BaseURL, r.Model = c.Provider, "", c.Model
	}
	if c.Script != "" {
		r.Provider = scriptedPrefix + a.abs(c.Script)
	}
	if r.Provider == direct.Name {
		return
	}
	if name, ok := strings.CutPrefix(r.Provider, scriptedPrefix); ok && p.err == nil {
		r.Provider, r.BaseURL = scriptedPrefix+a.abs(name), ""
		if _, err := a.provider(r.Settings); err != nil {
			p.err = err
		}
		return
	}
	if r.Provider == "" {
		names, hint := a.candidates()
		p.bad("--provider", belay.CodeNoProvider, hint, "no provider is named%s", names)
		return
	}
	p.server(a, r, c)
}

// candidates are the providers that could be meant when none is named. None is
// taken unasked: it costs money.
func (a *app) candidates() (names, hint string) {
	hint = "belay run --script FILE TEXT, or belay demo"
	all := a.found(nil)
	if len(all) == 0 {
		return "", hint
	}
	var said []string
	for _, f := range all {
		said = append(said, f.What)
	}
	return " (" + strings.Join(said, "; ") + ")", all[0].Try
}

// server settles where a provider is reached and which model it serves. A model
// and an address that were given for another provider don't count.
func (p *parse) server(a *app, r *checked, c Config) {
	if p.err != nil {
		return
	}
	s, err := a.service(r.Provider)
	if err != nil {
		p.fail("--provider", err)
		return
	}
	if v, from := s.address(a.Env); v != "" {
		a.says(s.name, v)
		if c.BaseURL == "" && r.BaseURL == "" {
			r.BaseURL, r.baseFrom = v, from
		}
	}
	if c.BaseURL != "" {
		a.says(s.name, c.BaseURL)
		r.BaseURL = c.BaseURL
	}
	if _, err := wire.ParseBase(cmp.Or(r.BaseURL, s.base)); err != nil {
		switch {
		case r.baseFrom != "":
			p.fail(r.baseFrom, err)
		case r.BaseURL == "":
			p.fail(s.where, err)
		default:
			p.bad("--base-url", belay.CodeUsage, "--base-url http://127.0.0.1:8080/v1", "%s", reason(err))
		}
		return
	}
	if r.Model = cmp.Or(r.Model, s.model); r.Model == "" {
		p.bad("--model", belay.CodeUsage, "--model NAME", "%s needs the name of a model", r.Provider)
		return
	}
	if _, err := a.provider(r.Settings); err != nil {
		p.fail("--provider", err)
	}
}

// fail takes an error as it is, with a place if it has none.
func (p *parse) fail(where string, err error) {
	e, ok := errors.AsType[*belay.Error](err)
	if !ok || p.err != nil {
		p.err = cmp.Or(p.err, err)
		return
	}
	at := *e
	if at.Where == "" {
		if at.Where = where; p.origin[where] != "" {
			at.Where = p.origin[where]
		}
	}
	p.err = &at
}

// maxSchema bounds a schema: it is part of the rules that every turn names.
const maxSchema = 256 << 10

func (p *parse) schema(a *app, file string) []byte {
	b, err := readUpTo(a.abs(file), maxSchema)
	if err == nil {
		err = engine.CheckSchema(b)
	}
	if err != nil {
		p.bad("--output-schema", belay.CodeUsage, "name a JSON file with a JSON Schema", "%s: %s", file, reason(err))
	}
	return b
}

// reason is an error without the operation and the path, which are said already.
func reason(err error) string {
	if pe, ok := errors.AsType[*os.PathError](err); ok {
		return pe.Err.Error()
	}
	return err.Error()
}

func readUpTo(file string, limit int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = belay.Errorf(belay.CodeTooLarge, "it is larger than %d KiB", limit>>10)
	}
	return b, err
}

// abs is a path as the person meant it: from the working directory.
func (a *app) abs(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(a.Dir, path)
}
