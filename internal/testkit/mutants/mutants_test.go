package main

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A change of the program that moves what a mutant breaks, or the test that
// catches it, is noticed here, not when all of them are run.
func TestEveryMutantFitsItsPlace(t *testing.T) {
	in, err := newTree("../../..")
	if err != nil {
		t.Fatal(err)
	}
	all := mutants()
	if len(all) > most {
		t.Errorf("%d mutants; at most %d: one for a family of guarantees", len(all), most)
	}
	seen := map[string]bool{}
	for i, m := range all {
		if m.breaks == "" || seen[m.breaks] {
			t.Errorf("%q: a mutant needs a claim of its own", m.breaks)
		}
		seen[m.breaks] = true
		if len(m.edits) == 0 {
			t.Errorf("%s: it changes nothing", m.breaks)
		}
		for _, e := range m.edits {
			if _, err := in.apply(e, idOf(i)); err != nil {
				t.Errorf("%s: %v", m.breaks, err)
			}
		}
		if !in.tests(t, m.suite()) {
			t.Errorf("%s: no test is called %s", m.breaks, m.caught)
		}
	}
}

// tests reports whether a package has a test that a suite's pattern may name.
func (t *tree) tests(tt *testing.T, s suite) bool {
	dir, err := t.find(s.pkg)
	if err != nil {
		tt.Error(err)
		return false
	}
	files, err := t.parsed(dir, true)
	if err != nil {
		tt.Error(err)
		return false
	}
	first, _, _ := strings.Cut(s.run, "/")
	for _, f := range files {
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if ok && strings.HasPrefix(fn.Name.Name, "Test") && regexp.MustCompile(first).MatchString(fn.Name.Name) {
				return true
			}
		}
	}
	return false
}

// module is a little module with a law and tests of it.
func module(t *testing.T) *lab {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":              "module example.org/little\n\ngo 1.26\n",
		"sums/law.go":         law,
		"sums/law_test.go":    "package sums\n\nimport \"testing\"\n\nfunc TestDouble(t *testing.T) {\n\tif (T{}).Double(2) != 4 {\n\t\tt.Fatal((T{}).Double(2))\n\t}\n}\n\nfunc TestRed(t *testing.T) { t.Fail() }\n",
		"a/same/same_test.go": "package same\n\nimport (\n\t\"testing\"\n\n\t\"example.org/little/sums\"\n)\n\nfunc TestFromElsewhere(t *testing.T) {\n\tif (sums.T{}).Double(3) != 6 {\n\t\tt.Fail()\n\t}\n}\n",
		"b/same/same_test.go": "package same\n\nimport \"testing\"\n\nfunc TestNothing(t *testing.T) {}\n",
	} {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	in, err := newTree(root)
	if err != nil {
		t.Fatal(err)
	}
	return &lab{tree: in, dir: t.TempDir()}
}

const law = `package sums

var step = 2

type T struct{}

func (T) Double(n int) int {
	m := n + n
	if loop() && m > 0 {
		m -= step
		m += step
	}
	return m
}

func loop() bool { return true }
`

