package match

import (
	"regexp"
	"sync/atomic"
)

// Made is a value that is made when it is first asked for, once in a process: a
// program that starts pays for none. Any number of goroutines may use it.
type Made[T any] struct{ value atomic.Pointer[T] }

// Get makes the value if nobody has; two that ask at the same moment may both do it.
func (m *Made[T]) Get(make func() *T) *T {
	v := m.value.Load()
	if v == nil {
		v = make()
		m.value.Store(v)
	}
	return v
}

// Pattern is a regular expression that is compiled when it is first used.
type Pattern struct {
	expression string
	made       Made[regexp.Regexp]
}

// Lazy names an expression and doesn't look at it.
func Lazy(expression string) *Pattern { return &Pattern{expression: expression} }

// Get compiles the expression. It panics if the expression is none.
func (p *Pattern) Get() *regexp.Regexp {
	return p.made.Get(func() *regexp.Regexp { return regexp.MustCompile(p.expression) })
}

// Match reports whether the expression is found in a text.
func (p *Pattern) Match(s string) bool { return p.Get().MatchString(s) }

// Variable is the name of a variable of an environment.
var Variable = Lazy(`^[A-Za-z_][A-Za-z0-9_]*$`)
