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
	d := &document{docs: readComments(t), shapes: map[string]reflect.Type{}, shown: map[reflect.Type]string{}}
	d.head()
	d.families()
	d.sharedShapes()
	d.drafts()
	golden(t, "events.md", d.Bytes())
}

func TestEventDocumentNamesEveryType(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "docs", "events.md"))
	if err != nil {
		t.Fatal(err)
	}
	stable := map[string]bool{}
	for _, ty := range event.Types() {
		stable[ty.Name] = ty.Stable
		if want := entry(ty); !strings.Contains(string(b), want) {
			t.Errorf("docs/events.md lacks %q", want)
		}
	}
	for _, n := range event.Namings() {
		if stable[n.Type] && !strings.Contains(string(b), "\n- "+n.Fact+": ") {
			t.Errorf("docs/events.md doesn't say where %q is recorded", n.Fact)
		}
	}
}

// entry is a type's heading, or its name in the list of drafts.
func entry(ty event.Type) string {
	if ty.Stable {
		return "\n### `" + ty.Name + "`\n"
	}
	return "`" + ty.Name + "`"
}

// document renders docs/events.md.
type document struct {
	bytes.Buffer
	docs   comments
	shapes map[string]reflect.Type // structs that payloads share, by name
	shown  map[reflect.Type]string // the type of fact whose section lists the fields
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
	d.line("The log holds one fact for each step of the runtime. `belay events ID` prints those of a session,")
	d.line("`belay events --json ID` as JSON lines; [event.schema.json](event.schema.json) is their schema.\n")
	d.line("Names come from the Agent Runtime standard, v0.4.0: %d types. %d are **stable**: recorded, and", len(event.Types()), stable)
	d.line("fields are only added. The others are [drafts](#drafts): not recorded yet, fields may change. Facts that the")
	d.line("standard has no name for are recorded under the nearest type, which lists them with what tells them apart.\n")
	d.line("A field is a string unless its type is given; `?` marks one that is left out when empty or zero.")
	d.line("Sizes are bytes, times RFC 3339 in UTC. `taint` entries read `kind:origin`.\n")
	d.line("## Envelope\n")
	d.line("Every fact has `sessionId`. Each section names the other ids that its facts must have.\n")
	d.fields(event.WireType)
}

// fields lists the fields of a struct: those without a comment in one line,
// the others in a line each.
func (d *document) fields(t reflect.Type) {
	var plain, about []string
	for _, f := range fieldsOf(t) {
		name := "`" + f.JSON + "`"
		if f.Optional {
			name += "?"
		}
		if typ := d.typeName(f.Type); typ != "string" {
			name += " " + typ
		}
		if doc := d.docs[f.Go]; doc != "" {
			about = append(about, "- "+name+": "+doc)
		} else {
			plain = append(plain, name)
		}
	}
	if len(plain) > 0 {
		about = append([]string{"- " + strings.Join(plain, ", ")}, about...)
	}
	if len(about) > 0 {
		d.line("%s\n", strings.Join(about, "\n"))
	}
}

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
		if of := d.typeName(t.Elem()); of != "string" {
			return "list of " + of
		}
		return "list"
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

// families renders the stable types, in the order of the table.
func (d *document) families() {
	d.line("## Types\n")
	for _, ty := range event.Types() {
		if ty.Stable {
			d.section(ty)
		}
	}
}

func (d *document) section(ty event.Type) {
	d.line("### `%s`\n", ty.Name)
	text := d.about(ty)
	if ty.Checkpoint {
		text += " Written every 2 seconds or 4 KB."
	}
	if ty.Version > 1 {
		text += fmt.Sprintf(" `payloadVersion` %d.", ty.Version)
	}
	if len(ty.Needs) > 0 {
		text += " Needs `" + strings.Join(ty.Needs, "`, `") + "`."
	}
	t := event.GoType(ty)
	if same := d.shown[t]; same != "" {
		d.line("%s Fields as in `%s`.\n", text, same)
		return
	}
	d.line("%s\n", text)
	if len(fieldsOf(t)) > 0 {
		d.shown[t] = ty.Name
	}
	d.fields(t)
	d.names(ty.Name)
}

// names lists the facts that the standard has no type for and this one records.
func (d *document) names(name string) {
	some := false
	for _, n := range event.Namings() {
		if n.Type != name {
			continue
		}
		if !some {
			d.line("Records:\n")
		}
		some = true
		d.line("- %s: %s", n.Fact, n.Note)
	}
	if some {
		d.line("")
	}
}

// about is the sentence on a type of fact.
func (d *document) about(ty event.Type) string {
	if doc := d.doc(event.GoType(ty).Name()); doc != "" {
		return doc
	}
	return strings.ToUpper(ty.Doc[:1]) + ty.Doc[1:] + "."
}

// doc is a type's comment without the Go name that it begins with.
func (d *document) doc(name string) string {
	doc := strings.TrimPrefix(d.docs[name], name+" ")
	for _, verb := range []string{"is ", "says that ", "says ", "reports that ", "records that ", "are "} {
		if rest, ok := strings.CutPrefix(doc, verb); ok {
			doc = rest
			break
		}
	}
	if doc == "" {
		return ""
	}
	return strings.ToUpper(doc[:1]) + doc[1:]
}

// drafts lists the types that no build records yet.
func (d *document) drafts() {
	var names []string
	for _, ty := range event.Types() {
		if !ty.Stable {
			names = append(names, "`"+ty.Name+"`")
		}
	}
	d.line("## Drafts\n")
	d.line("Their fields are in [event.schema.json](event.schema.json).\n")
	d.line("%s.", strings.Join(names, ", "))
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
			if doc := d.doc(name); doc != "" {
				part.line("%s\n", doc)
			}
			part.fields(t)
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
