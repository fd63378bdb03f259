package thread

import (
	"slices"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// Only a verdict that says pass, with the score that is asked for, passes; what isn't
// known doesn't.
// Guarantee: F26.
func TestAVerdictDecides(t *testing.T) {
	end := func(o belay.Outcome, output string) *belay.AttemptEnd {
		e := &belay.AttemptEnd{Outcome: o}
		if output != "" {
			e.Output = &belay.Content{Text: output}
		}
		return e
	}
	for _, x := range []struct {
		end  *belay.AttemptEnd
		want string
	}{
		{nil, event.CheckUnknown},
		{end(belay.Failed, `{"score":1,"verdict":"pass","findings":[]}`), event.CheckUnknown},
		{end(belay.Completed, ""), event.CheckUnknown},
		{end(belay.Completed, `{"verdict":"pass"}`), event.CheckUnknown},
		{end(belay.Completed, `{"score":1,"verdict":"maybe"}`), event.CheckUnknown},
		{end(belay.Completed, `{"score":1,"verdict":"pass","findings":["cut of`), event.CheckUnknown},
		{end(belay.Completed, `{"score":1,"verdict":"fail","findings":["no"]}`), event.CheckFailed},
		{end(belay.Completed, `{"score":0.79,"verdict":"pass","findings":[]}`), event.CheckFailed},
		{end(belay.Completed, `{"score":0.8,"verdict":"pass","findings":[]}`), event.CheckPassed},
	} {
		if got := judged(belay.Check{Kind: belay.CheckAgent, Min: 0.8}, x.end); got.Status != x.want {
			t.Errorf("%+v: got %+v, want %s", x.end, got, x.want)
		}
	}
}

// An agent that judges has nothing but tools that read files, whatever its parent has.
func TestAJudgeOnlyReadsFiles(t *testing.T) {
	r := &Rules{Gates: []belay.Check{{ID: "g", Kind: belay.CheckAgent}}, Tools: []belay.ToolSpec{
		{Name: "read", ReadOnly: true, PathArg: "path"}, {Name: "fetch", ReadOnly: true, Capabilities: []string{"network"}}, {Name: "remote", ReadOnly: true, PathArg: "path", Server: "s"},
		{Name: "write", PathArg: "path"}, {Name: "spawn_agent", ReadOnly: true, Handled: handledSpawn}, {Name: "ask_user", ReadOnly: true, Handled: "ask"},
	}}
	child, problem := r.Child(ChildWish{Judges: true, Depth: 1}, "", belay.ToolSpec{Name: "complete_task", Handled: "complete"})
	if problem != nil {
		t.Fatal(problem)
	}
	if got := names(child.Tools); !slices.Equal(got, []string{"complete_task", "read"}) || child.Settings.Mode != belay.ModePlan || len(child.Gates) > 0 || child.Output == nil {
		t.Errorf("got %+v", child)
	}
	if _, problem := r.Child(ChildWish{Judges: true, Agent: "nobody"}, "", belay.ToolSpec{}); problem == nil {
		t.Error("an agent that there isn't judges")
	}
}
