package agentfile_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config/agentfile"
	"github.com/belay-run/belay/internal/testkit/golden"
)

// Files in the formats of two other programs. Those that others published are read by
// TestAgentsOfPublishedPackagesAreListed.
func TestFilesOfOtherProgramsAreRead(t *testing.T) {
	c := agentfile.Open([]agentfile.Place{{Dir: filepath.Join("testdata", "samples"), Origin: agentfile.User}})
	if len(c.All) != 4 {
		t.Fatalf("%d agents", len(c.All))
	}
	for _, a := range c.All {
		if !a.Usable() {
			t.Errorf("%s: %v", a.Path, a.Findings)
		}
		if len(a.Instructions) < 400 {
			t.Errorf("%s has %d bytes of instructions", a.Path, len(a.Instructions))
		}
		b := *a
		b.Path = filepath.ToSlash(b.Path)
		b.Instructions = strings.Join(strings.SplitN(b.Instructions, "\n", 6)[:5], "\n")
		got, err := json.MarshalIndent(b, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, filepath.Join("testdata", a.Name+".json"), string(got)+"\n")
	}
}

// parsed reads a text as a file and returns it with its first finding.
func parsed(name, text string) (*agentfile.Agent, agentfile.Finding) {
	a := agentfile.Parse(name, []byte(text))
	if len(a.Findings) == 0 {
		return a, agentfile.Finding{}
	}
	return a, a.Findings[0]
}

const small = "name: a\ninstructions: do\n"

