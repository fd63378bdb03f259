package eval_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay/internal/eval"
)

// Guarantee: X39.
func TestNothingIsLeftBehindUnlessItIsKept(t *testing.T) {
	s := parse(t, least)[0]
	s.Commands = [][]string{{"sh", "-c", "mkdir d && touch d/f && chmod 500 d"}}
	for _, keep := range []bool{false, true} {
		p := player(t)
		p.Keep = keep
		r, err := p.Play(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		left, err := os.ReadDir(p.Temp)
		if err != nil || len(left) != map[bool]int{false: 0, true: 1}[keep] {
			t.Errorf("keep %v: %v left, %v", keep, left, err)
		}
		if keep {
			if _, err := os.Stat(r.Kept.Store + "/tenants/default/belay.db"); err != nil {
				t.Error(err)
			}
			os.Chmod(filepath.Join(r.Kept.Workspace, "d"), 0o700) //nolint:errcheck // for the test's own cleaning
		}
	}
}

// A scenario gets nothing of the person who runs it but where programs are.
// Guarantee: X39.
func TestAScenarioSeesNoSettingsOfAPerson(t *testing.T) {
	var envs []string
	p := player(t)
	p.Env = []string{"PATH=/bin", "HOME=/home/ann", "USER=ann", "XDG_CONFIG_HOME=/home/ann/.config", "BELAY_MODE=plan", "LANG=C"}
	p.Program = func(_ context.Context, c eval.Command) int { envs = c.Env; return 0 }
	if _, err := p.Play(t.Context(), parse(t, least)[0]); err != nil {
		t.Fatal(err)
	}
	slices.Sort(envs)
	got := strings.Join(envs, " ")
	if strings.Contains(got, "ann") || strings.Contains(got, "BELAY_") || !strings.Contains(got, "PATH=/bin") || !strings.Contains(got, "USER=eval") || !strings.Contains(got, "LANG=C") {
		t.Error(got)
	}
}

func TestWhatWasToHappenMustHappen(t *testing.T) {
	for text, says := range map[string]string{
		least + "meanwhile: [{after: {fact: tool.started}, interrupt: true}]\n":                 "never came: there was no tool.started",
		least + "meanwhile: [{after: {fact: turn.started}, nth: 2, write: {a: b}}]\n":           "never came: there was no turn.started",
		least + "answers: [{allow: true}]\n":                                                    "never came: there was no action.required",
		least + "meanwhile: [{after: {fact: turn.started}, remove: [a]}]\n":                     "went wrong: remove",
		least + "setup: {commands: [[sh, -c, 'echo broken; exit 3']]}\n":                        "setup: sh -c echo broken; exit 3: exit status 3\n  broken",
		least + "setup: {commands: [[no-such-program]]}\n":                                      "no-such-program",
		least + "settings: {flags: [--no-such-flag]}\n":                                         "unknown flag --no-such-flag",
		strings.Replace(least, "{outcome: completed}", "{assistant: {contains: something}}", 1): "by the way: the turn ended as no_completion (NO_COMPLETION",
	} {
		text = strings.Replace(text, "{text: x}", "{text: x, repeat: 9}", 1)
		r, err := player(t).Play(t.Context(), parse(t, text)[0])
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(r.Failures, "\n"); !strings.Contains(got, says) {
			t.Errorf("%s\ngot  %s\nwant %s", text, got, says)
		}
	}
}

func TestAllScenariosHaveAResult(t *testing.T) {
	var all []*eval.Scenario
	for _, id := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		s := parse(t, strings.Replace(least, "text: x", "calls: [{tool: complete_task, args: {summary: x}}]", 1))[0]
		s.ID = id
		if id == "c" {
			s.Expect = append(s.Expect, eval.Exit(4))
		}
		all = append(all, s)
	}
	var sum eval.Summary
	var results []eval.Result
	err := player(t).All(t.Context(), all, 3, func(r eval.Result) { sum.Add(r); results = append(results, r) })
	if err != nil || sum.Total != 7 || sum.Passed != 6 || sum.Failed != 1 || sum.Categories["c"].Total != 7 {
		t.Errorf("got %+v, %v", sum, err)
	}
	var out bytes.Buffer
	if err := eval.JUnit(&out, results); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Suites   []struct {
			Name  string `xml:"name,attr"`
			Cases []struct {
				Name    string `xml:"name,attr"`
				Failure *struct {
					Message string `xml:"message,attr"`
				} `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Tests != 7 || doc.Failures != 1 || len(doc.Suites) != 1 || len(doc.Suites[0].Cases) != 7 {
		t.Fatalf("got %+v", doc)
	}
	if c := doc.Suites[0].Cases[2]; c.Name != "c" || c.Failure == nil || c.Failure.Message != "exit code: expected 4, got 0" {
		t.Errorf("got %+v", c)
	}
	for _, r := range results {
		if l := r.Line(); l.ID != r.Scenario.ID || (l.Status == "pass") != (len(l.Failures) == 0) || l.Failures == nil {
			t.Errorf("got %+v", l)
		}
	}
}

func TestAnEvaluationCanBeStopped(t *testing.T) {
	stop := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	var all []*eval.Scenario
	for _, id := range []string{"a", "b", "c", "d"} {
		s := parse(t, strings.Replace(least, "{text: x}", "{text: x, delay: 1h}", 1))[0]
		s.ID = id
		all = append(all, s)
	}
	p := player(t)
	real := p.Program
	p.Program = func(ctx context.Context, c eval.Command) int { cancel(stop); return real(ctx, c) }
	begun := time.Now()
	err := p.All(ctx, all, 2, func(r eval.Result) { t.Errorf("%s has a result", r.Scenario.ID) })
	if !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
	if left, err := os.ReadDir(p.Temp); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
