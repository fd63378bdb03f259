package eval_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/eval"
)

const least = `id: a
category: c
prompt: p
script: {steps: [{text: x}]}
expect: [{outcome: completed}]
`

func TestWhatIsMissingOrWrongIsToldWithItsPlace(t *testing.T) {
	for _, c := range []struct{ text, where, says string }{
		{"", "a.yaml", "the scenario is empty"},
		{"- a", "a.yaml:1:1", "a scenario is an object"},
		{"category: c\nprompt: p\n", "a.yaml:1:1", "a scenario needs an id"},
		{strings.Replace(least, "id: a", "id: a/b", 1), "a.yaml:1:5", "a scenario needs an id"},
		{strings.Replace(least, "category: c\n", "", 1), "a.yaml:1:1", "needs a category"},
		{strings.Replace(least, "prompt: p", "prompt: ' '", 1), "a.yaml:3:9", "needs a prompt"},
		{strings.Replace(least, "script: {steps: [{text: x}]}\n", "", 1), "a.yaml:1:1", "needs a script"},
		{strings.Replace(least, "{text: x}", "{text: x, tool: read}", 1), "a.yaml:4:28", "unknown field"},
		{strings.Replace(least, "{text: x}", "{goto: x, text: x}", 1), "a.yaml:4:25", `no step has the label "x"`},
		{strings.Replace(least, "expect: [{outcome: completed}]\n", "", 1), "a.yaml:1:1", "a scenario that expects nothing can't fail"},
		{strings.Replace(least, "[{outcome: completed}]", "[]", 1), "a.yaml:5:9", "can't fail"},
		{strings.Replace(least, "completed", "happy", 1), "a.yaml:5:20", `"happy" is none of waiting, completed`},
		{strings.Replace(least, "outcome: completed", "", 1), "a.yaml:5:10", "an expectation is about one thing, not 0"},
		{strings.Replace(least, "outcome: completed", "outcome: completed, exit: 0", 1), "a.yaml:5:11", "an expectation is about one thing, not 2"},
		{strings.Replace(least, "outcome: completed", "outcme: completed", 1), "a.yaml:5:11", "unknown field"},
		{least + "mood: good\n", "a.yaml:6:1", "unknown field"},
		{least + "limit: soon\n", "a.yaml:6:8", `"soon" is no duration`},
		{least + "setup: {files: {../a: x}}\n", "a.yaml:6:23", "no path of a file below the workspace"},
		{least + "setup: {files: {/a: x}}\n", "a.yaml:6:", "no path of a file below the workspace"},
		{least + "setup: {commands: [[]]}\n", "a.yaml:6:", "a command is a list that begins with a program"},
		{least + "settings: {flags: [title]}\n", "a.yaml:6:", `"title" is no flag`},
		{least + "answers: [{by: ann}]\n", "a.yaml:6:", "an answer is one of allow, deny and answer"},
		{least + "answers: [{allow: true, answer: x}]\n", "a.yaml:6:", "an answer is one of allow, deny and answer"},
		{least + "answers: [{deny: x, session: true}]\n", "a.yaml:6:", "only allow can be for the session"},
		{least + "answers: [{allow: true, by: a b}]\n", "a.yaml:6:", "no name of a person"},
		{least + "meanwhile: [{crash: true}]\n", "a.yaml:6:", "it happens after a fact or before one"},
		{least + "meanwhile: [{after: {fact: turn.begun}, crash: true}]\n", "a.yaml:6:28", `there is no fact "turn.begun"`},
		{least + "meanwhile: [{after: {fact: turn.started}}]\n", "a.yaml:6:", "nothing happens"},
		{least + "meanwhile: [{after: {fact: turn.started}, answer: {allow: true}}]\n", "a.yaml:6:", "an answer comes after action.required"},
		{least + "meanwhile: [{after: {fact: turn.started}, nth: -1, crash: true}]\n", "a.yaml:6:", "no number from 1"},
		{least + "meanwhile: [{after: {fact: turn.started}, write: {../x: a}}]\n", "a.yaml:6:", "no path of a file"},
		{least + "then: [{by: ann}]\n", "a.yaml:6:", "what follows is one of prompt, resume and belay"},
		{least + "then: [{resume: true, prompt: x}]\n", "a.yaml:6:", "what follows is one of prompt, resume and belay"},
		{"---\n" + least + "---\nid: b\n", "a.yaml:8:1", "needs a category"},
	} {
		_, err := eval.Parse("a.yaml", []byte(c.text))
		e, ok := errors.AsType[*belay.Error](err)
		if !ok || e.Code != belay.CodeBadScenario && e.Code != belay.CodeBadScript || !strings.HasPrefix(e.Where, c.where) || !strings.Contains(e.Message, c.says) || e.Hint == "" {
			t.Errorf("%s\ngot  %#v\nwant %s: %s", c.text, err, c.where, c.says)
		}
	}
}