func TestMistakesHaveACodeAndAPlace(t *testing.T) {
	for _, c := range []struct{ file, text, level, code, where string }{
		{"a.yaml", "", "error", "NO_AGENT", "a.yaml"},
		{"a.md", " \n", "error", "NO_AGENT", "a.md"},
		{"a.md", "# Title\n", "error", "NO_AGENT", "a.md:1:1"},
		{"a.md", "---\nname: a\n", "error", "NO_AGENT", "a.md:1:1"},
		{"a.md", "---\ndescription: x\n---\nbody", "error", "NO_NAME", "a.md:1:1"},
		{"a.md", "---\nname: a/b\ndescription: x\n---\nbody", "error", "BAD_NAME", "a.md:2:1"},
		{"a.md", "---\nname: a\ndescription: x\n---\n", "error", "BAD_FILE", "a.md"},
		{"a.md", "---\nname: a\ndescription: x\nmaxTurns: -1\n---\nbody", "error", "BAD_LIMIT", "a.md:4:1"},
		{"a.md", "---\nname: a\ndescription: x\npermissionMode: bypassPermissions\n---\nbody", "warning", "NOT_TAKEN", "a.md:4:1"},
		{"a.md", "---\nname: a\ndescription: x\ntools: Read, SlashCommand\n---\nbody", "warning", "UNKNOWN_TOOL", "a.md:4:1"},
		{"a.md", "---\nname: a\ndescription: x\nhooks:\n  Stop: x\n---\nbody", "warning", "NOT_TAKEN", "a.md:4:1"},
		{"a.yaml", "a\x00b", "error", "BAD_FILE", "a.yaml"},
		{"a.yaml", "a: \xff", "error", "BAD_FILE", "a.yaml"},
		{"a.yaml", strings.Repeat("x", agentfile.MaxBytes+1), "error", "TOO_MANY", "a.yaml"},
		{"a.yaml", "- a\n", "error", "BAD_FILE", "a.yaml:1:"},
		{"a.yaml", small + "name: b\n", "error", "BAD_FILE", "a.yaml:3:"},
		{"a.yaml", small + "model: &m x\n", "error", "BAD_FILE", "a.yaml:3:8"},
		{"a.yaml", "name: " + strings.Repeat("[", 200), "error", "BAD_FILE", "a.yaml:1:"},
		{"a.yaml", small + "rules: [{id: a, verdict: deny}, 3]\nrules: []\n", "error", "BAD_FILE", "a.yaml:4:"},
		{"a.yaml", small + "colour: red\n", "error", "BAD_FILE", "a.yaml:3:1"},
		{"a.yaml", "instructions: do\n", "error", "NO_NAME", "a.yaml"},
		{"a.yaml", "name: a\n", "error", "BAD_FILE", "a.yaml"},
		{"a.yaml", small + "version: latest\n", "error", "BAD_VERSION", "a.yaml:3:10"},
		{"a.yaml", small + "mode: yolo\n", "error", "UNKNOWN_WORD", "a.yaml:3:7"},
		{"a.yaml", small + "limits: {steps: 0}\n", "error", "BAD_LIMIT", "a.yaml:3:"},
		{"a.yaml", small + "limits: {steps: -1}\n", "error", "BAD_LIMIT", "a.yaml:3:"},
		{"a.yaml", small + "limits: {memory: 1.5TB}\n", "error", "BAD_LIMIT", "a.yaml:3:"},
		{"a.yaml", small + "limits: {bandwidth: 1}\n", "error", "BAD_LIMIT", "a.yaml:3:"},
		{"a.yaml", small + "budget: {tokens: {min: 5, optimal: 2}}\n", "error", "BAD_LIMIT", "a.yaml:3:"},
		{"a.yaml", small + "budget: {money: free}\n", "error", "BAD_LIMIT", "a.yaml:3:"},
		{"a.yaml", small + "output: {type: thing}\n", "error", "BAD_FILE", "a.yaml:3:"},
		{"a.yaml", small + "output: text\n", "error", "BAD_FILE", "a.yaml:3:"},
		{"a.yaml", small + "requires: [b@latest]\n", "error", "BAD_VERSION", "a.yaml:3:"},
		{"a.yaml", small + "requires: ['../b']\n", "error", "BAD_NAME", "a.yaml:3:"},
		{"a.yaml", small + "capabilities: ['two words']\n", "error", "UNKNOWN_CAPABILITY", "a.yaml:3:"},
		{"a.yaml", "metadata: {name: a, version: v1.0.0}\nspec: {name: A, domain: d}\nsecurity: {resource_limits: {max_network_bandwidth: 1MB}}\n", "warning", "UNAVAILABLE", "a.yaml:3:"},
		{"a.yaml", "metadata: {name: a, version: latest}\nspec: {name: A, domain: d}\n", "error", "BAD_VERSION", "a.yaml:1:"},
		{"a.yaml", "metadata: {name: a}\nspec: {name: A}\ntasks: {default: [{priority: high}]}\n", "error", "BAD_FILE", "a.yaml:3:"},
		{"a.yaml", "metadata: {name: a}\nspec: {name: A}\ndependencies: {required: 3}\n", "error", "BAD_FILE", "a.yaml:3:"},
	} {
		a, f := parsed(c.file, c.text)
		if f.Level != c.level || f.Code != c.code || !strings.HasPrefix(f.Where, c.where) || f.Message == "" || a.Usable() != (c.level != "error") {
			t.Errorf("%.60q: %+v", c.text, f)
		}
		if a.Name == "" {
			t.Errorf("%.60q: it has no name to be listed by", c.text)
		}
		advised(t, a.Findings)
	}
}

// advised reports findings that don't say where they are, or what to do.
func advised(t *testing.T, all agentfile.Findings) {
	t.Helper()
	for _, f := range all {
		if f.Where == "" || f.Hint == "" {
			t.Errorf("a finding without a place or a hint: %+v", f)
		}
	}
}

