package policy

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/belay-run/belay"
)

// What something else runs or obeys is asked about in every mode but bypass,
// whoever allowed the tool, a rule of a person included.
// Guarantee: G50.
func TestProtectedNamesAreAskedAboutWhateverIsAllowed(t *testing.T) {
	write := belay.ToolSpec{Name: "write", PathArg: "path", Access: belay.Write}
	mine := Rule{ID: "mine", Tier: TierUser, Priority: 999, Verdict: Allow, Match: Match{Tool: []string{"write", "exec"}}}
	admin := Rule{ID: "may", Tier: TierAdmin, Verdict: Allow, Match: Match{Mode: []belay.Mode{belay.ModeBypass}}}
	set, err := Compile(Document{Version: FormatVersion, Rules: append(BuiltinRules(), mine, admin)})
	if err != nil {
		t.Fatal(err)
	}
	grants := []Grant{{Tool: "write", Tier: TierUser, Kind: "answer"}, {Tool: "exec", Tier: TierUser, Kind: "rule"}}
	for _, mode := range belay.Modes {
		want := Ask
		switch mode {
		case belay.ModePlan, belay.ModeNever:
			want = Deny
		case belay.ModeBypass:
			want = Allow
		}
		for _, p := range []string{".envrc", ".claude/settings.json", "sub/.VSCODE/tasks.json", ".cargo/config.toml", ".yarnrc.yml", ".mvn/jvm.config", "tools/bazel", ".pnpmfile.cjs", ".git/hooks/x", "/ws/.npmrc", "AGENTS.md", ".github/workflows/ci.yml", "a/b/.gitlab-ci.yml", "x/.gitattributes", "deep/er/CLAUDE.md", "pkg/.bashrc", "lib/sitecustomize.py"} {
			v := verdictOf(set, Request{Tool: write, Paths: []string{"ok", p}, Mode: mode, Workspace: "/ws", Grants: grants, Level: "L0"})
			if v.Decision != want || want == Ask && (v.ReasonCode != "PROTECTED_NAME" || v.Reason == "") {
				t.Errorf("%s: write %s: %s by %s (%s)", mode, p, v.Decision, v.Rule, v.Reason)
			}
			args, _ := json.Marshal(map[string]string{"command": "echo x > '" + p + "'"})
			c := execCall(string(args))
			c.Mode, c.Grants = mode, grants
			if v := verdictOf(set, c); v.Decision != want {
				t.Errorf("%s: echo > %s: %s by %s", mode, p, v.Decision, v.Rule)
			}
		}
		read := verdictOf(set, Request{Tool: belay.ToolSpec{Name: "read", PathArg: "path", Access: belay.Read, ReadOnly: true}, Paths: []string{".envrc"}, Mode: mode, Workspace: "/ws"})
		if read.Decision != Allow {
			t.Errorf("%s: reading is %s", mode, read.Decision)
		}
	}
}

// What tests of the project run is asked about only once content from outside is
// in the conversation.
func TestCodeThatRunsUnaskedIsProtectedWhereTainted(t *testing.T) {
	write := belay.ToolSpec{Name: "write", PathArg: "path", Access: belay.Write}
	for _, p := range []string{"conftest.py", "tests/conftest.py"} {
		r := Request{Tool: write, Paths: []string{p}, Mode: belay.ModeAuto, Workspace: "/ws", Level: "L3"}
		c := runLine("echo x > " + p)
		c.Mode, c.Level, c.Network = belay.ModeAuto, "L3", "none"
		for _, call := range []Request{r, c} {
			if v := verdictOf(Builtin(), call); v.Decision != Allow {
				t.Errorf("%s %s: %s by %s", call.Tool.Name, p, v.Decision, v.Rule)
			}
			call.Taint = []Taint{{Kind: "web", Origin: "x", Seq: 1}}
			if v := verdictOf(Builtin(), call); v.Decision != Ask || v.ReasonCode != "PROTECTED_NAME" {
				t.Errorf("%s %s, tainted: %s %s by %s", call.Tool.Name, p, v.Decision, v.ReasonCode, v.Rule)
			}
		}
	}
}

// Who is told what would help is told something that does.
func TestNoAllowanceIsOfferedForAFileOutside(t *testing.T) {
	write := belay.ToolSpec{Name: "write", PathArg: "path", Access: belay.Write}
	for p, offered := range map[string]bool{"a": true, "/ws/a": true, "/etc/a": false, "../a": false} {
		for _, r := range []Request{{Mode: belay.ModeDefault, Headless: true}, {Mode: belay.ModeNever}} {
			r.Tool, r.Paths, r.Workspace = write, []string{p}, "/ws"
			if v := verdictOf(Builtin(), r); v.Decision != Deny || strings.Contains(v.Hint, "--allow write") != offered || strings.Contains(v.Hint, "--workspace") == offered {
				t.Errorf("%s %s: %s, %q", r.Mode, p, v.Decision, v.Hint)
			}
		}
	}
}
