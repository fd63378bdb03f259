package story

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay"
)

// failing matches a place where the thread ends a turn badly, also one that
// never began.
var failing = regexp.MustCompile(`(?:d\.fail\(|h\.endQueued\(.*, )belay\.(\w+), "([A-Z_]+)"`)

// A turn ends for want of budget at places that take the code from a table.
var (
	low   = regexp.MustCompile(`d\.fail\(belay\.OverBudget, lows\[`)
	lowOf = regexp.MustCompile(`belay\.Budget\w+: +\{"\w+", "([A-Z_]+)"`)
)

// ends are the outcomes and codes that the thread's source emits.
func ends(t *testing.T) map[string]belay.Outcome {
	t.Helper()
	names := map[string]belay.Outcome{"Completed": belay.Completed, "Failed": belay.Failed, "NoCompletion": belay.NoCompletion, "Blocked": belay.Blocked,
		"Denied": belay.Denied, "OverBudget": belay.OverBudget, "TimedOut": belay.TimedOut, "Cancelled": belay.Cancelled, "Lost": belay.Lost}
	files, err := filepath.Glob("../../core/thread/*.go")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]belay.Outcome{}
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		src, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		found := failing.FindAllStringSubmatch(string(src), -1)
		for _, m := range lowOf.FindAllStringSubmatch(string(src), -1) {
			out[m[1]] = belay.OverBudget
		}
		if n := strings.Count(string(src), "d.fail(") + strings.Count(string(src), "h.endQueued(") - len(low.FindAll(src, -1)); n != len(found) {
			t.Errorf("%s ends turns at %d places, and %d of them name outcome and code in place", f, n, len(found))
		}
		for _, m := range found {
			o, ok := names[m[1]]
			if !ok {
				t.Errorf("%s: belay.%s is no outcome", f, m[1])
			}
			out[m[2]] = o
		}
	}
	if len(out) == 0 {
		t.Fatal("the thread ends no turn badly: the source is not where it was")
	}
	return out
}

func endings(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../../../docs/endings.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var row = regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\d+) \\| (?:`([A-Z_]+)`)? ?\\|")

func TestTheReferenceOfEndingsIsComplete(t *testing.T) {
	doc, emitted := endings(t), ends(t)
	seen := map[belay.Outcome]bool{}
	for _, m := range row.FindAllStringSubmatch(doc, -1) {
		o, exit, code := belay.Outcome(m[1]), m[2], m[3]
		seen[o] = true
		if !slices.Contains(belay.Outcomes, o) {
			t.Errorf("the reference has an outcome %s, which there is not", o)
		}
		if exit != fmt.Sprint(o.ExitCode()) {
			t.Errorf("the reference gives %s exit code %s; it is %d", o, exit, o.ExitCode())
		}
		if code == "" {
			continue
		}
		if emitted[code] != o {
			t.Errorf("the reference says that %s ends as %s; the thread says %q", code, o, emitted[code])
		}
		delete(emitted, code)
	}
	for code, o := range emitted {
		t.Errorf("the reference lacks %s of outcome %s", code, o)
	}
	for _, o := range belay.Outcomes {
		if !seen[o] {
			t.Errorf("the reference lacks outcome %s", o)
		}
	}
}

func TestTheReferenceKnowsTheDefaultLimits(t *testing.T) {
	doc, l := endings(t), belay.DefaultLimits
	for flag, value := range map[string]string{
		"--max-steps": fmt.Sprint(l.Steps), "--max-calls": fmt.Sprint(l.Calls), "--max-time": strings.TrimSuffix(l.Time.String(), "0m0s"),
	} {
		if want := "| `" + flag + "` | " + value + " |"; !strings.Contains(doc, want) {
			t.Errorf("the reference lacks %q", want)
		}
	}
}

// Codes of calls that the turn closes itself are in the reference too.
func TestTheReferenceKnowsEveryRefusal(t *testing.T) {
	doc := endings(t)
	code := regexp.MustCompile(`Code: "([A-Z_]+)"|const code\w+ = "([A-Z_]+)"|settleAll\(r, rd, "\w+", "([A-Z_]+)"`)
	files, err := filepath.Glob("../../core/thread/*.go")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range files {
		src, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		for _, m := range code.FindAllStringSubmatch(string(src), -1) {
			c := m[1] + m[2] + m[3]
			n++
			if c == "DENIED" || c == "LOST" || c == "BAD_ARGUMENTS" { // the class says it
				continue
			}
			if !strings.Contains(doc, "`"+c+"`") {
				t.Errorf("%s refuses with %s, which the reference doesn't know", filepath.Base(f), c)
			}
		}
	}
	if n < 8 {
		t.Errorf("only %d codes found: the source is not where it was", n)
	}
}

// Every cause of an end has an explanation of its own, and advice.
// Guarantee: O5.
func TestEveryEndingIsExplained(t *testing.T) {
	for code, o := range ends(t) {
		e, ok := endingOf(code)
		if !ok || e.means == "" {
			t.Errorf("%s (%s) has no explanation", code, o)
		}
		if !slices.ContainsFunc(logs, func(c struct {
			name string
			asks string
			log  func() *log
		}) bool {
			a, err := Why(c.log().events, "")
			return err == nil && strings.Contains(a.Head, "("+code+",") && len(a.Next) > 0
		}) {
			t.Errorf("no log of the tests ends with %s", code)
		}
	}
}
