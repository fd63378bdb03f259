// Package eval runs scenarios: a workspace, a script in place of the model, and
// the expected results. Each runs in a fresh workspace and a store beside it,
// through the program itself: a command line, the store, the gate and the tools
// of every other run. It promises that a scenario passes only if everything it
// expects was seen, that one which expects nothing is refused, and that nothing
// of it stays behind unless it is asked to.
//
// read.go has the format, play.go how a scenario is played, meanwhile.go what
// happens while it runs, expect.go and its neighbours what can be expected.
package eval

import (
	"context"
	"io"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/strictyaml"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/tool"
)

// Scenario is one case, checked and ready to be played.
type Scenario struct {
	File     string // where it was read, and the line on which it begins
	Line     int
	ID       string
	Title    string
	Category string
	Tags     []string

	Prompt   string
	Files    map[string]string // of the workspace: path → content
	Home     map[string]string // of the home of who runs it
	Commands [][]string        // run in the workspace before everything else
	Script   []byte            // the model's side, in the format of package scripted
	Schema   []byte            // of the completion's output; nil asks for none
	Settings Settings
	Tools    []tool.Tool // besides the built-in ones

	Meanwhile []Meanwhile
	Then      []Then
	Expect    []Expectation
	Limit     time.Duration // for all of it; 0 is DefaultLimit
}

// defaultLimit is how long a scenario may take.
const defaultLimit = time.Minute

// Settings are flags of a run. What is empty is the default of an evaluation:
// edits are accepted, exec is allowed, questions are denied.
type Settings struct {
	Mode         string         `yaml:"mode"`
	Allow        []string       `yaml:"allow"` // nil is exec
	Approvals    string         `yaml:"approvals"`
	Completion   string         `yaml:"completion"`
	MaxSteps     *int           `yaml:"steps"`
	MaxCalls     *int           `yaml:"calls"`
	MaxTime      string         `yaml:"time"`
	AskTimeout   string         `yaml:"askTimeout"`
	Flags        []string       `yaml:"flags"`        // further ones, as they are written on a command line
	OutputSchema map[string]any `yaml:"outputSchema"` // of the first run: any JSON Schema
}

// Then is a command that follows the first run.
type Then struct {
	Prompt   string   `yaml:"prompt"`   // gives the session more to do
	Resume   bool     `yaml:"resume"`   // continues with it
	Belay    []string `yaml:"belay"`    // or any command line; ${session} and ${action} are the last ones, ${dir} the place
	By       string   `yaml:"by"`       // who gives it; eval if empty
	Settings Settings `yaml:"settings"` // of Prompt and Resume; what is empty stays as it was
}

// Where is a place of an evaluation: everything of one scenario is below Dir.
type Where struct {
	Dir       string
	Workspace string
	Store     string
}

// Program runs one command line of belay in this process and returns its exit code.
type Program func(ctx context.Context, c Command) int

// Command is a command line with what surrounds it.
type Command struct {
	Args           []string
	Dir            string
	Env            []string
	Stdout, Stderr io.Writer
	Tools          []tool.Tool                   // besides the built-in ones
	Store          func(store.Store) store.Store // stands between the program and its store; nil is nothing
}

// reference is where the format is described.
const reference = "docs/eval.md describes the format"

// textOf is how errors in a file of scenarios are reported.
func textOf(name string) strictyaml.Text {
	return strictyaml.Text{Name: name, Noun: "scenario", Code: belay.CodeBadScenario, Hint: reference}
}
