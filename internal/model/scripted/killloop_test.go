package scripted_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/modeltest"
	"github.com/belay-run/belay/internal/model/scripted"
	"github.com/belay-run/belay/internal/testkit/needs"
)

// workspace is a copy of the scenario's files with the tools that it uses.
type workspace string

func (w workspace) read(args json.RawMessage) (string, bool) {
	var a struct{ Path string }
	if err := json.Unmarshal(args, &a); err != nil {
		return err.Error(), true
	}
	b, err := os.ReadFile(filepath.Join(string(w), a.Path))
	if err != nil {
		return "not_found: " + a.Path, true
	}
	return string(b), false
}

func (w workspace) edit(args json.RawMessage) (string, bool) {
	var a struct{ Path, Old, New string }
	if err := json.Unmarshal(args, &a); err != nil {
		return err.Error(), true
	}
	text, failed := w.read(args)
	if failed || strings.Count(text, a.Old) != 1 {
		return "not_found: the old text", true
	}
	if err := os.WriteFile(filepath.Join(string(w), a.Path), []byte(strings.Replace(text, a.Old, a.New, 1)), 0o600); err != nil {
		return err.Error(), true
	}
	return "changed", false
}

func (w workspace) exec(args json.RawMessage) (string, bool) {
	var a struct{ Command string }
	if err := json.Unmarshal(args, &a); err != nil {
		return err.Error(), true
	}
	cmd := exec.Command("sh", "-c", a.Command)
	cmd.Dir = string(w)
	out, err := cmd.CombinedOutput()
	return string(out) + "exit 0", err != nil
}

func TestTheKillLoopScenarioEnds(t *testing.T) {
	needs.Program(t, "sh")
	s, err := scripted.Load("testdata/killloop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const lostText = "lost: the runtime stopped while exec was running; nobody knows whether it did its work"
	for _, c := range []struct {
		name, summary, effects string
		answers                int
		exec                   func(workspace, json.RawMessage) (string, bool)
	}{
		{"the exec runs", "done", "run\n", 6, workspace.exec},
		{"the exec is lost before it ran", "done (lost)", "", 6, func(workspace, json.RawMessage) (string, bool) { return lostText, true }},
		{"the exec is lost after it ran", "done (lost)", "run\n", 6, func(w workspace, a json.RawMessage) (string, bool) {
			w.exec(a)
			return lostText, true
		}},
		{"the exec is denied", "done (denied)", "", 4, func(workspace, json.RawMessage) (string, bool) {
			return "denied: not allowed: the same call was lost before", true
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := workspace(t.TempDir())
			if err := os.CopyFS(string(w), os.DirFS("testdata/killloop")); err != nil {
				t.Fatal(err)
			}
			talk := modeltest.Conversation{Provider: scripted.New(s), Messages: talk{}.user("go"), Tools: map[string]modeltest.Tool{
				"read": w.read, "edit": w.edit,
				"exec": func(a json.RawMessage) (string, bool) { return c.exec(w, a) },
			}}
			end, err := talk.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if want := `{"summary":"` + c.summary + `"}`; string(end) != want {
				t.Errorf("the end is %s, want %s", end, want)
			}
			if answers := len(talk.Messages) / 2; answers != c.answers {
				t.Errorf("there are %d answers, want %d", answers, c.answers)
			}
			effects, _ := os.ReadFile(filepath.Join(string(w), "effects.log"))
			if string(effects) != c.effects {
				t.Errorf("effects.log is %q, want %q", effects, c.effects)
			}
			a, _ := os.ReadFile(filepath.Join(string(w), "notes/a.txt"))
			if string(a) != "shape round\ncolour green\n" {
				t.Errorf("notes/a.txt is %q", a)
			}
		})
	}
}

// Guarantee: E16.
func TestAnotherProcessGetsTheSameAnswers(t *testing.T) {
	s, err := scripted.Load("testdata/killloop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	w := workspace(t.TempDir())
	lost := func(json.RawMessage) (string, bool) { return "lost", true }
	whole := modeltest.Conversation{Provider: scripted.New(s), Messages: talk{}.user("go"), Tools: map[string]modeltest.Tool{
		"read": w.read, "edit": w.edit, "exec": lost,
	}}
	if _, err := whole.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, m := range whole.Messages {
		if m.Role != belay.RoleAssistant {
			continue
		}
		again, err := scripted.Load("testdata/killloop.yaml")
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, p := range m.Parts {
			if p.Call == nil {
				want = append(want, p.Text)
			} else {
				want = append(want, p.Call.Name+"("+string(p.Call.Args)+")")
			}
		}
		got := said(t, again, model.Request{Messages: whole.Messages[:i], Attempt: 2})
		if got != strings.Join(want, " ") {
			t.Errorf("message %d: got %q, want %q", i, got, want)
		}
	}
}

func TestTheFirstAttemptOfAKillLoopStepFails(t *testing.T) {
	s, err := scripted.Load("testdata/killloop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	m := talk{}.user("go").answer("", "read").answer("", "edit").answer("", "exec").result("exec", "exit 0")
	if got := said(t, s, model.Request{Messages: m, Attempt: 1}); got != "transient: the first attempt always fails" {
		t.Errorf("attempt 1: got %q", got)
	}
	if got := said(t, s, model.Request{Messages: m, Attempt: 2}); !strings.HasPrefix(got, "I look at what I changed.") {
		t.Errorf("attempt 2: got %q", got)
	}
}
