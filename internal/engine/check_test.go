package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/tool"
)

// govern puts the bench under rules besides the built-in ones.
func (b *bench) govern(doc policy.Document) {
	b.t.Helper()
	doc.Version, doc.Rules = policy.FormatVersion, append(policy.BuiltinRules(), doc.Rules...)
	set, err := policy.Compile(doc)
	if err != nil {
		b.t.Fatal(err)
	}
	raw, err := set.Encode()
	if err != nil {
		b.t.Fatal(err)
	}
	ref, err := b.h.Put(b.t.Context(), raw, "application/json")
	if err != nil {
		b.t.Fatal(err)
	}
	b.changeRules(func(r *thread.Rules) { r.Policy = &ref })
}

// A process that takes a thread over needs its rules, and what those name.
// Guarantee: G11.
func TestRulesOfPeopleAreThereAgainForTheNextProcess(t *testing.T) {
	ran := 0
	put := fn{spec: tool.Spec{Name: "put", Doc: "d", Input: noArgs, Effect: belay.AtMostOnce}, run: func(context.Context, tool.Call) (tool.Result, error) { ran++; return tool.Result{Text: "ok"}, nil }}
	b := newBench(t, "steps:\n  - calls: [{tool: put, args: {n: 1}}]\n"+done, func(s *belay.Settings) { s.Approvals = belay.ApprovalsWait }, put)
	b.govern(policy.Document{Rules: []policy.Rule{{ID: "ask", Tier: policy.TierAdmin, Verdict: policy.Ask, Match: policy.Match{Tool: []string{"put"}}}}})
	log := b.run()
	asks := find[event.ActionRequired](log)
	if len(asks) != 1 || ran != 0 || log[len(log)-1].IDs.Action == "" {
		t.Fatalf("%d asks, %d runs, %s at last", len(asks), ran, log[len(log)-1].Type())
	}
	if _, err := b.e.Submit(t.Context(), belay.Order{ID: "cmd_yes", Principal: "user:ann", Session: sess, Stream: thr.Stream(), Command: belay.RespondAction{Action: log[len(log)-1].IDs.Action, Decision: "allow"}}); err != nil {
		t.Fatal(err)
	}
	if err := b.e.Session(t.Context(), sess, nil); err != nil {
		t.Fatal(err)
	}
	if log = b.log(); ran != 1 || len(find[event.TurnCompleted](log)) != 1 {
		t.Errorf("%d runs, %s at last", ran, log[len(log)-1].Type())
	}
}

// What is unfinished continues by itself in the next process, which has to ask
// for the rules, and then for those that they name, before anything else happens.
func TestATurnUnderPeoplesRulesGoesOnInTheNextProcess(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	ran := 0
	look := fn{spec: tool.Spec{Name: "look", Doc: "d", Input: noArgs, Effect: belay.Pure}, run: func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		if ran++; ran == 1 {
			leave()
			return tool.Result{}, ctx.Err()
		}
		return tool.Result{Text: "ok"}, nil
	}}
	b := newBench(t, "steps:\n  - calls: [{tool: look, args: {n: 1}}]\n"+done, nil, look)
	b.govern(policy.Document{Rules: []policy.Rule{{ID: "may", Tier: policy.TierAdmin, Verdict: policy.Allow, Match: policy.Match{Tool: []string{"look"}}}}})
	b.submit(1, "go")
	if err := b.e.Session(ctx, sess, nil); !errors.Is(err, context.Canceled) || ran != 1 {
		t.Fatalf("the first process ended with %v after %d runs", err, ran)
	}
	b.rewire(func(*config) {})
	if err := b.e.Session(t.Context(), sess, nil); err != nil {
		t.Fatal(err)
	}
	if log := b.log(); ran != 2 || len(find[event.TurnCompleted](log)) != 1 {
		t.Errorf("%d runs, %s at last", ran, log[len(log)-1].Type())
	}
}

// Rules that can't be had end the turn instead of leaving it to others.
// Guarantee: G11.
func TestPeoplesRulesThatAreGoneEndTheTurn(t *testing.T) {
	b := newBench(t, "steps:\n"+done, nil)
	b.changeRules(func(r *thread.Rules) { r.Policy = &belay.Ref{Digest: belay.DigestOf([]byte("gone")), Size: 4} })
	log := b.run()
	ends := find[event.TurnFailed](log)
	if len(ends) != 1 || ends[0].Outcome != belay.Lost || ends[0].Code != "RULES_MISSING" || len(find[event.ModelRequested](log)) != 0 {
		t.Errorf("got %+v", ends)
	}
}

// A checker is announced before it is asked, is told of the call, and its verdict
// counts; without a verdict its rule for that does.
// Guarantee: G26.
func TestCheckersAreAskedBeforeACallRuns(t *testing.T) {
	for _, c := range []struct {
		name    string
		answer  policy.Answer
		err     error
		onError policy.Decision
		runs    int
		code    string
	}{
		{"allow", policy.Answer{Decision: policy.Allow}, nil, "", 1, "GRANTED"},
		{"deny", policy.Answer{Decision: policy.Deny, Code: "SMELLS", Reason: "it smells"}, nil, "", 0, "SMELLS"},
		{"ask", policy.Answer{Decision: policy.Ask}, nil, "", 0, "NO_PERSON"},
		{"error", policy.Answer{}, errors.New("broken with s3cr3t-value"), "", 0, "CHECKER_FAILED"},
		{"open", policy.Answer{}, errors.New("broken"), policy.Allow, 1, "GRANTED"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ran, announced := 0, false
			put := fn{spec: tool.Spec{Name: "put", Doc: "d", Input: noArgs, Effect: belay.AtMostOnce}, run: func(context.Context, tool.Call) (tool.Result, error) { ran++; return tool.Result{Text: "ok"}, nil }}
			b := newBench(t, "steps:\n  - calls: [{tool: put, args: {n: 7}}]\n"+done, nil, put)
			b.check = func(_ context.Context, k policy.Checker, dir string, question []byte) (policy.Answer, error) {
				announced = slices.ContainsFunc(find[event.HookStarted](b.log()), func(p event.HookStarted) bool {
					return p.Hook == "checker/look" && p.InputHash == belay.DigestOf(question)
				})
				var q policy.Question
				if err := json.Unmarshal(question, &q); err != nil || q.Tool != "put" || string(q.Args) != `{"n":7}` || q.Mode != belay.ModeDefault || k.URL != "http://a.example" || dir == "" {
					return policy.Answer{}, fmt.Errorf("asked %s: %w", question, err)
				}
				return c.answer, c.err
			}
			b.govern(policy.Document{Checkers: []policy.Checker{{ID: "look", Kind: "http", URL: "http://a.example", Tier: policy.TierUser, OnError: c.onError, When: policy.Match{Tool: []string{"put"}}}}})
			log := b.run()
			v := find[event.PermissionEvaluated](log)[0]
			if ran != c.runs || v.ReasonCode != c.code || !announced {
				t.Errorf("%d runs, announced %v, %+v", ran, announced, v)
			}
			for _, e := range log {
				if raw, _ := event.Encode(e.Data); bytes.Contains(raw, []byte("s3cr3t-value")) {
					t.Errorf("%s holds a secret", e.Type())
				}
			}
		})
	}
}
