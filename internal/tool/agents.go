package tool

import (
	_ "embed"
	"strings"

	"github.com/belay-run/belay"
)

// SpawnName is the tool that starts a sub-agent.
const SpawnName = "spawn_agent"

//go:embed agents.md
var agentsDoc string

// SpawnArgs is what spawn_agent takes.
type SpawnArgs struct {
	Task       string      `json:"task" jsonschema:"the whole task: the agent knows nothing of this conversation"`
	Agent      string      `json:"agent,omitempty" jsonschema:"general (default), explore or plan (both read only), or one that is kept as a file"`
	Name       string      `json:"name,omitempty" jsonschema:"to call it by"`
	Tools      []string    `json:"tools,omitempty" jsonschema:"only these of your tools"`
	Background bool        `json:"background,omitempty" jsonschema:"return at once"`
	Budget     *SpawnLimit `json:"budget,omitempty" jsonschema:"the most it may use"`
}

// SpawnLimit is the most that a sub-agent may use.
type SpawnLimit struct {
	Tokens int64   `json:"tokens,omitempty"`
	USD    float64 `json:"usd,omitempty"`
	Steps  int     `json:"steps,omitempty"`
}

// Within are the limits of a sub-agent: the least of what is left and what is asked for.
func (a SpawnArgs) Within(left belay.Limits) belay.Limits {
	if a.Budget == nil {
		return left
	}
	return left.Within(belay.Limits{Tokens: a.Budget.Tokens, MicroUSD: int64(a.Budget.USD * 1e6), Steps: a.Budget.Steps})
}

type waitArgs struct {
	Agents  []string `json:"agents,omitempty" jsonschema:"names or ids; none: those in the background"`
	All     bool     `json:"all,omitempty" jsonschema:"until all have ended, not one"`
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
