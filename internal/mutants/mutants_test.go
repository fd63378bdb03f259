package main

import (
	"os"
	"path/filepath"
	"testing"
)

const root = "../.."

// A change of the program that moves what a mutant breaks is noticed here, not
// when all of them are run.
func TestEveryMutantFitsItsFile(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range mutants() {
		if m.breaks == "" || seen[m.breaks] {
			t.Errorf("%q: a mutant needs a claim of its own", m.breaks)
		}
		seen[m.breaks] = true
		if len(m.edits) == 0 || len(m.caught) == 0 {
			t.Errorf("%s: %d edits, %d suites; it needs both", m.breaks, len(m.edits), len(m.caught))
		}
		texts := map[string]string{}
		for _, e := range m.edits {
			if texts[e.file] == "" {
				b, err := os.ReadFile(filepath.Join(root, e.file))
				if err != nil {
					t.Errorf("%s: %v", m.breaks, err)
					continue
				}
				texts[e.file] = string(b)
			}
			var err error
			if texts[e.file], err = e.apply(texts[e.file]); err != nil {
				t.Errorf("%s: %v", m.breaks, err)
			}
		}
	}
}

// module is a little module with one law and a test of it.
func module(t *testing.T) lab {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":      "module little\n\ngo 1.26\n",
		"law.go":      "package little\n\nfunc Double(n int) int { return n + n }\n\nfunc Loop() bool { return true }\n",
		"law_test.go": "package little\n\nimport \"testing\"\n\nfunc TestDouble(t *testing.T) {\n\tif Double(2) != 4 {\n\t\tt.Fatal(Double(2))\n\t}\n}\n\nfunc TestRed(t *testing.T) { t.Fail() }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return lab{root: dir, dir: t.TempDir()}
}

func TestAVerdictSaysWhatBecameOfTheMutant(t *testing.T) {
	double := []suite{{".", "TestDouble"}}
	for _, c := range []struct {
		what, old, new string
		caught         []suite
		want           string
	}{
		{"a law that is broken", "n + n", "n + 1", double, caught},
		{"a law that nobody watches", "return true", "return false", double, survived},
		{"a change that means the same", "n + n", "2 * n", double, survived},
		{"a change that doesn't compile", "n + n", "n + m", double, misfit},
		{"a text that isn't there", "n - n", "n", double, misfit},
		{"a text that is there twice", "return", "panic(1); return", double, misfit},
		{"a suite that fails anyway", "n + n", "n + 1", []suite{{".", "TestRed"}}, misfit},
		{"a suite that runs nothing", "n + n", "n + 1", []suite{{".", "TestNone"}}, misfit},
	} {
		t.Run(c.what, func(t *testing.T) {
			l := module(t)
			m := mutant{breaks: c.what, edits: []edit{{"law.go", c.old, c.new}}, caught: c.caught}
			before, _ := os.ReadFile(filepath.Join(l.root, "law.go"))
			l.unsound = l.sound(t.Context(), []mutant{m})
			if v := l.try(t.Context(), 0, m); v.what != c.want {
				t.Errorf("got %s, want %s\n%s", v.what, c.want, v.output)
			}
			if after, _ := os.ReadFile(filepath.Join(l.root, "law.go")); string(after) != string(before) {
				t.Error("the tree was changed")
			}
		})
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

// TestSampleTakesWhatChanged: mutants of changed packages are always tried, each
// of the others in one round of eight, and never more than the limit.
func TestSampleTakesWhatChanged(t *testing.T) {
	all := mutants()
	tried := map[string]int{}
	changed := map[string]bool{"internal/canon": true, "internal/dial": true}
	for round := range parts {
		for _, m := range sample(all, changed, round) {
			tried[m.breaks]++
		}
	}
	for _, m := range all {
		want := 1
		if m.touches(changed) {
			want = parts
		}
		if tried[m.breaks] != want {
			t.Errorf("%s: tried %d times in %d rounds, want %d", m.breaks, tried[m.breaks], parts, want)
		}
	}
	everything := map[string]bool{}
	for _, m := range all {
		for _, e := range m.edits {
			everything[filepath.Dir(e.file)] = true
		}
	}
	if n := len(sample(all, everything, 3)); n != most {
		t.Errorf("%d mutants when everything has changed, want %d", n, most)
	}
}
