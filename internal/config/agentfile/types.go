package agentfile

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/lib/expr"
)

// CheckTeams holds the expressions of teams against the schemas of what they are made of,
// and of what they are for, as far as these are known. find finds the members' agents.
func (c *Catalog) CheckTeams(find func(name string) (*Agent, error)) {
	for _, a := range c.All {
		if len(a.Members) > 0 && a.Usable() {
			a.checkTeam(find)
		}
	}
}

func (a *Agent) checkTeam(find func(name string) (*Agent, error)) {
	agents, ends := map[string]*Agent{}, map[string]any{}
	for _, m := range a.Members {
		of, err := find(m.Agent)
		output := json.RawMessage(`{}`)
		switch {
		case err != nil:
			// it is missing, which is found already
		case len(of.Members) > 0:
			a.find(Error, CodeBadFile, m.at("agent"), "name its members here", "member %s is a team itself", m.Name)
		default:
			agents[m.Name] = of
			if of.Output != nil && len(m.Fallback)+len(of.Fallback) == 0 { // another one may answer with other data
				output = of.Output
			}
		}
		text := json.RawMessage(`{"type": "string"}`)
		ends[m.Name] = map[string]any{"type": "object", "properties": map[string]any{"output": output, "summary": text, "status": text}}
	}
	members, err := json.Marshal(map[string]any{"type": "object", "properties": ends})
	if err != nil { // they are schemas, which are JSON
		members = nil
	}
	variables := map[string]json.RawMessage{"input": a.Input, "members": members}
	for _, m := range a.Members {
		if of := agents[m.Name]; of != nil && len(m.Input) > 0 {
			a.checkFields("member "+m.Name+": input", m.Input, variables, of.Input, "agent "+of.Name, below(m.at, "input"))
		}
	}
	if len(a.Result) > 0 {
		a.checkFields("result", a.Result, variables, a.Output, "the output", below(a.at, "result"))
	}
}

// below are the places of the fields of an object; empty: its own.
func below(at func(path ...any) string, object string) func(field string) string {
	return func(field string) string {
		if field == "" {
			return at(object)
		}
		return at(object, field)
	}
}

// checkFields holds the expressions of an object's fields against the schema of who gets the
// object.
func (a *Agent) checkFields(what string, fields map[string]string, variables map[string]json.RawMessage, raw json.RawMessage, whose string, at func(field string) string) {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
		Others     json.RawMessage            `json:"additionalProperties"`
	}
	if len(raw) > 0 {
		json.Unmarshal(raw, &schema) //nolint:errcheck // what of it isn't as usual says nothing
	}
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		want, known := schema.Properties[field]
		if !known && string(schema.Others) == "false" {
			a.find(Error, CodeType, at(field), "it takes "+strings.Join(slices.Sorted(maps.Keys(schema.Properties)), ", "), "%s.%s: %s takes no such field", what, field, whose)
		}
		if err := expr.Check(fields[field], variables, want); err != nil {
			a.find(Error, CodeType, at(field), "numbers are of the type double, as in JSON: 1.0, int(input.n)", "%s.%s: %v", what, field, err)
		}
	}
	for _, field := range schema.Required {
		if _, given := fields[field]; !given {
			a.find(Error, CodeType, at(""), "give it a value", "%s.%s: it is missing, and %s wants it", what, field, whose)
		}
	}
}
