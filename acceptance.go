package belay

import (
	"encoding/json"
	"path"
	"slices"
	"strconv"
	"strings"
)

// CheckKind is how a check finds out whether something holds.
type CheckKind string

// The kinds of checks.
const (
	CheckCommand CheckKind = "command" // a program exits with 0
	CheckSchema  CheckKind = "schema"  // the output of the attempt, or a file, fits a JSON Schema
	CheckFiles   CheckKind = "files"   // files exist, or are as they were when the first attempt began
	CheckPerson  CheckKind = "person"  // a person says so

	CheckAgent      CheckKind = "agent"      // another agent, which sees the objective, the result and the changes, says so
	CheckConfidence CheckKind = "confidence" // the worker itself is as sure as is asked for, by a number of its output
)

// Check is something that must hold before a task counts as done.
type Check struct {
	ID   string    `json:"id"` // KIND-NUMBER when the caller names none
	Kind CheckKind `json:"kind"`

	Argv    []string `json:"argv,omitempty"`    // command: the program and its arguments, without a shell
	Dir     string   `json:"dir,omitempty"`     // command: where it runs, relative to the workspace
	Timeout int      `json:"timeout,omitempty"` // command: seconds; 0: as long as programs may take

	Schema json.RawMessage `json:"schema,omitempty"` // schema: the JSON Schema
	Path   string          `json:"path,omitempty"`   // schema: the JSON file that is held against it; empty: the output

	Paths     []string `json:"paths,omitempty"`     // files: files and folders, relative to the workspace
	Unchanged bool     `json:"unchanged,omitempty"` // files: they must be as they were; otherwise they must exist

	Prompt string `json:"prompt,omitempty"` // person: the question; agent: what to look for

	Agent string  `json:"agent,omitempty"` // agent: its name; empty: the built-in one
	Min   float64 `json:"min,omitempty"`   // agent: the score that is needed, confidence: the number, above 0 and at most 1
	Field string  `json:"field,omitempty"` // confidence: of the output; empty: confidence
}

// Bounds of the acceptance of a task.
const (
	MaxChecks     = 16
	MaxCheckBytes = 6 << 10 // of all checks together, as JSON
	MaxCheckPaths = 32      // of one check
)

// DefaultRounds is how often the checks of a turn may fail before it ends.
const DefaultRounds = 3

// CheckedAcceptance completes the checks of a task with ids, and says what is wrong with
// them.
func CheckedAcceptance(checks []Check) ([]Check, error) {
	out := slices.Clone(checks)
	for i := range out {
		k := &out[i]
		if k.ID == "" {
			k.ID = string(k.Kind) + "-" + strconv.Itoa(i+1)
		}
		if k.Kind == CheckConfidence && k.Field == "" {
			k.Field = "confidence"
		}
		at := "acceptance[" + strconv.Itoa(i) + "]"
		if slices.ContainsFunc(out[:i], func(o Check) bool { return o.ID == k.ID }) {
			return nil, Errorf(CodeBadCommand, "two checks are called %s", k.ID).At(at + ".id").WithHint("give each an id of its own, or none")
		}
		if len(k.ID) > 64 || strings.ContainsFunc(k.ID, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return nil, Errorf(CodeBadCommand, "a check's id is up to 64 printable letters without spaces").At(at + ".id")
		}
		if err := k.check(at); err != nil {
			return nil, err
		}
	}
	raw, err := json.Marshal(out)
	switch {
	case err != nil:
		return nil, Errorf(CodeBadCommand, "a schema isn't JSON").At("acceptance").Wrap(err)
	case len(out) > MaxChecks:
		return nil, Errorf(CodeTooLarge, "%d checks are named; %d are the most", len(out), MaxChecks).At("acceptance").WithHint("let one command run several of them")
	case len(raw) > MaxCheckBytes:
		return nil, Errorf(CodeTooLarge, "the checks have %d bytes; %d are the most", len(raw), MaxCheckBytes).At("acceptance").WithHint("put long commands into a script of the workspace")
	}
	return out, nil
}

// check says what is wrong with one check.
func (k *Check) check(at string) error {
	switch k.Kind {
	case CheckCommand:
		if len(k.Argv) == 0 || strings.TrimSpace(k.Argv[0]) == "" {
			return Errorf(CodeBadCommand, "the check names no program").At(at + ".argv").WithHint(`{"kind": "command", "argv": ["go", "test", "./..."]}`)
		}
		if k.Timeout < 0 || k.Timeout > 600 {
			return Errorf(CodeBadCommand, "a check may take up to 600 seconds").At(at + ".timeout")
		}
	case CheckSchema:
		if len(k.Schema) == 0 {
			return Errorf(CodeBadCommand, "the check has no schema").At(at + ".schema").WithHint(`{"kind": "schema", "schema": {"type": "object"}}`)
		}
		if k.Path != "" {
			return inside(at+".path", k.Path)
		}
	case CheckFiles:
		if len(k.Paths) == 0 || len(k.Paths) > MaxCheckPaths {
			return Errorf(CodeBadCommand, "the check names %d paths; from 1 to %d can be", len(k.Paths), MaxCheckPaths).At(at + ".paths").WithHint("name a folder for all that is in it")
		}
		for _, p := range k.Paths {
			if err := inside(at+".paths", p); err != nil {
				return err
			}
		}
	case CheckPerson:
		if strings.TrimSpace(k.Prompt) == "" {
			return Errorf(CodeBadCommand, "the check asks nothing").At(at + ".prompt").WithHint(`{"kind": "person", "prompt": "Does the page look right?"}`)
		}
	case CheckAgent:
		if k.Min < 0 || k.Min > 1 {
			return Errorf(CodeBadCommand, "%v is no score", k.Min).At(at + ".min").WithHint("a number from 0 to 1, such as 0.8")
		}
		if len(k.Agent) > 200 {
			return Errorf(CodeBadCommand, "the agent's name has %d bytes; 200 are the most", len(k.Agent)).At(at + ".agent")
		}
	case CheckConfidence:
		if k.Min <= 0 || k.Min > 1 {
			return Errorf(CodeBadCommand, "%v is no confidence that can be asked for", k.Min).At(at + ".min").WithHint("a number above 0 and at most 1, such as 0.8")
		}
	default:
		return Errorf(CodeBadCommand, "there is no check of kind %q", k.Kind).At(at + ".kind").WithHint("use command, schema, files, person, agent, confidence")
	}
	return nil
}

// inside refuses a path that leads out of the workspace by its text.
func inside(at, p string) error {
	if c := path.Clean(p); p == "" || path.IsAbs(c) || c == ".." || strings.HasPrefix(c, "../") {
		return Errorf(CodeBadCommand, "%q isn't a path within the workspace", p).At(at).WithHint("name it relative to the workspace")
	}
	return nil
}
