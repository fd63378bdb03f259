package tool

import (
	"fmt"
	"strings"
	"testing"
)

// TestASchemaThatIsFollowedForEverIsRefused: a server, or a file of a stranger, brings it,
// and holding a value against it would end the program or never end.
func TestASchemaThatIsFollowedForEverIsRefused(t *testing.T) {
	laughs := func(refs string) string {
		var defs []string
		for i := range 40 {
			defs = append(defs, fmt.Sprintf(`"d%d":{%s}`, i, strings.ReplaceAll(refs, "NEXT", fmt.Sprintf("#/$defs/d%d", i+1))))
		}
		return `{"type":"object","$ref":"#/$defs/d0","$defs":{` + strings.Join(defs, ",") + `,"d40":{"type":"object"}}}`
	}
	for name, schema := range map[string]string{
		"itself":          `{"type":"object","allOf":[{"$ref":"#"}]}`,
		"by a definition": `{"type":"object","$ref":"#/$defs/a~1b","$defs":{"a/b":{"anyOf":[{"$ref":"#/$defs/c"}]},"c":{"not":{"$ref":"#/$defs/a~1b"}}}}`,
		"by an anchor":    `{"type":"object","if":{"$ref":"#me"},"$anchor":"me"}`,
		"by a dynamic":    `{"type":"object","$dynamicAnchor":"me","oneOf":[{"$dynamicRef":"#me"}]}`,
		"by its id":       `{"$id":"https://example.org/a","type":"object","allOf":[{"$ref":"https://example.org/a"}]}`,
		"below an id":     `{"$id":"https://example.org/a","type":"object","allOf":[{"$id":"b","$ref":"a"}]}`,
		"percent":         `{"type":"object","$ref":"#/%24defs/a","$defs":{"a":{"$ref":"#/%24defs/a"}}}`,
		"inside":          `{"type":"object","properties":{"x":{"$ref":"#/properties/x"}}}`,
		"laughs":          laughs(`"allOf":[{"$ref":"NEXT"},{"$ref":"NEXT"}]`),
	} {
		if _, err := ReadSchema([]byte(schema)); err == nil || !strings.Contains(err.Error(), "one") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, schema := range map[string]string{
		"a tree":        `{"type":"object","properties":{"value":{},"left":{"$ref":"#"},"right":{"$ref":"#"},"more":{"type":"array","items":{"$ref":"#"}}}}`,
		"one of many":   `{"type":"object","oneOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/b"}],"$defs":{"a":{"properties":{"x":{"$ref":"#"}}},"b":{"allOf":[{"$ref":"#/$defs/a"}]}}}`,
		"a dynamic one": `{"$id":"https://example.org/tree","type":"object","$dynamicAnchor":"node","properties":{"children":{"items":{"$dynamicRef":"#node"}}}}`,
		"with a base":   `{"$id":"https://example.org/a","type":"object","properties":{"x":{"$ref":"b#/$defs/c"},"y":{"$ref":"#z"}},"$defs":{"b":{"$id":"b","$defs":{"c":{"type":"string"}}},"d":{"$anchor":"z"}}}`,
		"a chain":       laughs(`"$ref":"NEXT"`),
	} {
		s, err := ReadSchema([]byte(schema))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		s.Complaints(map[string]any{"left": map[string]any{"left": map[string]any{}}, "x": "y"})
	}
}

// TestAValueThatIsTooMuchWorkIsRefused: where each part of a value is held against twice as
// many schemas as the whole, one that is forty deep would never end.
func TestAValueThatIsTooMuchWorkIsRefused(t *testing.T) {
	deep := func(n int) any {
		var v any = map[string]any{}
		for range n {
			v = map[string]any{"x": []any{v}}
		}
		return v
	}
	twice := `{"type":"object","allOf":[PART,PART]}`
	part := `{"properties":{"x":{"items":{"$ref":"#"}}}}`
	s, err := ReadSchema([]byte(strings.ReplaceAll(twice, "PART", part)))
	if err != nil {
		t.Fatal(err)
	}
	if said := s.Complaints(deep(10)); len(said) > 0 {
		t.Errorf("ten deep: %v", said)
	}
	if said := s.Complaints(deep(40)); len(said) != 1 || !strings.Contains(said[0], "too much work") {
		t.Errorf("forty deep: %v", said)
	}
	once, err := ReadSchema([]byte(`{"type":"object","allOf":[` + part + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	if said := once.Complaints(deep(1000)); len(said) > 0 {
		t.Errorf("a thousand deep: %v", said)
	}
}
