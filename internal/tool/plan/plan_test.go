package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/tool/plan"
)

func TestComplete(t *testing.T) {
	for _, c := range []struct {
		name, args         string
		summary, next, out string
		artifacts          []string
	}{
		{"only a summary", `{"summary":"done"}`, "done", "", "", nil},
		{"texts are trimmed", `{"summary":" done\n","nextSteps":"\tship "}`, "done", "ship", "", nil},
		{"artifacts are trimmed, once each, in order", `{"summary":"s","artifacts":[" b","a","b ","a"]}`, "s", "", "", []string{"b", "a"}},
		{"no artifacts are none", `{"summary":"s","artifacts":[]}`, "s", "", "", nil},
		{"output is taken as it is", `{"summary":"s","output":{"n": 1.0}}`, "s", "", `{"n": 1.0}`, nil},
		{"output may be null", `{"summary":"s","output":null}`, "s", "", `null`, nil},
	} {
		summary, artifacts, next, out, problem := plan.Complete([]byte(c.args))
		if problem != nil {
			t.Errorf("%s: %s", c.name, problem.Message)
			continue
		}
		if summary != c.summary || next != c.next || string(out) != c.out || !slices.Equal(artifacts, c.artifacts) {
			t.Errorf("%s: got %q %q %q %q", c.name, summary, artifacts, next, out)
		}
	}
}

func TestCompleteRefuses(t *testing.T) {
	for args, says := range map[string]string{
		``:                                       "ends where a value should be",
		`null`:                                   "must be a JSON object",
		`[]`:                                     "must be a JSON object",
		`"done"`:                                 "must be a JSON object",
		`{}`:                                     `"summary" is missing`,
		`{"summary":null}`:                       `"summary" is missing`,
		`{"summary":" \n"}`:                      `"summary" is blank`,
		`{"summary":1}`:                          `"summary" has the wrong type: number`,
		`{"Summary":"s"}`:                        `unknown argument "Summary"`,
		`{"summary":"s","status":"ok"}`:          `unknown argument "status"`,
		`{"summary":"s","summary":"t"}`:          "occurs twice",
		`{"summary":"s","artifacts":"a"}`:        `"artifacts" has the wrong type: string`,
		`{"summary":"s","artifacts":null}`:       `"artifacts" must be an array`,
		`{"summary":"s","artifacts":["a",""]}`:   `"artifacts.1" is blank`,
		`{"summary":"s","artifacts":["a",null]}`: `"artifacts.1" is missing`,
		`{"summary":"s","nextSteps":""}`:         `"nextSteps" is blank`,
		`{"summary":"s","nextSteps":null}`:       `"nextSteps" is missing`,
	} {
		_, _, _, _, problem := plan.Complete([]byte(args))
		if problem == nil {
			t.Errorf("%s is taken", args)
		} else if problem.Class != "bad_arguments" || problem.Code != "INVALID_ARGUMENTS" || !strings.Contains(problem.Message, says) {
			t.Errorf("%s: got %+v, want %q", args, problem, says)
		}
	}
}

func TestAsk(t *testing.T) {
	question, options, problem := plan.Ask([]byte(`{"question":" which? ","options":["a "," b","a"]}`))
	if problem != nil || question != "which?" || !slices.Equal(options, []string{"a", "b"}) {
		t.Errorf("got %q %q %v", question, options, problem)
	}
	for _, args := range []string{`{}`, `{"question":""}`, `{"question":"q","options":[" "]}`, `{"question":"q","options":null}`, `{"question":"q","answer":"a"}`} {
		if _, _, problem := plan.Ask([]byte(args)); problem == nil || problem.Code != "INVALID_ARGUMENTS" {
			t.Errorf("%s: got %v", args, problem)
		}
	}
}

func TestSpecsAreAnsweredByTheTurn(t *testing.T) {
	for i, want := range []string{plan.HandledComplete, plan.HandledAsk, ""} {
		if got := plan.Tools()[i].Spec().Handled; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
