package eval_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay/internal/eval"
)

// base is a scenario with a bit of everything, to which expectations are added.
const base = `
id: base
category: c
prompt: Do it.
setup: {files: {a.txt: "one\n", bad.go: "package a\nvar a = ;\n", good.go: "package a\n"}}
then: [{belay: [verify]}]
script:
  steps:
    - text: I look.
      calls:
        - {tool: read, args: {path: a.txt}}
        - {tool: read, args: {path: good.go}}
        - {tool: read, args: {path: nowhere}}
    - text: I write.
      calls: [{tool: write, args: {path: b.txt, content: "two\n"}}, {tool: nothing, args: {}}]
    - calls: [{tool: complete_task, args: {summary: Done.}}]
expect:
`

// Each kind of expectation, right and wrong. What is wrong must fail, and say
// what was expected and what there was.
var claims = []struct {
	kind, right, wrong string
	says               string
}{
	{"outcome", "completed", "failed", "outcome: expected failed, got completed"},
	{"outcome", "completed", "waiting", "expected waiting"},
	{"code", "", "LOOP", `code of the end: expected LOOP, got ""`},
	{"reason", "{lacks: x}", "{contains: x}", `reason of the end: expected to contain "x"`},
	{"exit", "0", "1", "exit code: expected 1, got 0"},
	{"exits", "[0, 0]", "[0, 1]", "exit codes: expected [0 1], got [0 0]"},
	{"printed", "{contains: whole}", "{contains: damaged}", `what was printed: expected to contain "damaged"`},
	{"assistant", `{equals: "I look.\nI write.\n"}`, "{equals: I look.}", "what the model said is not as expected:"},
	{"assistant", "{matches: '^I write'}", "{matches: '^write'}", "expected to match (?m)^write, got:"},
	{"assistant", "{lacks: dance}", "{lacks: write}", `expected not to contain "write"`},
	{"file", `{path: b.txt, equals: "two\n"}`, `{path: b.txt, equals: "two"}`, `\ No newline at end of file`},
	{"file", `{path: b.txt, contains: tw}`, `{path: b.txt, contains: one}`, `file b.txt: expected to contain "one", got:`},
	{"file", `{path: b.txt, lacks: one}`, `{path: b.txt, lacks: two}`, "expected not to contain"},
	{"file", `{path: b.txt, matches: '^t.o$'}`, `{path: b.txt, matches: '^o$'}`, "expected to match"},
	{"file", `{path: c.txt, absent: true}`, `{path: b.txt, absent: true}`, "file b.txt: expected to be absent, got:"},
	{"file", `{path: a.txt, unchanged: true}`, `{path: c.txt, contains: x}`, "file c.txt: expected to exist; the files are a.txt, b.txt, bad.go, good.go"},
	{"files", "[b.txt, a.txt, bad.go, good.go]", "[a.txt, bad.go, good.go]", "+b.txt"},
	{"called", "{tool: read}", "{tool: edit}", "a call of edit: expected at least once, got 0 times; the calls:"},
	{"called", "{tool: read, times: 3}", "{tool: read, times: 2}", "expected 2 times, got 3 times"},
	{"called", "{tool: read, times: 1, args: {path: a.txt}}", "{tool: read, args: {path: b.txt}}", `with {"path":"b.txt"}`},
	{"called", "{tool: read, good: true, times: 2}", "{tool: write, good: false}", "that didn't go well"},
	{"called", "{tool: edit, times: 0}", "{tool: nothing}", "a call of nothing: expected at least once"},
	{"failed", "{tool: read}", "{tool: write}", "a failed call of write: expected at least once"},
	{"failed", "{tool: read, code: NO_SUCH_FILE}", "{tool: read, code: CONFLICT}", "code CONFLICT: expected at least once, got 0 times; the calls:"},
	{"failed", "{tool: nothing, class: not_found}", "{tool: nothing, class: denied}", "class denied"},
	{"failed", "{tool: read, message: nowhere}", "{tool: read, message: everywhere}", `with "everywhere" in its message`},
	{"failed", "{tool: read, times: 1}", "{tool: read, times: 2}", "expected 2 times, got once"},
	{"result", `{tool: read, equals: "one\n"}`, `{tool: read, nth: 2, equals: "one\n"}`, "result 2 of read is not as expected"},
	{"result", `{tool: read, contains: one}`, `{tool: read, nth: 3, contains: one}`, "result 3 of read: only 2 calls went well"},
	{"together", "{tool: write, most: 1}", "{tool: write, least: 2}", "calls of write at the same time: expected at least 2, got 1"},
	{"fact", "{type: turn.completed}", "{type: turn.failed}", "facts turn.failed: expected at least 1, got 0"},
	{"fact", "{type: tool.started, where: {name: read}, count: 3}", "{type: tool.started, where: {name: read}, most: 2}", `facts tool.started with name "read": expected at most 2, got 3; all tool.started:`},
	{"fact", "{type: tool.failed, where: {problem: {class: not_found}}, least: 2}", "{type: tool.failed, where: {problem: {class: denied}}}", "expected at least 1, got 0"},
	{"fact", "{type: model.completed, where: {calls: [{name: read}, {name: read, path: good.go}, {name: read}]}, count: 1}", "{type: model.completed, where: {calls: [{name: read}]}}", "expected at least 1, got 0"},
	{"fact", "{type: turn.completed, where: {nextSteps: ''}}", "{type: turn.completed, where: {nextSteps: x}}", "expected at least 1, got 0"},
	{"order", "[{fact: tool.result}, {fact: turn.completed}]", "[{fact: turn.completed}, {fact: tool.result}]", "there is no tool.result after turn.completed"},
	{"order", "[{fact: turn.started}]", "[{fact: turn.failed}]", "there is no turn.failed at all"},
	{"syntax", "good.go", "bad.go", "syntax of bad.go: expected no errors, got:\n  2:9: expected operand"},
	{"syntax", "good.go", "missing.json", "file missing.json: expected to exist"},
	{"steps", "{count: 3}", "{most: 2}", "steps: expected at most 2, got 3"},
	{"calls", "{count: 6}", "{least: 7}", "calls: expected at least 7, got 6"},
	{"took", "{most: 1m}", "{least: 5m}", "time: expected at least 5m0s, got"},
	{"took", "{least: 1us}", "{most: 1us}", "time: expected at most 1µs, got"},
	{"store", "whole", "", ""},
}

