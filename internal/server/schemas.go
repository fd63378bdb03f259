package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/store"
)

// schemas are those of the components: one for each struct that a body has,
// however deep, so that a client that is made from the description has a type for
// each.
type schemas struct {
	named map[string]*jsonschema.Schema
	types map[string]reflect.Type // whose each name is
}

// leaves are the types whose JSON isn't what their kind says.
var leaves = map[reflect.Type]*jsonschema.Schema{
	reflect.TypeFor[belay.Duration]():  {Type: "string", Description: "a length of time, such as 1h30m0s"},
	reflect.TypeFor[time.Time]():       {Type: "string", Format: "date-time"},
	reflect.TypeFor[store.Position]():  {Type: "integer", Description: "a place in the order of all facts"},
	reflect.TypeFor[[]byte]():          {Type: "string", ContentEncoding: "base64"},
	reflect.TypeFor[input.Base64]():    {Type: "string", Description: "content of any kind, as base64", Pattern: "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"},
	reflect.TypeFor[json.RawMessage](): {Description: "any JSON value"},
}

// unprefixed reports whether types of a package keep their names: those that speak to
// clients do. A type of another one has the package's name in front.
func unprefixed(pkg string) bool {
	use := reflect.TypeFor[app.Result]().PkgPath()
	return strings.HasPrefix(pkg+"/", use+"/") || slices.Contains([]string{reflect.TypeFor[Health]().PkgPath(), reflect.TypeFor[belay.Ref]().PkgPath(), reflect.TypeFor[event.PlanItem]().PkgPath()}, pkg)
}

// ref is a reference to a struct's schema, which is made at the first time with
// those of all structs in it. What a struct embeds is part of it. Two structs of
// one name are an error, and so is one that has none.
func (s *schemas) ref(t reflect.Type) (*jsonschema.Schema, error) {
	if t.Name() == "" || strings.ContainsFunc(t.Name(), func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) }) {
		return nil, fmt.Errorf("%v has no name that a client could use: declare a type for it", t)
	}
	name := schemaName(t)
	ref := &jsonschema.Schema{Ref: "#/components/schemas/" + name}
	if of := s.types[name]; of == t {
		return ref, nil
	} else if of != nil {
		return nil, fmt.Errorf("%v and %v would both be %s to clients: rename one", of, t, name)
	}
	s.types[name] = t
	known := maps.Clone(leaves)
	for _, in := range structsIn(t) {
		inner, err := s.ref(in)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		known[in] = inner
	}
	delete(known, t) // what has itself in it is an error, not a reference to itself
	made, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: known})
	if err != nil {
		return nil, err
	}
	optional(made)
	s.named[name] = made
	return ref, nil
}

// schemaName is what a type is called in the description.
func schemaName(t reflect.Type) string {
	name := t.Name()
	if !unprefixed(t.PkgPath()) {
		of := t.PkgPath()[strings.LastIndexByte(t.PkgPath(), '/')+1:]
		name = strings.ToUpper(of[:1]) + of[1:] + name
	}
	return published(name)
}

// published is the name under which a schema was published first: clients are
// generated from it, so it stays when the type's name changes.
func published(name string) string {
	switch name {
	case "ApprovalContext":
		return "Stands"
	case "Result":
		return "Told"
	case "SettingsInput":
		return "Choices"
	case "SimulateMatched":
		return "RehearseHeard"
	case "SimulateSimple":
		return "RehearseSimple"
	}
	return name
}

// structsIn are the structs that the fields of a struct have, those of what it
// embeds among them.
func structsIn(t reflect.Type) []reflect.Type {
	var out []reflect.Type
	for _, f := range reflect.VisibleFields(t) {
		if f.Anonymous || !f.IsExported() || f.Tag.Get("json") == "-" {
			continue
		}
		of := f.Type
		for leaves[of] == nil && slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map}, of.Kind()) {
			of = of.Elem()
		}
		if leaves[of] == nil && of.Kind() == reflect.Struct {
			out = append(out, of)
		}
	}
	return out
}

// optional mends what is inferred of pointers to structs: the reference or null,
// not a reference that is null.
func optional(s *jsonschema.Schema) {
	for _, in := range slices.Concat(slices.Collect(maps.Values(s.Properties)), []*jsonschema.Schema{s.Items, s.AdditionalProperties}) {
		if in == nil {
			continue
		}
		if in.Ref != "" && in.Types != nil {
			in.AnyOf = []*jsonschema.Schema{{Ref: in.Ref}, {Type: "null"}}
			in.Ref, in.Types = "", nil
		}
		optional(in)
	}
}
