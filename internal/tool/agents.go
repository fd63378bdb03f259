package tool

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// SpawnName is the tool that starts a sub-agent.
const SpawnName = "spawn_agent"

//go:embed agents.md
var agentsDoc string

// SpawnArgs is what spawn_agent takes.
type SpawnArgs struct {
	Task       string          `json:"task" jsonschema:"the whole task"`
	Agent      string          `json:"agent,omitempty" jsonschema:"general (default), explore or plan (read only), or a file's name"`
	Input      json.RawMessage `json:"input,omitempty" jsonschema:"by its schema"`
	Name       string          `json:"name,omitempty" jsonschema:"to call it by"`
	Context    string          `json:"context,omitempty" jsonschema:"fork: it begins with this conversation"`
	Tools      []string        `json:"tools,omitempty" jsonschema:"only these of your tools"`
	Isolation  string          `json:"isolation,omitempty" jsonschema:"worktree: on a git branch of its own"`
	Background bool            `json:"background,omitempty" jsonschema:"return at once"`
	Budget     *SpawnLimit     `json:"budget,omitempty" jsonschema:"its limits"`
}

// IsolationWorktree is an agent's work in a worktree of its own.
const IsolationWorktree = "worktree"

// SpawnLimit is the most that a sub-agent may use.
type SpawnLimit struct {
	Tokens int64   `json:"tokens,omitempty"`
	USD    float64 `json:"usd,omitempty"`
	Steps  int     `json:"steps,omitempty"`
	Calls  int     `json:"calls,omitempty"`

	Seconds int `json:"seconds,omitempty"` // that it works
}

// limits are the limits that a call asks for.
func (b *SpawnLimit) limits() belay.Limits {
	return belay.Limits{Tokens: b.Tokens, MicroUSD: int64(b.USD * 1e6), Steps: b.Steps, Calls: b.Calls, Time: belay.Duration(b.Seconds) * belay.Duration(time.Second)}
}

// SpawnLimitOf names limits as a call does: time in whole seconds.
func SpawnLimitOf(l belay.Limits) *SpawnLimit {
	return &SpawnLimit{Tokens: l.Tokens, USD: float64(l.MicroUSD) / 1e6, Steps: l.Steps, Calls: l.Calls, Seconds: int(math.Ceil(time.Duration(l.Time).Seconds()))}
}

// Within are the limits of a sub-agent: the least of what is left and what is asked for.
func (a SpawnArgs) Within(left belay.Limits) belay.Limits {
	if a.Budget == nil {
		return left
	}
	return left.Within(a.Budget.limits())
}

// Objective is the text that the agent gets: the task, and its input.
func (a SpawnArgs) Objective() string {
	if len(a.Input) == 0 {
		return a.Task
	}
	return strings.TrimRight(a.Task, "\n") + "\n\nInput:\n" + string(a.Input)
}

// maxAgentName bounds what an agent is called by, in bytes.
const maxAgentName = 64

// Check is what is wrong with what a call asks for, whatever the agent; nil: nothing.
// have are the settings of who starts it.
func (a SpawnArgs) Check(have belay.Settings) *event.Problem {
	bad := func(hint, format string, args ...any) *event.Problem {
		return &event.Problem{Class: BadArguments, Code: CodeBadArguments, Message: fmt.Sprintf(format, args...), Hint: hint}
	}
	switch {
	case strings.TrimSpace(a.Task) == "":
		return bad("say what the agent is to do; it knows nothing else", "task is empty")
	case len(a.Name) > maxAgentName || strings.ContainsFunc(a.Name, unicode.IsControl):
		return bad("a word or two", "name has more than %d bytes, or characters that can't be shown", maxAgentName)
	case a.Context != "" && a.Context != "isolated" && a.Context != event.ContextFork:
		return bad("isolated or fork", "context can't be %q", shorten(a.Context))
	case a.Isolation != "" && a.Isolation != IsolationWorktree:
		return bad("worktree, or leave it out", "isolation can't be %q", shorten(a.Isolation))
	case a.Budget == nil:
		return nil
	case a.Budget.Tokens < 0 || a.Budget.USD < 0 || a.Budget.Steps < 0 || a.Budget.Calls < 0 || a.Budget.Seconds < 0 || a.Budget.USD > 1e9 || a.Budget.Seconds > 1e9:
		return bad("a number above 0, or leave it out", "a budget is out of range")
	}
	want, limit := a.Budget.limits(), have.Limits
	above := func(what string, want, has float64) *event.Problem {
		return &event.Problem{Class: Denied, Code: CodeNotCovered, Message: fmt.Sprintf("budget.%s: %v is more than the %v that you have yourself", what, want, has), Hint: "ask for less, or leave it out: the agent then gets what you have left"}
	}
	more := func(want int64, limits ...int64) (int64, bool) {
		for _, l := range limits {
			if l > 0 && want > l {
				return l, true
			}
		}
		return 0, false
	}
	if has, is := more(want.Tokens, limit.Tokens, have.Budget.Tokens); is {
		return above("tokens", float64(want.Tokens), float64(has))
	}
	if has, is := more(want.MicroUSD, limit.MicroUSD, have.Budget.MicroUSD); is {
		return above("usd", a.Budget.USD, float64(has)/1e6)
	}
	if has, is := more(int64(want.Steps), int64(limit.Steps)); is {
		return above("steps", float64(want.Steps), float64(has))
	}
	if has, is := more(int64(want.Calls), int64(limit.Calls), have.Budget.Calls); is {
		return above("calls", float64(want.Calls), float64(has))
	}
	if has, is := more(int64(want.Time), int64(limit.Time), int64(have.Budget.Time)); is {
		return above("seconds", float64(a.Budget.Seconds), time.Duration(has).Seconds())
	}
	return nil
}

// CodeNotCovered refuses an agent something that who starts it hasn't got.
const CodeNotCovered = "NOT_COVERED"

type waitArgs struct {
	Agents  []string `json:"agents,omitempty" jsonschema:"names or ids; none: those in the background"`
	All     bool     `json:"all,omitempty" jsonschema:"until all have ended"`
	Timeout int      `json:"timeout,omitempty" jsonschema:"seconds"`
}

type inputArgs struct {
	Agent     string `json:"agent" jsonschema:"name or id"`
	Text      string `json:"text"`
	Interrupt bool   `json:"interrupt,omitempty" jsonschema:"it ends what it does now"`
}

type closeArgs struct {
	Agent string `json:"agent" jsonschema:"name or id"`
}

// AboutAgents reports whether a tool is one of those.
func AboutAgents(s Spec) bool {
	return s.Handled != "" && s.Handled != HandledComplete && s.Handled != HandledAsk
}

// AgentTools lists the tools by which an agent hands work to others.
func AgentTools() []Tool {
	docs := strings.Split(strings.TrimSpace(agentsDoc), "\n---\n")
	return []Tool{
		New(handled(SpawnName, docs[0], "spawn"), notRun[SpawnArgs]),
		New(handled("wait_agent", docs[1], "wait"), notRun[waitArgs]),
		New(handled("send_input", docs[2], "input"), notRun[inputArgs]),
		New(handled("close_agent", docs[3], "close"), notRun[closeArgs]),
		New(handled("list_agents", docs[4], "list"), notRun[struct{}]),
	}
}
