package policy

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/belay-run/belay"
)

// What usually holds a secret is asked about from the first read on, in every
// mode but bypass, whoever allowed the tool: nothing else has to be in the
// conversation. What a command allows itself inside a boundary that hides such
// files is on_failure's.
// Guarantee: G72.
func TestAFirstReadOfASecretAsks(t *testing.T) {
	read := belay.ToolSpec{Name: "read", PathArg: "path", Access: belay.Read, ReadOnly: true}
	edit := belay.ToolSpec{Name: "edit", PathArg: "path", Access: belay.Write}
	mine := Rule{ID: "mine", Tier: TierUser, Priority: 999, Verdict: Allow, Match: Match{Tool: []string{"read", "edit", "exec"}}}
	admin := Rule{ID: "may", Tier: TierAdmin, Verdict: Allow, Match: Match{Mode: []belay.Mode{belay.ModeBypass}}}
	set, err := Compile(Document{Version: FormatVersion, Rules: append(BuiltinRules(), mine, admin)})
	if err != nil {
		t.Fatal(err)
	}
	grants := []Grant{{Tool: "read", Tier: TierUser, Kind: "answer"}, {Tool: "edit", Tier: TierUser, Kind: "answer"}, {Tool: "exec", Tier: TierUser, Kind: "rule"}}
	files := []string{".env", "sub/.env.local", ".ENV.production", "id_rsa", "deploy/server.key", "tls/ca.pem", ".netrc", ".npmrc", ".pypirc", "secrets/db", "terraform.tfstate", ".docker/config.json", ".kube/config", "service-account.json", "/ws/.env", "credentials.json", ".aws/credentials"}
	for _, mode := range belay.Modes {
		want, runs := Ask, Ask
		switch mode {
		case belay.ModeNever:
			want, runs = Deny, Deny
		case belay.ModePlan:
			runs = Deny
		case belay.ModeBypass:
			want, runs = Allow, Allow
		}
		for _, level := range []string{"L0", "L3"} {
			for _, p := range files {
				for _, tool := range []belay.ToolSpec{read, edit} {
					v := verdictOf(set, Request{Tool: tool, Paths: []string{"README.md", p}, Mode: mode, Workspace: "/ws", Grants: grants, Level: level})
					if v.Decision != want && !(tool.Name == "edit" && v.Decision == runs) {
						t.Errorf("%s at %s: %s %s: %s by %s", mode, level, tool.Name, p, v.Decision, v.Rule)
					}
				}
				args, _ := json.Marshal(map[string]string{"command": "ls; cat README.md '" + p + "'"})
				c := execCall(string(args))
				c.Mode, c.Grants, c.Level = mode, grants, level
				hidden := mode == belay.ModeOnFailure && level == "L3"
				if v := verdictOf(set, c); v.Decision != runs && !hidden {
					t.Errorf("%s at %s: cat %s: %s by %s", mode, level, p, v.Decision, v.Rule)
				}
			}
			for _, p := range []string{".env.example", ".env.sample", ".env.template", ".env.dist", "id_rsa.pub", "README.md", "src/secrets/index.ts", "docs/secrets.md"} {
				v := verdictOf(set, Request{Tool: read, Paths: []string{p}, Mode: mode, Workspace: "/ws", Level: level})
				if v.Decision != Allow {
					t.Errorf("%s at %s: read %s: %s by %s", mode, level, p, v.Decision, v.Rule)
				}
			}
		}
	}
}

// A yes to a command that names a secret shows it that one; what a mode allows
// because it is confined sees none.
// Guarantee: G72.
func TestASecretThatIsAllowedIsShown(t *testing.T) {
	rule := Rule{ID: "mine", Tier: TierUser, Verdict: Allow, Match: Match{Command: &CommandMatch{Class: []string{string(ReadOnly), string(EscapeAttempt)}}}}
	for name, c := range map[string]struct {
		set  *Set
		mode belay.Mode
		line string
		want []string
	}{
		"a person is asked":   {Builtin(), belay.ModeAuto, "ls; cat .env config/prod.env", []string{"/ws/.env", "/ws/config/prod.env"}},
		"a rule":              {compiled(t, rule), belay.ModeDefault, "ls; cat .env", []string{"/ws/.env"}},
		"the mode":            {Builtin(), belay.ModeOnFailure, "ls; cat .env", nil},
		"nothing is named":    {Builtin(), belay.ModeAuto, "rm -rf src", nil},
		"a pattern":           {Builtin(), belay.ModeAuto, "cat *.pem", nil},
		"variables of others": {Builtin(), belay.ModeAuto, "cat /proc/1/environ", nil},
	} {
		r := runLine(c.line)
		r.Mode, r.Level, r.Confine = c.mode, "L3", true
		v := verdictOf(c.set, r)
		if v.Bound == nil || !slices.Equal(v.Bound.Is.Read, c.want) {
			t.Errorf("%s: %s by %s in %+v, want it to show %q", name, v.Decision, v.Rule, v.Bound, c.want)
		}
	}
}
