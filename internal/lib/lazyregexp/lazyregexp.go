// Package lazyregexp compiles regular expressions when they are first used, so
// that a program doesn't pay at its start for those that it doesn't need.
package lazyregexp

import (
	"regexp"
	"sync"
)

// Expr is a constant expression.
type Expr struct {
	Text string

	once sync.Once
	re   *regexp.Regexp
}

// Re is the compiled expression. A mistake in it is a panic.
func (e *Expr) Re() *regexp.Regexp {
	e.once.Do(func() { e.re = regexp.MustCompile(e.Text) })
	return e.re
}
