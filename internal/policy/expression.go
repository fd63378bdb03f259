package policy

import (
	"errors"
	"fmt"

	typing "cel.dev/cel-go/checker"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/containers"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/decls"
	"cel.dev/cel-go/common/env"
	"cel.dev/cel-go/common/functions"
	"cel.dev/cel-go/common/stdlib"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"
	"cel.dev/cel-go/parser"
)

// language is CEL with its standard library and the names that rules can use. It
// is put together from the library's parts: the library's front door brings
// descriptors of protocol buffers, whose beginning every start would pay for.
type language struct {
	parser *parser.Parser
	types  *typing.Env
	values *types.Registry
	make   interpreter.Interpreter
}

func newLanguage(names ...*decls.VariableDecl) (*language, error) {
	l := &language{}
	var err error
	if l.values, err = types.NewRegistry(); err != nil {
		return nil, err
	}
	l.parser, err = parser.NewParser(parser.Macros(macros...), parser.MaxRecursionDepth(maxDepth), parser.ExpressionSizeCodePointLimit(maxText))
	if err != nil {
		return nil, err
	}
	funcs := stdlib.Functions()
	l.types, err = typing.NewEnv(containers.DefaultContainer, l.values, typing.Catalog(func() *env.Catalog { return known(names, funcs) }))
	if err != nil {
		return nil, err
	}
	if err := errors.Join(l.types.AddIdents(names...), l.types.AddFunctions(funcs...)); err != nil {
		return nil, err
	}
	var bindings []*functions.Overload
	for _, f := range funcs {
		b, err := f.Bindings()
		if err != nil {
			return nil, err
		}
		bindings = append(bindings, b...)
	}
	calls := interpreter.NewDispatcher()
	if err := calls.Add(bindings...); err != nil {
		return nil, err
	}
	l.make = interpreter.NewInterpreter(calls, containers.DefaultContainer, l.values, l.values,
		interpreter.NewAttributeFactory(containers.DefaultContainer, l.values, l.values))
	return l, nil
}

// macros are those of the standard.
var macros = []parser.Macro{parser.HasMacro, parser.AllMacro, parser.ExistsMacro, parser.ExistsOneMacro, parser.MapMacro, parser.MapFilterMacro, parser.FilterMacro}

// known is what an unknown name is compared with, for the hint in its error.
func known(names []*decls.VariableDecl, funcs []*decls.FunctionDecl) *env.Catalog {
	c := env.NewCatalog()
	for _, v := range names {
		c.Add(&env.CatalogSymbol{Name: v.Name(), Kind: env.VariableKind})
	}
	for _, f := range funcs {
		c.Add(&env.CatalogSymbol{Name: f.Name(), Kind: env.FunctionKind})
	}
	for _, t := range stdlib.Types() {
		c.Add(&env.CatalogSymbol{Name: t.Name(), Kind: env.TypeKind})
	}
	for _, m := range macros {
		c.Add(&env.CatalogSymbol{Name: m.Function(), Kind: env.MacroKind})
	}
	return c
}

// read parses an expression and checks its types. The error says where a mistake
// is, with the line it is in.
func (l *language) read(text string) (*ast.AST, error) {
	source := common.NewTextSource(text)
	tree, mistakes := l.parser.Parse(source)
	if len(mistakes.GetErrors()) == 0 {
		tree, mistakes = typing.Check(tree, source, l.types)
	}
	if len(mistakes.GetErrors()) > 0 {
		return nil, errors.New(mistakes.ToDisplayString())
	}
	return tree, nil
}

// program is an expression that can be asked.
type program struct {
	root interpreter.InterpretableV2
}

// program makes an expression ready. One whose cost is counted gives no answer
// when it costs more than limit; 0 doesn't count.
func (l *language) program(tree *ast.AST, limit uint64) (*program, error) {
	options := []interpreter.PlannerOption{interpreter.Optimize(), interpreter.CompileRegexConstants(interpreter.MatchesRegexOptimization)}
	if limit > 0 {
		tracker, err := cost.NewTracker(nil, cost.TrackerLimit(limit), cost.TrackerLimitExceededHandler(func() {
			panic(interpreter.EvalCancelledError{Cause: interpreter.CostLimitExceeded, Message: "it costs too much"})
		}))
		if err != nil {
			return nil, err
		}
		options = append(options, interpreter.CostObserver(interpreter.CostTrackerFactory(tracker.Clone)))
	}
	root, err := l.make.NewInterpretable(tree, options...)
	if err != nil {
		return nil, err
	}
	return &program{root}, nil
}

// ask is the expression's value with these names, or why it has none.
func (p *program) ask(names interpreter.Activation) (value ref.Val, err error) {
	frame, err := interpreter.NewExecutionFrame(names)
	if err != nil {
		return nil, err
	}
	defer frame.Close()
	defer func() {
		if r := recover(); r != nil { // exceeding the cost limit is reported like this
			value, err = nil, fmt.Errorf("the expression gave up: %v", r)
		}
	}()
	if watched, ok := p.root.(*interpreter.ObservableInterpretable); ok {
		value = watched.ObserveExec(frame, func(any) {})
	} else {
		value = p.root.Exec(frame)
	}
	if types.IsError(value) {
		return nil, value.(*types.Err)
	}
	return value, nil
}
