// Package plan holds the tools by which an agent steers its own turn: ending it,
// asking a person and keeping a plan. Ending and asking do nothing themselves:
// their arguments are held against the schemas made here, as every tool's are,
// and the turn's decider answers them. The plan is a fact, so it outlives a
// crash.
package plan

import (
	"context"
	_ "embed"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/tool"
)

// Names of the tools, and what Spec.Handled says of them.
const (
	CompleteName    = "complete_task"
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

// Tools lists the tools of this package.
func Tools() []tool.Tool { return []tool.Tool{completeTool(), askTool(), TodoTool()} }

// completeTool ends a turn well.
func completeTool() tool.Tool {
	return tool.New(handled(CompleteName, completeDoc, HandledComplete), notRun[completeArgs])
}

// askTool puts a question to a person.
func askTool() tool.Tool {
	return tool.New(handled(AskName, askDoc, HandledAsk), notRun[askArgs])
}

func handled(name, doc, by string) tool.Spec {
	return tool.Spec{Name: name, Doc: strings.TrimSpace(doc), Effect: belay.Pure, ReadOnly: true, Access: belay.Read, Handled: by}
}

// notRun is what happens when a tool of this package is run after all.
func notRun[In any](context.Context, tool.Call, In) (tool.Result, error) {
	return tool.Result{}, tool.Failf(tool.Internal, "NOT_RUNNABLE", "this call is answered by the turn, not by a tool")
}
