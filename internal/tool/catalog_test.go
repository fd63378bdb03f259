package tool

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestToolsBeyondTheBudgetAreOfferedByTheirNames: those of one kind all or none, behind the two
// tools that find and call them; without any these two aren't offered.
func TestToolsBeyondTheBudgetAreOfferedByTheirNames(t *testing.T) {
	all := []Spec{callTool().Spec(), searchTool().Spec(), {Name: "read"}}
	var many []Spec
	for i := range 100 {
		many = append(many, Spec{Name: fmt.Sprintf("mcp__big__t%d", i), Doc: strings.Repeat("x", 100), Load: LoadAuto})
	}
	for name, c := range map[string]struct {
		tools  []Spec
		budget int
		names  int
	}{
		"few":            {many[:3], 8 << 10, 0},
		"many":           {many, 8 << 10, 100},
		"a large budget": {many, 80 << 10, 0},
		"one by search":  {[]Spec{{Name: "notebook_edit", Load: LoadSearch}}, 8 << 10, 1},
		"none":           {nil, 8 << 10, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := Catalog(append(slices.Clone(all), c.tools...), all, c.budget)
			byName, searches := 0, false
			for _, s := range got {
				switch s.Load {
				case LoadSearch:
					byName++
				case LoadAuto:
					t.Errorf("%s isn't decided", s.Name)
				}
				searches = searches || s.Name == SearchName
				if s.Name == SearchName && strings.Count(s.Doc, ",") != c.names-1 {
					t.Errorf("the names are %q", s.Doc)
				}
			}
			want := 1 + len(c.tools)
			if c.names > 0 {
				want += 2
			}
			if byName != c.names || searches != (c.names > 0) || len(got) != want || !slices.IsSortedFunc(got, func(a, b Spec) int { return strings.Compare(a.Name, b.Name) }) && c.names > 0 {
				t.Errorf("%d of %d by name: %v", byName, len(got), Names(got))
			}
		})
	}
	if all[1].Doc != searchTool().Spec().Doc {
		t.Error("the specs that were given have changed")
	}
}

// TestACallIsUnwrappedAndWrapped: what the model said comes out again.
func TestACallIsUnwrappedAndWrapped(t *testing.T) {
	for _, c := range [][3]string{{`{"name":"a","args":{"x":1}}`, "a", `{"x":1}`}, {`{"name":"a"}`, "a", ""}} {
		name, args, ok := Unwrapped(c[0])
		if !ok || name != c[1] || args != c[2] || string(Wrapped(name, json.RawMessage(args))) != c[0] {
			t.Errorf("%s: %q, %q, %v, and again %s", c[0], name, args, ok, Wrapped(name, json.RawMessage(args)))
		}
	}
	for _, bad := range []string{"", "{", `{"args":{}}`, `{"name":""}`, `{"name":"tool_call","args":{}}`, `[]`, `{"name":1}`} {
		if name, _, ok := Unwrapped(bad); ok {
			t.Errorf("%s: %s", bad, name)
		}
	}
	if got := string(Wrapped("a", json.RawMessage("{broken"))); got != `{"args":"{broken","name":"a"}` {
		t.Error(got)
	}
}
