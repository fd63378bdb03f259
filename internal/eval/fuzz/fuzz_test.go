// Package fuzz holds the fuzzing of what reads scenarios. It stands alone so
// that fuzzing doesn't build the store.
package fuzz

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/eval"
)

// seed adds the documents of files.
func seed(f *testing.F, pattern string) {
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		f.Fatal("there are no files ", pattern)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, doc := range strings.Split(string(b), "\n---\n") {
			f.Add([]byte(doc))
		}
	}
}

// check holds what was read against what reading promises: scenarios that can
// fail, or a mistake with a place.
func check(t *testing.T, data []byte, all []*eval.Scenario, err error) {
	if err != nil {
		if e, ok := errors.AsType[*belay.Error](err); !ok || !strings.HasPrefix(e.Where, "a.yaml") {
			t.Errorf("%q: %v", data, err)
		}
		return
	}
	for _, s := range all {
		if len(s.Expect) == 0 || len(s.Script) == 0 || s.ID == "" || s.Prompt == "" {
			t.Errorf("%q: %+v", data, s)
		}
	}
}

func FuzzParse(f *testing.F) {
	seed(f, "../../../evals/*.yaml")
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := eval.Parse("a.yaml", data)
		check(t, data, all, err)
	})
}
