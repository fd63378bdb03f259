//go:build unix

package symlinks_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/policy/symlinks"
)

// tree is a workspace ws beside a folder out, both without links above them.
func tree(t *testing.T) (ws, out string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	ws, out = filepath.Join(root, "ws"), filepath.Join(root, "out")
	for _, d := range []string{"ws/sub/deep", "ws/.git/hooks", "out/dir/deep"} {
		must(t, os.MkdirAll(filepath.Join(root, d), 0o700))
	}
	for _, f := range []string{"ws/a", "ws/sub/b", "out/secret", "out/dir/x"} {
		must(t, os.WriteFile(filepath.Join(root, f), []byte("x\n"), 0o600))
	}
	for link, target := range map[string]string{
		"ws/file": "../out/secret", "ws/dir": "../out/dir", "ws/abs": filepath.Join(out, "secret"), "ws/inside": "sub/b", "ws/insidedir": "sub",
		"ws/chain": "chain2", "ws/chain2": "sub/chain3", "ws/sub/chain3": "../../out/dir", "ws/loop": "loop2", "ws/loop2": "loop", "ws/self": "self/x",
		"ws/dangling": "../out/new", "ws/danglingdir": "../out/no/such", "ws/hook": ".git/hooks", "ws/null": "/dev/null", "ws/proc": "/proc/self/environ", "ws/up": "..",
		"ws/sub/deep/far": "../../../out/dir/deep", "out/back": "../ws/.git/hooks", "ws/home": ws,
	} {
		must(t, os.Symlink(target, filepath.Join(root, link)))
	}
	return ws, out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Guarantee: G58.
func TestWherePathsLead(t *testing.T) {
	ws, out := tree(t)
	for p, want := range map[string]string{ // relative to ws; empty: as the text says
		"a": "", "sub/b": "", "new": "", "sub/new/deeper": "", "a/below": "", "sub/../a": "", "sub/deep/../b": "", ".": "",
		"file": out + "/secret", "abs": out + "/secret", "dir": out + "/dir", "dir/x": out + "/dir/x", "dir/new/file": out + "/dir/new/file", "inside": ws + "/sub/b", "insidedir/new": ws + "/sub/new",
		"chain": out + "/dir", "chain/x": out + "/dir/x", "loop": "?", "loop/x": "?", "self": "?", "dangling": out + "/new", "danglingdir/x": out + "/no/such/x",
		"hook/pre-commit": ws + "/.git/hooks/pre-commit", "null": "/dev/null", "proc": "/proc/self/environ", "up": filepath.Dir(ws), "up/out/secret": out + "/secret", "up/ws/a": ws + "/a",
		"dir/../secret": out + "/secret", "dir/..": out, "insidedir/../a": "", "sub/deep/far/../x": out + "/dir/x", "insidedir/deep/far/../../secret": out + "/secret", "home/a": ws + "/a",
		"../out/back/x": ws + "/.git/hooks/x", "../out/secret": "",
	} {
		text := ws + "/" + p
		got := symlinks.Look(ws, []string{text}, false, false)
		switch {
		case want == "" && got == nil:
		case want == "" || len(got) != 1 || got[0].Path != text || got[0].Real != strings.TrimPrefix(want, "?"):
			t.Errorf("%s: %v, want %q", p, got, want)
		}
	}
}

// The workspace may itself be known by a path with links.
func TestAWorkspaceBehindALink(t *testing.T) {
	ws, out := tree(t)
	alias := filepath.Join(filepath.Dir(ws), "alias")
	must(t, os.Symlink("ws", alias))
	for p, want := range map[string]string{alias + "/a": "", ws + "/a": "", alias + "/file": out + "/secret", alias + "/insidedir/n": alias + "/sub/n", ws + "/insidedir/n": alias + "/sub/n"} {
		got := symlinks.Look(alias, []string{p}, false, false)
		if want == "" && got != nil || want != "" && (len(got) != 1 || got[0].Real != want) {
			t.Errorf("%s: %v, want %q", p, got, want)
		}
	}
}

// Guarantee: G58.
func TestPatternsAreLookedThrough(t *testing.T) {
	ws, out := tree(t)
	reals := func(p string, patterns bool) (all []string) {
		for _, l := range symlinks.Look(ws, []string{ws + "/" + p}, patterns, false) {
			all = append(all, l.Real)
		}
		slices.Sort(all)
		return slices.Compact(all)
	}
	for p, want := range map[string][]string{
		"fi*": {out + "/secret"}, "f?le": {out + "/secret"}, "[f]ile": {""}, "d*/x": {out + "/dir/x", out + "/new/x", out + "/no/such/x"}, "sub/d*/*": {out + "/dir/deep"}, "s*b/*": {out + "/dir"}, "sub/b*": nil, "no/*": nil, ".g*/h*": nil,
	} {
		got := reals(p, true)
		if p == "[f]ile" { // brackets fit anything: all there is
			if !slices.Contains(got, out+"/secret") {
				t.Errorf("%s: %v", p, got)
			}
			continue
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", p, got, want)
		}
	}
	if got := reals("fi*", false); got != nil {
		t.Errorf("a name that isn't a pattern: %v", got)
	}
	must(t, os.Symlink("../out/secret", ws+"/fi*"))
	if got := reals("fi*", false); !slices.Equal(got, []string{out + "/secret"}) {
		t.Errorf("a name with a star: %v", got)
	}
	crowd := filepath.Join(ws, "crowd")
	must(t, os.Mkdir(crowd, 0o700))
	for i := range 150 {
		must(t, os.Mkdir(fmt.Sprintf("%s/%d", crowd, i), 0o700))
		for j := range 150 {
			must(t, os.WriteFile(fmt.Sprintf("%s/%d/%d", crowd, i, j), nil, 0o600))
		}
	}
	if got := reals("crowd/*/*", true); !slices.Contains(got, "") {
		t.Errorf("more than anybody looks through: %v", got)
	}
}

// What links of a workspace lead to decides, in the default mode: nothing outside
// is read and nothing protected written without an ask.
// Guarantee: G58.
func TestALinkOutIsAnAccessOutside(t *testing.T) {
	ws, out := tree(t)
	exec := belay.ToolSpec{Name: "exec", Access: belay.Write, Destructive: true, Capabilities: []string{"process"}, Command: &belay.CommandArgs{Line: "command", Argv: "argv", Dir: "dir"}}
	read := belay.ToolSpec{Name: "read", PathArg: "path", Access: belay.Read, ReadOnly: true}
	write := belay.ToolSpec{Name: "write", PathArg: "path", Access: belay.Write}
	judge := func(mode belay.Mode, spec belay.ToolSpec, args map[string]any, paths ...string) policy.Verdict {
		raw, err := json.Marshal(args)
		must(t, err)
		at := policy.Place{Workspace: ws, Home: "/home/nobody"}
		at.Links = symlinks.Of(spec, raw, paths, at)
		return policy.Evaluate(policy.Builtin(), &policy.Request{Tool: spec, Args: raw, Paths: paths, Commands: policy.CommandsOf(spec, raw, at), Links: at.Links, Mode: mode, Workspace: ws, Level: "L0", Network: "full"})
	}
	for _, c := range []struct{ line, want string }{
		{"cat a sub/b", "allow"}, {"cat inside insidedir/b", "allow"}, {"ls", "allow"}, {"cd sub && cat b", "allow"}, {"cd insidedir; cat b", "allow"}, {"cat *b", "allow"}, {"cat new", "allow"},
		{"cat file", "READS_OUTSIDE"}, {"cat abs", "READS_OUTSIDE"}, {"cat dir/x", "READS_OUTSIDE"}, {"cat chain/x", "READS_OUTSIDE"}, {"head -1 < file", "READS_OUTSIDE"}, {"cat dangling", "READS_OUTSIDE"}, {"cat f*", "READS_OUTSIDE"},
		{"cd dir && cat x", "READS_OUTSIDE"}, {"cd dir && ls", "READS_OUTSIDE"}, {"cd dir; pwd", "READS_OUTSIDE"}, {"cd dir && cat ../secret", "READS_OUTSIDE"}, {"cat dir/../secret", "READS_OUTSIDE"}, {"ls dir/..", "READS_OUTSIDE"},
		{"cd sub && cd deep && cat far/../x", "READS_OUTSIDE"}, {"(cd dir; cat x) | wc", "READS_OUTSIDE"}, {"ls up", "READS_OUTSIDE"}, {"find up -name x", "READS_OUTSIDE"}, {"cat a; cat file", "READS_OUTSIDE"},
		{"cat loop", "ESCAPE_ATTEMPT"}, {"cat proc", "ESCAPE_ATTEMPT"},
		{"echo x > file", "ESCAPE_ATTEMPT"}, {"echo x > dir/new", "ESCAPE_ATTEMPT"}, {"touch dangling", "ESCAPE_ATTEMPT"}, {"cp a dir/y", "ESCAPE_ATTEMPT"}, {"cp a d*", "ESCAPE_ATTEMPT"}, {"cd dir && touch y", "ESCAPE_ATTEMPT"}, {"cd dir && make", "ESCAPE_ATTEMPT"},
		{"cd dir && echo x > ../y", "ESCAPE_ATTEMPT"}, {"echo x >> hook/pre-commit", "PROTECTED_NAME"}, {"cd hook && touch post-checkout", "PROTECTED_NAME"}, {"echo x > inside", "CHANGES_THINGS"}, {"echo x > null", "CHANGES_THINGS"},
	} {
		v := judge(belay.ModeDefault, exec, map[string]any{"command": c.line})
		if got := v.ReasonCode; v.Decision != policy.Allow && got != c.want || v.Decision == policy.Allow && c.want != "allow" {
			t.Errorf("%q: %s %s (%s) %+v", c.line, v.Decision, got, v.Reason, v.Commands)
		}
		if v := judge(belay.ModeAuto, exec, map[string]any{"command": c.line}); c.want == "ESCAPE_ATTEMPT" && v.Decision != policy.Ask {
			t.Errorf("auto: %q: %s", c.line, v.Decision)
		}
	}
	if v := judge(belay.ModeDefault, exec, map[string]any{"command": "cat file"}); !strings.Contains(v.Reason, out+"/secret") {
		t.Errorf("the reason doesn't say where it leads: %s", v.Reason)
	}
	if v := judge(belay.ModeDefault, exec, map[string]any{"argv": []string{"cat", "x"}, "dir": "dir"}); v.Decision != policy.Ask {
		t.Errorf("a folder behind a link: %+v", v)
	}
	if v := judge(belay.ModeDefault, exec, map[string]any{"argv": []string{"cat", "b"}, "dir": "insidedir"}); v.Decision != policy.Allow {
		t.Errorf("a folder behind a link inside: %+v", v)
	}
	for _, c := range []struct {
		spec belay.ToolSpec
		path string
		want policy.Decision
	}{
		{write, "a", policy.Allow}, {write, "inside", policy.Allow}, {write, "insidedir/new", policy.Allow}, {write, "file", policy.Ask}, {write, "dangling", policy.Ask}, {write, "hook/x", policy.Ask}, {write, "loop", policy.Ask}, {read, "a", policy.Allow},
	} {
		if v := judge(belay.ModeAcceptEdits, c.spec, map[string]any{"path": c.path}, c.path); v.Decision != c.want {
			t.Errorf("%s %s: %s by %s", c.spec.Name, c.path, v.Decision, v.Rule)
		}
	}
}

// However a path is spelled, what one look says is where the system goes.
func FuzzLook(f *testing.F) {
	for _, p := range []string{"a", "dir/../secret", "insidedir/deep/far/../../secret", "up/ws/up/ws/a", "home/home/file", "chain/../dir/x", "loop/a", "./sub//deep/../../abs"} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, p string) {
		if strings.ContainsRune(p, 0) || strings.HasPrefix(p, "/") || len(p) > 200 {
			return
		}
		ws, _ := tree(t)
		text := ws + "/" + p
		want, err := filepath.EvalSymlinks(text)
		if err != nil { // it isn't there
			return
		}
		got := filepath.Clean(text)
		if l := symlinks.Look(ws, []string{text}, false, false); len(l) > 0 {
			got = l[0].Real
		}
		if got != want && !strings.HasPrefix(want, "/proc") && !strings.HasPrefix(want, "/dev") {
			t.Errorf("%q leads to %s, and is said to lead to %s", p, want, got)
		}
	})
}

