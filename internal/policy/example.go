package policy

import (
	"cmp"
	"strings"

	"github.com/belay-run/belay"
)

// maxExamples bounds what a rule is tried on when it is loaded.
const maxExamples = 100

// examples holds every rule against its examples. They are about the rule itself, not
// about the verdict that comes of all rules.
func (s *Set) examples() (out []ExampleResult) {
	for i := range s.rules {
		c := &s.rules[i]
		for _, e := range c.Examples.Match {
			out = append(out, ExampleResult{c.name, c.Where, e.String(), true, c.meets(e), c.Rule})
		}
		for _, e := range c.Examples.NoMatch {
			out = append(out, ExampleResult{c.name, c.Where, e.String(), false, c.meets(e), c.Rule})
		}
	}
	return out
}

// tried is an error if an example doesn't hold.
func (s *Set) tried() error {
	for _, e := range s.examples() {
		verb := "speaks of the example it must not match:"
		if e.Want {
			verb = "doesn't speak of its example"
		}
		if !e.OK() {
			return at(e.rule, bad("it %s %s", verb, e.Example).WithHint("change the rule or the example"))
		}
	}
	return nil
}

// meets reports whether a rule speaks of an example.
func (c *rule) meets(e Example) bool {
	r := e.request(c)
	subjects := subjectsOf(&r)
	for i := range subjects {
		subjects[i].widen(&r)
	}
	return c.speaks(&r, subjects)
}

// widen lets an example of an undeclared tool have whatever effects a rule asks
// for.
func (sub *subject) widen(r *Request) {
	if sub.cmd == nil && len(r.Tool.Capabilities) == 0 {
		sub.does = []string{"reads", "edits", "changes"}
	}
}

// request is the call that an example describes.
func (e *Example) request(c *rule) Request {
	name := e.Tool
	if name == "" && len(c.literal) > 0 {
		name = c.literal[0]
	}
	r := Request{Tool: belay.ToolSpec{Name: cmp.Or(name, "example"), Capabilities: e.Capability}, Args: e.Args, Mode: cmp.Or(e.Mode, belay.ModeDefault),
		Agent: e.Agent, Workspace: "/workspace", Level: "L0"}
	if len(c.Mode) > 0 && e.Mode == "" {
		r.Mode = c.Mode[0]
	}
	if len(c.Agent) > 0 && e.Agent == "" {
		r.Agent = strings.ReplaceAll(c.Agent[0], "*", "x")
	}
	if c.Level != "" {
		r.Level = c.Level
	}
	for _, k := range e.Taint {
		r.Taint = append(r.Taint, Taint{Kind: k})
	}
	if e.Path != "" {
		r.Paths, r.Tool.PathArg, r.Tool.Access = []string{e.Path}, "path", belay.Access(cmp.Or(e.Access, "read"))
		if c.Path != nil && c.Path.Access != "" && e.Access == "" {
			r.Tool.Access = belay.Access(c.Path.Access)
		}
	}
	if e.Host != "" {
		r.Tool.HostArg, r.Args = "host", []byte(`{"host":`+quoted(e.Host)+`}`)
	}
	if e.Command != "" {
		r.Tool.Command = &belay.CommandArgs{Line: "command"}
		r.Commands = commandsOf(e.Command, Place{Workspace: "/workspace", Home: "/home/user", Dialect: bash})
	}
	return r
}

// String is the example in a few words.
func (e *Example) String() string {
	var words []string
	for _, w := range []struct{ name, value string }{{"tool", e.Tool}, {"command", e.Command}, {"path", e.Path}, {"host", e.Host}, {"args", string(e.Args)}, {"mode", string(e.Mode)}} {
		if w.value != "" {
			words = append(words, w.name+" "+quoted(short(w.value)))
		}
	}
	return strings.Join(words, ", ")
}
