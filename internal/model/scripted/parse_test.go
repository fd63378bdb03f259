package scripted_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/model/scripted"
)

func TestAMistakeIsToldWithItsPlace(t *testing.T) {
	for _, c := range []struct{ name, text, where, message string }{
		{"no such field", "steps:\n  - text: a\n    tex: b\n", "s.yaml:3:5", `unknown field "tex"`},
		{"no such field at the top", "step: []\n", "s.yaml:1:1", `unknown field "step"`},
		{"twice the same field", "name: a\nname: b\n", "s.yaml:2:1", "already defined"},
		{"not closed", "steps: [\n", "s.yaml:1:8", "not found"},
		{"a list where an object belongs", "- text: a\n", "s.yaml:1:1", "sequence"},
		{"text where a number belongs", "steps:\n  - text: a\n    chunks: many\n", "s.yaml:3:13", "want a number here, have text"},
		{"text where true belongs", "steps:\n  - text: a\n    when: {error: often}\n", "s.yaml:3:19", "want true or false"},
		{"empty", "", "s.yaml", "empty"},
		{"only a comment", "# nothing\n", "s.yaml", "empty"},
		{"no steps", "name: a\nsteps: []\n", "s.yaml:2:8", "no steps"},
		{"two documents", "steps: [{text: a}]\n---\nsteps: []\n", "s.yaml:3:1", "second document"},
		{"a step that says nothing", "steps:\n  - text: a\n  - delay: 1s\n", "s.yaml:3:5", "step 2 says nothing"},
		{"an empty step", "steps:\n  - text: a\n  -\n", "s.yaml:", "step 2 says nothing"},
		{"a delay without a unit", "steps:\n  - text: a\n    delay: 5\n", "s.yaml:3:12", `"5" is no duration`},
		{"a delay back in time", "steps:\n  - text: a\n    delay: -5s\n", "s.yaml:3:12", "no duration"},
		{"a bad wait", "steps:\n  - fault: {kind: rate_limited, retryAfter: soon}\n", "s.yaml:2:45", "no duration"},
		{"a bad expression", "steps:\n  - text: a\n    when:\n      matches: '('\n", "s.yaml:4:16", "no regular expression"},
		{"a bad note", "steps:\n  - text: a\n    when:\n      note: '['\n", "s.yaml:4:13", "no regular expression"},
		{"a condition that says nothing", "steps:\n  - text: a\n    when: {}\n", "s.yaml:3:11", "always holds"},
		{"an unknown fault", "steps:\n  - fault: {kind: fire}\n", "s.yaml:2:19", `unknown fault "fire"`},
		{"an unknown stop", "steps:\n  - stop: now\n", "s.yaml:2:11", `unknown stop "now"`},
		{"a jump to nowhere", "steps:\n  - text: a\n    goto: b\n", "s.yaml:3:11", `no step has the label "b"`},
		{"one label twice", "steps:\n  - {text: a, label: x}\n  - {text: b, label: x}\n", "s.yaml:3:22", `"x" is taken`},
		{"a label that all have", "steps:\n  - {text: a, label: end}\n", "s.yaml:2:22", `"end" is taken`},
		{"a branch with a label", "steps:\n  - {text: a, label: x, when: {tool: b}}\n", "s.yaml:2:", "no label"},
		{"a main step with times", "steps:\n  - {text: a, times: 2}\n", "s.yaml:2:22", "times bounds"},
		{"a negative number", "steps:\n  - {text: a, repeat: -1}\n", "s.yaml:2:23", "not between"},
		{"too many repetitions", "steps:\n  - {text: a, repeat: 2000000}\n", "s.yaml:2:23", "not between"},
		{"a negative usage", "steps:\n  - {text: a, usage: {input: -1}}\n", "s.yaml:2:", "0 or more"},
		{"a call of nothing", "steps:\n  - calls:\n      - args: {}\n", "s.yaml:3:9", "without a tool"},
		{"arguments in two ways", "steps:\n  - calls:\n      - {tool: a, args: {b: 1}, raw: '{'}\n", "s.yaml:3:38", "either args or raw"},
		{"arguments that are no object", "steps:\n  - calls:\n      - {tool: a, args: [1]}\n", "s.yaml:3:25", ""},
		{"arguments JSON has no form for", "steps:\n  - calls:\n      - {tool: a, args: {b: .nan}}\n", "s.yaml:3:", "no form in JSON"},
		{"an alias", "steps:\n  - text: &a b\n  - text: *a\n", "s.yaml:2:11", "anchors"},
		{"a tag", "steps:\n  - text: !!binary YQ==\n", "s.yaml:2:11", "tags"},
		{"deep nesting", "steps: " + strings.Repeat("[", 5000), "s.yaml:1:108", "nesting"},
		{"deep nesting without brackets", "steps:\n" + strings.Repeat("- ", 5000) + "a", "s.yaml:2:", "nesting"},
		{"not UTF-8", "steps:\n  - text: \xff\n", "s.yaml", "UTF-8"},
		{"too long", "#" + strings.Repeat(" ", 5<<20), "s.yaml", "bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := scripted.Parse("s.yaml", []byte(c.text))
			e, ok := errors.AsType[*belay.Error](err)
			if !ok || e.Code != belay.CodeBadScript {
				t.Fatalf("got %v, want an error with code %s", err, belay.CodeBadScript)
			}
			exact := !strings.HasSuffix(c.where, ":")
			if exact && e.Where != c.where || !strings.HasPrefix(e.Where, c.where) {
				t.Errorf("where is %q, want %q (%s)", e.Where, c.where, e.Message)
			}
			if !strings.Contains(e.Message, c.message) {
				t.Errorf("message is %q, want %q in it", e.Message, c.message)
			}
			if e.Hint == "" {
				t.Error("there is no hint")
			}
		})
	}
}

func TestAScriptIsNamedAfterItsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hello.yaml")
	if err := os.WriteFile(path, []byte("steps: [{text: a, repeat: 3}, {text: b}, {text: c, when: {tool: x}}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := scripted.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if s.Name() != "hello" || s.Len() != 4 {
		t.Errorf("got %q with %d answers, want hello with 4", s.Name(), s.Len())
	}
}

func TestAMissingFileIsTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none.yaml")
	_, err := scripted.Load(path)
	e, ok := errors.AsType[*belay.Error](err)
	if !ok || e.Code != belay.CodeBadScript || e.Where != path || e.Hint == "" {
		t.Errorf("got %#v, want a bad_script at %s with a hint", err, path)
	}
}

// FuzzParse: whatever the text, Parse returns a script or a bad_script that
// says where; and a script can be played.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"steps: [{text: a}]", "{\"steps\": [{\"calls\": [{\"tool\": \"a\", \"args\": {\"b\": [1, null]}}]}]}",
		"steps:\n  - when: {matches: 'a+', error: true}\n    text: |\n      b\n  - fault: {kind: cut, afterChars: 3}\n",
		"- - - a", "? a\n: b", "a: &b [*b]", "steps:\n\t- a", "%YAML 1.2\n---\nsteps: []\n...", "steps: >-\n  a\n  <<: b", "'", "\"\\u", "steps: [{text: a, repeat: 3, goto: end}]",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := scripted.Parse("f", text)
		if err != nil {
			e, ok := errors.AsType[*belay.Error](err)
			if !ok || e.Code != belay.CodeBadScript || !strings.HasPrefix(e.Where, "f") || e.Hint == "" {
				t.Fatalf("%q: %#v", text, err)
			}
			return
		}
		if s.Len() == 0 && s.Name() == "" {
			t.Fatalf("%q is a script of nothing", text)
		}
	})
}
