package expr

import (
	"fmt"
	"testing"
)

func TestAnExpressionIsComputed(t *testing.T) {
	values := map[string]any{"input": map[string]any{"topic": "locks", "n": 2.0}, "members": map[string]any{"gather": map[string]any{"output": map[string]any{"files": []any{"a.go", "b.go"}}}}}
	for text, want := range map[string]string{
		`members.gather.output.files`:                     `["a.go","b.go"]`,
		`members.gather.output.files[0] + "!"`:            `"a.go!"`,
		`"about " + input.topic`:                          `"about locks"`,
		`{"n": input.n, "size": size(input.topic)}`:       `{"n":2,"size":5}`,
		`members.gather.output.files.exists(f, f == "x")`: `false`,
	} {
		e, err := Compile(text, "input", "members")
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, err := e.Eval(values); err != nil || !same(string(got), want) {
			t.Errorf("%s: got %s, %v, want %s", text, got, err, want)
		}
	}
	e, err := Compile("members.gather.output.files", "members")
	if err != nil || fmt.Sprint(e.Paths()[0]) != "[members gather output files]" {
		t.Errorf("its paths are %v, %v", e.Paths(), err)
	}
}

// same compares JSON without blanks, which the writer adds by chance.
func same(a, b string) bool {
	strip := func(s string) (out []rune) {
		for _, r := range s {
			if r != ' ' {
				out = append(out, r)
			}
		}
		return out
	}
	return string(strip(a)) == string(strip(b))
}

func TestBadExpressionsAreRefused(t *testing.T) {
	for _, text := range []string{"", "input.", "nothing.x", `"a" + 1`} {
		if _, err := Compile(text, "input"); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
	e, err := Compile("input.a.b", "input")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Eval(map[string]any{"input": map[string]any{}}); err == nil {
		t.Error("what isn't there has a value")
	}
	loops, err := Compile("input.exists(a, input.exists(b, input.exists(c, a + b + c < 0)))", "input")
	if err != nil {
		t.Fatal(err)
	}
	many := make([]any, 300)
	for i := range many {
		many[i] = float64(i)
	}
	if _, err := loops.Eval(map[string]any{"input": many}); err == nil {
		t.Error("loops over loops don't end")
	}
}