// What a workspace hasn't got is told at its line, and limits in an order that doesn't change.
func TestFindingsAreAtTheirLines(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"a.yaml": small + "tools: [flute]\nmodel: none/x\nrules: [{id: a}]\n",
		"b.md":   "---\nname: b\ndescription: d\ntools: Bash(nowhere:*)\n---\nx",
		"c.yaml": "metadata: {name: c, version: v1.0.0}\nspec: {name: c}\nsecurity: {resource_limits: {timeout: 0, max_memory: -1, max_cpu: 1x, max_disk_usage: 1.5TB, max_network_bandwidth: 1, more: 1}}\n",
		"d.yaml": small + "input: {type: thing}\n",
	})
	c := agentfile.Open([]agentfile.Place{{Dir: dir, Origin: agentfile.User}})
	c.HoldAgainst(nil)
	c.Needs(func(string, string) string { return "network" }, func(string) bool { return false })
	c.CheckRules(func(*agentfile.Agent) error { return errors.New("bad") })
	var got []string
	for _, a := range c.All {
		advised(t, a.Findings)
		for _, f := range a.Findings {
			got = append(got, f.Code+" "+strings.TrimPrefix(f.Where, dir+"/"))
			if strings.Count(f.Message, "can't be used") > 1 {
				t.Errorf("it says it twice: %s", f.Message)
			}
		}
	}
	want := []string{"UNKNOWN_TOOL a.yaml:3:8", "UNKNOWN_MODEL a.yaml:4:8", "BAD_RULES a.yaml:5:8",
		"NOT_TAKEN b.md:4:1", "NO_PROGRAM b.md:4:1",
		"BAD_LIMIT c.yaml:3:", "BAD_LIMIT c.yaml:3:", "BAD_LIMIT c.yaml:3:", "BAD_LIMIT c.yaml:3:", "UNAVAILABLE c.yaml:3:", "UNKNOWN_KEY c.yaml:3:", "BAD_FILE d.yaml:3:"}
	for i, g := range got {
		if len(got) != len(want) || !strings.HasPrefix(g, want[i]) {
			t.Fatalf("got  %q\nwant %q", got, want)
		}
	}
}

// The bounds of a skill count characters.
func TestASkillsDescriptionIsCountedInCharacters(t *testing.T) {
	text := func(n int) []byte {
		return []byte("---\nname: a\ndescription: " + strings.Repeat("ж", n) + "\n---\nDo it.")
	}
	if s := agentfile.ParseSkill("a/SKILL.md", text(1024)); len(s.Findings) > 0 {
		t.Errorf("%v", s.Findings)
	}
	if s := agentfile.ParseSkill("a/SKILL.md", text(1025)); len(s.Findings) != 1 || s.Findings[0].Code != "TOO_MANY" || s.Description != strings.Repeat("ж", 1024) {
		t.Errorf("%v", s.Findings)
	}
}

func TestOwnFormat(t *testing.T) {
	a, f := parsed("a.yaml", `name: reviewer
version: v1.2.3
description: reads
instructions: Review it.
model: p/m
effort: high
mode: plan
tools: [read, grep]
capabilities: [filesystem-read]
limits: {steps: 5, calls: 9, time: 10m, memory: 512MB, cpu: 50%, written: 1GiB, program_time: 90}
budget: {tokens: {min: 1000, optimal: 5000}, money: 0.5usd}
output:
  type: object
  properties: {score: {type: number}}
requires: [base@^1.2]
conflicts: other
tasks: [{description: one, priority: high}]
`)
	if f.Code != "" {
		t.Fatalf("%+v", f)
	}
	got, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, filepath.Join("testdata", "own.json"), string(got)+"\n")
}

