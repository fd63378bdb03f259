package tool

import (
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/match"
)

// Group is a name for tools that belong together.
type Group struct {
	Name  string
	Doc   string
	Tools []string
}

// Groups that are made by what tools say of themselves.
const (
	CommandsGroup = "commands" // every tool that a manifest declares
	otherGroup    = "other"    // what no group names
)

// groups may name tools that a build hasn't: those are simply not there. A
// tool's own spec can put it into a group besides.
var groups = []Group{
	{"files", "reading and changing files of the workspace", []string{"read", "write", "edit", "patch", "list", "glob", "grep", "notebook_edit"}},
	{"runtime", "programs", []string{"exec", "process", "process_send"}},
	{"web", "searching and fetching", []string{"web_search", "web_fetch"}},
	{"memory", "what is remembered between sessions", []string{"memory_search", "memory_get", "memory_store", "memory_update", "memory_forget"}},
	{"sessions", "other sessions", []string{"sessions_list", "sessions_history", "sessions_send"}},
	{"agents", "handing work to other agents", []string{SpawnName, "wait_agent", "send_input", "close_agent", "list_agents"}},
	{"plan", "the turn itself: its plan, its questions, its end, what it was shown in part, the skills that there are, and tools that it knows by name", []string{"todo", "ask_user", "complete_task", "context_read", SkillName, SearchName, CallName, "task_create", "task_update", "task_list"}},
	{"flow", "graphs of work", []string{"flow_get", "flow_add_node", "flow_connect", "flow_update", "flow_remove"}},
	{"automation", "schedules", []string{"schedule_create", "schedule_list", "schedule_delete"}},
	{"artifacts", "handing over results", []string{"artifact_publish"}},
	{"messaging", "telling people", []string{"message", "notify"}},
	{CommandsGroup, "tools that manifests declare", nil},
	{otherGroup, "tools that are in no other group", nil},
}

// ToolSet is a choice with a name.
type ToolSet struct {
	Name  string
	Doc   string
	Terms []string
}

// DefaultSet is the choice of who says nothing.
const DefaultSet = "coding"

var toolSets = []ToolSet{
	{"minimal", "looking, planning and asking", []string{"todo", "ask_user", "complete_task", "context_read", SkillName, "read", "list", "glob", "grep"}},
	{"coding", "work in a repository; the default", []string{"group:files", "group:runtime", "group:web", "group:memory", "group:sessions", "group:plan", "group:artifacts", "group:commands", "group:other"}},
	{"messaging", "answering people", []string{"group:messaging", "group:plan", "group:artifacts", "sessions_list", "sessions_history", "sessions_send"}},
	{"full", "everything there is", []string{"*"}},
}

// Groups lists the groups.
func Groups() []Group { return slices.Clone(groups) }

// ToolSets lists the named choices.
func ToolSets() []ToolSet { return slices.Clone(toolSets) }

// Choose picks the tools that terms name: what any term allows, without what
// any term denies. A term is the name of a set, group:NAME, or a tool's name in
// which * stands for anything; with - or ! before it, it denies. Case doesn't
// matter. Without a term that allows, the default set is allowed. The tools that
// end a turn and ask a person belong to the turn and always stay. A choice of a
// choice only narrows.
func Choose(terms []string, specs []Spec) []Spec {
	var allow, deny []string
	for _, t := range terms {
		if name, denies := denial(t); denies {
			deny = append(deny, name)
		} else if name != "" {
			allow = append(allow, name)
		}
	}
	if len(allow) == 0 {
		allow = []string{DefaultSet}
	}
	var out []Spec
	for _, s := range specs {
		if s.Handled == HandledComplete || s.Handled == HandledAsk || anyCovers(allow, s) && !anyCovers(deny, s) {
			out = append(out, s)
		}
	}
	return out
}

// Expand is the names of the tools that one term covers.
func Expand(term string, specs []Spec) []string {
	var out []string
	for _, s := range specs {
		if covers(strings.ToLower(strings.TrimSpace(term)), s, false) {
			out = append(out, s.Name)
		}
	}
	return out
}

// denial takes a term apart: what it names, in lower case, and whether it denies.
func denial(term string) (name string, denies bool) {
	name = strings.ToLower(strings.TrimSpace(term))
	for _, sign := range []string{"-", "!"} {
		if rest, ok := strings.CutPrefix(name, sign); ok {
			return strings.TrimSpace(rest), true
		}
	}
	return name, false
}

func anyCovers(terms []string, s Spec) bool {
	return slices.ContainsFunc(terms, func(t string) bool { return covers(t, s, true) })
}

// covers reports whether a term, in lower case, names a tool.
func covers(term string, s Spec, sets bool) bool {
	if i := slices.IndexFunc(toolSets, func(t ToolSet) bool { return t.Name == term }); sets && i >= 0 {
		return anyCovers(toolSets[i].Terms, s)
	}
	if name, ok := strings.CutPrefix(term, "group:"); ok {
		return inGroup(name, s)
	}
	return like(term, strings.ToLower(s.Name))
}

