package event_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// field is a JSON field of a struct, embedded structs flattened.
type field struct {
	JSON     string
	Go       string // STRUCT.FIELD in the source
	Type     reflect.Type
	Optional bool // left out when zero
	Tag      string
}

// fieldsOf lists the JSON fields of a struct in the order of the source.
func fieldsOf(t reflect.Type) []field {
	var all []field
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		if f.Anonymous && tag == "" && f.Type.Kind() == reflect.Struct {
			all = append(all, fieldsOf(f.Type)...)
			continue
		}
		name, opts, _ := strings.Cut(tag, ",")
		if !f.IsExported() || name == "-" {
			continue
		}
		all = append(all, field{JSON: name, Go: t.Name() + "." + f.Name, Type: f.Type, Optional: opts != "", Tag: opts})
	}
	return all
}

// comments are the doc comments of types ("TYPE") and fields ("TYPE.FIELD").
type comments map[string]string

// readComments parses the sources of this package and of the root package.
func readComments(t *testing.T) comments {
	t.Helper()
	c := comments{}
	for _, dir := range []string{"..", "."} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range f.Decls {
				if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.TYPE {
					c.add(g)
				}
			}
		}
	}
	return c
}

func (c comments) add(g *ast.GenDecl) {
	for _, s := range g.Specs {
		spec := s.(*ast.TypeSpec)
		doc := spec.Doc
		if doc == nil && !g.Lparen.IsValid() {
			doc = g.Doc
		}
		c[spec.Name.Name] = oneLine(doc.Text())
		st, ok := spec.Type.(*ast.StructType)
		if !ok {
			continue
		}
		for _, f := range st.Fields.List {
			for _, n := range f.Names {
				c[spec.Name.Name+"."+n.Name] = oneLine(f.Doc.Text() + f.Comment.Text())
			}
		}
	}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