func TestFrontMatterIsReadLineByLine(t *testing.T) {
	for _, c := range []struct {
		front, description string
		tools              string
	}{
		{"description: one: two: three", "one: two: three", ""},
		{`description: "say \"hi\"\nthen go"`, "say \"hi\"\nthen go", ""},
		{"description: 'it''s'", "it's", ""},
		{"description: >\n  folded\n  text", "folded text", ""},
		{"description: |\n  two\n    lines", "two\n  lines", ""},
		{"description: Use it when: <example>\nuser: \"do it\"\nassistant: 'done': ok\n</example>", "Use it when: <example>\nuser: \"do it\"\nassistant: 'done': ok\n</example>", ""},
		{"description: d\ntools: Read, Bash, mcp__github__get_issue, Task", "d", "read exec mcp__github__get_issue spawn_agent"},
		{"description: d\ntools: [\"Read\", 'Grep']", "d", "read grep"},
		{"description: d\ntools:\n  - LS\n  - MultiEdit\n", "d", "list edit"},
		{"description: d\ntools: mcp__github, run_shell_command, read_many_files", "d", "mcp__github__* exec read"},
		{"description: d\r\ntools: Read\r\ncolor: red\r", "d", "read"},
		{"description: d\ntools: '*'", "d", ""},
	} {
		for _, text := range []string{"---\nname: a\n" + c.front + "\n---\nbody", "\ufeff---\nname: a\n" + c.front + "\n---\nbody"} {
			a, _ := parsed("a.md", text)
			if !a.Usable() || a.Description != c.description || strings.Join(a.Tools, " ") != c.tools || a.Instructions != "body" {
				t.Errorf("%q: %q %q %+v", text, a.Description, a.Tools, a.Findings)
			}
		}
	}
	a, _ := parsed("a.md", "---\nname: a\ndescription: d\nlevel: 3\nmodel: inherit\nmax_turns: 7\ntimeout_mins: 2\neffort: max\npermissionMode: acceptEdits\ndisallowedTools: Write, Bash(rm:*)\ntools: Bash(git diff:*), Bash(go test)\n---\nbody")
	if a.Model != "" || a.Limits.Steps != 7 || a.Limits.Time != belay.Duration(120e9) || a.Effort != "high" || a.Mode != belay.ModeAcceptEdits ||
		strings.Join(a.Without, " ") != "write" || strings.Join(a.Forbidden, " ") != "rm" || strings.Join(a.Programs, " ") != "git go" || strings.Join(a.Unknown, " ") != "level" {
		t.Errorf("%+v", a)
	}
	if a, _ = parsed("a.md", "---\nname: a\ndescription: d\ntools: SlashCommand, full\n---\nbody"); !a.NoTools || strings.Join(a.Absent, " ") != "SlashCommand full" {
		t.Errorf("an agent whose tools are all unknown has none: %+v", a)
	}
}

// The four forms that dependencies have in files of Toka.
func TestDependenciesInEachForm(t *testing.T) {
	for _, form := range []string{"{b: why, c: also}", "[b: why, c: also]", "[b, c]", "[{name: b, description: why}, {name: c}]"} {
		a, f := parsed("a.yaml", "metadata: {name: a, version: v1.0.0}\nspec: {name: A, domain: d, priority: critical}\ndependencies:\n  required: "+form+"\n  optional: {}\nreporting: {metrics: [x]}\n")
		if f.Level == "error" || len(a.Requires) != 2 || a.Requires[0].Name != "b" || a.Requires[1].Name != "c" || len(a.Optional) != 0 {
			t.Errorf("%s: %+v %+v", form, a.Requires, f)
		}
	}
}

// What validates an objective is prose: it is a check if the file names who judges it.
func TestAVerifierJudgesTheObjectives(t *testing.T) {
	const file = "metadata: {name: a}\nspec: {name: A}\nobjectives:\n- {description: Write it, validation: Each line is true}\n- {description: Print it}\n"
	a, f := parsed("a.yaml", file)
	if len(a.Gates) != 0 || f.Level != "note" || f.Code != "NOT_TAKEN" || !strings.HasPrefix(f.Where, "a.yaml:4:") {
		t.Errorf("without one: %+v %+v", a.Gates, f)
	}
	for verifier, want := range map[string]belay.Check{
		"judge":                           {ID: "verifier", Kind: belay.CheckAgent, Agent: "judge", Prompt: "- Write it: Each line is true"},
		"{agent: strict, prompt: Is it?}": {ID: "verifier", Kind: belay.CheckAgent, Agent: "strict", Prompt: "Is it?"},
	} {
		a, f := parsed("a.yaml", file+"verifier: "+verifier+"\n")
		if d := cmp.Diff([]belay.Check{want}, a.Gates); d != "" || f.Level == "error" || len(a.Unknown) > 0 || strings.Contains(a.Instructions, "verifier:") {
			t.Errorf("%s: %+v %v %s", verifier, f, a.Unknown, d)
		}
	}
	if _, f := parsed("a.yaml", file+"verifier: {agent: ["+strings.Repeat("x", 300)+"]}\n"); f.Level != "error" {
		t.Errorf("a verifier that is none: %+v", f)
	}
}

func TestLongSectionsAreLeftOut(t *testing.T) {
	a, f := parsed("a.yaml", "metadata: {name: a}\nspec: {name: A}\nnotes: "+strings.Repeat("x", 17<<10)+"\nmore: kept\n")
	if f.Code != "TOO_MANY" || strings.Contains(a.Instructions, "xxx") || !strings.Contains(a.Instructions, "more: kept") {
		t.Errorf("%+v %d", f, len(a.Instructions))
	}
}

