package tool

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/belay-run/belay"
)

// TestTheToolsOfAgentsAreSmall: every request of an agent that can start others has them.
func TestTheToolsOfAgentsAreSmall(t *testing.T) {
	size := 0
	for _, tl := range AgentTools() {
		s := tl.Spec()
		b, err := json.Marshal(struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			InputSchema json.RawMessage `json:"input_schema"`
		}{s.Name, s.Doc, s.Input})
		if err != nil {
			t.Fatal(err)
		}
		size += len(b)
	}
	if size > 2500 {
		t.Errorf("%d bytes, want at most 2500", size)
	}
}

func TestWhatASpawnAsksForIsChecked(t *testing.T) {
	have := belay.Settings{Limits: belay.Limits{Steps: 10, MicroUSD: 2e6, Calls: 20, Time: belay.Duration(time.Minute)}, Budget: belay.Amounts{Tokens: 1000, Calls: 15}}
	for _, c := range []struct {
		what string
		in   SpawnArgs
		code string
	}{
		{"a task", SpawnArgs{Task: "x"}, ""},
		{"all of it", SpawnArgs{Task: "x", Name: "a b", Context: "fork", Isolation: "worktree", Budget: &SpawnLimit{Tokens: 1000, USD: 2, Steps: 10, Calls: 15, Seconds: 60}}, ""},
		{"no task", SpawnArgs{Task: " \n"}, CodeBadArguments},
		{"a name with a line end", SpawnArgs{Task: "x", Name: "a\nb"}, CodeBadArguments},
		{"another context", SpawnArgs{Task: "x", Context: "all"}, CodeBadArguments},
		{"another isolation", SpawnArgs{Task: "x", Isolation: "copy"}, CodeBadArguments},
		{"a budget below nothing", SpawnArgs{Task: "x", Budget: &SpawnLimit{USD: -1}}, CodeBadArguments},
		{"more steps than there are", SpawnArgs{Task: "x", Budget: &SpawnLimit{Steps: 11}}, CodeNotCovered},
		{"calls below nothing", SpawnArgs{Task: "x", Budget: &SpawnLimit{Calls: -1}}, CodeBadArguments},
		{"more time than a number holds", SpawnArgs{Task: "x", Budget: &SpawnLimit{Seconds: 1 << 60}}, CodeBadArguments},
		{"more calls than the session has", SpawnArgs{Task: "x", Budget: &SpawnLimit{Calls: 16}}, CodeNotCovered},
		{"more time than there is", SpawnArgs{Task: "x", Budget: &SpawnLimit{Seconds: 61}}, CodeNotCovered},
		{"more money than there is", SpawnArgs{Task: "x", Budget: &SpawnLimit{USD: 2.5}}, CodeNotCovered},
		{"more tokens than the session has", SpawnArgs{Task: "x", Budget: &SpawnLimit{Tokens: 1001}}, CodeNotCovered},
	} {
		p := c.in.Check(have)
		switch {
		case p == nil && c.code != "":
			t.Errorf("%s: it is taken", c.what)
		case p != nil && (p.Code != c.code || p.Hint == "" || p.Message == ""):
			t.Errorf("%s: %+v", c.what, p)
		}
	}
}
