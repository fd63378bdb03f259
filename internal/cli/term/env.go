// Package term is the command line's side of a terminal: what a command gets to
// read and print with, how values are written for people and for programs, and
// what shows a session while it runs and asks the person in front of it.
//
// Text of a model, a tool or a file reaches a terminal only through Text, Line and
// Short, which write out everything that does something else than show itself.
package term

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/belay-run/belay/internal/process"
)

// Env is what a command reads from and prints to.
type Env struct {
	In         io.Reader // nil is closed
	Out        io.Writer // for the answer
	Err        io.Writer // for what is said beside it
	Environ    []string  // NAME=value
	Now        func() time.Time
	Signals    <-chan os.Signal      // interrupt and terminate; nil brings none
	IsTerminal func(stream any) bool // of one of the three streams; nil says no
	JSON       bool                  // prints JSON, one object in a line

	ScreenReader bool   // states are sentences, nothing is redrawn
	Plain        bool   // a line for each thing that happens; nothing is drawn over
	Verbose      bool   // shows what is of use to few
	Colour       string // auto, always, never; empty is auto
	StoreFlag    string // names the store in a command that is printed, when it was named here
}

// Interactive reports whether a person can be asked here.
func (e *Env) Interactive() bool {
	return !e.JSON && e.In != nil && e.IsTerminal != nil && e.IsTerminal(e.In) && e.IsTerminal(e.Err)
}

// Getenv is the value of a variable.
func (e *Env) Getenv(name string) string { return process.Getenv(e.Environ, name) }

// UntilSignal ends a context when the process gets a signal to stop. The
// function that it returns ends it, too, and waits.
func (e *Env) UntilSignal(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case sig := <-e.Signals:
			cancel(fmt.Errorf("signal: %s", sig))
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil); <-done }
}
