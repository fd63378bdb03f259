package rulefile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/belay-run/belay/internal/lib/match"
	"github.com/belay-run/belay/internal/policy"
)

// Write is rules as a file that can be pasted: reading it gives the same rules
// again, but for tier and place, which are the file's.
func Write(rules []policy.Rule) string {
	var b strings.Builder
	fmt.Fprintf(&b, "version: %d\nrules:\n", policy.FormatVersion)
	b.WriteString(WriteRules(rules))
	return b.String()
}

// WriteRules is Write without the head: the entries of a file's list of rules.
func WriteRules(rules []policy.Rule) string {
	var b strings.Builder
	for i := range rules {
		writeRule(&b, &rules[i])
	}
	return b.String()
}

func writeRule(b *strings.Builder, r *policy.Rule) {
	fmt.Fprintf(b, "  - id: %s\n", scalar(r.ID))
	if r.Priority != 0 {
		fmt.Fprintf(b, "    priority: %d\n", r.Priority)
	}
	fmt.Fprintf(b, "    verdict: %s\n", r.Verdict)
	for _, f := range []struct{ name, value string }{{"reason", r.Reason}, {"code", r.Code}, {"hint", r.Hint}, {"boundary", r.Boundary}, {"degrade", string(r.Degrade)}} {
		if f.value != "" {
			fmt.Fprintf(b, "    %s: %s\n", f.name, scalar(f.value))
		}
	}
	if len(r.Tags) > 0 {
		fmt.Fprintf(b, "    tags: %s\n", list(r.Tags))
	}
	if when := whenOf(&r.Match); when != "{}" {
		fmt.Fprintf(b, "    when: %s\n", when)
	}
	writeExamples(b, "examples", r.Examples.Match)
	writeExamples(b, "not_examples", r.Examples.NoMatch)
}

func writeExamples(b *strings.Builder, name string, examples []policy.Example) {
	if len(examples) == 0 {
		return
	}
	fmt.Fprintf(b, "    %s:\n", name)
	for i := range examples {
		e := &examples[i]
		m := flow{}
		m.text("tool", e.Tool)
		m.text("command", e.Command)
		m.text("path", e.Path)
		m.text("access", e.Access)
		m.text("host", e.Host)
		if len(e.Args) > 0 {
			m.raw("args", string(bytes.TrimSpace(e.Args)))
		}
		m.text("mode", string(e.Mode))
		m.text("agent", e.Agent)
		m.words("capability", e.Capability)
		m.words("taint", e.Taint)
		fmt.Fprintf(b, "      - %s\n", m.String())
	}
}

func whenOf(m *policy.Match) string {
	f := flow{}
	f.words("tool", m.Tool)
	f.words("not_tool", m.NotTool)
	f.words("does", m.Does)
	modes := make([]string, len(m.Mode))
	for i, mode := range m.Mode {
		modes[i] = string(mode)
	}
	f.words("mode", modes)
	f.words("agent", m.Agent)
	f.words("capability", m.Capability)
	f.words("effect", m.Effect)
	if len(m.Args) > 0 {
		args := make([]string, len(m.Args))
		for i := range m.Args {
			args[i] = argOf(&m.Args[i])
		}
		f.raw("args", "["+strings.Join(args, ", ")+"]")
	}
	if c := m.Command; c != nil {
		inner := flow{}
		inner.words("program", c.Program)
		inner.words("not_program", c.NotProgram)
		inner.words("subcommand", c.Subcommand)
		inner.words("class", c.Class)
		inner.words("prefix", c.Prefix)
		inner.text("matches", c.Matches)
		f.raw("command", inner.String())
	}
	if p := m.Path; p != nil {
		inner := flow{}
		inner.words("match", p.Match)
		inner.text("where", p.Where)
		inner.text("access", p.Access)
		f.raw("path", inner.String())
	}
	f.words("host", m.Host)
	f.words("taint", m.Taint)
	f.words("flow", m.Flow)
	f.text("level", m.Level)
	if m.Rerun {
		f.raw("rerun", "true")
	}
	f.text("if", m.If)
	return f.String()
}

func argOf(a *policy.ArgMatch) string {
	f := flow{}
	f.text("path", a.Path)
	for _, v := range []struct {
		name  string
		given bool
		value any
	}{{"equals", a.Equals != nil, a.Equals}, {"less", a.Less != nil, a.Less}, {"greater", a.Greater != nil, a.Greater}, {"exists", a.Exists != nil, a.Exists}} {
		if v.given {
			f.raw(v.name, encoded(v.value))
		}
	}
	f.text("contains", a.Contains)
	f.text("matches", a.Matches)
	return f.String()
}

// flow collects the entries of a mapping on one line.
type flow struct{ entries []string }

func (f *flow) raw(name, value string) { f.entries = append(f.entries, name+": "+value) }

func (f *flow) text(name, value string) {
	if value != "" {
		f.raw(name, scalar(value))
	}
}

func (f *flow) words(name string, values []string) {
	switch len(values) {
	case 0:
	case 1:
		f.raw(name, scalar(values[0]))
	default:
		f.raw(name, list(values))
	}
}

func (f *flow) String() string { return "{" + strings.Join(f.entries, ", ") + "}" }

func list(values []string) string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = scalar(v)
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// bare is what YAML reads as the same text without quotes, wherever it stands.
var bare = match.Lazy(`^[A-Za-z][A-Za-z0-9_./-]*$`)

// scalar is a text as YAML: JSON's form is one that both agree on.
func scalar(s string) string {
	switch strings.ToLower(s) {
	case "true", "false", "null", "yes", "no", "on", "off", "y", "n":
		return encoded(s)
	}
	if bare.Get().MatchString(s) {
		return s
	}
	return encoded(s)
}

func encoded(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return `""` // no value of a rule is one that JSON can't hold
	}
	return strings.TrimSpace(b.String())
}
