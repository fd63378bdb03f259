package tool

import (
	"context"
	_ "embed"
	"strings"

	"github.com/belay-run/belay"
)

// Names of the tools that the turn's decider answers, and what Spec.Handled says of
// them. They do nothing themselves: their arguments are held against the schemas
// made here, as every tool's are.
const (
	CompleteName    = "complete_task"
	ExecName        = "exec"
	AskName         = "ask_user"
	HandledComplete = "complete"
	HandledAsk      = "ask"
)

var (
	//go:embed complete_task.md
	completeDoc string
	//go:embed ask_user.md
	askDoc string
)

type completeArgs struct {
	Summary   string   `json:"summary" jsonschema:"what was done, and what was not"`
	Artifacts []string `json:"artifacts,omitempty" jsonschema:"what was made"`
	NextSteps string   `json:"nextSteps,omitempty" jsonschema:"what is left"`
	Output    any      `json:"output,omitempty" jsonschema:"data, if it was asked for"`
}

type askArgs struct {
	Question string   `json:"question" jsonschema:"the question"`
	Options  []string `json:"options,omitempty" jsonschema:"to choose from"`
}

// TurnTools lists the tools by which an agent steers its own turn: ending it, asking
// a person, keeping a plan, which is a fact and so outlives a crash, reading what it
// was shown in part, and finding tools that it knows by their names.
func TurnTools() []Tool {
	return []Tool{completeTool(), askTool(), TodoTool(), readTool(), searchTool(), callTool()}
}

// completeTool ends a turn well.
func completeTool() Tool {
	return New(handled(CompleteName, completeDoc, HandledComplete), notRun[completeArgs])
}

// askTool puts a question to a person.
func askTool() Tool {
	return New(handled(AskName, askDoc, HandledAsk), notRun[askArgs])
}

func handled(name, doc, by string) Spec {
	return Spec{Name: name, Doc: strings.TrimSpace(doc), Effect: belay.Pure, ReadOnly: true, Access: belay.Read, Handled: by}
}

// notRun is what happens when a tool that the turn answers is run after all.
func notRun[In any](context.Context, Call, In) (Result, error) {
	return Result{}, Failf(Internal, "NOT_RUNNABLE", "this call is answered by the turn, not by a tool")
}
