package scripted_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/scripted"
)

func parse(t testing.TB, text string) *scripted.Script {
	t.Helper()
	s, err := scripted.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// said is an answer in one line: text, then each call as tool(args), or the error.
func said(t testing.TB, s *scripted.Script, r model.Request) string {
	t.Helper()
	var parts []string
	text := ""
	for c, err := range scripted.New(s).Stream(t.Context(), r) {
		if err != nil {
			return err.Error()
		}
		text += c.Text
		if c.Call != nil {
			parts = append(parts, c.Call.Name+"("+c.Call.Args+")")
		}
	}
	return strings.Join(append([]string{text}, parts...), " ")
}

// talk is a conversation being written down; its methods return it longer.
type talk []belay.Message

func (m talk) user(text string) talk {
	return append(slices.Clip(m), belay.Text(belay.RoleUser, text))
}

// answer is an answer of the model: text and the tools it calls.
func (m talk) answer(text string, tools ...string) talk {
	a := belay.Text(belay.RoleAssistant, text)
	for i, tool := range tools {
		id := belay.CallID(fmt.Sprintf("call_%d_%d", len(m), i))
		a.Parts = append(a.Parts, belay.Part{Call: &belay.ToolCall{ID: id, Name: tool, Args: json.RawMessage("{}")}})
	}
	return append(slices.Clip(m), a)
}

func (m talk) result(tool, text string) talk { return m.outcome(tool, text, false) }
func (m talk) failed(tool, text string) talk { return m.outcome(tool, text, true) }

func (m talk) outcome(tool, text string, failed bool) talk {
	r := belay.ToolResult{Name: tool, Text: text, Error: failed}
	return append(slices.Clip(m), belay.Message{Role: belay.RoleTool, Parts: []belay.Part{{Result: &r}}})
}

func TestTheMainLineIsSaidInOrder(t *testing.T) {
	s := parse(t, "name: line\nsteps: [{text: one}, {text: two}, {text: three}]")
	m := talk{}.user("go")
	for _, want := range []string{"one", "two", "three"} {
		if got := said(t, s, model.Request{Messages: m}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		m = m.answer(want).user("more")
	}
	got := said(t, s, model.Request{Messages: m})
	if want := `bad_request: the script has no step for answer 4: "line" ends after 3`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

const branches = `
steps:
  - {text: read, calls: [{tool: read}, {tool: list}]}
  - {text: edit, calls: [{tool: edit}]}
  - {label: run, text: exec, calls: [{tool: exec}]}
  - {text: finish}
  - {text: after}
  - {when: {tool: exec, error: true, contains: lost}, text: again, calls: [{tool: exec}]}
  - {when: {tool: edit, error: true, matches: "^CONFLICT"}, times: 1, text: reread, calls: [{tool: read}]}
  - {when: {tool: exec, contains: skip}, text: skipping, goto: next}
  - {when: {contains: start over}, text: again from exec, goto: run}
  - {when: {contains: stop}, text: stopping, goto: end}
  - {when: {note: "(?i)complete"}, text: hurry}
  - {when: {forced: complete_task}, text: forced, calls: [{tool: complete_task}]}
  - {when: {attempt: 3}, text: third time}
  - {when: {tool: list, error: false, contains: empty}, text: nothing here}
`

func TestABranchIsTakenBesideTheMainLine(t *testing.T) {
	s := parse(t, branches)
	start := talk{}.user("go")
	read := start.answer("read", "read", "list")
	edit := read.result("read", "a").result("list", "b").answer("edit", "edit")
	exec := edit.result("edit", "ok").answer("exec", "exec")
	lost := exec.failed("exec", "lost").answer("again", "exec")
	conflict := edit.failed("edit", "CONFLICT a.txt").answer("reread", "read")
	for _, c := range []struct {
		name string
		r    model.Request
		want string
	}{
		{"nothing holds", model.Request{Messages: exec.result("exec", "exit 0")}, "finish"},
		{"a lost call", model.Request{Messages: exec.failed("exec", "lost")}, `again exec({})`},
		{"afterwards the main line goes on", model.Request{Messages: lost.result("exec", "exit 0")}, "finish"},
		{"and once more when it is lost again", model.Request{Messages: lost.failed("exec", "lost")}, `again exec({})`},
		{"and further", model.Request{Messages: lost.failed("exec", "lost").answer("again", "exec").result("exec", "exit 0").answer("finish").user("x")}, "after"},
		{"a word of it in a good result is no failure", model.Request{Messages: exec.result("exec", "lost")}, "finish"},
		{"nor in another tool's", model.Request{Messages: edit.failed("edit", "lost")}, `exec exec({})`},
		{"a conflict", model.Request{Messages: edit.failed("edit", "CONFLICT a.txt")}, `reread read({})`},
		{"a branch with times is taken that often", model.Request{Messages: conflict.failed("edit", "CONFLICT a.txt")}, `exec exec({})`},
		{"one of several results is enough", model.Request{Messages: read.result("read", "a").result("list", "empty")}, "nothing here"},
		{"but one has to meet all", model.Request{Messages: read.result("read", "empty").result("list", "b")}, `edit edit({})`},
		{"an older result does not count", model.Request{Messages: read.result("list", "empty").answer("nothing here").user("x")}, `edit edit({})`},
		{"next skips", model.Request{Messages: exec.result("exec", "skip").answer("skipping").user("x")}, "after"},
		{"a label is gone on at", model.Request{Messages: exec.result("exec", "ok").answer("finish").user("start over").answer("again from exec").user("x")}, `exec exec({})`},
		{"end is after the last step", model.Request{Messages: start.user("stop").answer("stopping").user("x")}, `bad_request: the script has no step for answer 2: "test" ends after 5`},
		{"a nudge", model.Request{Messages: exec.result("exec", "ok").answer("finish"), Note: "Complete the task."}, "hurry"},
		{"a note that no step is about", model.Request{Messages: exec.result("exec", "ok").answer("finish"), Note: "Go on."}, "after"},
		{"an answer to a nudge is known later", model.Request{Messages: exec.answer("hurry").user("x")}, "finish"},
		{"a forced tool", model.Request{Messages: exec, ForceTool: "complete_task"}, `forced complete_task({})`},
		{"another attempt", model.Request{Messages: start, Attempt: 3}, "third time"},
		{"an earlier attempt", model.Request{Messages: start, Attempt: 2}, `read read({}) list({})`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := said(t, s, c.r); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestAResultWithoutANameBelongsToItsCall(t *testing.T) {
	s := parse(t, "steps: [{text: a, calls: [{tool: list}, {tool: read}]}, {text: b}, {when: {tool: read, error: true}, text: c}]")
	m := talk{}.user("go").answer("a", "list", "read")
	for call, want := range map[int]string{0: "b", 1: "c"} {
		r := belay.ToolResult{ID: m[1].Parts[call+1].Call.ID, Error: true}
		all := append(slices.Clone(m), belay.Message{Role: belay.RoleTool, Parts: []belay.Part{{Result: &r}}})
		if got := said(t, s, model.Request{Messages: all}); got != want {
			t.Errorf("the failure of call %d: got %q, want %q", call, got, want)
		}
	}
}

func TestAStepIsRepeated(t *testing.T) {
	s := parse(t, `
steps:
  - {text: before}
  - repeat: 2000
    text: round ${n}
    calls: [{tool: read, args: {path: "f${n}.txt"}}, {tool: list, raw: '{"depth": ${n}}'}]
  - {text: "last ${n}", goto: end}`)
	if s.Len() != 2002 {
		t.Errorf("the script has %d answers, want 2002", s.Len())
	}
	m := talk{}.user("go").answer("before")
	for n := 1; n <= 2000; n++ {
		if n == 1 || n == 1000 || n == 2000 {
			want := fmt.Sprintf(`round %d read({"path":"f%[1]d.txt"}) list({"depth": %[1]d})`, n)
			if got := said(t, s, model.Request{Messages: m}); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		m = append(m, belay.Text(belay.RoleAssistant, "round"))
	}
	if got := said(t, s, model.Request{Messages: m}); got != "last ${n}" {
		t.Errorf("got %q, want the step after with its ${n} untouched", got)
	}
}

func TestARepeatedStepJumpsAfterItsLastRound(t *testing.T) {
	s := parse(t, "steps: [{text: 'r${n}', repeat: 2, goto: x}, {text: skipped}, {text: there, label: x}]")
	m := talk{}.user("go")
	for _, want := range []string{"r1", "r2", "there"} {
		if got := said(t, s, model.Request{Messages: m}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		m = m.answer(want)
	}
}

func TestArgumentsAreWrittenAsJSON(t *testing.T) {
	for yaml, want := range map[string]string{
		`{tool: a}`:           `a({})`,
		`{tool: a, args: {}}`: `a({})`,
		`{tool: a, args: {b: "<&>", c: [1, true]}}`:  `a({"b":"<&>","c":[1,true]})`,
		`{tool: a, args: {"n": null, x: 1.5}}`:       `a({"n":null,"x":1.5})`,
		`{tool: a, args: {command: echo x >> y}}`:    `a({"command":"echo x >> y"})`,
		`{tool: a, args: {deep: {er: {1: "${n}"}}}}`: `a({"deep":{"er":{"1":"${n}"}}})`,
		`{tool: a, raw: '{"b": '}`:                   `a({"b": )`,
		`{tool: a, raw: ''}`:                         `a()`,
	} {
		s := parse(t, "steps: [{calls: ["+yaml+"]}]")
		if got := said(t, s, model.Request{}); got != " "+want {
			t.Errorf("%s: got %q, want %q", yaml, got, want)
		}
	}
}

func TestAScriptMayBeJSON(t *testing.T) {
	s := parse(t, "{\n\t\"name\": \"j\",\n\t\"steps\": [\n\t\t{\"text\": \"a\\n\\u00fc\\/\", \"calls\": [{\"tool\": \"b\", \"args\": {\"c\": [\"d\"]}}]}\n\t]\n}\n")
	if got, want := said(t, s, model.Request{}), "a\nü/ b({\"c\":[\"d\"]})"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
