// Package expr computes values from other values, by expressions in CEL. What an
// expression may cost is bounded, so that one that loops over loops ends with an error.
package expr

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"google.golang.org/protobuf/types/known/structpb"
)

// Bounds of an expression.
const (
	maxText  = 2 << 10
	maxDepth = 60
	maxCost  = 100_000
)

// TeamVariables are what expressions about the members of a team may name.
var TeamVariables = []string{"input", "members"}

// Expr is an expression that can be computed.
type Expr struct {
	p     cel.Program
	paths [][]string
}

// Compile reads an expression over some variables.
func Compile(text string, variables ...string) (*Expr, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("the expression has %d bytes; %d are the most", len(text), maxText)
	}
	options := []cel.EnvOption{cel.ParserRecursionLimit(maxDepth), cel.ParserExpressionSizeLimit(maxText)}
	for _, v := range variables {
		options = append(options, cel.Variable(v, cel.DynType))
	}
	env, err := cel.NewEnv(options...)
	if err != nil {
		return nil, err
	}
	tree, issues := env.Compile(text)
	if err := issues.Err(); err != nil {
		return nil, fmt.Errorf("%s", strings.Join(strings.Fields(err.Error()), " "))
	}
	e := &Expr{}
	ast.PreOrderVisit(tree.NativeRep().Expr(), ast.NewExprVisitor(func(x ast.Expr) {
		if path := selected(x); path != nil {
			e.paths = append(e.paths, path)
		}
	}))
	e.p, err = env.Program(tree, cel.CostLimit(maxCost))
	return e, err
}

// selected is the way of fields that an expression takes from a variable; nil: it is none.
func selected(x ast.Expr) []string {
	switch x.Kind() {
	case ast.IdentKind:
		return []string{x.AsIdent()}
	case ast.SelectKind:
		if way := selected(x.AsSelect().Operand()); way != nil {
			return append(slices.Clone(way), x.AsSelect().FieldName())
		}
	}
	return nil
}

// Paths are the ways of fields that the expression takes from variables, the longest of
// each and its beginnings.
func (e *Expr) Paths() [][]string { return e.paths }

// Eval computes the value, as JSON.
func (e *Expr) Eval(values map[string]any) (json.RawMessage, error) {
	v, _, err := e.p.Eval(values)
	if err != nil {
		return nil, err
	}
	native, err := v.ConvertToNative(jsonType)
	if err != nil {
		return nil, fmt.Errorf("the value can't be written as JSON: %w", err)
	}
	return native.(*structpb.Value).MarshalJSON()
}

var jsonType = reflect.TypeFor[*structpb.Value]()
