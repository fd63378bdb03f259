package engine_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/tool"
)

// besides is a folder beside the bench's workspace, with a secret in it.
func (b *bench) besides() (ws, out string) {
	b.t.Helper()
	root, err := filepath.EvalSymlinks(b.t.TempDir())
	if err != nil {
		b.t.Fatal(err)
	}
	ws, out = filepath.Join(root, "ws"), filepath.Join(root, "out")
	for _, d := range []string{ws, out} {
		if err := os.Mkdir(d, 0o700); err != nil {
			b.t.Fatal(err)
		}
	}
	b.changeRules(func(r *thread.Rules) { r.Workspace = ws })
	return ws, out
}

// cat is a tool that declares a command line, and relink one that makes a link.
func catAndRelink(ran *[]string) []tool.Tool {
	cat := tool.Spec{Name: "sh", Doc: "d", Effect: belay.AtMostOnce, Access: belay.Write, Destructive: true, Capabilities: []string{"process"}, Command: &belay.CommandArgs{Line: "command"},
		Input: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}},"required":["command"],"additionalProperties":false}`)}
	relink := tool.Spec{Name: "relink", Doc: "d", Effect: belay.AtMostOnce, Access: belay.Write, Input: json.RawMessage(`{"type":"object","properties":{"target":{"type":"string"},"name":{"type":"string"}},"additionalProperties":false}`)}
	return []tool.Tool{
		fn{spec: cat, run: func(_ context.Context, c tool.Call) (tool.Result, error) {
			*ran = append(*ran, string(c.Args))
			return tool.Result{Text: "ran"}, nil
		}},
		fn{spec: relink, run: func(_ context.Context, c tool.Call) (tool.Result, error) {
			var in struct{ Target, Name string }
			if err := json.Unmarshal(c.Args, &in); err != nil {
				return tool.Result{}, err
			}
			return tool.Result{Text: "linked"}, os.Symlink(in.Target, filepath.Join(c.Dir, in.Name))
		}},
	}
}

// A link that a call of the same answer makes isn't followed unjudged: the call
// behind it isn't run, and made again it is judged by where the link leads, which
// is on record.
// Guarantee: G58.
func TestALinkMadeByAnEarlierCallIsNotFollowedUnjudged(t *testing.T) {
	var ran []string
	b := newBench(t, `steps:
  - calls: [{tool: relink, args: {target: ../out, name: link}}, {tool: sh, args: {command: cat link/key}}, {tool: sh, args: {command: cat a}}]
  - calls: [{tool: sh, args: {command: cat link/key}}]
  - calls: [{tool: sh, args: {command: cd link && cat key}}]
  - calls: [{tool: sh, args: {command: echo x > link/new}}]
`+done, nil, catAndRelink(&ran)...)
	b.besides()
	b.changeRules(func(r *thread.Rules) {
		r.Grants = []policy.Grant{{Tool: "relink", Tier: policy.TierUser, Kind: "rule"}} // sh is judged by its commands
	})
	log := b.run()
	var failed []string
	for _, p := range find[event.ToolFailed](log) {
		failed = append(failed, p.Problem.Code+" "+p.Problem.Message)
	}
	if len(failed) != 4 || !strings.HasPrefix(failed[0], "PATH_MOVED") || !strings.Contains(failed[0], "/out/key") {
		t.Fatalf("failed: %q", failed)
	}
	if len(ran) != 1 || !strings.Contains(ran[0], "cat a") {
		t.Errorf("ran %q", ran)
	}
	for i, code := range []string{"NO_PERSON", "NO_PERSON", "NO_PERSON"} {
		verdicts := find[event.PermissionEvaluated](log)[3:]
		if v := verdicts[i]; v.Decision != "deny" || v.ReasonCode != code || !strings.Contains(v.Reason, "/out/") && !strings.Contains(v.Reason, "/out") {
			t.Errorf("verdict %d: %+v", i, v)
		}
	}
	answers := find[event.ModelCompleted](log)
	if l := answers[0].Calls[1].Links; l != nil {
		t.Errorf("the first look saw %v", l)
	}
	if l := answers[1].Calls[0].Links; len(l) != 1 || !strings.HasSuffix(l[0].Path, "/ws/link/key") || !strings.HasSuffix(l[0].Real, "/out/key") {
		t.Errorf("the second look saw %v", l)
	}
}

// A file tool is judged by where its path leads too: a rule about a folder counts
// behind a link.
// Guarantee: G58.
func TestAFileToolIsJudgedByWhereItsPathLeads(t *testing.T) {
	ran := 0
	put := fn{spec: tool.Spec{Name: "put", Doc: "d", Input: noArgs, Effect: belay.AtMostOnce, PathArg: "path", Access: belay.Write}, run: func(context.Context, tool.Call) (tool.Result, error) {
		ran++
		return tool.Result{Text: "ok"}, nil
	}}
	b := newBench(t, `steps:
  - calls: [{tool: put, args: {path: pub/x}}]
  - calls: [{tool: put, args: {path: hooks/pre-commit}}]
  - calls: [{tool: put, args: {path: free/x}}]
`+done, nil, put)
	ws, _ := b.besides()
	b.govern(policy.Document{Rules: []policy.Rule{{ID: "locked", Tier: policy.TierAdmin, Verdict: policy.Deny, Match: policy.Match{Path: &policy.PathMatch{Match: []string{"locked/**"}, Access: "write"}}}}})
	for _, d := range []string{"locked", "free", ".git/hooks"} {
		if err := os.MkdirAll(filepath.Join(ws, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"pub": "locked", "hooks": ".git/hooks"} {
		if err := os.Symlink(target, filepath.Join(ws, link)); err != nil {
			t.Fatal(err)
		}
	}
	var codes []string
	for _, v := range find[event.PermissionEvaluated](b.run()) {
		codes = append(codes, v.Decision+" "+v.Rule)
	}
	if got := strings.Join(codes[:3], ", "); got != "deny admin/locked, deny builtin/protected-name, allow grant/put" || ran != 1 {
		t.Errorf("%s; %d ran", got, ran)
	}
}
