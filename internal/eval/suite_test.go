package eval_test

import (
	"bytes"
	"regexp"
	"slices"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/cli"
	"github.com/belay-run/belay/internal/eval"
	"github.com/belay-run/belay/internal/testkit/needs"
)

func player(t *testing.T) eval.Player {
	p := cli.Player()
	p.Temp = t.TempDir()
	return p
}

func suite(t *testing.T) []*eval.Scenario {
	t.Helper()
	all, err := eval.Load([]string{"../../evals"})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestTheSuitePasses(t *testing.T) {
	for _, program := range []string{"sh", "git"} {
		needs.Program(t, program)
	}
	for _, s := range suite(t) {
		t.Run(s.Category+"/"+s.ID, func(t *testing.T) {
			t.Parallel()
			r, err := player(t).Play(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range r.Failures {
				t.Error(f)
			}
		})
	}
}

func TestTheExamplesOfTheReferencePass(t *testing.T) {
	for _, s := range eval.Documented(t) {
		r, err := player(t).Play(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range r.Failures {
			t.Errorf("%s:%d: %s", s.File, s.Line, f)
		}
	}
}

// What the suite claims to cover, it covers.
func TestTheSuiteCovers(t *testing.T) {
	all := suite(t)
	if len(all) < 60 {
		t.Errorf("there are %d scenarios, want 60 or more", len(all))
	}
	tools, outcomes := map[string]bool{}, map[string]bool{}
	for _, s := range all {
		for _, e := range s.Expect {
			switch e := e.(type) {
			case *eval.Outcome:
				outcomes[string(*e)] = true
			case *eval.Called:
				tools[e.Tool] = true
			case *eval.FailedCall:
				tools[e.Tool] = true
			case *eval.CallResult:
				tools[e.Tool] = true
			}
		}
	}
	var out bytes.Buffer
	if code := player(t).Program(t.Context(), eval.Command{Args: []string{"--json", "tool", "list"}, Dir: t.TempDir(), Env: []string{"HOME=" + t.TempDir()}, Stdout: &out, Stderr: t.Output()}); code != 0 {
		t.Fatal("tool list ended with", code)
	}
	listed := regexp.MustCompile(`(?m)^\{"name":"([^"]+)"`).FindAllStringSubmatch(out.String(), -1)
	for _, m := range listed {
		if !tools[m[1]] {
			t.Errorf("no scenario is about %s", m[1])
		}
	}
	if len(listed) < 10 {
		t.Errorf("%d tools are listed: %s", len(listed), &out)
	}
	never := []belay.Outcome{belay.OverBudget, belay.Lost} // no budgets yet; a lost turn needs a damaged store
	for _, o := range belay.Outcomes {
		if !outcomes[string(o)] && !slices.Contains(never, o) {
			t.Errorf("no scenario ends as %s", o)
		}
	}
}