// What can't fail is refused: it would look like a check and be none.
// Guarantee: X30.
func TestExpectationsThatCantFailAreRefused(t *testing.T) {
	for _, e := range []string{
		"reason: {}", "printed: {contains: ''}", "assistant: {matches: ''}", "file: {path: a.txt}", "file: {path: a.txt, unchanged: true}",
		"file: {path: a.txt, absent: true, equals: x}", "file: {path: ../a.txt, equals: x}", "file: {equals: x}", "called: {}", "called: {tool: read, times: -1}",
		"failed: {code: X}", "result: {tool: read}", "together: {tool: read}", "together: {tool: read, least: 0}", "fact: {}", "fact: {type: no.such}",
		"fact: {type: turn.started, least: 0}", "fact: {type: turn.started, least: 2, most: 1}", "fact: {type: turn.started, count: 1, most: 2}",
		"order: []", "order: [{where: {}}]", "syntax: a.txt", "syntax: ../a.go", "steps: {}", "steps: {most: -1}", "calls: {count: -1}",
		"took: {}", "took: {most: fast}", "store: full", "code: ''", "exits: [0, 0]", "assistant: {matches: '('}",
	} {
		_, err := eval.Parse("a.yaml", []byte(strings.Replace(least, "outcome: completed", e, 1)))
		if belay.CodeOf(err) != belay.CodeBadScenario {
			t.Errorf("%s: got %v", e, err)
		}
	}
}

func TestTheSmallestScenario(t *testing.T) {
	all, err := eval.Parse("a.yaml", []byte(least))
	if err != nil || len(all) != 1 || all[0].ID != "a" || all[0].Line != 1 || len(all[0].Expect) != 1 {
		t.Errorf("got %+v, %v", all, err)
	}
	both, err := eval.Parse("a.json", []byte(`{"id":"a","category":"c","prompt":"p","script":{"steps":[{"text":"x"}]},"expect":[{"outcome":"completed"}]}`))
	if err != nil || both[0].ID != "a" {
		t.Errorf("JSON: got %+v, %v", both, err)
	}
}

func TestFilesAreFoundOnceAndInOrder(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	named := func(id string) string { return strings.Replace(least, "id: a", "id: "+id, 1) }
	put("b.yaml", named("two"))
	put("a/x.yml", named("one"))
	put("c.json", `{"id":"three","category":"c","prompt":"p","script":{"steps":[{"text":"x"}]},"expect":[{"outcome":"completed"}]}`)
	put(".hidden.yaml", "not read")
	put(".git/x.yaml", "not read")
	put("notes.txt", "not read")
	all, err := eval.Load([]string{filepath.Join(dir, "b.yaml"), dir})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, s := range all {
		ids = append(ids, s.ID)
	}
	if got := strings.Join(ids, " "); got != "two one three" {
		t.Errorf("got %s", got)
	}
	if some := eval.Pick(all, regexp.MustCompile("c/t")); len(some) != 2 {
		t.Errorf("picked %d", len(some))
	}

	put("d.yaml", named("one"))
	_, err = eval.Load([]string{dir})
	if e, ok := errors.AsType[*belay.Error](err); !ok || e.Where != filepath.Join(dir, "d.yaml")+":1" || !strings.Contains(e.Message, `"one" is taken by `+filepath.Join(dir, "a/x.yml")+":1") {
		t.Errorf("one id twice: %v", err)
	}
	for _, path := range []string{filepath.Join(dir, "nowhere"), t.TempDir()} {
		if _, err := eval.Load([]string{path}); belay.CodeOf(err) != belay.CodeBadScenario {
			t.Errorf("%s: %v", path, err)
		}
	}
}
