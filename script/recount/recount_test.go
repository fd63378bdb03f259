package main

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/belay-run/belay/internal/cli"
	"github.com/belay-run/belay/internal/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Main()
	testscript.Main(m, map[string]func(){
		"recount": main,
		"belay": func() {
			code := cli.Main(context.Background(), os.Args[1:], cli.Process())
			sandbox.Cleanup()
			os.Exit(code)
		},
	})
}

// TestAnOutsideRecountAgrees plays turns that end in every way, and holds every
// figure of belay stats --json against those that this program finds in what
// belay events --json prints.
// Guarantee: M62.
func TestAnOutsideRecountAgrees(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "recountagents")
	build := exec.Command("go", "build", "-o", outside, ".")
	build.Dir = filepath.Join("testdata", "agents")
	build.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 ".",
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("USER", "tester")
			e.Setenv("OUTSIDE", outside)
			for _, kv := range os.Environ() {
				if name, _, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "BELAY_") || strings.HasPrefix(name, "XDG_") {
					e.Setenv(name, "")
				}
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"same": same, "sameAgents": sameAgents, "sameMetrics": sameMetrics, "far": far},
	})
}

// far starts a server that speaks Chat Completions to whoever has the right key. Its
// model mute reports no usage.
func far(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: far NAME")
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer sk-right" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		body, _ := io.ReadAll(r.Body) //nolint:errcheck // then it is another model
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range []string{
			`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"complete_task","arguments":"{\"summary\":\"done\"}"}}]}}]}`,
			`{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`,
			`{"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":7}}`, `[DONE]`,
		} {
			if !strings.Contains(e, `"usage"`) || !strings.Contains(string(body), `"model":"mute"`) {
				io.WriteString(w, "data: "+e+"\n\n") //nolint:errcheck // the client may have left
			}
		}
	}))
	ts.Defer(srv.Close)
	ts.Setenv(args[0], srv.URL+"/v1")
}

// same compares two files of JSON, figure by figure.
func same(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: same FILE FILE")
	}
	var a, b map[string]any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &a))
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[1])), &b))
	if d := cmp.Diff(a, b); d != "" {
		ts.Fatalf("the figures differ:\n%s", d)
	}
}

// agentShown is a line of belay agents stats --json.
type agentShown struct {
	Agent             string
	Runs              float64
	Ends              map[string]float64
	P50Ms, P95Ms      float64
	Tokens            float64
	UnknownUsage      float64
	Cost              struct{ MicroUsd float64 }
	Retries, GateReds float64
	ContextEfficiency float64
	Week, Before      struct{ Runs, Completed, Tokens, MicroUsd float64 }
}

// sameAgents FILE FACTS: each figure of agents that belay agents stats says is what another
// program finds in the facts; those of a week in the facts of that week.
func sameAgents(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: sameAgents FILE FACTS")
	}
	shown, counted := map[string]float64{}, map[string]float64{}
	for dec := json.NewDecoder(strings.NewReader(ts.ReadFile(args[0]))); dec.More(); {
		var a agentShown
		ts.Check(dec.Decode(&a))
		figures := map[string]float64{
			"runs": a.Runs, "p50": a.P50Ms, "p95": a.P95Ms, "tokens": a.Tokens, "unknown": a.UnknownUsage, "cost": a.Cost.MicroUsd, "retries": a.Retries, "gateReds": a.GateReds, "context": a.ContextEfficiency,
			"week runs": a.Week.Runs, "week completed": a.Week.Completed, "week tokens": a.Week.Tokens, "week cost": a.Week.MicroUsd,
			"before runs": a.Before.Runs, "before completed": a.Before.Completed, "before tokens": a.Before.Tokens, "before cost": a.Before.MicroUsd,
		}
		maps.Copy(figures, a.Ends)
		for figure, n := range figures {
			if n != 0 {
				shown[a.Agent+" "+figure] = n
			}
		}
	}
	const week = 7 * 24 * time.Hour
	count := func(name string, figures []string, within func(ago time.Duration) bool) {
		var facts []string
		for line := range strings.Lines(ts.ReadFile(args[1])) {
			var f struct{ Timestamp time.Time }
			if ts.Check(json.Unmarshal([]byte(line), &f)); within(time.Since(f.Timestamp)) {
				facts = append(facts, line)
			}
		}
		c := exec.Command(ts.Getenv("OUTSIDE"))
		c.Stdin = strings.NewReader(strings.Join(facts, ""))
		out, err := c.Output()
		ts.Check(err)
		sums := map[string]float64{}
		ts.Check(json.Unmarshal(out, &sums))
		for key, n := range sums {
			agent, figure, _ := strings.Cut(key, " ")
			if n != 0 && figure != "read" && figure != "wrote" && (figures == nil || slices.Contains(figures, figure)) {
				counted[agent+" "+name+figure] = n
			}
		}
	}
	ofWeek := []string{"runs", "completed", "tokens", "cost"}
	count("", nil, func(time.Duration) bool { return true })
	count("week ", ofWeek, func(ago time.Duration) bool { return ago < week })
	count("before ", ofWeek, func(ago time.Duration) bool { return ago >= week && ago < 2*week })
	if d := cmp.Diff(shown, counted); d != "" || len(shown) == 0 {
		ts.Fatalf("stats and the facts differ:\n%s", d)
	}
}
