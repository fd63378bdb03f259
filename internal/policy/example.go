package policy

import (
	"cmp"
	"strings"

	"github.com/belay-run/belay"
)

// maxExamples bounds what a rule is tried on when it is loaded.
const maxExamples = 100

// try holds a rule against its examples. They are about the rule itself, not
// about the verdict that comes of all rules.
func (s *Set) try(c *rule) error {
	for _, list := range []struct {
		examples []Example
		want     bool
	}{{c.Examples.Match, true}, {c.Examples.NoMatch, false}} {
		for _, e := range list.examples {
			if c.meets(e) == list.want {
				continue
			}
			verb := "doesn't speak of its example"
			if !list.want {
				verb = "speaks of the example it must not match:"
			}
			return at(c.Rule, bad("it %s %s", verb, e.String()).WithHint("change the rule or the example"))
		}
	}
	return nil
}

// meets reports whether a rule speaks of an example: of a command line, whether it
// speaks of one of its commands, or for an allow of all of them.
func (c *rule) meets(e Example) bool {
	r := e.request(c)
	subjects := subjectsOf(&r)
	n := 0
	for i := range subjects {
		sub := &subjects[i]
		sub.widen(&r)
		if c.speaks(&r, sub) {
			n++
		}
	}
	return n == len(subjects) || n > 0 && c.Verdict != Allow
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
