package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/tool"
)

// rewire makes the bench's engine anew.
func (b *bench) rewire(change func(*config)) {
	b.t.Helper()
	change(&b.c)
	e, err := newEngine(b.c)
	if err != nil {
		b.t.Fatal(err)
	}
	b.e = e
}

// Calls that differ in a secret only are different calls in every fact, and what
// tells them apart is nothing but a digest under the store's key.
// Guarantee: X31.
func TestCallsThatDifferInASecretAreDifferentCalls(t *testing.T) {
	script := "steps:\n  - calls: [{tool: put, args: {path: a-s3cr3t-value}}, {tool: put, args: {path: a-other-v4lue}}, {tool: put, args: {path: a-s3cr3t-value}}]\n" + done
	hashes := func(key []byte) (out []belay.Digest) {
		put := fn{spec: tool.Spec{Name: "put", Doc: "d", Input: noArgs, Effect: belay.AtMostOnce}, run: func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{Text: "ok"}, nil }}
		b := newBench(t, script, nil, put)
		b.c.Secrets.Add("KEY", "other-v4lue")
		b.rewire(func(c *config) { c.ArgsKey = key })
		log := b.run()
		for _, v := range find[event.PermissionEvaluated](log)[:3] {
			out = append(out, v.ArgsHash)
		}
		form := regexp.MustCompile(`^\{"path":"a-\[redacted:KEY(:[0-9a-f]{16})?\]"\}$`)
		for _, c := range find[event.ModelCompleted](log)[0].Calls {
			if m := form.FindStringSubmatch(string(c.Args)); m == nil || (m[1] == "") != (key == nil) {
				t.Errorf("arguments are kept as %s", c.Args)
			}
		}
		return out
	}
	one := hashes(bytes.Repeat([]byte{1}, 32))
	if one[0] == one[1] || one[0] != one[2] {
		t.Errorf("with a key: %v", one)
	}
	if two := hashes(bytes.Repeat([]byte{2}, 32)); two[0] == one[0] || two[1] == one[1] || two[0] != two[2] {
		t.Errorf("with another key: %v, %v", one, two)
	}
	if none := hashes(nil); none[0] != none[1] {
		t.Errorf("without a key: %v", none)
	}
}

// An answer is for the call that was shown: one that differs in a secret asks anew.
// Guarantee: X31.
func TestAnAnswerCoversTheSecretThatWasShown(t *testing.T) {
	put := fn{spec: tool.Spec{Name: "put", Doc: "d", Input: noArgs, Effect: belay.AtMostOnce}, run: func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{Text: "ok"}, nil }}
	b := newBench(t, "steps:\n  - calls: [{tool: put, args: {path: s3cr3t-value}}]\n  - calls: [{tool: put, args: {path: other-v4lue}}]\n"+done, func(s *belay.Settings) { s.Approvals = belay.ApprovalsWait }, put)
	b.dropGrants()
	b.c.Secrets.Add("KEY", "other-v4lue")
	b.rewire(func(c *config) { c.ArgsKey = bytes.Repeat([]byte{1}, 32) })
	log := b.run()
	if _, err := b.e.Submit(t.Context(), belay.Order{ID: "cmd_yes", Principal: "user:ann", Session: sess, Stream: thr.Stream(), Command: belay.RespondAction{Action: log[len(log)-1].IDs.Action, Decision: "allow"}}); err != nil {
		t.Fatal(err)
	}
	if err := b.e.Session(t.Context(), sess, nil); err != nil {
		t.Fatal(err)
	}
	asks := find[event.ActionRequired](b.log())
	if len(asks) != 2 || asks[0].ArgsHash == asks[1].ArgsHash || !strings.Contains(asks[0].Prompt.Text, "[redacted:KEY:") {
		t.Errorf("asked: %+v", asks)
	}
}

// A registered secret in an argument, a path, a command, where a link leads, and
// what a checker says is in no fact of a decision, nor in any other.
// Guarantee: X1.
func TestNoDecisionHoldsASecret(t *testing.T) {
	const value = "s3cr3t-value"
	var ran []string
	tools := catAndRelink(&ran)
	b := newBench(t, `steps:
  - calls: [{tool: sh, args: {command: cat s3cr3t-value/x}}, {tool: sh, args: {command: "curl -H 'K: s3cr3t-value' https://s3cr3t-value.example > s3cr3t-value"}}, {tool: sh, args: {command: "s3cr3t-value --now"}}]
  - calls: [{tool: sh, args: {command: cat link}}, {tool: relink, args: {target: s3cr3t-value, name: s3cr3t-value}}, {tool: nosuch-s3cr3t-value, args: {}}, {tool: sh, args: {command: 3}}]
`+done, nil, tools...)
	b.rewire(func(c *config) { c.ArgsKey = bytes.Repeat([]byte{1}, 32) })
	ws, out := b.besides()
	b.changeRules(func(r *thread.Rules) { r.Grants = []policy.Grant{{Tool: "sh", Tier: policy.TierUser, Kind: "rule"}} })
	b.govern(policy.Document{
		Rules:    []policy.Rule{{ID: "no", Tier: policy.TierUser, Verdict: policy.Deny, Match: policy.Match{If: `"` + "curl" + `" == program`}}},
		Checkers: []policy.Checker{{ID: "tells", Kind: "process", Argv: []string{"x"}, OnError: policy.Ask, Tier: policy.TierUser}},
	})
	var questions bytes.Buffer
	b.check = func(_ context.Context, _ policy.Checker, _ string, q []byte) (policy.Answer, error) {
		questions.Write(q)
		return policy.Answer{Decision: policy.Ask, Reason: "I know " + value, Code: value}, nil
	}
	if err := os.Symlink(filepath.Join(out, value), filepath.Join(ws, "link")); err != nil {
		t.Fatal(err)
	}
	log := b.run()
	if n := len(find[event.PermissionEvaluated](log)); n < 7 {
		t.Errorf("%d decisions", n)
	}
	if len(find[event.HookCompleted](log)) == 0 || questions.Len() == 0 {
		t.Error("no checker was asked")
	}
	for _, e := range log {
		raw, err := json.Marshal(e.Data)
		if err != nil || bytes.Contains(raw, []byte(value)) {
			t.Errorf("%s holds the secret: %s", e.Type(), raw)
		}
	}
	if bytes.Contains(questions.Bytes(), []byte(value)) {
		t.Errorf("a checker was told the secret: %s", questions.Bytes())
	}
}
