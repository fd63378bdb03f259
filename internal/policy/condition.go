package policy

import (
	"encoding/json"
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"

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
type condition struct{ cel.Program }

func (e *conditions) compile(text string) (*condition, *belay.Error) {
	if len(text) > maxText {
		return nil, bad("the expression has %d bytes; %d are the most", len(text), maxText)
	}
	if e.env == nil {
		options := []cel.EnvOption{cel.ParserRecursionLimit(maxDepth), cel.ParserExpressionSizeLimit(maxText), cel.Variable("args", cel.DynType)}
		for _, v := range variables {
			options = append(options, cel.Variable(v.name, v.is))
		}
		env, err := cel.NewEnv(options...)
		if err != nil {
			return nil, bad("expressions can't be used: %v", err)
		}
		e.env, e.made = env, map[string]*condition{}
	}
	if c := e.made[text]; c != nil {
		return c, nil
	}
	tree, issues := e.env.Compile(text)
	if err := issues.Err(); err != nil {
		return nil, bad("the expression can't be read: %v", err).WithHint("it is CEL; docs/policy.md lists what it can name")
	}
	if t := tree.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, bad("the expression says %s, not true or false", t)
	}
	options := []cel.ProgramOption{cel.EvalOptions(cel.OptOptimize)}
	if !plain(tree.NativeRep().Expr()) {
		options = append(options, cel.CostLimit(maxCost))
	}
	p, err := e.env.Program(tree, options...)
	if err != nil {
		return nil, bad("the expression can't be used: %v", err)
	}
	e.made[text] = &condition{p}
	return e.made[text], nil
}

// plain reports whether an expression looks at each value a bounded number of
// times: it has no loop, makes no text and asks no regular expression. What it
// costs needn't be counted then, which is two thirds of the time of asking.
func plain(x ast.Expr) bool {
	ok := true
	ast.PreOrderVisit(x, ast.NewExprVisitor(func(x ast.Expr) {
		switch x.Kind() {
		case ast.LiteralKind, ast.IdentKind, ast.SelectKind, ast.ListKind:
		case ast.CallKind:
			ok = ok && plainCalls[x.AsCall().FunctionName()]
		default:
			ok = false
		}
	}))
	return ok
}

var plainCalls = map[string]bool{
	operators.LogicalAnd: true, operators.LogicalOr: true, operators.LogicalNot: true, operators.Conditional: true, operators.Equals: true, operators.NotEquals: true,
	operators.Less: true, operators.LessEquals: true, operators.Greater: true, operators.GreaterEquals: true, operators.In: true, operators.Index: true,
	"size": true, "startsWith": true, "endsWith": true, "contains": true,
}

// holds asks the expression about a call. ok is false when it gives no answer:
// something that it names isn't there, or it would take too long.
func (c *condition) holds(r *Request, sub *subject) (holds, ok bool) {
	if sub.vars == nil {
		sub.vars = map[string]any{}
		for _, v := range variables {
			sub.vars[v.name] = v.of(r, sub)
		}
		var args any // none where they can't be read
		if json.Unmarshal(sub.args.raw, &args) == nil {
			sub.vars["args"] = args
		}
	}
	v, _, err := c.Eval(sub.vars)
	if err != nil {
		return false, false
	}
	holds, ok = v.Value().(bool)
	return holds, ok
}

type variable struct {
	name string
	is   *cel.Type
	of   func(*Request, *subject) any
}

var textList = cel.ListType(cel.StringType)

// variables are the names that an expression can use besides the arguments, what
// they are and where it comes from. The names of a simple command are empty for
// other calls.
var variables = [...]variable{
	{"tool", cel.StringType, func(r *Request, _ *subject) any { return r.Tool.Name }},
	{"mode", cel.StringType, func(r *Request, _ *subject) any { return string(r.Mode) }},
	{"agent", cel.StringType, func(r *Request, _ *subject) any { return r.Agent }},
	{"workspace", cel.StringType, func(r *Request, _ *subject) any { return r.Workspace }},
	{"level", cel.StringType, func(r *Request, _ *subject) any { return r.Level }},
	{"paths", textList, func(_ *Request, sub *subject) any { return texts(sub.paths, func(a access) string { return a.path }) }},
	{"hosts", textList, func(_ *Request, sub *subject) any { return slices.Concat([]string{}, sub.hosts) }},
	{"taint", textList, func(r *Request, _ *subject) any { return texts(r.Taint, func(t Taint) string { return t.Kind }) }},
	{"program", cel.StringType, func(_ *Request, sub *subject) any { return sub.command().Name }},
	{"argv", textList, func(_ *Request, sub *subject) any { return slices.Concat([]string{}, sub.command().Args) }},
	{"class", cel.StringType, func(_ *Request, sub *subject) any { return string(sub.command().Class) }},
	{"wrapped", textList, func(_ *Request, sub *subject) any { return slices.Concat([]string{}, sub.command().Wrapped) }},
}

// command is the simple command, or an empty one.
func (sub *subject) command() *Command {
	if sub.cmd == nil {
		return &Command{}
	}
	return sub.cmd
}

// texts is a list of texts, never nil.
func texts[T any](list []T, text func(T) string) []string {
	out := make([]string, len(list))
	for i, x := range list {
		out[i] = text(x)
	}
	return out
}
