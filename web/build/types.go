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
	Items                json.RawMessage    `json:"items"`
	AdditionalProperties json.RawMessage    `json:"additionalProperties"`
	AnyOf                []*schema          `json:"anyOf"`
}

// types makes a TypeScript type of each schema, and lists which paths are answered.
func types(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	var doc struct {
		Paths      map[string]map[string]json.RawMessage `json:"paths"`
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
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		if name, ok := strings.CutPrefix(path, "/v1/commands/"); ok {
			commands = append(commands, fmt.Sprintf("%q", name))
		} else if _, ok := doc.Paths[path]["get"]; ok {
			reads = append(reads, "`"+placeholder(path)+"`")
		}
	}
	fmt.Fprintf(&out, "export type CommandName = %s;\n", strings.Join(commands, " | "))
	fmt.Fprintf(&out, "export type ReadPath = %s;\n", strings.Join(reads, " | "))
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
		return "(" + of(s.Items) + ")[]"
	}
	if s.Properties == nil {
		return "{ [name: string]: " + of(s.AdditionalProperties) + " }"
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

// of is the type of what a list or a map has.
func of(raw json.RawMessage) string {
	var s schema
	if len(raw) == 0 || json.Unmarshal(raw, &s) != nil {
		return "unknown"
	}
	return s.text()
}
