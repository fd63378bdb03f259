package gym_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/conformance/gym"
	"github.com/belay-run/belay/internal/cli"
	"github.com/belay-run/belay/internal/eval"
)

// play plays a scenario in a place of its own.
func play(t *testing.T, s *eval.Scenario) eval.Result {
	t.Helper()
	p := cli.Player()
	p.Temp = t.TempDir()
	r, err := p.Play(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Guarantee: X32.
func TestTheSamplesPass(t *testing.T) {
	all, err := eval.Load([]string{"testdata/gym"}, gym.Read)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 9 {
		t.Fatalf("there are %d scenarios, want 9", len(all))
	}
	for _, s := range all {
		t.Run(s.ID, func(t *testing.T) {
			t.Parallel()
			for _, f := range play(t, s).Failures {
				t.Error(f)
			}
		})
	}
}

// Each sample with its expectation turned must fail: what passes means something.
// Guarantee: X32.
func TestTheSamplesCanFail(t *testing.T) {
	files, err := filepath.Glob("testdata/gym/*.yaml")
	if err != nil || len(files) != 9 {
		t.Fatal(files, err)
	}
	turned := strings.NewReplacer(`"bash:execute"`, `"bash:other"`, `"file:read" }`, `"file:list" }`, `"Plan:"`, `"Nothing:"`, `"Prefer const" }`, `"Prefer var" }`,
		`"content": "ready\n"`+"\n    }\n  ]", `"content": "steady\n"`+"\n    }\n  ]")
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		head, script, _ := strings.Cut(string(b), `"script"`)
		wrong := turned.Replace(head)
		if wrong == head { // the rest compares files
			i := strings.LastIndex(head, `\n"`)
			wrong = head[:i] + `\nmore` + head[i:]
		}
		all, ok, err := gym.Read(file, []byte(wrong+`"script"`+script))
		if !ok || err != nil {
			t.Fatal(file, ok, err)
		}
		if r := play(t, all[0]); r.Passed() {
			t.Errorf("%s passes with wrong expectations", file)
		}
	}
}

// made is a scenario of one call and what must come of it.
func made(t *testing.T, name string, args map[string]any, expect ...map[string]any) *eval.Scenario {
	t.Helper()
	b, err := json.Marshal(map[string]any{
		"id": "made", "title": "t", "category": "c", "difficulty": "easy", "prompt": "p",
		"setup":        map[string]any{"files": []any{map[string]any{"path": "a.txt", "content": "old\n"}, map[string]any{"path": "d/b.txt", "content": "b"}}},
		"expectations": expect,
		"script": map[string]any{"responses": []any{
			map[string]any{"content": "I try.", "finishReason": "tool_use", "toolCalls": []any{map[string]any{"name": name, "arguments": args}}},
			map[string]any{"content": "Done.", "finishReason": "stop"},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	all, ok, err := gym.Read("made.yaml", b)
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	return all[0]
}

type args = map[string]any

func failed(name, code, message string) args {
	return args{"type": "tool_result_error", "name": name, "code": code, "messageIncludes": message}
}

func TestTheToolsAnswerInTheGymsWords(t *testing.T) {
	for _, c := range []struct {
		title, tool string
		args        args
		expect      args
	}{
		{"a missing file", "file:read", args{"path": "no.txt"}, failed("file:read", "RESOURCE_NOT_FOUND", "File not found")},
		{"a file outside", "file:read", args{"path": "../x"}, failed("file:read", "PERMISSION_DENIED", "outside allowed directories")},
		{"an absolute path", "file:read", args{"path": "/etc/hostname"}, failed("file:read", "PERMISSION_DENIED", "")},
		{"a folder nobody reads", "file:read", args{"path": ".ssh/id"}, failed("file:read", "PERMISSION_DENIED", "is where keys are kept")},
		{"a folder of packages", "file:read", args{"path": "node_modules/x"}, failed("file:read", "PERMISSION_DENIED", "blocked pattern")},
		{"a path that is none", "file:read", args{"path": 7}, failed("file:read", "INVALID_ARGUMENTS", "path must be a string")},
		{"a file is overwritten unread", "file:write", args{"path": "a.txt", "content": "new\n"}, args{"type": "file_equals", "path": "a.txt", "content": "new\n"}},
		{"folders are made", "file:write", args{"path": "x/y.txt", "content": "y", "createDirs": true}, args{"type": "file_equals", "path": "x/y.txt", "content": "y"}},
		{"folders aren't made unasked", "file:write", args{"path": "x/y.txt", "content": "y"}, failed("file:write", "EXECUTION_FAILED", "Failed to write file")},
		{"a write outside", "file:write", args{"path": "../y.txt", "content": "y"}, failed("file:write", "PERMISSION_DENIED", "")},
		{"a write without content", "file:write", args{"path": "y.txt"}, failed("file:write", "INVALID_ARGUMENTS", "content")},
		{"a missing folder", "file:list", args{"path": "no"}, failed("file:list", "EXECUTION_FAILED", "Failed to list directory")},
		{"a folder", "file:list", args{"path": "d"}, args{"type": "tool_called", "name": "file:list"}},
		{"a file is deleted", "file:delete", args{"path": "a.txt"}, args{"type": "tool_called", "name": "file:delete"}},
		{"a missing file is deleted", "file:delete", args{"path": "no"}, failed("file:delete", "RESOURCE_NOT_FOUND", "")},
		{"a folder is deleted", "file:delete", args{"path": "d"}, failed("file:delete", "EXECUTION_FAILED", "")},
		{"a command that fails", "bash:execute", args{"command": "false"}, failed("bash:execute", "EXECUTION_FAILED", "exited with code 1")},
		{"a command that hangs", "bash:execute", args{"command": "sleep 30", "timeout": 200}, failed("bash:execute", "TIMEOUT", "timed out after 200ms")},
		{"a blank command", "bash:execute", args{"command": " \t"}, failed("bash:execute", "INVALID_ARGUMENTS", "non-empty")},
		{"a command elsewhere", "bash:execute", args{"command": "ls", "cwd": "/tmp"}, failed("bash:execute", "PERMISSION_DENIED", "outside")},
		{"a command in a folder", "bash:execute", args{"command": "rm b.txt", "cwd": "d"}, args{"type": "assistant_contains", "content": "I try."}},
		{"a tool that doesn't exist", "web:search", args{}, failed("web:search", "RESOURCE_NOT_FOUND", "")},
		{"a layout", "layout_scan", args{"nodes": []any{args{"id": "a", "bounds": args{"x": 0, "y": 0, "width": 9, "height": 9}}}}, args{"type": "tool_called", "name": "layout_scan"}},
		{"a layout that is none", "layout_scan", args{"nodes": 7}, failed("layout_scan", "INVALID_ARGUMENTS", "")},
		{"a comparison with nothing", "visual_diff", args{"before": args{}}, failed("visual_diff", "INVALID_ARGUMENTS", "")},
		{"a pattern in many lines", "file:read", args{"path": "a.txt"}, args{"type": "file_regex", "path": "a.txt", "pattern": "^old$"}},
		{"few turns", "file:read", args{"path": "a.txt"}, args{"type": "max_turns", "count": 2}},
		{"a patch", "file:read", args{"path": "a.txt"}, args{"type": "patch_parses", "patch": "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"}},
	} {
		t.Run(c.title, func(t *testing.T) {
			t.Parallel()
			for _, f := range play(t, made(t, c.tool, c.args, c.expect)).Failures {
				t.Error(f)
			}
		})
	}
}

func TestWrongGymExpectationsFail(t *testing.T) {
	for _, e := range []args{
		failed("file:read", "PERMISSION_DENIED", ""), failed("file:read", "RESOURCE_NOT_FOUND", "on the moon"), failed("file:write", "", ""),
		{"type": "tool_called", "name": "file:write"}, {"type": "tool_called", "name": "web:search"}, {"type": "max_turns", "count": 1},
		{"type": "file_contains", "path": "a.txt", "content": "new"}, {"type": "file_regex", "path": "a.txt", "pattern": "^ld$"},
		{"type": "file_equals", "path": "no.txt", "content": ""}, {"type": "no_syntax_errors", "path": "no.ts"},
		{"type": "assistant_regex", "pattern": "^try"}, {"type": "patch_parses", "patch": "@@ nothing"},
	} {
		if r := play(t, made(t, "file:read", args{"path": "no.txt"}, e)); r.Passed() {
			t.Errorf("%v holds", e)
		}
	}
}

// The rule list of bash:execute: the operators, what quotes hide, and the order
// in which a command is judged.
// Guarantee: X32.
func TestOperators(t *testing.T) {
	for command, want := range map[string]string{
		"echo a": "", "echo 'a && b; c | d > e < f `g` $(h) & i'": "", `echo "a && b; c | d > e < f & i"`: "", `echo "a ` + "`b`" + `"`: "",
		`echo a \&\& b`: "", `echo \; \| \> \$\(x\)`: "", "echo $HOME ${HOME}": "", "echo '\"'": "", `echo "it's"`: "", "  echo a \n": "",
		"a && b": "&&", "a || b": "||", "a; b": ";", "a | b": "|", "a |& b": "|&", "a & b": "&", "a &": "&", "a > b": ">", "a >> b": ">>", "a < b": "<",
		"a >& b": ">&", "a <& 3": "<&", "a 2>&1": ">&", "echo `b`": "`", "echo $(b)": "$(", `echo "$(b)"`: "$(", "echo 'a' && b": "&&", "a\nb": "a newline",
		"a 'b\nc'": "a newline", "a\rb": "a carriage return", "a\u0085b": "U+0085", "a\u2028b": "U+2028", "a '\u2029'": "U+2029", `echo '\' && b`: "&&",
		"echo '$(a)' $(b)": "$(", `echo \\&& b`: "&&", `a "\"" | b`: "|", "a<<b": "<",
		"rm -rf / && x": "!", "rm  -rf ~": "!", "RM -RF /tmp": "!", "mkfs.ext4 x; y": "!", "dd if=a of=b": "!", "echo a > /dev/sda": "!", "chmod 777 x": "!",
		":(){ :|:& };:": "!", "echo 'mkfs'": "!", "rm -rf tmp": "",
	} {
		got := gym.Operator(strings.TrimSpace(command))
		if gym.Dangerous(command) != "" {
			got = "!"
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", command, got, want)
		}
	}
	for _, c := range []struct{ command, cwd, says string }{
		{"rm -rf / && ls", "/", "dangerous pattern"}, {"ls && ls", "/", "unsafe shell operator: &&"}, {"ls", "/", "outside sandbox root"},
	} {
		s := made(t, "bash:execute", args{"command": c.command, "cwd": c.cwd}, failed("bash:execute", "PERMISSION_DENIED", c.says))
		for _, f := range play(t, s).Failures {
			t.Errorf("%s: %s", c.command, f)
		}
	}
}

func TestTheEndOfAScript(t *testing.T) {
	script := func(responses string) string {
		return `{"id":"a","title":"t","category":"c","difficulty":"easy","prompt":"p","maxTurns":3,"expectations":[{"type":"assistant_contains","content":"hi"}],"script":{"responses":[` + responses + `]}}`
	}
	complete := `{"content":"hi","finishReason":"tool_use","toolCalls":[{"name":"completion:complete_task","arguments":{"summary":"s"}}]}`
	for _, c := range []struct{ name, responses, outcome string }{
		{"a plain stop is dropped and a completion appended", `{"content":"hi","finishReason":"tool_use","toolCalls":[{"name":"file:list","arguments":{"path":"."}}]},{"content":"Done.","finishReason":"stop"}`, "completed"},
		{"its own completion stands", complete, "completed"},
		{"a completion that is refused isn't the end; past it the model is silent", `{"content":"hi","finishReason":"tool_use","toolCalls":[{"name":"completion:complete_task","arguments":{"summary":""}}]}`, "no_completion"},
		{"a completion beside another call is refused", `{"content":"hi","finishReason":"tool_use","toolCalls":[{"name":"file:list","arguments":{"path":"."}},{"name":"completion:complete_task","arguments":{"summary":"s"}}]}`, "no_completion"},
		{"an answer without a word is a stop", `{"content":"","finishReason":"stop"},` + complete, "completed"},
		{"the turns are bounded", strings.Repeat(`{"content":"hi","finishReason":"tool_use","toolCalls":[{"name":"file:info","arguments":{"path":"."}}]},`, 9) + complete, "no_completion"},
	} {
		all, ok, err := gym.Read("a.yaml", []byte(script(c.responses)))
		if !ok || err != nil {
			t.Fatal(c.name, ok, err)
		}
		all[0].Expect = append(all[0].Expect, eval.Outcome(c.outcome))
		for _, f := range play(t, all[0]).Failures {
			t.Errorf("%s: %s", c.name, f)
		}
	}
}

func TestWhatIsNoScenarioOfTheGym(t *testing.T) {
	good := `{"id":"a","title":"t","category":"c","difficulty":"easy","prompt":"p","expectations":[{"type":"tool_called","name":"x"}],"script":{"responses":[]}}`
	for _, c := range []struct{ text, where, says string }{
		{"{\n \"expectations\": [,\n", "a.yaml:2:19", "no JSON"},
		{good + good, "a.yaml:1:", "a second document"},
		{strings.Replace(good, `"id":"a",`, "", 1), "a.yaml:1:2", "needs id, title"},
		{strings.Replace(good, `"prompt":"p"`, `"prompt":""`, 1), "a.yaml:1:", "needs a prompt"},
		{strings.Replace(good, `{"type":"tool_called","name":"x"}`, "", 1), "a.yaml:1:", "can't fail"},
		{strings.Replace(good, "tool_called", "tool_praised", 1), "a.yaml:1:", `there is no expectation "tool_praised"`},
		{strings.Replace(good, `"type":"tool_called"`, `"type":"file_regex","path":"a","pattern":"("`, 1), "a.yaml:1:", "no pattern"},
		{strings.Replace(good, `"type":"tool_called"`, `"type":"file_equals"`, 1), "a.yaml:1:", "needs a path"},
		{strings.Replace(good, `"type":"tool_called"`, `"type":"no_syntax_errors","path":"a.txt"`, 1), "a.yaml:1:", "no parser"},
		{strings.Replace(good, `"type":"tool_called"`, `"type":"assistant_contains","content":""`, 1), "a.yaml:1:", "can't fail"},
		{strings.Replace(good, `"prompt":"p"`, `"prompt":7`, 1), "a.yaml:1:", "no JSON of a scenario"},
	} {
		_, ok, err := gym.Read("a.yaml", []byte(c.text))
		e, told := errors.AsType[*belay.Error](err)
		if !ok || !told || e.Code != belay.CodeBadScenario || !strings.HasPrefix(e.Where, c.where) || !strings.Contains(e.Message, c.says) {
			t.Errorf("%s\ngot  %#v\nwant %s: %s", c.text, err, c.where, c.says)
		}
	}
	for _, text := range []string{"", "id: a\n", `{"id": "a", "expect": []}`} {
		if _, ok, err := gym.Read("a.yaml", []byte(text)); ok || err != nil {
			t.Errorf("%q is taken for one: %v", text, err)
		}
	}
}
