package tool_test

import (
	"testing"

	"github.com/belay-run/belay/internal/tool"
)

// TestArgumentsAreCheckedAsThoseOfEveryTool: there is no second reading of them,
// with rules and codes of its own.
func TestArgumentsAreCheckedAsThoseOfEveryTool(t *testing.T) {
	set, err := tool.NewSet(tool.TurnTools()...)
	if err != nil {
		t.Fatal(err)
	}
	for name, cases := range map[string]map[string]string{
		tool.CompleteName: {
			`{"summary":"done"}`: "", `{"summary":"s","artifacts":["a"],"nextSteps":"n","output":{"n":1.0}}`: "", `{"summary":"s","output":null}`: "",
			``: tool.CodeBadArguments, `{}`: tool.CodeBadArguments, `null`: tool.CodeBadArguments, `[]`: tool.CodeBadArguments, `"done"`: tool.CodeBadArguments,
			`{"summary":null}`: tool.CodeBadArguments, `{"summary":1}`: tool.CodeBadArguments, `{"Summary":"s"}`: tool.CodeBadArguments, `{"summary":"s","status":"ok"}`: tool.CodeBadArguments,
			`{"summary":"s","artifacts":"a"}`: tool.CodeBadArguments, `{"summary":"s","artifacts":["a",null]}`: tool.CodeBadArguments, `{"summary":"s","nextSteps":7}`: tool.CodeBadArguments,
			`{"summary":"s","summary":"t"}`: tool.CodeBadArguments, `{"summary":`: tool.CodeBrokenJSON,
		},
		tool.AskName: {
			`{"question":"which?"}`: "", `{"question":"which?","options":["a","b"]}`: "",
			`{}`: tool.CodeBadArguments, `{"question":null}`: tool.CodeBadArguments, `{"question":"q","options":[1]}`: tool.CodeBadArguments, `{"question":"q","answer":"a"}`: tool.CodeBadArguments,
		},
	} {
		for args, want := range cases {
			_, _, problem := set.Check(name, args)
			if got := ""; problem != nil {
				if got = problem.Code; got != want {
					t.Errorf("%s %s: %s (%s), not %q", name, args, got, problem.Message, want)
				}
			} else if want != "" {
				t.Errorf("%s %s is taken", name, args)
			}
		}
	}
}

func TestSpecsAreAnsweredByTheTurn(t *testing.T) {
	for i, want := range []string{tool.HandledComplete, tool.HandledAsk, ""} {
		if got := tool.TurnTools()[i].Spec().Handled; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