// write makes files below a folder.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func agent(name, version, more string) string {
	if version != "" {
		version = "version: " + version + "\n"
	}
	return "name: " + name + "\n" + version + "instructions: do\n" + more
}

func TestTheStrongestPlaceAndTheHighestVersionCount(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"ws/agents/deep/er/one.yaml": agent("one", "1.0.0", ""),
		"ws/agents/.hidden/x.yaml":   agent("hidden", "", ""),
		"ws/agents/_draft.yaml":      agent("draft", "", ""),
		"ws/agents/notes.txt":        "no agent",
		"user/one-1.yaml":            agent("one", "1.4.0", ""),
		"user/one-2.yaml":            agent("one", "v2.0.0", ""),
		"user/two-a.yaml":            agent("two", "1.0.0", "domain: a\n"),
		"user/two-b.yaml":            agent("two", "1.0.0", "domain: b\n"),
		"user/three.yaml":            agent("three", "1.0.0", ""),
		"user/three-again.yaml":      agent("three", "1.0.0", ""),
		"user/bad.yaml":              "name: bad\n",
	})
	if err := os.Symlink(filepath.Join(dir, "user", "three.yaml"), filepath.Join(dir, "ws", "agents", "link.yaml")); err != nil {
		t.Fatal(err)
	}
	trusted := false
	open := func() *agentfile.Catalog {
		return agentfile.Open([]agentfile.Place{
			{Dir: filepath.Join(dir, "ws"), Below: "agents", Origin: agentfile.Workspace, Trusts: func(rel string, _ []byte) bool {
				if rel != "agents/deep/er/one.yaml" {
					t.Errorf("%s is asked for", rel)
				}
				return trusted
			}},
			{Dir: filepath.Join(dir, "user"), Origin: agentfile.User},
		})
	}
	check := func(want, has string) {
		t.Helper()
		c := open()
		a, err := c.Find(want)
		switch {
		case err != nil && !strings.Contains(err.Error(), has):
			t.Errorf("%s: %v", want, err)
		case err == nil && a.Origin+":"+a.Title() != has:
			t.Errorf("%s: %s:%s", want, a.Origin, a.Title())
		}
	}
	if n := len(open().All); n != 8 {
		t.Errorf("%d agents", n)
	}
	check("one", "user:one@2.0.0")
	check("one@^1.2", "user:one@1.4.0")
	check("workspace:one", "workspace:one@1.0.0")
	check("one@9", "no version of agent one fits 9; there are 1.0.0, 1.4.0, 2.0.0")
	check("one@latest", "is no range")
	check("two", "AMBIGUOUS")
	check("three", "user:three@1.0.0")
	check("bad", "BAD_FILE")
	check("nobody", "there is no agent nobody")
	trusted = true
	check("one", "workspace:one@1.0.0")
	check("one@^2", "user:one@2.0.0")

	// A folder that became a link is none.
	if err := os.Rename(filepath.Join(dir, "ws", "agents"), filepath.Join(dir, "elsewhere")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "elsewhere"), filepath.Join(dir, "ws", "agents")); err != nil {
		t.Fatal(err)
	}
	check("workspace:one", "there is no agent")
}