func inGroup(name string, s Spec) bool {
	if s.Group != "" && (s.Group == name || name == CommandsGroup) {
		return true
	}
	names := func(g Group) bool { return slices.Contains(g.Tools, strings.ToLower(s.Name)) }
	if name == otherGroup {
		return s.Group == "" && !slices.ContainsFunc(groups, names)
	}
	return slices.ContainsFunc(groups, func(g Group) bool { return g.Name == name && names(g) })
}

// like compares a name with a pattern in which * stands for anything.
func like(pattern, name string) bool {
	first, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == name
	}
	if !strings.HasPrefix(name, first) {
		return false
	}
	name = name[len(first):]
	for {
		part, more, star := strings.Cut(rest, "*")
		if !star {
			return strings.HasSuffix(name, part)
		}
		i := strings.Index(name, part)
		if i < 0 {
			return false
		}
		name, rest = name[i+len(part):], more
	}
}

// CheckTerms refuses terms that name nothing: neither a set, nor a group, nor a
// tool of this build or of one to come. Patterns may match nothing.
func CheckTerms(terms []string, specs []Spec) error {
	for _, t := range terms {
		name, _ := denial(t)
		if known(name, specs) {
			continue
		}
		hint := "a set (" + strings.Join(setNames(), ", ") + "), group:NAME, or a tool's name; belay tool list shows all"
		if near := match.Nearest(strings.TrimPrefix(name, "group:"), vocabulary(specs)); near != "" {
			hint = "did you mean " + near + "? " + hint
		}
		return belay.Errorf(belay.CodeUsage, "%q names no tool, group or set", strings.TrimSpace(t)).WithHint("%s", hint)
	}
	return nil
}

func known(name string, specs []Spec) bool {
	if strings.Contains(name, "*") {
		return true
	}
	if group, ok := strings.CutPrefix(name, "group:"); ok {
		return slices.ContainsFunc(groups, func(g Group) bool { return g.Name == group }) ||
			slices.ContainsFunc(specs, func(s Spec) bool { return s.Group == group })
	}
	return slices.Contains(vocabulary(specs), name) && !slices.ContainsFunc(groups, func(g Group) bool { return "group:"+g.Name == name })
}

func setNames() []string {
	var out []string
	for _, s := range toolSets {
		out = append(out, s.Name)
	}
	return out
}

// vocabulary is every word a term may be.
func vocabulary(specs []Spec) []string {
	out := setNames()
	for _, g := range groups {
		out = append(append(out, "group:"+g.Name), g.Tools...)
	}
	for _, s := range specs {
		out = append(out, strings.ToLower(s.Name))
	}
	return out
}

// Names are the names of tools, in their order.
func Names(specs []Spec) []string {
	out := make([]string, len(specs))
	for i, s := range specs {
		out[i] = s.Name
	}
	return out
}

// Find returns a tool by its name.
func Find(specs []Spec, name string) (Spec, error) {
	if i := slices.IndexFunc(specs, func(s Spec) bool { return s.Name == name }); i >= 0 {
		return specs[i], nil
	}
	return Spec{}, belay.Errorf(belay.CodeNotFound, "there is no tool %q here", shorten(name)).WithHint("%s", match.Hint(name, Names(specs), "belay tool list"))
}

// GroupsOf are the groups that a tool is in.
func GroupsOf(s Spec) []string {
	var out []string
	for _, g := range groups {
		if inGroup(g.Name, s) {
			out = append(out, g.Name)
		}
	}
	if s.Group != "" && !slices.Contains(out, s.Group) {
		out = append(out, s.Group)
	}
	return out
}

// Narrows reports whether one choice allows no more than another, of the tools
// that are known and of any that a manifest may bring.
func Narrows(terms, than []string) bool {
	specs := []Spec{{Name: "a-declared-tool", Group: CommandsGroup}}
	for _, g := range groups {
		for _, name := range g.Tools {
			specs = append(specs, Spec{Name: name})
		}
	}
	for _, t := range terms {
		name, denies := denial(t)
		if denies || slices.ContainsFunc(toolSets, func(s ToolSet) bool { return s.Name == name }) {
			continue
		}
		if group, ok := strings.CutPrefix(name, "group:"); ok {
			if group != CommandsGroup && !slices.ContainsFunc(groups, func(g Group) bool { return g.Name == group }) {
				specs = append(specs, Spec{Name: "another-declared-tool", Group: group})
			}
			continue
		}
		specs = append(specs, Spec{Name: strings.ReplaceAll(name, "*", "zz")})
	}
	wide := Choose(than, specs)
	return !slices.ContainsFunc(Choose(terms, specs), func(s Spec) bool {
		return !slices.ContainsFunc(wide, func(o Spec) bool { return o.Name == s.Name })
	})
}