func TestAVerdictSaysWhatBecameOfTheMutant(t *testing.T) {
	const double, elsewhere = "sums Double", "a/same FromElsewhere"
	l := module(t)
	var all []mutant
	var suites []suite
	var wants []string
	for _, c := range []struct {
		what  string
		edits []edit
		by    string
		want  string
	}{
		{"the value of a declaration", swap("sums.Double", "n + n", "n + 1 + n"), double, caught},
		{"a condition", never("sums.Double", "loop()"), double, survived},
		{"a part of a condition", swap("sums.Double", "m > 0", "m < 0"), double, survived},
		{"a statement", drop("sums.Double", "m -="), double, caught},
		{"two places", append(drop("sums.Double", "m -="), drop("sums.Double", "m +=")...), double, survived},
		{"a part of a statement", swap("sums.Double", "+= step", "+= 7"), double, caught},
		{"the end of a function", swap("sums.Double", "return m", "return m + 1"), elsewhere, caught},
		{"a variable", swap("sums.step", "2", "3"), double, survived},
		{"a change that only others see", swap("sums.loop", "return true", "return false"), elsewhere, survived},
		{"a suite that looks elsewhere", drop("sums.Double", "m -="), "b/same Nothing", survived},
		{"a suite that fails anyway", drop("sums.Double", "m -="), "sums Red", misfit},
		{"a suite that runs nothing", drop("sums.Double", "m -="), "sums None", misfit},
	} {
		m := mutant{c.what, c.edits, c.by}
		all, suites, wants = append(all, m), append(suites, m.suite()), append(wants, c.want)
	}
	if err := l.build(t.Context(), all, suites); err != nil {
		t.Fatal(err)
	}
	for i, m := range all {
		v := verdict{what: misfit, output: l.sound(t.Context(), m.suite())}
		if v.output == "" {
			v = l.try(t.Context(), i, m.suite())
		}
		if v.what != wants[i] {
			t.Errorf("%s: got %s, want %s\n%s", m.breaks, v.what, wants[i], v.output)
		}
	}
	if after, _ := os.ReadFile(filepath.Join(l.root, "sums/law.go")); string(after) != law {
		t.Error("the tree was changed")
	}
	bad := mutant{"a change that doesn't compile", swap("sums.Double", "n + n", "n + nothing"), double}
	if err := l.build(t.Context(), []mutant{bad}, []suite{bad.suite()}); err == nil || !strings.Contains(err.Error(), "nothing") {
		t.Errorf("%s: got %v", bad.breaks, err)
	}
}

func TestAnEditHasOnePlace(t *testing.T) {
	l := module(t)
	for want, edits := range map[string][]edit{
		"2 packages end with same":    drop("same.Double", "m"),
		"0 packages end with nowhere": drop("nowhere.Double", "m"),
		"nothing is called that":      drop("sums.Treble", "m"),
		"0 times":                     drop("sums.Double", "n * n"),
		"2 times":                     drop("sums.Double", "step"),
		"changes nothing":             swap("sums.Double", "n + n", "n + n"),
		"there is no condition":       never("sums.Double", "m +="),
		"no condition, statement":     drop("sums.Double", "n + n"),
	} {
		if _, err := l.apply(edits[0], idOf(0)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %s", edits[0], err, want)
		}
	}
}

func TestASuiteRunsWhatItNames(t *testing.T) {
	const out = "=== RUN   TestLaws\n=== RUN   TestLaws/log\n--- PASS: TestLaws (0.00s)\n"
	for pattern, want := range map[string]bool{"TestLaws": true, "TestLaws/log": true, "TestLaws/log/a stale append": false} {
		if got := ran(out, pattern); got != want {
			t.Errorf("%s: got %v, want %v", pattern, got, want)
		}
	}
}

// TestSampleTakesWhatChanged: mutants of changed packages are always tried, and
// each of the others in one round of eight.
func TestSampleTakesWhatChanged(t *testing.T) {
	in, err := newTree("../../..")
	if err != nil {
		t.Fatal(err)
	}
	all := mutants()
	chosen := make([]int, len(all))
	for i := range all {
		chosen[i] = i
	}
	tried := map[int]int{}
	changed := map[string]bool{"internal/lib/jcs": true, "internal/store/sqlite": true}
	for round := range parts {
		for _, i := range sample(in, all, chosen, changed, round) {
			tried[i]++
		}
	}
	touched := 0
	for i, m := range all {
		want := 1
		if m.touches(in, changed) {
			want = parts
			touched++
		}
		if tried[i] != want {
			t.Errorf("%s: tried %d times in %d rounds, want %d", m.breaks, tried[i], parts, want)
		}
	}
	if touched == 0 {
		t.Error("no mutant is of a changed package")
	}
}