// Where nothing hides secrets, a command that only reads is asked about if it
// could show one that lies there, and only then.
// Guarantee: G72.
func TestASweepOverASecretAsks(t *testing.T) {
	exec := belay.ToolSpec{Name: "exec", Access: belay.Write, Destructive: true, Capabilities: []string{"process"}, Command: &belay.CommandArgs{Line: "command", Argv: "argv", Dir: "dir"}}
	for _, secret := range []string{"", "sub/deep/.env", "sub/server.key"} {
		ws := t.TempDir()
		must(t, os.MkdirAll(ws+"/sub/deep", 0o700))
		must(t, os.MkdirAll(ws+"/other", 0o700))
		must(t, os.WriteFile(ws+"/sub/a.txt", nil, 0o600))
		must(t, os.WriteFile(ws+"/other/.env.example", nil, 0o600))
		if secret != "" {
			must(t, os.WriteFile(ws+"/"+secret, nil, 0o600))
		}
		judge := func(line string, bare bool) policy.Decision {
			raw, err := json.Marshal(map[string]any{"command": line})
			must(t, err)
			at := policy.Place{Workspace: ws, Home: "/home/nobody", Bare: bare}
			at.Links = symlinks.Of(exec, raw, nil, at)
			return policy.Evaluate(policy.Builtin(), &policy.Request{Tool: exec, Args: raw, Commands: policy.CommandsOf(exec, raw, at), Links: at.Links, Mode: belay.ModeDefault, Workspace: ws, Level: "L0", Network: "full"}).Decision
		}
		for _, line := range []string{"grep -r KEY .", "grep -rn KEY sub", "rg KEY", "rg KEY sub", "ag KEY", "grep --recursive KEY", "find . -type f | xargs cat", "find . -type f -exec head -3 {} +", "cat $(find . -type f)", "for f in $(ls -A); do cat \"$f\"; done", "ls -A | while read f; do cat $f; done", "git grep KEY", "diff -r sub other", "cd sub && grep -r KEY", "cat \"$x\"", "grep -R KEY ./sub | head"} {
			want := policy.Allow
			if secret != "" {
				want = policy.Ask
			}
			if got := judge(line, true); got != want {
				t.Errorf("%q with secret %q: %s", line, secret, got)
			}
			if got := judge(line, false); got != policy.Allow {
				t.Errorf("%q with secret %q in a view that hides it: %s", line, secret, got)
			}
		}
		for _, line := range []string{"ls", "ls -laR", "ls sub/*", "find . -name '*.go'", "grep -r KEY other", "cat sub/a.txt", "cat sub/*.txt", "wc -l sub/a*", "git status", "grep KEY sub/a.txt", "cat other/* sub/a.txt"} {
			if got := judge(line, true); got != policy.Allow {
				t.Errorf("%q with secret %q: %s", line, secret, got)
			}
		}
		if got := judge("cat sub/*", true); (got == policy.Ask) != (secret == "sub/server.key") {
			t.Errorf("cat sub/* with secret %q: %s", secret, got)
		}
	}
}