func TestWhatIsRequiredComesFirstAndWhatCannotBeIsNamed(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"root.yaml":  agent("root", "1.0.0", ""),
		"mid.yaml":   agent("mid", "1.0.0", "requires: [root@^1]\n"),
		"leaf.yaml":  agent("leaf", "1.0.0", "requires: [mid, root]\n"),
		"old.yaml":   agent("old", "1.0.0", "requires: [root@^2]\n"),
		"a.yaml":     agent("a", "", "requires: [b]\n"),
		"b.yaml":     agent("b", "", "requires: [c]\n"),
		"c.yaml":     agent("c", "", "requires: [a]\n"),
		"self.yaml":  agent("self", "", "requires: [self]\n"),
		"enemy.yaml": agent("enemy", "", "requires: [root]\nconflicts: [root@>=1.0.0]\n"),
	})
	c := agentfile.Open([]agentfile.Place{{Dir: dir, Origin: agentfile.User}})
	for name, want := range map[string]string{
		"leaf": "root mid leaf", "old": "MISSING old > root@^2: no version of agent root fits ^2", "a": "CYCLE agents require each other: a > b > c > a",
		"self": "CYCLE agents require each other: self > self", "enemy": "CONFLICT enemy and root@1.0.0 can't be together",
	} {
		a, err := c.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		order, err := c.Order(a)
		got := ""
		for _, o := range order {
			got += " " + o.Name
		}
		if err != nil {
			got = string(belay.CodeOf(err)) + " " + err.Error()
			if !a.Is(string(belay.CodeOf(err))) {
				t.Errorf("%s has no finding of it", name)
			}
		}
		if !strings.HasPrefix(strings.TrimSpace(got), want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// Whatever a Markdown file holds, reading it as an agent and as a skill ends, and it has a
// name and a place.
func FuzzMarkdown(f *testing.F) {
	f.Add("---\nname: a\ndescription: >\n  b\ntools: [Read, 'Bash(git:*)']\n---\nbody")
	f.Add("---\nname: a\ndescription: b\nallowed-tools: Bash\nmetadata:\n  c: d\n---\nbody")
	f.Add("---\nname: \"a\ntools: [a, (b\n---\n")
	f.Add("---\nname: \"\x01\"\n---\n")
	f.Fuzz(func(t *testing.T, text string) {
		whole(t, "a.md", text)
		k := agentfile.ParseSkill("a/SKILL.md", []byte(text))
		if k.Name != "a" || utf8.RuneCountInString(k.Description) > 1024 {
			t.Errorf("a skill %q with %d bytes", k.Name, len(k.Description))
		}
		advised(t, k.Findings)
	})
}

// So with YAML, Belay's and Toka's.
func FuzzYAML(f *testing.F) {
	f.Add("metadata: {name: a}\nspec: {name: A}\ndependencies: {required: [{b: c}]}\nsecurity: {resource_limits: {max_cpu: 5%}}\n")
	f.Add(small + "output: {a: [1, {b: c}]}\n")
	f.Add(small + "rules: [{id: a, verdict: deny}]\nhealth: [a]\ntests: [{}]\n")
	f.Add("name: a\ninstructions: do\nrules: [{i\x13 verdictR deny}]")
	f.Fuzz(func(t *testing.T, text string) { whole(t, "a.yaml", text) })
}

// whole reads an agent that must have a name and a form as JSON.
func whole(t *testing.T, name, text string) {
	a := agentfile.Parse(name, []byte(text))
	if a.Name == "" {
		t.Error("no name")
	}
	advised(t, a.Findings)
	if _, err := json.Marshal(a); err != nil {
		t.Error(err)
	}
}

// TestAPlaceIsLookedAtWithinBounds: of a folder with very many files, or very many agents, a
// part is read, which is said; the rest isn't looked at again and again either.
func TestAPlaceIsLookedAtWithinBounds(t *testing.T) {
	for name, n := range map[string]int{"others": 10_001, "agents": agentfile.MaxFiles + 1} {
		dir := t.TempDir()
		write := func(file, text string) {
			t.Helper()
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write("a.yaml", "name: first\ninstructions: x\n")
		for i := range n {
			write(fmt.Sprintf("b%05d.%s", i, map[string]string{"others": "txt", "agents": "md"}[name]), "")
		}
		places := []agentfile.Place{{Dir: dir, Origin: agentfile.User}}
		write("z.yaml", "name: last\ninstructions: x\n")
		c := agentfile.Open(places)
		if _, err := c.Find("first"); err != nil || !slices.ContainsFunc(c.All, func(a *agentfile.Agent) bool { return a.Is(agentfile.CodeTooMany) }) {
			t.Errorf("%s: %v; nothing says that there are too many", name, err)
		}
		if _, err := c.Find("last"); err == nil {
			t.Errorf("%s: what is beyond the bound is read", name)
		}
		changed := agentfile.Stamp(places)
		write("z.yaml", "name: other\ninstructions: x\n")
		if agentfile.Stamp(places) != changed {
			t.Errorf("%s: what is beyond the bound is watched", name)
		}
	}
}
