package script

import (
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/testkit/modelserver"
	"github.com/belay-run/belay/internal/testkit/needs"
)

// TestTheAgentsOfTheDocumentsWork does on a machine that has nothing yet what the README says
// about agents, and keeps, checks and plays the agents of docs/agent-files.md.
func TestTheAgentsOfTheDocumentsWork(t *testing.T) {
	needs.Program(t, "bash")
	model := modelserver.New(quick)
	far := httptest.NewServer(model)
	defer far.Close()
	u := newcomer(t, far.URL)
	u.env = append(u.env, "OPENAI_API_KEY=sk-tester", "BELAY_PROVIDER=openai", "BELAY_MODEL=gpt-6.1-sol")
	u.install(t)
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(readme), "```sh\nbelay agents new ")
	block, _, _ = strings.Cut(block, "```")
	if !found || !strings.Contains(block, "belay agents test reviewer") {
		t.Fatal("the README no longer has what is said of agents")
	}
	out := u.run(t, "belay agents new "+block)
	for _, want := range []string{"made .belay/agents/reviewer.yaml", "1 agent, ", "pass  reviewer/reads-a-file", "AGENT", "reviewer"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q isn't printed:\n%s", want, out)
		}
	}

	doc, err := os.ReadFile("../docs/agent-files.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(doc), "## Three agents\n")
	part, _, _ = strings.Cut(part, "\n## ")
	files := regexp.MustCompile("(?s)```(?:yaml|markdown)\n(?:# |<!-- )(\\S+)(?: -->)?\n(.*?)```").FindAllStringSubmatch(part, -1)
	if len(files) != 3 {
		t.Fatalf("%d agents: the test no longer finds them", len(files))
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(u.dir, f[1]), []byte(f[2]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for code, want := range map[string][]string{
		"belay agents check .belay/agents":                                  {"4 agents, ", "can be used"},
		"belay trust .belay/agents/scorer.yaml && belay agents test scorer": {"pass  scorer/scores", "pass  scorer/can-not-write", "2 of 2 scenarios passed"},
		"belay agents show historian":                                       {"tools         read, exec", "programs      git", "limits        steps 20"},
		"belay agents show gatekeeper":                                      {"requires      scorer: scores what was changed", "memory 512"},
		"belay run --agent historian 'who changed greet.sh?'":               {"hello.txt greets."},
		"belay agents run --with-required gatekeeper --text look":           {"gatekeeper@1.0.0", "(after scorer@1.0.0)"},
	} {
		out := u.run(t, code+" 2>&1 || true")
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("%s doesn't print %q:\n%s", code, w, out)
			}
		}
	}

	for name, text := range map[string]string{
		".belay/skills/letters/SKILL.md": "---\nname: letters\ndescription: Writes letters.\n---\nBEGIN WITH DEAR",
		".belay/skills/poems/SKILL.md":   "---\nname: poems\ndescription: Writes poems.\n---\nBEGIN WITH OH",
		".belay/agents/scribe.yaml":      "name: scribe\ninstructions: You write.\nskills: [letters]\n",
	} {
		name = filepath.Join(u.dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	u.run(t, "belay run --agent scribe 'write to Ann'")
	heard := model.Heard()
	last := heard[len(heard)-1].System
	if !strings.Contains(last, "BEGIN WITH DEAR") || !strings.Contains(last, "Writes letters.") || strings.Contains(last, "Writes poems.") {
		t.Errorf("the agent isn't told of its own skills alone:\n%s", last)
	}
}
