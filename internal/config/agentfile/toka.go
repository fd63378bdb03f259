package agentfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/strictyaml"
)

// tokaFile is what is read of a workstream's file. Its other sections go to the model
// as they stand.
type tokaFile struct {
	Metadata struct {
		Name    scalar `yaml:"name"`
		Version scalar `yaml:"version"`
	} `yaml:"metadata"`
	Spec struct {
		Name        string `yaml:"name"`
		Domain      string `yaml:"domain"`
		Priority    string `yaml:"priority"`
		Description string `yaml:"description"`
	} `yaml:"spec"`
	Capabilities struct {
		Primary   []string `yaml:"primary"`
		Secondary []string `yaml:"secondary"`
	} `yaml:"capabilities"`
	Objectives []struct {
		Description string `yaml:"description"`
		Deliverable string `yaml:"deliverable"`
		Validation  string `yaml:"validation"`
		Priority    string `yaml:"priority"`
	} `yaml:"objectives"`
	Tasks struct {
		Default     []StandingTask            `yaml:"default"`
		Conditional map[string][]StandingTask `yaml:"conditional"`
	} `yaml:"tasks"`
	Verifier *verifier `yaml:"verifier"` // ours: who judges whether the objectives' validation holds
	Security struct {
		Capabilities []string          `yaml:"capabilities_required"`
		Limits       map[string]scalar `yaml:"resource_limits"`
	} `yaml:"security"`
}

// tokaSections are the sections that are read; dependencies are read by hand.
var tokaSections = []string{"metadata", "spec", "capabilities", "objectives", "tasks", "dependencies", "security", "verifier"}

// tokaLimits are its names of limits with ours; empty is one that nothing can hold.
var tokaLimits = map[string]string{"max_memory": "memory", "max_cpu": "cpu", "timeout": "time", "max_disk_usage": "written", "max_network_bandwidth": ""}

// limitSamples are values that our limits take.
var limitSamples = map[string]string{"memory": "512MB", "cpu": "50%", "time": "30m", "written": "2GB"}

// tokaComplete is the share of a workstream's tasks that has to end well.
const tokaComplete = 0.8

// maxSections bounds what sections that nobody knows add to the instructions.
const maxSections = 16 << 10

