package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/canon"
	"github.com/belay-run/belay/internal/tool"
)

// CodeInvalidArguments is the code of a completion or a question that is not
// well formed. Source: spec, Completion tool.
const CodeInvalidArguments = "INVALID_ARGUMENTS"

type completeArgs struct {
	Summary   string   `json:"summary" jsonschema:"what was done, and what was not"`
	Artifacts []string `json:"artifacts,omitempty" jsonschema:"what was made"`
	NextSteps string   `json:"nextSteps,omitempty" jsonschema:"what is left"`
	Output    any      `json:"output,omitempty" jsonschema:"data, if it was asked for"`
}

// Complete reads the arguments of complete_task. Texts come back trimmed,
// artifacts without repetitions in their first order, nil when there are none;
// output is as it was given. Unknown keys, blank texts and null are problems.
func Complete(args []byte) (summary string, artifacts []string, nextSteps string, output json.RawMessage, problem *event.Problem) {
	var in struct {
		Summary   *string         `json:"summary"`
		Artifacts *[]*string      `json:"artifacts"`
		NextSteps *string         `json:"nextSteps"`
		Output    json.RawMessage `json:"output"`
	}
	keys, err := read(CompleteName, args, &in, "summary", "artifacts", "nextSteps", "output")
	if err != nil {
		return "", nil, "", nil, invalid(err)
	}
	if summary, err = text("summary", in.Summary); err != nil {
		return "", nil, "", nil, invalid(err)
	}
	if _, given := keys["artifacts"]; given {
		if artifacts, err = texts("artifacts", in.Artifacts); err != nil {
			return "", nil, "", nil, invalid(err)
		}
	}
	if _, given := keys["nextSteps"]; given {
		if nextSteps, err = text("nextSteps", in.NextSteps); err != nil {
			return "", nil, "", nil, invalid(err)
		}
	}
	return summary, artifacts, nextSteps, in.Output, nil
}

func invalid(err error) *event.Problem {
	return &tool.Failf(tool.BadArguments, CodeInvalidArguments, "%v", err).Problem
}

// read decodes an object that has no other keys than the allowed ones, spelt
// exactly so: encoding/json alone would take Summary for summary.
func read(name string, args []byte, into any, allowed ...string) (map[string]json.RawMessage, error) {
	if _, err := canon.JSON(args); err != nil {
		return nil, fmt.Errorf("arguments of %s: %w", name, err)
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(args, &keys); err != nil || keys == nil {
		return nil, fmt.Errorf("arguments of %s must be a JSON object", name)
	}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		if !slices.Contains(allowed, k) {
			return nil, fmt.Errorf("unknown argument %q of %s", k, name)
		}
	}
	if err := json.Unmarshal(args, into); err != nil {
		if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return nil, fmt.Errorf("argument %q has the wrong type: %s", t.Field, t.Value)
		}
		return nil, fmt.Errorf("arguments of %s: %w", name, err)
	}
	return keys, nil
}

// text is a trimmed text that says something.
func text(name string, s *string) (string, error) {
	if s == nil {
		return "", fmt.Errorf("argument %q is missing", name)
	}
	v := strings.TrimSpace(*s)
	if v == "" {
		return "", fmt.Errorf("argument %q is blank", name)
	}
	return v, nil
}

// texts are trimmed texts, each once.
func texts(name string, list *[]*string) ([]string, error) {
	if list == nil {
		return nil, fmt.Errorf("argument %q must be an array, not null", name)
	}
	var out []string
	for i, s := range *list {
		v, err := text(fmt.Sprintf("%s.%d", name, i), s)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out, nil
}
