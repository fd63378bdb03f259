package event_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/belay-run/belay/event"
)

var update = flag.Bool("update", false, "write docs/events.md and docs/event.schema.json")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("..", "docs", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")); diff != "" {
		t.Errorf("docs/%s differs from the code; go test ./event -update writes it\n-file +code:\n%s", name, diff)
	}
}

func schemaJSON(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(eventSchema(t)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestSchemaDocumentIsCurrent(t *testing.T) { golden(t, "event.schema.json", schemaJSON(t)) }

func compileOwn(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schemaJSON(t)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("belay:event", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("belay:event")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestOwnSchemaAcceptsEveryTypeAndRefusesWhatIsWrong(t *testing.T) {
	own := compileOwn(t)
	check := func(b []byte) error {
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		return own.Validate(v)
	}
	eachType(t, func(t *testing.T, ty event.Type) {
		whole := mustJSON(t, sample(ty))
		if err := check(whole); err != nil {
			t.Errorf("a whole fact: %v", err)
		}
		zero := sample(ty)
		zero.Data = reflect.Zero(event.GoType(ty)).Interface().(event.Payload)
		if err := check(mustJSON(t, zero)); err != nil && ty.Family() != "benchmark" {
			t.Errorf("a zero payload: %v", err)
		}
		for _, f := range fieldsOf(event.GoType(ty)) {
			if f.Type == reflect.TypeFor[json.RawMessage]() {
				continue // anything is right
			}
			if err := check(change(t, whole, f.JSON, json.RawMessage(`[[]]`))); err == nil {
				t.Errorf("%s may be a list of lists", f.JSON)
			}
			if err := check(change(t, whole, f.JSON, nil)); (err == nil) != f.Optional {
				t.Errorf("without %s, optional %v: %v", f.JSON, f.Optional, err)
			}
		}
	})
}

// change sets a field of a fact's payload; nil removes it.
func change(t *testing.T, fact []byte, name string, value json.RawMessage) []byte {
	t.Helper()
	var e, p map[string]json.RawMessage
	if err := json.Unmarshal(fact, &e); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(e["payload"], &p); err != nil {
		t.Fatal(err)
	}
	p[name] = value
	if value == nil {
		delete(p, name)
	}
	e["payload"] = mustJSON(t, p)
	return mustJSON(t, e)
}

func TestEventDocumentIsCurrent(t *testing.T) {
	d := &document{docs: readComments(t), shapes: map[string]reflect.Type{}}
	d.head()
	d.families()
	d.sharedShapes()
	d.names()
	golden(t, "events.md", d.Bytes())
}

func TestEventDocumentNamesEveryType(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "docs", "events.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, ty := range event.Types() {
		if !strings.Contains(string(b), "### `"+ty.Name+"`\n") {
			t.Errorf("docs/events.md has no section on %s", ty.Name)
		}
	}
	for _, n := range event.Namings() {
		if !strings.Contains(string(b), "| "+n.Fact+" | ") {
			t.Errorf("docs/events.md doesn't say where %q is recorded", n.Fact)
		}
	}
}

// document renders docs/events.md.
type document struct {
	bytes.Buffer
	docs   comments
	shapes map[string]reflect.Type // structs that payloads share, by name
}

func (d *document) line(format string, args ...any) { fmt.Fprintf(d, format+"\n", args...) }

func (d *document) head() {
	stable := 0
	for _, ty := range event.Types() {
		if ty.Stable {
			stable++
		}
	}
	d.line("# Events\n")
	d.line("<!-- Generated from package event: go test ./event -update -->\n")
	d.line("Every step of the runtime is a fact in a log. The names are those of the Agent Runtime")
	d.line("standard, v0.4.0: %d types, of which %d are **stable** (recorded; fields are only added)", len(event.Types()), stable)
	d.line("and the others **draft** (not recorded yet; fields may change). A **checkpoint** is")
	d.line("written while something flows, every 2 seconds or 4 KB. [event.schema.json](event.schema.json)")
	d.line("says the same to a program.\n")
	d.line("A field marked `?` is left out when it is empty or zero. Sizes are bytes, `ms` is")
	d.line("milliseconds, times are RFC 3339 in UTC.\n")
	d.line("## Envelope\n")
	d.line("Every fact has `sessionId`; which other ids it must have is said with its type.\n")
	d.table(event.WireType)
}

func (d *document) table(t reflect.Type) {
	fields := fieldsOf(t)
	if len(fields) == 0 {
		d.line("No fields.\n")
		return
	}
	d.line("| field | type | |\n| --- | --- | --- |")
	for _, f := range fields {
		mark := ""
		if f.Optional {
			mark = "?"
		}
		d.line("| `%s`%s | %s | %s |", f.JSON, mark, d.typeName(f.Type), cell(d.docs[f.Go]))
	}
	d.line("")
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

// typeName is a type as a reader of JSON sees it.
func (d *document) typeName(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return "time"
	case t == reflect.TypeFor[json.RawMessage]():
		return "JSON"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return d.typeName(t.Elem())
	case reflect.Slice:
		return "list of " + d.typeName(t.Elem())
	case reflect.Map:
		return "map to " + d.typeName(t.Elem())
	case reflect.Struct:
		d.shapes[t.Name()] = t
		return fmt.Sprintf("[%s](#%s)", t.Name(), strings.ToLower(t.Name()))
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int64:
		if t.Implements(reflect.TypeFor[interface{ MarshalText() ([]byte, error) }]()) {
			return "duration"
		}
		return "integer"
	case reflect.Float64:
		return "number"
	}
	return "string"
}

func (d *document) families() {
	d.line("## Types\n")
	families := map[string][]event.Type{}
	var order []string
	for _, ty := range event.Types() {
		f := ty.Family()
		if families[f] == nil {
			order = append(order, f)
		}
		families[f] = append(families[f], ty)
	}
	d.line("| family | types |\n| --- | --- |")
	for _, f := range order {
		var links []string
		for _, ty := range families[f] {
			link := fmt.Sprintf("[%s](#%s)", ty.Name, strings.ReplaceAll(ty.Name, ".", ""))
			if !ty.Stable {
				link = "*" + link + "*"
			}
			links = append(links, link)
		}
		d.line("| %s | %s |", f, strings.Join(links, ", "))
	}
	d.line("\nNames in italics are drafts.\n")
	for _, f := range order {
		for _, ty := range families[f] {
			d.section(ty)
		}
	}
}

func (d *document) section(ty event.Type) {
	d.line("### `%s`\n", ty.Name)
	marks := "draft"
	if ty.Stable {
		marks = "stable"
	}
	if ty.Checkpoint {
		marks += ", checkpoint"
	}
	if ty.Version > 1 {
		marks += fmt.Sprintf(", payloadVersion %d", ty.Version)
	}
	if len(ty.Needs) > 0 {
		marks += "; needs `" + strings.Join(ty.Needs, "`, `") + "`"
	}
	doc := d.docs[event.GoType(ty).Name()]
	if doc == "" {
		doc = strings.ToUpper(ty.Doc[:1]) + ty.Doc[1:] + "."
	}
	d.line("%s (%s)\n", doc, marks)
	d.table(event.GoType(ty))
}

// sharedShapes renders the structs that fields refer to, and those that they
// refer to in turn.
func (d *document) sharedShapes() {
	d.line("## Shapes\n")
	done := map[string]string{}
	for len(done) < len(d.shapes) {
		for name, t := range d.shapes {
			if _, ok := done[name]; ok {
				continue
			}
			part := &document{docs: d.docs, shapes: d.shapes}
			part.line("### `%s`\n", name)
			if doc := d.docs[name]; doc != "" {
				part.line("%s\n", doc)
			}
			part.table(t)
			done[name] = part.String()
		}
	}
	names := make([]string, 0, len(done))
	for name := range done {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		d.WriteString(done[name])
	}
}

func (d *document) names() {
	d.line("## Facts without a type of their own\n")
	d.line("The standard's list is closed. These facts are recorded under its nearest name.\n")
	d.line("| fact | type | told apart by |\n| --- | --- | --- |")
	for _, n := range event.Namings() {
		d.line("| %s | `%s` | %s |", n.Fact, n.Type, cell(n.Note))
	}
}
