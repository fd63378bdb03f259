package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/secret"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/testkit/memory"
)

// none performs nothing.
type none struct{ Performer }

func (none) Leftover() core.Effect { return nil }

func (none) Silence(core.Effect) time.Duration { return time.Minute }

func (none) GiveUp(core.Effect, bool, time.Duration, time.Time) []core.Fact { return nil }

func (none) Of(belay.SessionID, belay.StreamID) Performer { return none{} }

func (none) Recorded(context.Context, belay.StreamID, []event.Envelope) {}

func (none) Supply(core.Decider, belay.Ref, func() ([]byte, error)) bool { return false }

// An effect may hand in a fact in the very moment in which its drive has to
// leave. It waits for the append, and the drive for it: one must be told.
func TestPendingAppendFailsWhenTheDriveLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &drive{e: &Engine{c: Config{Now: time.Now}}, perf: none{}, running: map[string]*Run{}, reports: make(chan report)}
		run := &Run{v: v, key: "effect", cancel: func() {}}
		v.running[run.key] = run
		ack := make(chan error, 1)
		b := &batch{acks: []chan error{ack}}
		var told error
		v.wg.Go(func() {
			told = <-ack
			run.report(report{ended: true})
		})
		if err := v.leave(t.Context(), b, store.ErrStale); !errors.Is(err, store.ErrStale) || !errors.Is(told, store.ErrStale) {
			t.Errorf("the drive left with %v, the effect was told %v", err, told)
		}
	})
}

// TestOnlyARunIsHeard: what an effect reports after it was given up changes nothing, and
// least of all the run that performs the same work now.
// Guarantee: V24.
func TestOnlyARunIsHeard(t *testing.T) {
	d, _, err := NewDecider("thread/thr_1")
	if err != nil {
		t.Fatal(err)
	}
	v := &drive{e: &Engine{c: Config{Now: time.Now}}, stream: "thread/thr_1", perf: none{}, running: map[string]*Run{}, reports: make(chan report), streamState: streamState{d: d}}
	v.e.c.Secrets, v.e.c.Store = &secret.Scrubber{}, memory.Open(memory.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	v.wg.Add(2)
	first := v.newRun(ctx, "effect", core.Timer{}, cancel)
	v.running[first.key] = first
	v.giveUp(first)
	second := v.newRun(ctx, "effect", core.Timer{}, func() { t.Error("a predecessor cancelled it") })
	v.running[second.key] = second
	said := []core.Fact{{Data: event.RuntimeWarning{Message: "too late"}}}
	ack := make(chan error, 1)
	b := &batch{}
	for _, r := range []report{{facts: said}, {facts: said, ack: ack}, {facts: said, ended: true}} {
		r.run = first
		v.record(b, r)
	}
	if err := <-ack; !errors.Is(err, errGivenUp) {
		t.Errorf("it was told %v", err)
	}
	if len(b.events) > 0 || len(b.acks) > 0 || v.running["effect"] != second {
		t.Errorf("recorded %d facts, %d acks; the second run goes on: %t", len(b.events), len(b.acks), v.running["effect"] == second)
	}
	v.record(b, report{run: second, facts: said})
	if len(b.events) != 1 {
		t.Errorf("the second run reported a fact, and %d are recorded", len(b.events))
	}
}
