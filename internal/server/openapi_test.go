package server

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/app/read"
	"github.com/belay-run/belay/internal/builtin"
	"github.com/belay-run/belay/internal/view"
	"github.com/belay-run/belay/internal/view/snapshot"
)

var update = flag.Bool("update", false, "write the description that is checked in")

// describedFile is the file that is checked in.
var describedFile = filepath.Join("..", "..", "docs", "openapi.json")

// Guarantee: V11.
func TestTheDescriptionThatIsCheckedInIsCurrent(t *testing.T) {
	doc, err := OpenAPI(builtin.Commands(), builtin.Reads())
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(describedFile, doc, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(describedFile)
	if err != nil || !bytes.Equal(have, doc) {
		t.Errorf("docs/openapi.json isn't what the table says (%v): run make docs and commit it", err)
	}
}

// TestTheDescriptionIsWhole holds the description against the table, and against
// itself: every reference leads somewhere, every schema is one, every operation
// has its own id and says what it answers.
// Guarantee: V11.
func TestTheDescriptionIsWhole(t *testing.T) {
	raw, err := OpenAPI(builtin.Commands(), builtin.Reads())
	if err != nil {
		t.Fatal(err)
	}
	var doc apiDocument
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&doc); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(doc.OpenAPI, "3.1.") {
		t.Errorf("version %s", doc.OpenAPI)
	}
	components(t, raw)
	ids := map[string]string{}
	check := func(path, method string, op *apiOperation) {
		if op == nil {
			return
		}
		if op.ID == "" || op.Summary == "" || ids[op.ID] != "" || len(op.Tags) != 1 || !slices.ContainsFunc(doc.Tags, func(t apiTag) bool { return t.Name == op.Tags[0] }) {
			t.Errorf("%s %s: id %q (also of %q), summary %q, tags %v", method, path, op.ID, ids[op.ID], op.Summary, op.Tags)
		}
		ids[op.ID] = path
		if op.Responses["200"] == nil && op.Responses["101"] == nil || op.Responses["4XX"] == nil {
			t.Errorf("%s %s doesn't say what it answers", method, path)
		}
		for _, part := range strings.Split(path, "/") {
			name, ok := strings.CutPrefix(part, "{")
			if name = strings.TrimSuffix(name, "}"); ok && !slices.ContainsFunc(op.Parameters, func(p apiParameter) bool { return p.Name == name && p.In == "path" && p.Required }) {
				t.Errorf("%s: the path's %s isn't described", path, name)
			}
		}
	}
	for path, p := range doc.Paths {
		check(path, "GET", p.Get)
		check(path, "POST", p.Post)
	}
	for _, ref := range references(raw) {
		kind, name, _ := strings.Cut(strings.TrimPrefix(ref, "#/components/"), "/")
		if kind == "schemas" && doc.Components.Schemas[name] == nil || kind == "responses" && doc.Components.Responses[name] == nil || kind != "schemas" && kind != "responses" {
			t.Errorf("the reference %s leads nowhere", ref)
		}
	}
	for _, c := range builtin.Commands() {
		p := doc.Paths["/v1/commands/"+c.Name]
		works := p != nil && p.Post != nil && p.Post.Scope == string(c.Scope)
		if works != (c.Later == "") || doc.Unavailable[c.Name] != c.Later {
			t.Errorf("%s isn't described as the table says", c.Name)
		}
	}
	for _, r := range slices.Concat(plainRoutes, endlessRoutes) {
		method, path, _ := strings.Cut(r.pattern, " ")
		if strings.HasPrefix(path, "/debug/") { // for people, not for clients
			continue
		}
		p := doc.Paths[path]
		if p == nil || method == "GET" && p.Get == nil || method == "POST" && p.Post == nil {
			t.Errorf("%s isn't described", r.pattern)
		}
	}
}

// references are what $ref names, anywhere in a document.
func references(raw []byte) []string {
	var out []string
	for _, piece := range strings.Split(string(raw), `"$ref": "`)[1:] {
		ref, _, _ := strings.Cut(piece, `"`)
		out = append(out, ref)
	}
	return out
}

// components holds values against the components of the description: validate takes
// the component's name. The document is read once, for it is large.
func components(t *testing.T, raw []byte) (validate func(name string, value any) error) {
	t.Helper()
	var doc apiDocument
	if err := json.Unmarshal(bytes.ReplaceAll(raw, []byte("#/components/schemas/"), []byte("#/$defs/")), &doc); err != nil {
		t.Fatal(err)
	}
	all := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}, Defs: doc.Components.Schemas}
	for name := range doc.Components.Schemas {
		all.Properties[name] = &jsonschema.Schema{Ref: "#/$defs/" + name}
	}
	s, err := all.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return func(name string, value any) error {
		if all.Properties[name] == nil {
			return fmt.Errorf("the description has no %s", name)
		}
		return s.Validate(map[string]any{name: value})
	}
}

// shapes of the test below
type (
	shape struct {
		inlined
		One   edge            `json:"one"`
		Maybe *edge           `json:"maybe,omitempty"`
		Many  []edge          `json:"many"`
		By    map[string]edge `json:"by"`
	}
	inlined struct {
		Deep *inner `json:"deep"`
	}
	edge struct {
		To string `json:"to"`
	}
	inner struct {
		Edges []edge `json:"edges"`
	}
)

