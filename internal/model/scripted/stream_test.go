package scripted_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/modeltest"
	"github.com/belay-run/belay/internal/model/scripted"
)

// sceneFile is a scene as a script of one step; a script may be JSON.
func sceneFile(s modeltest.Scene) string {
	type fault struct {
		Kind       string `json:"kind"`
		RetryAfter string `json:"retryAfter,omitempty"`
		AfterChars int    `json:"afterChars"`
	}
	type call struct {
		Tool string `json:"tool"`
		Raw  string `json:"raw"`
	}
	type usage struct {
		Input  int64 `json:"input"`
		Output int64 `json:"output"`
		Cached int64 `json:"cached"`
	}
	step := struct {
		Reasoning string `json:"reasoning,omitempty"`
		Text      string `json:"text,omitempty"`
		Chunks    int    `json:"chunks,omitempty"`
		Calls     []call `json:"calls,omitempty"`
		Usage     *usage `json:"usage,omitempty"`
		Stop      string `json:"stop,omitempty"`
		Fault     *fault `json:"fault,omitempty"`
	}{Reasoning: s.Reasoning, Text: s.Text, Chunks: s.Parts, Stop: s.Stop}
	for _, c := range s.Calls {
		step.Calls = append(step.Calls, call{c.Name, c.Args})
	}
	if s.Usage != nil {
		step.Usage = &usage{s.Usage.Input, s.Usage.Output, s.Usage.Cached}
	}
	kind := s.Fail
	switch {
	case s.Hang:
		kind = "hang"
	case s.Cut:
		kind = "cut"
	}
	if kind != "" {
		step.Fault = &fault{Kind: kind, AfterChars: len(s.Text)}
		if s.RetryAfter > 0 {
			step.Fault.RetryAfter = s.RetryAfter.String()
		}
	}
	b, err := json.Marshal(map[string]any{"steps": []any{step}})
	if err != nil {
		panic(err)
	}
	return string(b)
}

func TestTheLawsOfProviders(t *testing.T) {
	modeltest.Run(t, modeltest.Config{Stage: func(t *testing.T, s modeltest.Scene) (model.Provider, model.Request) {
		return scripted.New(parse(t, sceneFile(s))), model.Request{Messages: talk{}.user("go"), Attempt: 1}
	}})
}

// heard is what came and when, in one line per chunk: "120ms text".
func heard(ctx context.Context, s *scripted.Script, r model.Request) []string {
	var lines []string
	start := time.Now()
	for c, err := range scripted.New(s).Stream(ctx, r) {
		at := time.Since(start)
		switch {
		case err != nil:
			lines = append(lines, fmt.Sprintf("%s error %v", at, err))
		case c.Call != nil:
			lines = append(lines, fmt.Sprintf("%s call %s", at, c.Call.Name))
		case c.Stop != "" && c.Usage != nil:
			lines = append(lines, fmt.Sprintf("%s %s %d+%d", at, c.Stop, c.Usage.Input, c.Usage.Output))
		case c.Stop != "":
			lines = append(lines, fmt.Sprintf("%s %s", at, c.Stop))
		default:
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s%s", at, c.Reasoning, c.Text)))
		}
	}
	return lines
}

func TestAnAnswerTakesItsTime(t *testing.T) {
	for _, c := range []struct {
		name, step string
		attempt    int
		want       []string
	}{
		{"at once", "{text: abc}", 1, []string{"0s abc", "0s stop"}},
		{"after a delay", "{text: abc, delay: 2s}", 1, []string{"2s abc", "2s stop"}},
		{"in pieces", "{text: abcde, delay: 1s, chunks: 3, chunkDelay: 10ms}", 1, []string{"1s a", "1.01s bc", "1.02s de", "1.02s stop"}},
		{"in no more pieces than characters", "{text: üб, chunks: 9}", 1, []string{"0s ü", "0s б", "0s stop"}},
		{"reasoning first", "{reasoning: hm, text: a, calls: [{tool: b}], usage: {input: 3, output: 4}}", 1, []string{"0s hm", "0s a", "0s call b", "0s tool_calls 3+4"}},
		{"with nothing in it", "{stop: length}", 1, []string{"0s length"}},
		{"a failure", "{text: abc, delay: 1s, fault: {kind: overflow}}", 1, []string{"1s error overflow: the request is longer than the model's context"}},
		{"a failure with words", "{fault: {kind: auth, message: no}}", 1, []string{"0s error auth: no"}},
		{"a failure in the middle", "{text: abcd, chunks: 2, chunkDelay: 1s, fault: {kind: internal, message: no, afterChars: 3}}", 1, []string{"0s ab", "1s c", "1s error internal: no"}},
		{"a failure of the first attempts", "{text: a, fault: {kind: transient, message: no, attempts: 2}}", 2, []string{"0s error transient: no"}},
		{"and then no more", "{text: a, fault: {kind: transient, message: no, attempts: 2}}", 3, []string{"0s a", "0s stop"}},
		{"cut", "{text: abcd, calls: [{tool: b}], fault: {kind: cut, afterChars: 2}}", 1, []string{"0s ab"}},
		{"hanging until somebody gives up", "{text: abcd, fault: {kind: hang, afterChars: 2}}", 1, []string{"0s ab", "1m0s error context deadline exceeded"}},
		{"given up during a delay", "{text: abcd, delay: 2m}", 1, []string{"1m0s error context deadline exceeded"}},
		{"given up between pieces", "{text: ab, chunks: 2, chunkDelay: 2m}", 1, []string{"0s a", "1m0s error context deadline exceeded"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				got := heard(ctx, parse(t, "steps: ["+c.step+"]"), model.Request{Attempt: c.attempt})
				if !slices.Equal(got, c.want) {
					t.Errorf("got %q, want %q", got, c.want)
				}
			})
		})
	}
}

func TestAScriptThatEndsEarlyIsNotRetried(t *testing.T) {
	s := parse(t, "steps: [{text: a}]")
	for _, err := range scripted.New(s).Stream(t.Context(), model.Request{Messages: talk{}.user("go").answer("a"), Note: "Complete."}) {
		e, ok := errors.AsType[*model.Error](err)
		if !ok || e.Class != "bad_request" || e.Retryable() || !strings.Contains(e.Message, "the runtime's note") {
			t.Errorf("got %#v, want a bad_request about the note", err)
		}
	}
}

func BenchmarkAnswer2000(b *testing.B) {
	s := parse(b, "steps: [{text: 'round ${n}', repeat: 2001}, {when: {tool: exec, error: true, contains: lost}, text: a}]")
	m := talk{}.user("go")
	for range 2000 {
		m = append(m, m.answer("a", "read").result("read", "x")[len(m):]...)
	}
	for b.Loop() {
		if got := said(b, s, model.Request{Messages: m}); got != "round 2001" {
			b.Fatal(got)
		}
	}
}
