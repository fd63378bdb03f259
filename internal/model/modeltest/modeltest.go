// Package modeltest holds the laws of model providers. A provider passes them
// when it can be staged: made to meet a far end that says what a Scene asks.
package modeltest

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/model"
)

// Scene is what the far end says to the next requests: reasoning, text, calls,
// usage and stop, in this order, or a part of that and a failure.
type Scene struct {
	Reasoning string
	Text      string
	Parts     int // pieces the text is sent in; 0 is one
	Calls     []model.Call
	Usage     *belay.Usage
	Stop      string

	// Instead of calls, usage and stop:
	Fail string // class of an error
	Cut  bool   // the stream breaks off
	Hang bool   // nothing more comes, and the stream stays open

	RetryAfter time.Duration // with Fail rate_limited
}

// Config says how a provider is staged.
type Config struct {
	// Stage returns a provider and a request that the scene answers, however
	// often it is asked. What it starts it ends in t.Cleanup.
	Stage func(t *testing.T, s Scene) (model.Provider, model.Request)
	// Fails lists the classes that the far end can be made to fail with; nil is all.
	Fails []string
	// Objects says that the protocol has the arguments of calls as objects: the
	// far end can't send what is none.
	Objects bool
	// Bound is how long a provider may take to notice that nobody listens; 10 s
	// if zero. It tells stopping from not stopping, and times nothing.
	Bound time.Duration
}

// Classes lists every class of a provider's errors.
var Classes = []string{"transient", "rate_limited", "overflow", "bad_request", "auth", "refused", "internal"}

// Run holds a provider to every law.
func Run(t *testing.T, c Config) {
	for _, l := range laws {
		t.Run(l.name, func(t *testing.T) {
			if err := hold(t, l, c); err != nil {
				t.Error(err)
			}
		})
	}
}

// hold checks one law, and that nothing is left running after it.
func hold(t *testing.T, l law, c Config) error {
	if c.Bound == 0 {
		c.Bound = 10 * time.Second
	}
	before := goleak.IgnoreCurrent()
	var broken error
	t.Run("staged", func(t *testing.T) { broken = l.check(t, c) })
	if broken != nil {
		return broken
	}
	return goleak.Find(before)
}

// heard is a stream as a consumer sees it.
type heard struct {
	chunks []model.Chunk
	err    error
}

func (h heard) text() string {
	var s string
	for _, c := range h.chunks {
		s += c.Text
	}
	return s
}

func (h heard) calls() []model.Call {
	var calls []model.Call
	for _, c := range h.chunks {
		if c.Call != nil {
			calls = append(calls, *c.Call)
		}
	}
	return calls
}

func (h heard) stops() int {
	n := 0
	for _, c := range h.chunks {
		if c.Stop != "" {
			n++
		}
	}
	return n
}

// listen reads a stream to its end.
func listen(ctx context.Context, p model.Provider, r model.Request) heard {
	var h heard
	for c, err := range p.Stream(ctx, r) {
		if err != nil {
			h.err = err
			continue // what comes after an error is heard too, so that a law can object
		}
		h.chunks = append(h.chunks, c)
	}
	return h
}

// soon runs f and reports whether it returned within the bound.
func soon(bound time.Duration, f func()) bool {
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	t := time.NewTimer(bound)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}
