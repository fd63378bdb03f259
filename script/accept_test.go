package script

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/builtin"
)

// scenario is one of the standard's acceptance scenarios: a story of the folder
// accept, or what it waits for.
type scenario struct {
	name  string
	story string

	// Of one that waits: commands that answer unavailable, and facts that nothing
	// emits. When one of them is there, the story is due.
	commands []string
	facts    []string
	points   []string // and points of hooks that nothing calls
}

var scenarios = []scenario{
	{name: "Submit and first status", story: "submit_and_first_status"},
	{name: "Lime profile fixture validation", commands: []string{"export_evidence"}},
	{name: "Tool call with large result", story: "large_result"},
	{name: "Approval gate", story: "approval_gate"},
	{name: "Queue and resume", story: "queue_and_resume"},
	{name: "Context compaction", story: "context_compaction"},
	{name: "Subagent delegation", story: "subagent_delegation"},
	{name: "Agent task retry and graph", story: "task_retry_and_graph"},
	{name: "Evidence export", commands: []string{"export_evidence"}},
	{name: "Old session recovery", story: "old_session"},
	{name: "Permission and sandbox fact", story: "permission_and_sandbox"},
	{name: "Hook input rewrite", points: []string{"pre_tool_use"}},
	{name: "Process stdin and output spill", story: "process_stdin_and_spill"},
	{name: "Model routing and single candidate", story: "single_candidate"},
	{name: "Quota or rate limit", story: "quota"},
	{name: "Remote channel reconnect", story: "remote_channel_reconnect"},
	{name: "Job item retry", commands: []string{"create_job", "get_job"}},
	{name: "Benchmark trial export", commands: []string{"start_benchmark_trial", "export_benchmark_trial"}},
}

// TestAcceptance plays those of the standard's scenarios over HTTP that can be.
// Guarantee: X43, X41, V14, V31.
func TestAcceptance(t *testing.T) {
	p := params("accept")
	testscript.Run(t, p)
}

// TestEveryAcceptanceScenarioIsPlayedOrWaits holds the table against the stories,
// and what waits against what the program can do: nothing waits for what is there.
// Guarantee: V31.
func TestEveryAcceptanceScenarioIsPlayedOrWaits(t *testing.T) {
	files, err := filepath.Glob("accept/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var stories []string
	for _, f := range files {
		stories = append(stories, strings.TrimSuffix(filepath.Base(f), ".txtar"))
	}
	for _, s := range scenarios {
		switch waits := len(s.commands) + len(s.facts) + len(s.points); {
		case s.story != "" && waits > 0:
			t.Errorf("%s is played and waits", s.name)
		case s.story != "" && !slices.Contains(stories, s.story):
			t.Errorf("%s: there is no accept/%s.txtar", s.name, s.story)
		case s.story == "" && waits == 0:
			t.Errorf("%s is neither played nor waits for anything", s.name)
		}
		stories = slices.DeleteFunc(stories, func(story string) bool { return story == s.story })
		for _, name := range s.commands {
			c := app.Find(builtin.Commands(), name)
			if c == nil || c.Later == "" {
				t.Errorf("%s waits for %s, which is there or has no such name: its story is due", s.name, name)
			}
		}
		for _, name := range s.points {
			if at := callsPoint(t, name); at != "" {
				t.Errorf("%s waits for hooks at %s, which %s calls: its story is due", s.name, name, at)
			}
		}
		for _, name := range s.facts {
			i := slices.IndexFunc(event.Types(), func(ty event.Type) bool { return ty.Name == name })
			if i < 0 || event.Types()[i].Stable {
				t.Errorf("%s waits for %s, which is emitted or has no such name: its story is due", s.name, name)
			}
		}
	}
	if len(stories) > 0 || len(scenarios) != 18 {
		t.Errorf("%d scenarios; the standard has 18. Stories of none: %v", len(scenarios), stories)
	}
}

// callsPoint is a file of the program that names a point of hooks; empty if none does.
func callsPoint(t *testing.T, name string) (at string) {
	t.Helper()
	err := filepath.WalkDir("../internal", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		src, err := os.ReadFile(path)
		if strings.Contains(string(src), `"`+name+`"`) {
			at = path
		}
		return err
	})
	types, terr := os.ReadFile("../event/hook.go")
	if err != nil || terr != nil || !strings.Contains(string(types), name) {
		t.Fatalf("looking for hooks at %s: %v, %v, or no fact knows the point", name, err, terr)
	}
	return at
}
