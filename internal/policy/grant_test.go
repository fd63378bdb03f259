package policy

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/belay-run/belay"
)

// TestAPrefixCoversWhatBeginsSo gives a grant by the beginning of one command and
// asks about others.
// Guarantee: X41.
func TestAPrefixCoversWhatBeginsSo(t *testing.T) {
	exec := belay.ToolSpec{Name: "exec", Effect: belay.AtMostOnce, Access: belay.Write, Destructive: true, Command: &belay.CommandArgs{Line: "command"}}
	of := func(command string) Request {
		args, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			t.Fatal(err)
		}
		return Request{Tool: exec, Args: args, Commands: CommandsOf(exec, args, Place{Workspace: "/ws"}), Mode: belay.ModeDefault, Workspace: "/ws", Level: "L0"}
	}
	g, err := Prefixed(of("make test"), " make  test ")
	if err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]Decision{
		"make test":                   Allow,
		"make test -j2":               Allow,
		"make test && make test fast": Allow,
		"make test | cat":             Allow,
		"make testing":                Ask,
		"make -j2 test":               Ask,
		"make":                        Ask,
		"make $WHAT":                  Ask,
		"./make test":                 Ask,
		"make test; touch x":          Ask,
		"env X=1 make test":           Ask,
		"nice make test":              Ask,
		"make test > ../out":          Ask,
		"make test $(touch x)":        Ask,
		"sudo make test":              Ask,
	} {
		r := of(command)
		before := verdictOf(Builtin(), r)
		r.Grants = []Grant{g}
		if v := verdictOf(Builtin(), r); v.Decision != want || before.Decision != Ask {
			t.Errorf("%s: %s, without the grant %s; want %s", command, v.Decision, before.Decision, want)
		}
	}
	for _, bad := range []string{"", "  ", "rm", "make 'test'", "make $X", "make test more", "make; test"} {
		if _, err := Prefixed(of("make test"), bad); belay.CodeOf(err) != belay.CodeBadCommand {
			t.Errorf("prefix %q: %v", bad, err)
		}
	}
}

// TestAPrefixNamesWhatRuns: words that leave open which program or code runs are no
// prefix, and the refusal says why; with what runs behind them they are.
// Guarantee: X41.
func TestAPrefixNamesWhatRuns(t *testing.T) {
	exec := belay.ToolSpec{Name: "exec", Effect: belay.AtMostOnce, Access: belay.Write, Destructive: true, Command: &belay.CommandArgs{Line: "command"}}
	for _, c := range []struct{ command, prefix, why string }{
		{"python3 x.py", "python3", "python3 runs any code"},
		{"/usr/bin/python3 -u x.py", "/usr/bin/python3 -u", "python3 runs any code"},
		{"python3 x.py", "python3 x.py", ""},
		{"sh build.sh", "sh", "sh runs any code"},
		{"bash -c ls", "bash -c", "bash runs any code"},
		{"node x.js", "node", "node runs any code"},
		{"npx eslint .", "npx", "npx fetches and runs any program"},
		{"npm exec eslint", "npm exec", "npm exec fetches and runs any program"},
		{"npm test", "npm test", ""},
		{"uv run pytest", "uv run", "uv run runs any program"},
		{"sudo make", "sudo", "sudo runs any program"},
		{"env X=1 make", "env", "env runs any program"},
		{"xargs rm", "xargs", "xargs runs any program"},
		{"make test", "make", ""},
	} {
		args, err := json.Marshal(map[string]string{"command": c.command})
		if err != nil {
			t.Fatal(err)
		}
		r := Request{Tool: exec, Args: args, Commands: CommandsOf(exec, args, Place{Workspace: "/ws"}), Mode: belay.ModeDefault, Workspace: "/ws", Level: "L0"}
		_, err = Prefixed(r, c.prefix)
		if c.why == "" && err != nil || c.why != "" && (err == nil || !strings.Contains(err.Error(), c.why)) {
			t.Errorf("%s: %q: %v, want %q", c.command, c.prefix, err, c.why)
		}
	}
}

