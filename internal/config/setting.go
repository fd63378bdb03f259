package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/tool"
)

// Setting is a row of the table of settings: everything that is known of one.
type Setting struct {
	Name    string // in files, and as a flag behind two hyphens
	JSON    string // in requests over HTTP; empty: it isn't set there
	Value   string // a placeholder for what it takes; empty: it is on or off, and only flags and requests set it
	Help    string
	Default string // where it is a figure; the others say it in their help
	List    bool   // it may be given several times
	Once    bool   // it belongs to one call: no file sets it
	Own     bool   // only the files of the person and the machine set it: no flag, no variable, no workspace

	take    func(p *parser, v given)             // checks a value and takes it; nil: the provider's part does
	show    func(s *Settings) string             // what counts; nil: what was given
	narrows func(l *Layers, v, have string) bool // whether a file that isn't trusted may say v over what there is; nil: it may not
	least   func(v, have string) string          // in place of narrows: what counts of such a file's v; empty: nothing
}

// Env is the variable of the environment that sets it.
func (s *Setting) Env() string {
	return "BELAY_" + strings.ToUpper(strings.ReplaceAll(s.Name, "-", "_"))
}

// Usage is its help with its default and its variable.
func (s *Setting) Usage() string {
	text := s.Help
	if s.Default != "" {
		text = strings.TrimSuffix(text, ".") + " (default " + s.Default + ")."
	}
	switch {
	case s.Switch(), s.Own:
		return text
	case s.List:
		return text + " [$" + s.Env() + ", separated by commas]"
	}
	return text + " [$" + s.Env() + "]"
}

// field is its name in an error about a request.
func (s *Setting) field() string { return cmp.Or(s.JSON, s.Name) }

// Switch reports whether it is on or off.
func (s *Setting) Switch() bool { return s.Value == "" }

