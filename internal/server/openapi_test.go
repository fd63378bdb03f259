package server

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

var update = flag.Bool("update", false, "write the description that is checked in")

// describedFile is the file that is checked in.
var describedFile = filepath.Join("..", "..", "docs", "openapi.json")

func TestTheDescriptionThatIsCheckedInIsCurrent(t *testing.T) {
	doc, err := OpenAPI()
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
func TestTheDescriptionIsWhole(t *testing.T) {
	raw, err := OpenAPI()
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
	for name, s := range doc.Components.Schemas {
		if _, err := s.Resolve(nil); err != nil {
			t.Errorf("schema %s: %v", name, err)
		}
	}
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
		name, ok := strings.CutPrefix(ref, "#/components/schemas/")
		if !ok || doc.Components.Schemas[name] == nil {
			t.Errorf("the reference %s leads nowhere", ref)
		}
	}
	for _, c := range Commands {
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

// TestWhatCommandsTakeIsWhatIsDescribed gives bodies to the decoder and to the
// schema of the description: they agree.
func TestWhatCommandsTakeIsWhatIsDescribed(t *testing.T) {
	raw, err := OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	var doc apiDocument
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	for _, c := range Commands {
		if c.Later != "" {
			continue
		}
		s, err := doc.Components.Schemas[c.in.Name()].Resolve(&jsonschema.ResolveOptions{})
		if err != nil {
			t.Fatal(err)
		}
		fields := fieldsOf(c.in)
		bodies := []string{body(fields, nil), "{}", `{"nobodyKnowsThis":1}`}
		for _, f := range fields {
			_, wrong := sample(f.of)
			bodies = append(bodies, body(fields, map[string]string{f.name: wrong}), body(fields, map[string]string{f.name: ""}))
		}
		for _, b := range bodies {
			var v any
			if err := json.Unmarshal([]byte(b), &v); err != nil {
				t.Fatal(err)
			}
			takes, says := fits([]byte(b), c.in, ""), s.Validate(v)
			if (takes == nil) != (says == nil) {
				t.Errorf("%s %s: the decoder says %v, the description %v", c.Name, b, takes, says)
			}
		}
	}
}