// TestAProposedPrefixIsTaken: what is proposed for a call names what runs, and the call
// may have it; nothing is proposed where no words do.
func TestAProposedPrefixIsTaken(t *testing.T) {
	exec := belay.ToolSpec{Name: "exec", Effect: belay.AtMostOnce, Access: belay.Write, Destructive: true, Command: &belay.CommandArgs{Line: "command"}}
	for command, want := range map[string]string{
		"go test ./... -count 1":    "go test",
		"make -j2 test":             "make",
		"cat a.txt; touch b.txt":    "touch",
		"./configure --prefix=x":    "./configure",
		"python3 -u scripts/x.py a": "python3 -u scripts/x.py",
		"python3 -c 'print(1)'":     "",
		"npm run build":             "npm run",
		"npx eslint .":              "npx eslint",
		"sudo make install":         "",
		"$WHAT x":                   "",
		"git commit -m 'two words'": "git commit",
		"rm 'a b'":                  "rm",
	} {
		args, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			t.Fatal(err)
		}
		r := Request{Tool: exec, Args: args, Commands: CommandsOf(exec, args, Place{Workspace: "/ws"}), Mode: belay.ModeDefault, Workspace: "/ws", Level: "L0"}
		got := ProposePrefix(r.Commands)
		if got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
		if _, err := Prefixed(r, got); got != "" && err != nil {
			t.Errorf("%s: %q is proposed, and refused: %v", command, got, err)
		}
	}
}

// TestAGrantIsForOneDialect: what was allowed for command lines of one shell isn't
// of another, by whatever grant; a tool without command lines has no dialect.
// Guarantee: G87.
func TestAGrantIsForOneDialect(t *testing.T) {
	exec := belay.ToolSpec{Name: "exec", Effect: belay.AtMostOnce, Access: belay.Write, Destructive: true, Command: &belay.CommandArgs{Line: "command"}}
	edit := belay.ToolSpec{Name: "exec", Effect: belay.Idempotent, Access: belay.Write}
	args := json.RawMessage(`{"command":"make test"}`)
	for _, c := range []struct {
		tool        belay.ToolSpec
		given, runs Dialect
		want        Decision
	}{
		{exec, "", "", Allow}, {exec, bash, bash, Allow}, {exec, "", bash, Ask}, {exec, bash, "", Ask}, {edit, "", bash, Allow},
	} {
		for _, g := range []Grant{{}, {Prefix: "make", Worst: Unparsable}, {Bound: belay.DigestOf(nil)}} {
			if c.tool.Command == nil && g.Prefix != "" {
				continue
			}
			g.Tool, g.Tier, g.Kind, g.Dialect = "exec", TierUser, "answer", c.given
			r := Request{Tool: c.tool, Args: args, Commands: CommandsOf(c.tool, args, Place{Workspace: "/ws", Dialect: c.runs}), Mode: belay.ModeDefault, Workspace: "/ws",
				Level: "L0", Dialect: c.runs, Binding: belay.DigestOf(nil), Grants: []Grant{g}}
			if v := verdictOf(Builtin(), r); v.Decision != c.want {
				t.Errorf("%+v in %q: %s, want %s", g, c.runs, v.Decision, c.want)
			}
		}
	}
}

