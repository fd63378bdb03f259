package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// schema is as much of a JSON schema as the description of the interface uses.
type schema struct {
	Ref                  string             `json:"$ref"`
	Type                 any                `json:"type"`
	Description          string             `json:"description"`
	Properties           map[string]*schema `json:"properties"`
	Required             []string           `json:"required"`
	Items                *schema            `json:"items"`
	AdditionalProperties *schema            `json:"additionalProperties"`
	AnyOf                []*schema          `json:"anyOf"`
	Enum                 []string           `json:"enum"`
}

// UnmarshalJSON takes true for what says nothing.
func (s *schema) UnmarshalJSON(b []byte) error {
	if b[0] != '{' {
		return nil
	}
	type plain schema
	return json.Unmarshal(b, (*plain)(s))
}

// operation is what the description says of a read.
type operation struct {
	Parameters []struct {
		Name, In string
		Required bool
		Schema   *schema
	} `json:"parameters"`
	Responses map[string]struct {
		Content map[string]struct{ Schema *schema }
	} `json:"responses"`
}

// text is the type of what its query says and of its answer.
func (o *operation) text() string {
	var b strings.Builder
	b.WriteString("{ query: { ")
	for _, p := range o.Parameters {
		if p.In == "query" {
			fmt.Fprintf(&b, "%s%s: %s; ", p.Name, map[bool]string{false: "?"}[p.Required], p.Schema.text())
		}
	}
	b.WriteString("}; answer: " + o.Responses["200"].Content["application/json"].Schema.text() + " }")
	return b.String()
}

// types makes a TypeScript type of each schema, and lists which paths are answered. Of
// a read whose path is fixed it has what its query may say, and its answer.
func types(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	var doc struct {
		Paths      map[string]struct{ Get *operation } `json:"paths"`
		Components struct {
			Schemas map[string]*schema `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		return err
	}
	var out strings.Builder
	out.WriteString("// Made of docs/openapi.json by go generate; do not edit.\n")
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		fmt.Fprintf(&out, "export type %s = %s;\n", name, doc.Components.Schemas[name].text())
	}
	commands, reads := []string{}, []string{}
	out.WriteString("export interface Reads {\n")
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		if name, ok := strings.CutPrefix(path, "/v1/commands/"); ok {
			commands = append(commands, fmt.Sprintf("%q", name))
		} else if get := doc.Paths[path].Get; get != nil && (strings.Contains(path, "{") || get.Responses["200"].Content["application/json"].Schema == nil) {
			reads = append(reads, "`"+placeholder(path)+"`")
		} else if get != nil {
			fmt.Fprintf(&out, "\t%q: %s;\n", path, get.text())
		}
	}
	out.WriteString("}\n")
	fmt.Fprintf(&out, "export type CommandName = %s;\n", strings.Join(commands, " | "))
	fmt.Fprintf(&out, "export type ReadPath = keyof Reads | %s;\n", strings.Join(reads, " | "))
	return os.WriteFile(to, []byte(out.String()), 0o644)
}

// placeholder puts a text for what stands in braces.
func placeholder(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if strings.HasPrefix(p, "{") {
			parts[i] = "${string}"
		}
	}
	return strings.Join(parts, "/")
}

func (s *schema) text() string {
	if s == nil {
		return "unknown"
	}
	if s.Ref != "" {
		return s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]
	}
	if len(s.AnyOf) > 0 {
		var of []string
		for _, x := range s.AnyOf {
			of = append(of, x.text())
		}
		return strings.Join(of, " | ")
	}
	if len(s.Enum) > 0 {
		return `"` + strings.Join(s.Enum, `" | "`) + `"`
	}
	names, _ := s.Type.([]any)
	if one, ok := s.Type.(string); ok {
		names = []any{one}
	}
	var of []string
	for _, n := range names {
		of = append(of, s.named(n.(string)))
	}
	if len(of) == 0 {
		return "unknown"
	}
	return strings.Join(of, " | ")
}

func (s *schema) named(kind string) string {
	switch kind {
	case "string", "boolean", "null":
		return kind
	case "integer", "number":
		return "number"
	case "array":
		return "(" + s.Items.text() + ")[]"
	}
	if s.Properties == nil {
		return "{ [name: string]: " + s.AdditionalProperties.text() + " }"
	}
	var b strings.Builder
	b.WriteString("{ ")
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		maybe := "?"
		if slices.Contains(s.Required, name) {
			maybe = ""
		}
		fmt.Fprintf(&b, "%s%s: %s; ", name, maybe, s.Properties[name].text())
	}
	return b.String() + "}"
}
