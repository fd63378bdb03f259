package belay_test

import (
	"strings"
	"testing"

	"github.com/belay-run/belay"
)

func TestChecksOfTasksAreRead(t *testing.T) {
	good, err := belay.CheckedAcceptance([]belay.Check{{Kind: belay.CheckCommand, Argv: []string{"true"}}, {ID: "mine", Kind: belay.CheckPerson, Prompt: "?"}})
	if err != nil || good[0].ID != "command-1" || good[1].ID != "mine" {
		t.Errorf("%v, %v", good, err)
	}
	many := make([]belay.Check, belay.MaxChecks+1)
	for i := range many {
		many[i] = belay.Check{Kind: belay.CheckPerson, Prompt: "?"}
	}
	for _, c := range []struct {
		in    []belay.Check
		where string
	}{
		{[]belay.Check{{Kind: "dream"}}, "acceptance[0].kind"},
		{[]belay.Check{{Kind: belay.CheckCommand}}, "acceptance[0].argv"},
		{[]belay.Check{{Kind: belay.CheckCommand, Argv: []string{"x"}, Timeout: 601}}, "acceptance[0].timeout"},
		{[]belay.Check{{Kind: belay.CheckSchema}}, "acceptance[0].schema"},
		{[]belay.Check{{Kind: belay.CheckSchema, Schema: []byte(`{}`), Path: "/etc/x"}}, "acceptance[0].path"},
		{[]belay.Check{{Kind: belay.CheckFiles}}, "acceptance[0].paths"},
		{[]belay.Check{{Kind: belay.CheckFiles, Paths: []string{"a/../../b"}}}, "acceptance[0].paths"},
		{[]belay.Check{{Kind: belay.CheckPerson}}, "acceptance[0].prompt"},
		{[]belay.Check{{ID: "a b", Kind: belay.CheckPerson, Prompt: "?"}}, "acceptance[0].id"},
		{[]belay.Check{{ID: "a", Kind: belay.CheckPerson, Prompt: "?"}, {ID: "a", Kind: belay.CheckPerson, Prompt: "?"}}, "acceptance[1].id"},
		{many, "acceptance"},
		{[]belay.Check{{Kind: belay.CheckPerson, Prompt: strings.Repeat("x", belay.MaxCheckBytes)}}, "acceptance"},
	} {
		_, err := belay.CheckedAcceptance(c.in)
		e, ok := err.(*belay.Error)
		if !ok || e.Where != c.where {
			t.Errorf("%+v: %v at %q, want one at %q", c.in, err, e.Where, c.where)
		}
	}
}
