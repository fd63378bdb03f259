package agentfile

import (
	"maps"
	"slices"
	"strings"

	"github.com/belay-run/belay/internal/lib/expr"
)

// Member is an agent of a team.
type Member struct {
	Name     string            `json:"name"` // in the team
	Agent    string            `json:"agent"`
	After    []string          `json:"after,omitempty"` // members that end before it begins
	Input    map[string]string `json:"input,omitempty"` // expressions, by field
	Optional bool              `json:"optional,omitempty"`
	Fallback []string          `json:"fallback,omitempty"` // agents that try what this one fails at

	at func(path ...any) string // in the file, of what is below the member
}

// memberFile is a member as the file has it.
type memberFile struct {
	Agent    string            `yaml:"agent"`
	After    words             `yaml:"after"`
	Input    map[string]string `yaml:"input"`
	Optional bool              `yaml:"optional"`
	Fallback words             `yaml:"fallback"`
}

// maxTeam bounds the members of a team.
const maxTeam = 32

// team reads the members, each behind those that it begins after.
func (a *Agent) team(members map[string]memberFile, result map[string]string, at func(...any) string) {
	if len(members) == 0 {
		if len(result) > 0 {
			a.find(Error, CodeBadFile, at("result"), "complete_task brings an agent's output", "only a team has a result that its members' outputs make")
		}
		return
	}
	a.at = at
	if len(members) > maxTeam {
		a.find(Error, CodeTooMany, at("members"), "make two teams of it", "the team has %d members; %d are the most", len(members), maxTeam)
		return
	}
	all := map[string]*Member{}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		f := members[name]
		m := &Member{Name: name, Agent: f.Agent, Optional: f.Optional, Input: map[string]string{}}
		m.at = func(path ...any) string { return at(append([]any{"members", name}, path...)...) }
		all[name] = m
		if !plainMember.Match(name) {
			a.find(Error, CodeBadName, at("members", name), "letters, digits and _, beginning with a letter", "%q can't be a member's name", short(name, 64))
		}
		n, ok := a.need(f.Agent, "", at("members", name, "agent"))
		if !ok {
			continue
		}
		a.names = append(a.names, named{"the agent of member " + short(name, 64), n.String(), at("members", name, "agent")})
		for _, other := range f.Fallback {
			if n, ok := a.need(other, "", at("members", name, "fallback")); ok {
				m.Fallback = append(m.Fallback, n.String())
				a.names = append(a.names, named{"a fallback of member " + short(name, 64), n.String(), at("members", name, "fallback")})
			}
		}
		m.After = f.After
		for field, text := range f.Input {
			m.Input[field] = text
			for _, other := range a.reads(text, at("members", name, "input", field)) {
				if !slices.Contains(m.After, other) {
					m.After = append(m.After, other)
				}
			}
		}
	}
	a.Members, a.Result = a.inOrder(all, at), result
	for field, text := range result {
		for _, name := range a.reads(text, at("result", field)) {
			if all[name] == nil {
				a.find(Error, CodeMissing, at("result", field), "the members are "+strings.Join(slices.Sorted(maps.Keys(all)), ", "), "there is no member %s", short(name, 64))
			}
		}
	}
	if a.Output != nil && len(result) == 0 {
		a.find(Error, CodeBadFile, at("output"), "result: {files: members.gather.output.files}", "result doesn't say what the output of the team is made of")
	}
}

// reads are the members whose ends an expression reads. One that can't be read is a finding.
func (a *Agent) reads(text, where string) (members []string) {
	e, err := expr.Compile(text, expr.TeamVariables...)
	if err != nil {
		a.find(Error, CodeBadFile, where, "an expression in CEL, such as members.gather.output.files or input.topic", "%v", err)
		return nil
	}
	for _, way := range e.Paths() {
		if len(way) > 1 && way[0] == "members" {
			members = append(members, way[1])
		}
	}
	return members
}

// inOrder puts each member behind those that it begins after; a circle is named.
func (a *Agent) inOrder(all map[string]*Member, at func(...any) string) (out []Member) {
	var visit func(name string, way []string) bool
	visit = func(name string, way []string) bool {
		m := all[name]
		if i := slices.Index(way, name); i >= 0 {
			a.find(Error, CodeCycle, at("members", name), "take one of these out of after, or of an input", "members wait for one another: %s", strings.Join(append(slices.Clone(way[i:]), name), " > "))
			return false
		}
		if slices.ContainsFunc(out, func(o Member) bool { return o.Name == name }) {
			return true
		}
		way = append(slices.Clip(way), name)
		for _, before := range m.After {
			if all[before] == nil {
				a.find(Error, CodeMissing, at("members", name), "the members are "+strings.Join(slices.Sorted(maps.Keys(all)), ", "), "there is no member %s", short(before, 64))
				return false
			}
			if !visit(before, way) {
				return false
			}
		}
		out = append(out, *m)
		return true
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !visit(name, nil) {
			return nil
		}
	}
	return out
}
