// Package lazyregexp has regular expressions that are compiled when they are first
// used: a program that starts pays for none.
package lazyregexp

import (
	"regexp"
	"sync/atomic"
)

// Pattern is a regular expression. Any number of goroutines may use it.
type Pattern struct {
	text string
	made atomic.Pointer[regexp.Regexp]
}

// New names an expression and doesn't look at it.
func New(text string) *Pattern { return &Pattern{text: text} }

// Get compiles the expression, once in a process; two that ask at the same
// moment may both do it. It panics if the expression is none.
func (p *Pattern) Get() *regexp.Regexp {
	re := p.made.Load()
	if re == nil {
		re = regexp.MustCompile(p.text)
		p.made.Store(re)
	}
	return re
}
