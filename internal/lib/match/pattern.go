package match

import (
	"regexp"
	"sync/atomic"
)

// Pattern is a regular expression that is compiled when it is first used. Any number of goroutines may use it.
type Pattern struct {
	expression string
	made       atomic.Pointer[regexp.Regexp]
}

// Lazy names an expression and doesn't look at it: a program that starts pays for
// none.
func Lazy(expression string) *Pattern { return &Pattern{expression: expression} }

// Get compiles the expression, once in a process; two that ask at the same
// moment may both do it. It panics if the expression is none.
func (p *Pattern) Get() *regexp.Regexp {
	re := p.made.Load()
	if re == nil {
		re = regexp.MustCompile(p.expression)
		p.made.Store(re)
	}
	return re
}