// settings is the table. A new setting is a row here.
var settings = []Setting{
	{Name: "mode", JSON: "mode", Value: "MODE",
		Help:    "How far it may go without asking: default, plan, accept_edits, auto, on_request, on_failure, untrusted, never, bypass.",
		take:    func(p *parser, v given) { p.out.Mode = belay.Mode(p.oneOf(v, asText(belay.Modes)...)) },
		show:    func(s *Settings) string { return string(s.Mode) },
		narrows: func(_ *Layers, v, have string) bool { return policy.Narrows(belay.Mode(v), belay.Mode(have)) }},
	{Name: "boundary", Value: "NAME",
		Help:    "What programs run in: read-only, workspace-write, full (nothing confines them), or one of policy.yaml (default the mode's).",
		take:    func(p *parser, v given) { p.out.Boundary = v.text },
		show:    func(s *Settings) string { return cmp.Or(s.Boundary, policy.ModeBoundary(s.Mode)) },
		narrows: narrowsBoundary},
	{Name: "tools", JSON: "tools", Value: "LIST",
		Help: "Which tools there are: a set (minimal, coding, messaging, full), group:NAME, names with *; - before one takes it away. Separated by commas.",
		take: func(p *parser, v given) { p.out.Tools = p.tools(v.text) },
		show: func(s *Settings) string { return cmp.Or(strings.Join(s.Tools, ","), tool.DefaultSet) },
		narrows: func(_ *Layers, v, have string) bool {
			return tool.Narrows(strings.Split(v, ","), strings.Split(have, ","))
		}},
	{Name: "approvals", JSON: "approvals", Value: "HOW",
		Help:    "What to do when a permission is needed: ask (on this terminal), wait (for an answer), deny.",
		take:    func(p *parser, v given) { p.out.Approvals = belay.Approvals(p.oneOf(v, "ask", "wait", "deny")) },
		show:    func(s *Settings) string { return string(s.Approvals) },
		narrows: func(_ *Layers, v, _ string) bool { return v == string(belay.ApprovalsDeny) }},
	{Name: "provider", JSON: "provider", Value: "NAME", Help: "Who serves the model.",
		show: func(s *Settings) string { return s.Provider }},
	{Name: "model", JSON: "model", Value: "NAME", Help: "The model.",
		take: func(p *parser, v given) { p.out.Model = v.text },
		show: func(s *Settings) string { return s.Model }},
	{Name: "base-url", Value: "URL", Help: "Where the provider is reached, such as http://127.0.0.1:8080/v1.",
		show: func(s *Settings) string { return s.BaseURL }},
	{Name: "fallback", JSON: "fallback", Value: "LIST", Help: "Who is asked when the model gives no answer: PROVIDER/MODEL, separated by commas, in order.",
		show: func(s *Settings) string { return strings.Join(s.Fallback, ",") }},
	{Name: "script", Value: "FILE", Help: "Play a scripted model from a file instead.", Once: true},
	{Name: "max-steps", JSON: "maxSteps", Value: "N", Help: "Steps of a turn; 0 is no limit.", Default: "200",
		take:    func(p *parser, v given) { p.out.Limits.Steps = p.number(v, 0, maxLimit, "100; 0 is no limit") },
		show:    func(s *Settings) string { return fmt.Sprint(s.Limits.Steps) },
		narrows: fewer},
	{Name: "max-time", JSON: "maxTime", Value: "TIME", Help: "Active time of a turn, such as 30m; 0 is no limit.", Default: "1h",
		take:    func(p *parser, v given) { p.out.Limits.Time = p.duration(v, 0) },
		show:    func(s *Settings) string { return s.Limits.Time.String() },
		narrows: shorter},
	{Name: "max-calls", JSON: "maxCalls", Value: "N", Help: "Tool calls of a turn; 0 is no limit.", Default: "1000",
		take:    func(p *parser, v given) { p.out.Limits.Calls = p.number(v, 0, maxLimit, "100; 0 is no limit") },
		show:    func(s *Settings) string { return fmt.Sprint(s.Limits.Calls) },
		narrows: fewer},
	{Name: "max-cost", JSON: "maxCost", Value: "COST", Help: "What a turn's requests may cost, such as 2usd; 0 is no limit (default none).",
		take:  func(p *parser, v given) { p.out.Limits.MicroUSD = p.amount(v, belay.BudgetCost, "2usd") },
		show:  func(s *Settings) string { return cmp.Or(belay.Amounts{MicroUSD: s.Limits.MicroUSD}.String(), "0") },
		least: least},
	{Name: "max-tokens", JSON: "maxTokens", Value: "TOKENS", Help: "Tokens that a turn may read and write, such as 500ktok; 0 is no limit (default none).",
		take:  func(p *parser, v given) { p.out.Limits.Tokens = p.amount(v, belay.BudgetTokens, "500ktok") },
		show:  func(s *Settings) string { return cmp.Or(belay.Amounts{Tokens: s.Limits.Tokens}.String(), "0") },
		least: least},
	{Name: "budget", JSON: "budget", Value: "BUDGET", Help: "What the session may spend, of each kind that is named, such as 2usd,500ktok,300calls,4h (default no limit).",
		take:  func(p *parser, v given) { p.out.Budget = p.budget(v).Over(p.out.Budget) },
		show:  func(s *Settings) string { return s.Budget.String() },
		least: least},
	{Name: "compact", JSON: "compact", Value: "HOW",
		Help: "How a conversation is shortened that fills the model's context: hybrid (leave out old results, summarise, at worst truncate), prune, summarise, truncate, off.",
		take: func(p *parser, v given) {
			p.out.Compact.Strategy = belay.CompactStrategy(p.oneOf(v, asText(belay.CompactStrategies)...))
		},
		show: func(s *Settings) string { return cmp.Or(string(s.Compact.Strategy), string(belay.CompactHybrid)) }},
	{Name: "compact-at", JSON: "compactAt", Value: "PERCENT", Help: "How full the context is when its conversation is shortened, 10 to 95.", Default: fmt.Sprint(belay.DefaultCompactAt),
		take: func(p *parser, v given) { p.out.Compact.At = p.number(v, 10, 95, "80") },
		show: func(s *Settings) string { return fmt.Sprint(cmp.Or(s.Compact.At, belay.DefaultCompactAt)) }},
	{Name: "compact-model", JSON: "compactModel", Value: "PROVIDER/MODEL", Help: "The model that summarises (default the one that works).",
		take: func(p *parser, v given) { p.out.Compact.Model = p.summariser(v) },
		show: func(s *Settings) string { return s.Compact.Model }},
	{Name: "agent", JSON: "agent", Value: "NAME", Help: "The agent that works, which is kept as a file: NAME, NAME@RANGE or ORIGIN:NAME; belay agents list shows them; none: no such agent.",
		take: func(p *parser, v given) {
			if p.out.Agent = v.text; v.text == "none" {
				p.out.Agent = ""
			}
		},
		show: func(s *Settings) string { return s.Agent }},
	agents("agents-depth", "agentsDepth", "How deep agents may start agents: 1 lets only the main agent; 0 lets none.", 0, func(l *belay.AgentLimits) *int { return &l.Depth }),
	agents("agents-children", "agentsChildren", "Agents that one agent may have open.", 1, func(l *belay.AgentLimits) *int { return &l.Children }),
	agents("agents-running", "agentsRunning", "Agents of a session that work at the same time; others wait.", 1, func(l *belay.AgentLimits) *int { return &l.Running }),
	agents("agents-total", "agentsTotal", "Agents that a turn of a person may have in all.", 1, func(l *belay.AgentLimits) *int { return &l.Total }),
	{Name: "agents-memory", JSON: "agentsMemory", Value: "SIZE", Help: "Memory that agents which work may declare together: a size such as 8GB, a percentage of the machine's, or both with a comma; others wait.", Default: fmt.Sprint(belay.DefaultMemoryShare, "%"),
		take:  func(p *parser, v given) { p.out.Agents.Memory, p.out.Agents.MemoryShare = p.memory(v) },
		show:  func(s *Settings) string { return memoryText(s.Agents.OrDefaults()) },
		least: leastMemory},
	{Name: "agents-talk", JSON: "agentsTalk", Value: "WITH", Help: "With whom agents talk besides those that they started: none, tree (all agents of the session, by name).",
		take: func(p *parser, v given) {
			if p.out.Agents.Talk = p.oneOf(v, "none", belay.TalkTree); p.out.Agents.Talk == "none" {
				p.out.Agents.Talk = ""
			}
		},
		show:    func(s *Settings) string { return cmp.Or(s.Agents.Talk, "none") },
		narrows: func(_ *Layers, v, _ string) bool { return v == "none" }},
	{Name: "completion", JSON: "completion", Value: "HOW", Help: "What ends a turn well: required (complete_task) or conversational (any answer).",
		take: func(p *parser, v given) {
			p.out.Completion = belay.Completion(p.oneOf(v, "required", "conversational"))
		},
		show:    func(s *Settings) string { return string(s.Completion) },
		narrows: func(_ *Layers, v, _ string) bool { return v == string(belay.CompletionRequired) }},
	{Name: "output-schema", Value: "FILE", Help: "JSON Schema that the result must fit.", Once: true},
	{Name: "snapshot", Value: "HOW",
		Help: "Keep the whole workspace before and after each turn, so that undo covers what commands change: git (hidden commits), none.",
		take: func(p *parser, v given) { p.out.Snapshot = strings.TrimPrefix(p.oneOf(v, "git", "none"), "none") }},
	{Name: "instructions", Value: "HOW", Help: "Whether AGENTS.md and CLAUDE.md are read: auto, none.",
		take:    func(p *parser, v given) { p.out.Instructions = strings.TrimPrefix(p.oneOf(v, "auto", "none"), "auto") },
		show:    func(s *Settings) string { return cmp.Or(s.Instructions, "auto") },
		narrows: func(_ *Layers, v, _ string) bool { return v == "none" }},
	{Name: "relevance", Value: "SHARE", Help: "How well a chunk of a long text must fit the task to be shown with it, up to 1.", Default: "0.3",
		take: func(p *parser, v given) { p.out.Relevance = p.share(v) },
		show: func(s *Settings) string { return fmt.Sprint(cmp.Or(s.Relevance, belay.DefaultRelevance)) }},
	{Name: "tool-budget", Value: "KIB", Help: "How long the definitions of tools from outside may be together; longer ones are offered by their names, and found by tool_search.", Default: fmt.Sprint(belay.DefaultToolBudget),
		take: func(p *parser, v given) { p.out.ToolBudget = p.number(v, 1, 1<<10, "8") },
		show: func(s *Settings) string { return fmt.Sprint(cmp.Or(s.ToolBudget, belay.DefaultToolBudget)) }},
	{Name: "share", JSON: "share", Once: true, Help: "Write also where another session does: what each has read keeps them from overwriting each other.",
		take: func(p *parser, _ given) { p.out.Share = true }},
	{Name: "effort", JSON: "effort", Value: "HOW", Help: "How much the model reasons: low, medium, high (default the provider's).",
		take:    func(p *parser, v given) { p.out.Effort = p.oneOf(v, "low", "medium", "high") },
		show:    func(s *Settings) string { return s.Effort },
		narrows: func(_ *Layers, v, _ string) bool { return v == "low" }},
	{Name: "ask-timeout", JSON: "askTimeout", Value: "TIME", Help: "How long a question waits before it is denied.", Default: "24h",
		take:    func(p *parser, v given) { p.out.AskTimeout = p.duration(v, time.Second) },
		show:    func(s *Settings) string { return cmp.Or(s.AskTimeout, belay.DefaultAskTimeout).String() },
		narrows: shorter},
	{Name: "queue", Value: "MODE",
		Help:    "What becomes of a task that comes while another one runs: enqueue, steer, collect, interrupt, rollback, reject. Given more to do (run --session), of this one task.",
		take:    func(p *parser, v given) { p.out.Queue.Mode = belay.QueueMode(p.oneOf(v, asText(belay.QueueModes)...)) },
		show:    func(s *Settings) string { return string(WholeQueueing(s.Queue).Mode) },
		narrows: func(_ *Layers, v, _ string) bool { return v == string(belay.QueueReject) }},
	{Name: "queue-cap", Value: "N", Help: "How many tasks may wait, 1 to 100.", Default: "100",
		take:    func(p *parser, v given) { p.out.Queue.Cap = p.number(v, 1, belay.MaxQueued, "10") },
		show:    func(s *Settings) string { return fmt.Sprint(WholeQueueing(s.Queue).Cap) },
		narrows: narrowsQueueCap},
	{Name: "queue-drop", Value: "WHICH",
		Help:    "Which turn to drop when the queue is full: new, old, summarise (old, with its first line kept for the model).",
		take:    func(p *parser, v given) { p.out.Queue.Drop = belay.QueueDrop(p.oneOf(v, asText(belay.QueueDrops)...)) },
		show:    func(s *Settings) string { return string(WholeQueueing(s.Queue).Drop) },
		narrows: func(_ *Layers, v, _ string) bool { return v == string(belay.DropNew) }},
	{Name: "queue-quiet", Value: "TIME", Help: "With collect: how long nothing must come before what came is one task.", Default: "500ms",
		take: func(p *parser, v given) { p.out.Queue.Quiet = p.quiet(v) },
		show: func(s *Settings) string { return WholeQueueing(s.Queue).Quiet.String() }},
	{Name: "allow", JSON: "allow", Value: "TOOL", List: true, Help: "Allow a tool, or group:NAME, for the whole session; may be repeated.",
		take: func(p *parser, v given) { p.out.Allow = p.allow(p.out.Allow, v.list) },
		show: func(s *Settings) string { return strings.Join(s.Allow, ",") }},
	{Name: "cache-mb", Value: "MB", Own: true, Help: "Memory for what can be made again: conversations, encoded requests, chunks of long texts.", Default: fmt.Sprint(belay.DefaultCacheMB),
		take: func(p *parser, v given) { p.out.CacheMB = p.number(v, 1, 1<<20, "100") },
		show: func(s *Settings) string { return fmt.Sprint(cmp.Or(s.CacheMB, belay.DefaultCacheMB)) }},
	{Name: "notify", Value: "HOW", Own: true, Help: "How a conversation whose window has no focus tells that it waits or has ended: auto (a bell and a notification), bell, off.", Default: NotifyAuto,
		take: func(p *parser, v given) { p.out.Notify = p.oneOf(v, NotifyAuto, NotifyBell, NotifyOff) },
		show: func(s *Settings) string { return cmp.Or(s.Notify, NotifyAuto) }},
	{Name: "web-reach", Value: "HOW", Own: true, Help: "What web_fetch reaches: public, loopback (and this machine), private (and the private networks it is in).", Default: "public",
		take: func(p *parser, v given) { p.out.Web.Reach = p.oneOf(v, "public", "loopback", "private") },
		show: func(s *Settings) string { return cmp.Or(s.Web.Reach, "public") }},
	{Name: "web-robots", Value: "HOW", Own: true, Help: "Whether web_fetch keeps to what a site's robots.txt says: obey, ignore.", Default: "ignore",
		take: func(p *parser, v given) { p.out.Web.Robots = p.oneOf(v, "obey", "ignore") == "obey" },
		show: func(s *Settings) string { return word(s.Web.Robots, "obey", "ignore") }},
	{Name: "web-search", Value: "ENGINE", Own: true, Help: "What web_search asks: brave, serper, tavily, searxng, native (the model's vendor searches), off.", Default: "off",
		take: func(p *parser, v given) { p.out.Web.engine(p.oneOf(v, searchEngines...)) },
		show: func(s *Settings) string { return cmp.Or(s.Web.Engine, "off") }},
	{Name: "web-search-key", Value: "PLACE", Own: true, Help: "Where the engine's key is: env:NAME, file:PATH, secret:NAME (default env or secret BRAVE_API_KEY, SERPER_API_KEY, TAVILY_API_KEY).",
		take: func(p *parser, v given) { p.out.Web.key = p.reference(v) },
		show: func(s *Settings) string { return s.Web.keyPlace() }},
	{Name: "web-search-url", Value: "URL", Own: true, Help: "Where the engine is reached; searxng needs it.",
		take: func(p *parser, v given) { p.out.Web.base = p.base(v) },
		show: func(s *Settings) string { return s.Web.baseText() }},
}

// agents is the row of a limit of sub-agents.
func agents(name, json, help string, least int, of func(*belay.AgentLimits) *int) Setting {
	whole := belay.AgentLimits{}.OrDefaults()
	return Setting{Name: name, JSON: json, Value: "N", Help: help, Default: fmt.Sprint(*of(&whole)),
		take: func(p *parser, v given) {
			if *of(&p.out.Agents) = p.number(v, least, belay.MaxOpenAgents, "4"); *of(&p.out.Agents) == 0 {
				*of(&p.out.Agents) = -1 // 0 is the default
			}
		},
		show: func(s *Settings) string {
			whole := s.Agents.OrDefaults()
			return fmt.Sprint(*of(&whole))
		},
		narrows: func(_ *Layers, v, have string) bool {
			n, err := strconv.Atoi(v)
			m, _ := strconv.Atoi(have)
			return err == nil && n <= m
		}}
}

// All is the table of settings. It is only read.
func All() []Setting { return settings }

// setting is the row of a name.
func setting(name string) *Setting {
	return &settings[slices.IndexFunc(settings, func(s Setting) bool { return s.Name == name })]
}
