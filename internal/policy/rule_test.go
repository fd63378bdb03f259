package policy

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/belay-run/belay"
)

func TestAListMayBeOneWord(t *testing.T) {
	for text, want := range map[string][]belay.Mode{`"plan"`: {"plan"}, `["plan", "auto"]`: {"plan", "auto"}, `[]`: {}} {
		var l OneOrMore[belay.Mode]
		if err := l.UnmarshalYAML(func(into any) error { return json.Unmarshal([]byte(text), into) }); err != nil || !slices.Equal(l, want) {
			t.Errorf("%s: %v, %v", text, l, err)
		}
	}
	if err := new(OneOrMore[string]).UnmarshalYAML(func(into any) error { return json.Unmarshal([]byte(`{}`), into) }); err == nil {
		t.Error("an object is a list")
	}
}