// TestAPrefixOfFilesIsAFolder gives a grant for a folder and asks about files.
func TestAPrefixOfFilesIsAFolder(t *testing.T) {
	write := belay.ToolSpec{Name: "write", Effect: belay.Idempotent, PathArg: "path", Access: belay.Write}
	of := func(paths ...string) Request {
		return Request{Tool: write, Args: json.RawMessage("{}"), Paths: paths, Mode: belay.ModeDefault, Workspace: "/ws", Level: "L0"}
	}
	g, err := Prefixed(of("docs/a.md"), "docs/")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		paths []string
		want  Decision
	}{
		{[]string{"docs/a.md"}, Allow}, {[]string{"docs/deep/b.md"}, Allow}, {[]string{"docsx/a.md"}, Ask}, {[]string{"a.md"}, Ask},
		{[]string{"docs/../a.md"}, Ask}, {[]string{"docs/a.md", "a.md"}, Ask}, {[]string{"../docs/a.md"}, Deny},
	} {
		r := of(c.paths...)
		r.Grants = []Grant{g}
		if v := verdictOf(Builtin(), r); v.Decision != c.want && (c.want != Deny || v.Decision == Allow) {
			t.Errorf("%v: %s (%s), want %s", c.paths, v.Decision, v.Rule, c.want)
		}
	}
	for _, bad := range []string{"..", "../x", "/ws/docs", "other"} {
		if _, err := Prefixed(of("docs/a.md"), bad); belay.CodeOf(err) != belay.CodeBadCommand {
			t.Errorf("prefix %q: %v", bad, err)
		}
	}
	look := belay.ToolSpec{Name: "look", ReadOnly: true}
	if _, err := Prefixed(Request{Tool: look}, "x"); belay.CodeOf(err) != belay.CodeBadCommand {
		t.Errorf("a tool with neither: %v", err)
	}
}

// TestAGrantOfAHostCountsOnceTainted: what a person allowed of a host reaches no other,
// by whatever spelling, and nothing once a secret was read.
// Guarantee: G88.
func TestAGrantOfAHostCountsOnceTainted(t *testing.T) {
	fetch := belay.ToolSpec{Name: "web_fetch", ReadOnly: true, Untrusted: true, HostArg: "url", Capabilities: []string{"network"}}
	of := func(url string, taint ...Taint) Request {
		args, err := json.Marshal(map[string]string{"url": url})
		if err != nil {
			t.Fatal(err)
		}
		return Request{Tool: fetch, Args: args, Mode: belay.ModeDefault, Workspace: "/ws", Taint: taint}
	}
	first := of("https://Docs.Example/a")
	if v := verdictOf(Builtin(), first); v.Decision != Ask || v.ReasonCode != "NETWORK" {
		t.Errorf("the first page: %+v", v)
	}
	g, err := Prefixed(first, "docs.example.")
	if err != nil || g.Prefix != "docs.example" {
		t.Fatal(g, err)
	}
	web, secret := Taint{Kind: "web", Origin: "docs.example"}, Taint{Kind: TaintSecret, Origin: ".env"}
	for _, c := range []struct {
		r    Request
		want Decision
	}{
		{first, Allow}, {of("https://docs.example:8443/b", web), Allow}, {of("http://docs.example./", web), Allow},
		{of("https://evil.example/", web), Ask}, {of("https://docs.example.evil.example/", web), Ask}, {of("https://docs.example@evil.example/", web), Ask},
		{of("https://docs.example\\@evil.example/", web), Ask}, {of("docs.example/x", web), Ask}, {of("", web), Ask}, {of("https://docs.example/", web, secret), Ask},
	} {
		c.r.Grants = []Grant{g}
		if v := verdictOf(Builtin(), c.r); v.Decision != c.want {
			t.Errorf("%s, taint %v: %s (%s)", c.r.Args, c.r.Taint, v.Decision, v.ReasonCode)
		}
	}
	all := Grant{Tool: "web_fetch", Tier: TierUser, Kind: "answer"}
	r := of("https://docs.example/", web)
	if r.Grants = []Grant{all}; verdictOf(Builtin(), r).Decision != Ask {
		t.Error("a grant of the whole tool counts once tainted")
	}
	for _, bad := range []string{"", "example", "*.example", "https://docs.example/", "evil.example"} {
		if _, err := Prefixed(first, bad); belay.CodeOf(err) != belay.CodeBadCommand {
			t.Errorf("host %q: %v", bad, err)
		}
	}
}
