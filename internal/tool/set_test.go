package tool_test

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/tooltest"
)

type sampleArgs struct {
	Path  string            `json:"path" jsonschema:"where"`
	Lines int               `json:"lines,omitempty" jsonschema:"how many"`
	Tags  []string          `json:"tags,omitempty" jsonschema:"which"`
	Env   map[string]string `json:"env,omitempty" jsonschema:"variables"`
	Deep  *struct {
		On bool `json:"on" jsonschema:"switch"`
	} `json:"deep,omitempty" jsonschema:"more"`
}

func sample(name string) tool.Tool {
	spec := tool.Spec{Name: name, Doc: "A sample.", Effect: belay.Pure, ReadOnly: true, Access: belay.Read}
	return tool.New(spec, func(_ context.Context, _ tool.Call, in sampleArgs) (tool.Result, error) {
		return tool.Result{Text: in.Path}, nil
	})
}

func newSet(t *testing.T, names ...string) *tool.Set {
	t.Helper()
	var tools []tool.Tool
	for _, n := range names {
		tools = append(tools, sample(n))
	}
	s, err := tool.NewSet(tools...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSampleKeepsTheLaws(t *testing.T) {
	tooltest.Laws(t, tooltest.Case{Tool: sample("sample"), Args: `{"path":"a"}`})
}

func TestSchemaIsDerivedByteForByte(t *testing.T) {
	want := `{"type":"object","properties":{"path":{"type":"string","description":"where"},` +
		`"lines":{"type":"integer","description":"how many"},` +
		`"tags":{"type":"array","items":{"type":"string"},"description":"which"},` +
		`"env":{"type":"object","description":"variables","additionalProperties":{"type":"string"}},` +
		`"deep":{"type":"object","properties":{"on":{"type":"boolean","description":"switch"}},"description":"more","required":["on"],"additionalProperties":false}},` +
		`"required":["path"],"additionalProperties":false}`
	for range 20 {
		if got := string(sample("s").Spec().Input); got != want {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
	}
}

func TestSetIsOrderedAndRefusesDuplicates(t *testing.T) {
	s := newSet(t, "write", "edit", "read")
	var names []string
	for _, spec := range s.Specs() {
		names = append(names, spec.Name)
	}
	if got := strings.Join(names, " "); got != "edit read write" {
		t.Errorf("got %s", got)
	}
	if got, ok := s.Get("read"); !ok || got.Spec().Name != "read" {
		t.Errorf("read: %v", ok)
	}
	if _, ok := s.Get("rea"); ok {
		t.Error("a tool that isn't in the set is found")
	}
	if _, err := tool.NewSet(sample("read"), sample("edit"), sample("read")); err == nil || !strings.Contains(err.Error(), "two tools are called read") {
		t.Errorf("duplicates: %v", err)
	}
	for _, name := range []string{"", "a b", "päth", strings.Repeat("a", 65)} {
		if _, err := tool.NewSet(sample(name)); belay.CodeOf(err) != belay.CodeUsage {
			t.Errorf("name %q: %v", name, err)
		}
	}
}

func TestSetRefusesSchemasThatDoNotStandAlone(t *testing.T) {
	for _, schema := range []string{`{`, `[]`, `{"type":"strange"}`, `{"$ref":"file:///etc/passwd"}`, `{"$ref":"https://example.com/s"}`} {
		spec := tool.Spec{Name: "x", Input: json.RawMessage(schema)}
		x := tool.New(spec, func(context.Context, tool.Call, sampleArgs) (tool.Result, error) { return tool.Result{}, nil })
		if _, err := tool.NewSet(x); belay.CodeOf(err) != belay.CodeUsage {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

// Guarantee: T10.
func TestCheckTellsTheModelWhatIsWrong(t *testing.T) {
	s := newSet(t, "read", "write_file")
	for _, c := range []struct{ name, args, code, says, hint string }{
		{"read", `{"path":1}`, "BAD_ARGUMENTS", `argument "path" must be a string, not a number`, "path"},
		{"read", `{}`, "BAD_ARGUMENTS", `missing argument "path"`, "deep, env, lines, path, tags"},
		{"read", `{"pth":"a","lines":1.5}`, "BAD_ARGUMENTS",
			`argument "lines" must be an integer, not a number; missing argument "path"; unknown argument "pth" (did you mean "path"?)`, ""},
		{"read", `{"path":"a","tags":["x",3]}`, "BAD_ARGUMENTS", `argument "tags.1" must be a string`, ""},
		{"read", `{"path":"a","env":{"A":null}}`, "BAD_ARGUMENTS", `argument "env.A" must be a string, not null`, ""},
		{"read", `{"path":"a","deep":{"off":true}}`, "BAD_ARGUMENTS", `missing argument "deep.on"; unknown argument "deep.off"`, ""},
		{"read", `{"path":"a","tags":null}`, "BAD_ARGUMENTS", `argument "tags" must be an array, not null`, ""},
		{"read", `{"path":"a\u0000b"}`, "BAD_ARGUMENTS", `argument "path" contains a NUL character`, ""},
		{"read", `{"path":"a","env":{"x\u0000":""}}`, "BAD_ARGUMENTS", `contains a NUL character`, ""},
		{"read", `[]`, "BAD_ARGUMENTS", "must be a JSON object, not an array", ""},
		{"read", `"a"`, "BAD_ARGUMENTS", "must be a JSON object, not a string", ""},
		{"read", "{\"path\":\"\xff\"}", "BAD_ARGUMENTS", "invalid UTF-8", ""},
		{"read", `{"path":"\ud800"}`, "BAD_ARGUMENTS", "half of a surrogate pair", ""},
		{"read", `{"path":"a","path":"b"}`, "BAD_ARGUMENTS", `key "path" occurs twice`, ""},
		{"read", `{"path":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}`, "BAD_ARGUMENTS", "64 levels", ""},
		{"read", `{"path":"a"`, "BROKEN_JSON", "the text ends in the middle of a value", "escape quotes"},
		{"read", `path=a`, "BROKEN_JSON", "invalid character 'p'", ""},
		{"raed", `{}`, "UNKNOWN_TOOL", `there is no tool "raed"`, "did you mean read?"},
		{"writeFile", `{}`, "UNKNOWN_TOOL", "no tool", "did you mean write_file?"},
		{"read_file", `{}`, "UNKNOWN_TOOL", "no tool", "did you mean read?"},
		{"teleport", `{}`, "UNKNOWN_TOOL", "no tool", "the tools are: read, write_file"},
		{"", `{}`, "UNKNOWN_TOOL", "no tool", "the tools are"},
	} {
		_, _, p := s.Check(c.name, c.args)
		if p == nil {
			t.Errorf("%s %s is taken", c.name, c.args)
			continue
		}
		if p.Code != c.code || !strings.Contains(p.Message, c.says) || !strings.Contains(p.Hint, c.hint) {
			t.Errorf("%s %s:\n got %s %q (%q)\nwant %s %q (%q)", c.name, c.args, p.Code, p.Message, p.Hint, c.code, c.says, c.hint)
		}
	}
}

func TestManyMistakesMakeABoundedProblem(t *testing.T) {
	var b strings.Builder
	for i := range 500 {
		b.WriteString(`,"x` + strconv.Itoa(i) + `":1`)
	}
	_, _, p := newSet(t, "read").Check("read", `{"path":"a"`+b.String()+`}`)
	if p == nil || len(p.Message) > 2000 || !strings.Contains(p.Message, "and 492 more") {
		t.Errorf("got %+v", p)
	}
}

// Guarantee: G10.
func TestSameCallHasTheSameHash(t *testing.T) {
	s := newSet(t, "read")
	args, hash, p := s.Check("read", ` {"lines": 1e1, "path" : "\u0061"} `)
	if p != nil || string(args) != `{"lines":10,"path":"a"}` || hash != belay.DigestOf(args) {
		t.Errorf("got %s %s %v", args, hash, p)
	}
	if _, again, _ := s.Check("read", string(args)); again != hash {
		t.Errorf("got %s, want %s", again, hash)
	}
	if _, other, _ := s.Check("read", `{"lines":11,"path":"a"}`); other == hash {
		t.Error("another call has the same hash")
	}
	if args, hash, p := s.Check("read", `{"path":1}`); p == nil || string(args) != `{"path":1}` || hash != belay.DigestOf(args) {
		t.Errorf("a call that breaks the schema: %s %s %v", args, hash, p)
	}
	if args, _, p := s.Check("read", "  "); p == nil || p.Code != "BAD_ARGUMENTS" || string(args) != "{}" {
		t.Errorf("blank arguments: %s %+v", args, p)
	}
}

func TestNumberBeyondTheTypeIsTheModelsMistake(t *testing.T) {
	args, _, p := newSet(t, "read").Check("read", `{"path":"a","lines":123456789012345678901234567890}`)
	if p != nil {
		t.Fatal(p)
	}
	_, err := sample("read").Run(t.Context(), tool.Call{Args: args})
	if f := tooltest.Failure(err); f == nil || f.Class != tool.BadArguments {
		t.Errorf("got %v", err)
	}
}