func (a *Agent) readToka(text strictyaml.Text, root ast.Node) {
	var f tokaFile
	if err := yaml.NodeToValue(root, &f); err != nil {
		a.bad(text.Bad(err))
		return
	}
	at := func(path ...any) string { return (&strictyaml.Reader{Text: text, Root: root}).At(path...) }
	a.named(string(f.Metadata.Name), string(f.Metadata.Version), at("metadata", "name"), at("metadata", "version"))
	a.Description, a.Domain = firstOf(f.Spec.Description, f.Spec.Name), f.Spec.Domain
	a.Priority = a.oneOf("priority", f.Spec.Priority, at("spec", "priority"), Priorities...)
	a.GoodAt = slices.Concat(f.Capabilities.Primary, f.Capabilities.Secondary)
	a.places = map[string]string{"tools": at("security", "capabilities_required")}
	a.capable(f.Security.Capabilities, at("security", "capabilities_required"))
	a.Requires = a.tokaNeeds(root, "required", at)
	a.Optional = a.tokaNeeds(root, "optional", at)
	a.resources(f.Security.Limits, nil, func(name string) string { return at("security", "resource_limits", name) })
	a.Tasks, a.Conditional, a.CompleteAt = f.Tasks.Default, f.Tasks.Conditional, tokaComplete
	for i, t := range a.Tasks {
		a.checkTask(t, at("tasks", "default", i))
	}
	for name, tasks := range a.Conditional {
		for i, t := range tasks {
			a.checkTask(t, at("tasks", "conditional", name, i))
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "You are the agent %q.", firstOf(f.Spec.Name, a.Name))
	if d := strings.TrimSpace(f.Spec.Description); d != "" {
		b.WriteString(" " + d)
	}
	if len(f.Objectives) > 0 {
		b.WriteString("\n\n## Objectives\n")
	}
	for _, o := range f.Objectives {
		b.WriteString("- " + o.Description + "\n")
		if o.Deliverable != "" {
			b.WriteString("  deliverable: " + o.Deliverable + "\n")
		}
		if o.Validation != "" {
			b.WriteString("  done when: " + o.Validation + "\n")
		}
	}
	a.tokaVerifier(&f, at)
	if others := a.tokaOthers(root); others != "" {
		b.WriteString("\n" + others)
	}
	a.Instructions = strings.TrimSpace(b.String())
}

// tokaVerifier makes what validates the objectives a check. It is prose: only an agent can
// say whether it holds, and without one nobody does.
func (a *Agent) tokaVerifier(f *tokaFile, at func(...any) string) {
	var b strings.Builder
	for _, o := range f.Objectives {
		if o.Validation != "" {
			fmt.Fprintf(&b, "- %s: %s\n", o.Description, o.Validation)
		}
	}
	v := f.Verifier
	if v == nil {
		if b.Len() > 0 {
			a.find(Note, CodeNotTaken, at("objectives"), "verifier: judge has an agent judge it", "the validation of the objectives is told to the model, and nobody checks it")
		}
		return
	}
	a.judge(v.Agent, "the verifier", at("verifier"))
	k := belay.Check{ID: "verifier", Kind: belay.CheckAgent, Agent: v.Agent, Prompt: short(firstOf(v.Prompt, b.String()), maxValidation)}
	var err error
	if a.Gates, err = belay.CheckedAcceptance([]belay.Check{k}); err != nil {
		a.find(Error, CodeBadFile, at("verifier"), "verifier: judge", "the verifier can't be used: %v", err)
	}
}

// maxValidation bounds what the verifier is told of the objectives.
const maxValidation = 8 << 10

func firstOf(a, b string) string {
	if s := strings.TrimSpace(a); s != "" {
		return s
	}
	return strings.TrimSpace(b)
}

// resources reads limits by Toka's names. those are limits by ours.
func (a *Agent) resources(limits, those map[string]scalar, at func(name string) string) {
	for _, name := range sorted(limits) {
		text, where := limits[name], at(name)
		our, known := tokaLimits[name]
		switch {
		case !known && a.Format == Belay:
			a.find(Error, CodeUnknownKey, where, "the resources are "+strings.Join(sorted(tokaLimits), ", "), "there is no resource %s", short(name, 40))
		case !known:
			a.find(Warning, CodeUnknownKey, where, "the limits are "+strings.Join(sorted(tokaLimits), ", "), "there is no limit %s", short(name, 40))
		case our != "" && those[our] != "":
			a.find(Error, CodeBadLimit, where, "leave one of them out", "%s and limits.%s say the same", name, our)
		case our == "":
			a.find(Warning, CodeUnavailable, where, "take it out, or limit it outside of Belay", "nothing here can hold %s: it isn't limited", name)
		default:
			if err := a.limit(our, string(text)); err != nil {
				a.find(Error, CodeBadLimit, where, "such as "+limitSamples[our], "%v", err)
			}
		}
	}
}

// tokaNeeds reads dependencies in each of the forms that they have: an object of names
// with reasons, a list of such objects, a list of names, a list of objects with name.
func (a *Agent) tokaNeeds(root ast.Node, kind string, at func(...any) string) (all []Need) {
	n := strictyaml.At(root, "dependencies", kind)
	if n == nil {
		return nil
	}
	v, err := strictyaml.Value(n)
	if err != nil {
		a.bad(err)
		return nil
	}
	add := func(name, reason string, where string) {
		need, ok := a.need(name, reason, where)
		if !ok {
			return
		}
		if all = append(all, need); kind == "required" {
			a.names = append(a.names, named{"", need.String(), where})
		}
	}
	object := func(m map[string]any, where string) {
		if name, ok := m["name"].(string); ok {
			reason, _ := m["description"].(string)
			add(name, reason, where)
			return
		}
		for _, name := range sorted(m) {
			reason, _ := m[name].(string)
			add(name, reason, where)
		}
	}
	switch v := v.(type) {
	case nil:
	case map[string]any:
		for _, name := range sorted(v) {
			reason, _ := v[name].(string)
			add(name, reason, at("dependencies", kind, name))
		}
	case []any:
		for i, x := range v {
			where := at("dependencies", kind, i)
			switch x := x.(type) {
			case string:
				add(x, "", where)
			case map[string]any:
				object(x, where)
			default:
				a.find(Error, CodeBadFile, where, "NAME: REASON", "this names no agent")
			}
		}
	default:
		a.find(Error, CodeBadFile, at("dependencies", kind), "NAME: REASON", "want an object or a list here")
	}
	return all
}

// tokaOthers are the sections that aren't read, as they stand.
func (a *Agent) tokaOthers(root ast.Node) string {
	m, ok := root.(*ast.MappingNode)
	if !ok {
		return ""
	}
	var b strings.Builder
	left := 0
	for _, v := range m.Values {
		name := v.Key.GetToken().Value
		if slices.Contains(tokaSections, name) {
			continue
		}
		if !slices.Contains([]string{"reporting", "behavioral_directives", "risk_mitigation", "success_criteria"}, name) {
			a.Unknown = append(a.Unknown, short(name, 80))
		}
		text := v.String() + "\n"
		if b.Len()+len(text) > maxSections {
			left++
			continue
		}
		b.WriteString(text)
	}
	if left > 0 {
		a.find(Warning, CodeTooMany, "", "shorten them", "%d sections go beyond %d KiB and are left out of the instructions", left, maxSections>>10)
	}
	return b.String()
}