// Guarantee: X30.
func TestWrongExpectationsFail(t *testing.T) {
	covered := map[string]bool{}
	var right strings.Builder
	right.WriteString(base)
	for _, c := range claims {
		covered[c.kind] = true
		if c.right != "" {
			right.WriteString("  - " + c.kind + ": " + c.right + "\n")
		}
	}
	for _, kind := range eval.Kinds() {
		if !covered[kind] {
			t.Errorf("nothing here is about %s", kind)
		}
	}
	all := parse(t, right.String())
	seen := watch(t, all[0])
	for i, e := range all[0].Expect {
		if failures := e.Check(t.Context(), seen); len(failures) > 0 {
			t.Errorf("right expectation %d: %s", i, strings.Join(failures, "\n"))
		}
	}
	for _, c := range claims {
		if c.wrong == "" {
			continue
		}
		wrong := parse(t, base+"  - "+c.kind+": "+c.wrong+"\n")[0].Expect[0]
		if got := strings.Join(wrong.Check(t.Context(), seen), "\n"); !strings.Contains(got, c.says) {
			t.Errorf("%s: %s\ngot  %q\nwant %q", c.kind, c.wrong, got, c.says)
		}
	}
	store := all[0].Expect[len(all[0].Expect)-1]
	damage(t, seen.Workspace+"/../store")
	if got := strings.Join(store.Check(t.Context(), seen), "\n"); !strings.Contains(got, "store: expected to be whole, got:") {
		t.Errorf("a damaged store: %q", got)
	}
}

func parse(t *testing.T, text string) []*eval.Scenario {
	t.Helper()
	all, err := eval.Parse("a.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return all
}

// spy keeps what was seen, for expectations that are held against it later.
type spy struct{ seen *eval.Seen }

func (s *spy) Check(_ context.Context, seen *eval.Seen) []string { s.seen = seen; return nil }

// watch plays a scenario and keeps its place.
func watch(t *testing.T, s *eval.Scenario) *eval.Seen {
	t.Helper()
	p := player(t)
	p.Keep = true
	w := &spy{}
	c := *s
	c.Expect = []eval.Expectation{w}
	r, err := p.Play(t.Context(), &c)
	if err != nil || !r.Passed() {
		t.Fatal(err, r.Failures)
	}
	return w.seen
}

// damage turns a bit of a recorded sentence.
func damage(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{"/tenants/default/belay.db", "/tenants/default/belay.db-wal"} {
		b, err := os.ReadFile(dir + name)
		if err != nil {
			continue
		}
		if i := strings.Index(string(b), "I look."); i >= 0 {
			b[i] ^= 1
			if err := os.WriteFile(dir+name, b, 0o600); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatal("nothing to damage was found")
}

// Guarantee: X30.
func TestAScenarioPassesOnlyWithAllItExpects(t *testing.T) {
	s := parse(t, base+"  - outcome: completed\n  - exit: 0\n  - steps: {count: 3}\n")[0]
	for i := range len(s.Expect) + 1 {
		c := *s
		c.Expect = append([]eval.Expectation{}, s.Expect...)
		if i < len(c.Expect) {
			c.Expect[i] = eval.Outcome("failed")
		}
		r, err := player(t).Play(t.Context(), &c)
		if err != nil {
			t.Fatal(err)
		}
		if r.Passed() != (i == len(s.Expect)) {
			t.Errorf("with expectation %d wrong: %v", i, r.Failures)
		}
	}
}

func TestAScenarioThatTakesTooLongFails(t *testing.T) {
	s := parse(t, `
id: slow
category: c
prompt: Wait.
limit: 300ms
script: {steps: [{text: x, delay: 1h}]}
expect: [{outcome: waiting}]
`)[0]
	begun := time.Now()
	r, err := player(t).Play(t.Context(), s)
	if err != nil || len(r.Failures) == 0 || r.Failures[0] != "it did not end within 300ms" {
		t.Errorf("got %v, %v", r.Failures, err)
	}
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
}