// TestEveryStructIsANamedSchema looks at what becomes of a struct in each place
// where it can be.
func TestEveryStructIsANamedSchema(t *testing.T) {
	s := schemas{map[string]*jsonschema.Schema{}, map[string]reflect.Type{}}
	if _, err := s.ref(reflect.TypeFor[shape]()); err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(s.named)); !slices.Equal(got, []string{"edge", "inner", "shape"}) {
		t.Errorf("the schemas are %v; what is embedded has none of its own", got)
	}
	got, err := json.Marshal(s.named["shape"])
	if err != nil {
		t.Fatal(err)
	}
	const to, orNull = `{"$ref":"#/components/schemas/edge"}`, `{"anyOf":[{"$ref":"#/components/schemas/%s"},{"type":"null"}]}`
	want := `{"type":"object","properties":{"deep":` + fmt.Sprintf(orNull, "inner") + `,"one":` + to + `,"maybe":` + fmt.Sprintf(orNull, "edge") +
		`,"many":{"type":["null","array"],"items":` + to + `},"by":{"type":"object","additionalProperties":` + to +
		`}},"required":["deep","one","many","by"],"additionalProperties":false}`
	if string(got) != want {
		t.Errorf("the struct is described as\n%s, not\n%s", got, want)
	}
}

// TestNamesOfSchemasAreOfOneTypeEach gives types that would take another's name,
// or have none.
func TestNamesOfSchemasAreOfOneTypeEach(t *testing.T) {
	type outer = app.Result
	type Told struct{ Again bool }
	type generic[T any] struct{ Of T }
	type nameless struct{ In struct{ A int } }
	type loop struct{ Next *loop }
	for want, twice := range map[string][]reflect.Type{
		"would both be Told to clients": {reflect.TypeFor[outer](), reflect.TypeFor[Told]()},
		"has no name":                   {reflect.TypeFor[nameless]()},
		"generic[int] has no name":      {reflect.TypeFor[generic[int]]()},
		"cycle":                         {reflect.TypeFor[loop]()},
	} {
		s := schemas{map[string]*jsonschema.Schema{}, map[string]reflect.Type{}}
		var err error
		for _, of := range twice {
			_, err = s.ref(of)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", twice, err, want)
		}
	}
	for of, want := range map[reflect.Type]string{
		reflect.TypeFor[outer](): "Told", reflect.TypeFor[event.PlanItem](): "PlanItem",
		reflect.TypeFor[snapshot.Thread](): "SnapshotThread", reflect.TypeFor[view.Thread](): "ViewThread",
	} {
		if got := schemaName(of); got != want {
			t.Errorf("%v is %s to clients, not %s", of, got, want)
		}
	}
}

// TestWhatCommandsTakeIsWhatIsDescribed gives bodies to the decoder and to the
// schema of the description: they agree.
// Guarantee: V11.
func TestWhatCommandsTakeIsWhatIsDescribed(t *testing.T) {
	raw, err := OpenAPI(builtin.Commands(), builtin.Reads())
	if err != nil {
		t.Fatal(err)
	}
	validate := components(t, raw)
	for _, c := range builtin.Commands() {
		if c.Later != "" {
			continue
		}
		fields := input.Fields(c.In)
		bodies := []string{body(fields, nil), "{}", `{"nobodyKnowsThis":1}`}
		for _, f := range fields {
			_, wrong := sample(f.Of)
			bodies = append(bodies, body(fields, map[string]string{f.Name: wrong}), body(fields, map[string]string{f.Name: ""}))
		}
		for _, b := range bodies {
			var v any
			if err := json.Unmarshal([]byte(b), &v); err != nil {
				t.Fatal(err)
			}
			takes, says := input.Decode([]byte(b), reflect.New(c.In).Interface()), validate(c.In.Name(), v)
			if (takes == nil) != (says == nil) {
				t.Errorf("%s %s: the decoder says %v, the description %v", c.Name, b, takes, says)
			}
		}
	}
}

// TestEveryRouteIsDescribedWithItsQuery: what a read takes and what is said of it are
// one list.
func TestEveryRouteIsDescribedWithItsQuery(t *testing.T) {
	raw, err := OpenAPI(builtin.Commands(), builtin.Reads())
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]struct {
			Parameters []struct {
				Name, In, Description string
				Required              bool
			}
		}
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	for _, r := range (&read.Reads{}).Routes() {
		_, path, _ := strings.Cut(r.Pattern, " ")
		told := map[string]bool{}
		for _, p := range doc.Paths[path]["get"].Parameters {
			if p.In == "query" {
				told[p.Name] = p.Required
				if p.Description == "" {
					t.Errorf("%s: nothing is said of %s", path, p.Name)
				}
			}
		}
		for _, p := range r.Query {
			if required, ok := told[p.Name]; !ok || required != p.Required {
				t.Errorf("%s: %s isn't told as it is", path, p.Name)
			}
		}
		if len(told) != len(r.Query) {
			t.Errorf("%s: told %v, taken %v", path, told, r.Query)
		}
	}
}
