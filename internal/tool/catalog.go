package tool

import (
	"context"
	_ "embed"
	"encoding/json"
	"slices"
	"strings"

	"github.com/belay-run/belay"
)

// Tools by which a model finds others and calls them.
const (
	SearchName = "tool_search"
	CallName   = "tool_call"
)

// How a tool is offered, as Spec.Load says; empty: with its definition.
const (
	LoadAuto   = "auto"   // with its definition, unless those of all such tools are too long together
	LoadSearch = "search" // by its name; a search finds the definition
)

var (
	//go:embed tool_search.md
	searchDoc string
	//go:embed tool_call.md
	callDoc string
)

// Catalog is what a request offers of tools: those that are loaded by a search by their
// names alone, behind the two tools that find and call them, and those of LoadAuto too if
// their definitions have more than budget bytes together. all has the two tools.
func Catalog(tools, all []Spec, budget int) []Spec {
	size := 0
	for _, s := range tools {
		if s.Load == LoadAuto {
			size += len(s.Name) + len(s.Doc) + len(s.Input)
		}
	}
	var out []Spec
	var names []string
	for _, s := range tools {
		switch {
		case byName(s):
			continue
		case s.Load == LoadAuto && size > budget:
			s.Load = LoadSearch
		case s.Load == LoadAuto:
			s.Load = ""
		}
		if s.Load == LoadSearch {
			names = append(names, s.Name)
		}
		out = append(out, s)
	}
	if len(names) == 0 {
		return out
	}
	for _, s := range all {
		if s.Name == SearchName {
			s.Doc += " " + strings.Join(names, ", ")
		}
		if byName(s) {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b Spec) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func byName(s Spec) bool { return s.Name == SearchName || s.Name == CallName }

type searchArgs struct {
	Query string `json:"query" jsonschema:"words, or a name"`
}

type callArgs struct {
	Name string          `json:"name" jsonschema:"of the tool"`
	Args json.RawMessage `json:"args,omitempty" jsonschema:"its arguments, an object"`
}

// searchTool shows the definitions of tools that are offered by their names.
func searchTool() Tool {
	spec := Spec{Name: SearchName, Doc: strings.TrimSpace(searchDoc), Effect: belay.Pure, ReadOnly: true, Access: belay.Read, OutputLimit: 24 << 10}
	return New(spec, func(_ context.Context, c Call, in searchArgs) (Result, error) {
		if c.Catalog == nil {
			return Result{Text: "there is nothing to find"}, nil
		}
		found := c.Catalog.Find(in.Query)
		if len(found) == 0 {
			return Result{}, Failf(NotFound, "NOT_FOUND", "no tool fits %q", shorten(in.Query)).WithHint("use words of what it does, or a name that you were told")
		}
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		for _, s := range found {
			def := struct {
				Name string          `json:"name"`
				Doc  string          `json:"description"`
				Args json.RawMessage `json:"args"`
			}{s.Name, s.Doc, s.Input}
			if err := enc.Encode(def); err != nil {
				return Result{}, err
			}
		}
		return Result{Text: b.String()}, nil
	})
}

// callTool is never run: its call is taken for the one that it names before it is judged.
func callTool() Tool {
	spec := Spec{Name: CallName, Doc: strings.TrimSpace(callDoc), Effect: belay.Idempotent, ReadOnly: true, Access: belay.Read,
		Input: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string","description":"of the tool"},"args":{"type":"object","description":"its arguments"}},"required":["name"],"additionalProperties":false}`)}
	return New(spec, notRun[callArgs])
}

// Unwrapped is the call that a call of CallName stands for; false: its arguments name none.
func Unwrapped(rawArgs string) (name, args string, ok bool) {
	var in callArgs
	if json.Unmarshal([]byte(rawArgs), &in) != nil || in.Name == "" || in.Name == CallName {
		return "", "", false
	}
	return in.Name, string(in.Args), true
}

// Wrapped are the arguments of CallName for a call.
func Wrapped(name string, args json.RawMessage) json.RawMessage {
	raw, err := json.Marshal(callArgs{name, args})
	if err != nil { // the arguments were none: what they were stands as a text
		raw, _ = json.Marshal(map[string]string{"name": name, "args": string(args)}) // texts: can't fail
	}
	return raw
}
