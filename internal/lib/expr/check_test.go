package expr

import (
	"encoding/json"
	"testing"
)

func TestTypesAreCheckedWhereSchemasAreKnown(t *testing.T) {
	variables := map[string]json.RawMessage{
		"input": json.RawMessage(`{"type": "object", "properties": {"topic": {"type": "string"}, "n": {"type": "integer"}, "deep": {"type": "object", "properties": {"on": {"type": "boolean"}}},
			"any": {}, "open": {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": true}, "many": {"type": ["string", "null"]}, "either": {"anyOf": [{"type": "string"}]}}}`),
		"members": json.RawMessage(`{"type": "object", "properties": {"gather": {"type": "object", "properties": {"status": {"type": "string"}, "output":
			{"type": "object", "properties": {"files": {"type": "array", "items": {"type": "string"}}, "found": {"type": "array", "items": {"type": "object", "properties": {"line": {"type": "integer"}}}}}}}}, "free": {}}}`),
	}
	const text, number, list = `{"type": "string"}`, `{"type": "number"}`, `{"type": "array", "items": {"type": "string"}}`
	for _, c := range []struct{ text, want, said string }{
		{`input.topic`, text, ""},
		{`input.topic`, number, "the value is a string, and a number is wanted"},
		{`input.topc`, text, "input has no field topc; it has any, deep, either, many, n, open, topic"},
		{`input.deep.off`, "", "input.deep has no field off; it has on"},
		{`input.open.b`, text, ""},
		{`input.any.whatever + 1`, number, ""},
		{`input.many + "x"`, text, ""},
		{`input.either`, number, ""},
		{`input.n > 1 && input.deep.on`, `{"type": "boolean"}`, ""},
		{`input.n + 1`, number, "found no matching overload for '_+_' applied to '(double, int)'"},
		{`input.n`, `{"type": ["null", "integer"]}`, ""},
		{`"about " + input.n`, text, "found no matching overload for '_+_' applied to '(string, double)'"},
		{`members.gather.output.files`, list, ""},
		{`members.gather.output.files[0]`, list, "the value is a string, and a list is wanted"},
		{`members.gather.output.fils`, list, "members.gather.output has no field fils; it has files, found"},
		{`members.gather.output.found.map(f, f.line)`, list, "the value is a list whose entry is a number, and a string is wanted"},
		{`members.gather.output.found.map(f, f.lin)`, "", "undefined field 'lin'"},
		{`members.gather.output.found`, `{"type": "array", "items": {"type": "object", "properties": {"line": {"type": "string"}}}}`,
			"the value is a list whose entry is an object whose field line is a number, and a string is wanted"},
		{`members.free.output.x.y`, number, ""},
		{`size(members.gather.output.files)`, `{"type": "integer"}`, ""},
		{`members.gather.status == 3`, "", "found no matching overload for '_==_' applied to '(string, int)'"},
		{`{"a": input.n}`, `{"type": "object", "properties": {"a": {"type": "number"}}}`, ""},
		{`input.`, "", "ERROR: <input>:1:7: Syntax error: no viable alternative at input '.' | input. | ......^"},
	} {
		said := ""
		if err := Check(c.text, variables, json.RawMessage(c.want)); err != nil {
			said = err.Error()
		}
		if said != c.said {
			t.Errorf("%s as %s: %q, want %q", c.text, c.want, said, c.said)
		}
	}
	if err := Check("input.x + 1", map[string]json.RawMessage{"input": nil}, nil); err != nil {
		t.Errorf("without a schema: %v", err)
	}
}
