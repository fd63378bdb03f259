package policy

import (
	"encoding/json"

	"cel.dev/cel-go/cel"

	"github.com/belay-run/belay"
)

// Bounds of an expression: what it may cost is counted while it runs, so one
// that loops over loops ends like one that fails.
const (
	maxCost  = 20_000
	maxDepth = 60
)

// conditions compiles expressions. What that needs is made with the first one:
// rules without expressions pay nothing for it.
type conditions struct {
	env  *cel.Env
	made map[string]*condition // by text: many rules have the same
}

// condition is an expression made ready.
type condition struct{ program cel.Program }

func (e *conditions) compile(text string) (*condition, *belay.Error) {
	if len(text) > maxText {
		return nil, bad("the expression has %d bytes; %d are the most", len(text), maxText)
	}
	if e.env == nil {
		list := cel.ListType(cel.StringType)
		env, err := cel.NewEnv(cel.ParserRecursionLimit(maxDepth), cel.ParserExpressionSizeLimit(maxText),
			cel.Variable("tool", cel.StringType), cel.Variable("args", cel.DynType), cel.Variable("mode", cel.StringType), cel.Variable("agent", cel.StringType),
			cel.Variable("workspace", cel.StringType), cel.Variable("level", cel.StringType), cel.Variable("paths", list), cel.Variable("hosts", list), cel.Variable("taint", list),
			cel.Variable("program", cel.StringType), cel.Variable("argv", list), cel.Variable("class", cel.StringType),
			cel.Variable("wrapped", list))
		if err != nil {
			return nil, bad("expressions can't be used: %v", err)
		}
		e.env, e.made = env, map[string]*condition{}
	}
	if c := e.made[text]; c != nil {
		return c, nil
	}
	ast, issues := e.env.Compile(text)
	if issues.Err() != nil {
		return nil, bad("the expression can't be read: %v", issues.Err()).WithHint("it is CEL; docs/policy.md lists what it can name")
	}
	if t := ast.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, bad("the expression says %s, not true or false", t)
	}
	program, err := e.env.Program(ast, cel.CostLimit(maxCost))
	if err != nil {
		return nil, bad("the expression can't be used: %v", err)
	}
	e.made[text] = &condition{program}
	return e.made[text], nil
}

// holds asks the expression about a call. ok is false when it gives no answer:
// something that it names isn't there, or it would take too long.
func (c *condition) holds(r *Request, sub *subject) (holds, ok bool) {
	if sub.vars == nil {
		sub.vars = &vars{r: r, sub: sub}
	}
	v, _, err := c.program.Eval(sub.vars)
	if err != nil {
		return false, false
	}
	holds, ok = v.Value().(bool)
	return holds, ok
}

// vars are the names that an expression can use. Each is made when the first one
// does, and kept for the others.
type vars struct {
	r     *Request
	sub   *subject
	args  any
	none  bool // there are no arguments
	paths []string
	taint []string
}

func (v *vars) Parent() cel.Activation { return nil }

func (v *vars) ResolveName(name string) (any, bool) {
	switch name {
	case "tool":
		return v.r.Tool.Name, true
	case "args":
		if v.args == nil && !v.none {
			v.none = len(v.r.Args) == 0 || json.Unmarshal(v.r.Args, &v.args) != nil
		}
		return v.args, !v.none
	case "mode":
		return string(v.r.Mode), true
	case "agent":
		return v.r.Agent, true
	case "workspace":
		return v.r.Workspace, true
	case "level":
		return v.r.Level, true
	case "paths":
		if v.paths == nil {
			v.paths = []string{}
			for _, p := range v.sub.paths {
				v.paths = append(v.paths, p.path)
			}
		}
		return v.paths, true
	case "hosts":
		return append([]string{}, v.sub.hosts...), true
	case "taint":
		if v.taint == nil {
			v.taint = []string{}
			for _, t := range v.r.Taint {
				v.taint = append(v.taint, t.Kind)
			}
		}
		return v.taint, true
	}
	return v.command(name)
}

// command are the names of a simple command; they are empty for other calls.
func (v *vars) command(name string) (any, bool) {
	c := v.sub.cmd
	if c == nil {
		c = &Command{}
	}
	switch name {
	case "program":
		return c.Name, true
	case "argv":
		return append([]string{}, c.Args...), true
	case "class":
		return string(c.Class), true
	case "wrapped":
		return append([]string{}, c.Wrapped...), true
	}
	return nil, false
}
