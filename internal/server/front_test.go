package server

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A session that is about to run lets a crowd of commands pass, but no longer
// than a second, and not at all when there is none. Those that have waited go on
// one after the other.
// Guarantee: L12.
func TestACrowdGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFront()
		begun := time.Now()
		if f.pass(t.Context()); time.Since(begun) != 0 {
			t.Errorf("nobody is there, and it waited %s", time.Since(begun))
		}
		for range crowd - 1 {
			f.enter()
		}
		if f.pass(t.Context()); time.Since(begun) != 0 {
			t.Errorf("a few are there, and it waited %s", time.Since(begun))
		}
		f.enter()
		var passed atomic.Int32
		for range 3 {
			go func() { f.pass(context.Background()); passed.Add(1) }()
		}
		synctest.Wait()
		if passed.Load() != 0 {
			t.Error("it didn't wait for the crowd")
		}
		f.leave()
		synctest.Wait()
		if passed.Load() != 1 {
			t.Errorf("the crowd is gone, and %d go on at once", passed.Load())
		}
		time.Sleep(3 * apart)
		synctest.Wait()
		if passed.Load() != 3 {
			t.Errorf("the crowd is gone, and %d of 3 go on", passed.Load())
		}
		f.enter()
		begun = time.Now()
		for range 3 {
			go func() { f.pass(context.Background()); passed.Add(1) }()
		}
		if f.pass(t.Context()); time.Since(begun) < crowdPause || time.Since(begun) > crowdPause+3*apartIn {
			t.Errorf("a crowd that stays is waited for %s", time.Since(begun))
		}
		time.Sleep(3 * apartIn)
		synctest.Wait()
		if passed.Load() != 6 {
			t.Errorf("the crowd stays, and %d of 3 go on", passed.Load()-3)
		}
		begun = time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if f.pass(ctx); time.Since(begun) != 0 {
			t.Error("it waited although nobody wants it any more")
		}
		f.leave()
		opened := f.opening()
		if crowded, _ := f.is(); !crowded {
			t.Error("a stream that begins doesn't count")
		}
		opened()
		opened()
		if crowded, _ := f.is(); crowded {
			t.Error("a stream that has begun counts")
		}
		f.opening() // and has nothing to say
		time.Sleep(crowdPause)
		synctest.Wait()
		if crowded, _ := f.is(); crowded {
			t.Error("a stream that has nothing to say counts for ever")
		}
	})
}

// A view is folded when the crowd is gone, or after a second.
func TestAViewLetsACrowdPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFront()
		begun := time.Now()
		if f.calmed(t.Context()); time.Since(begun) != 0 {
			t.Errorf("nobody is there, and it waited %s", time.Since(begun))
		}
		for range crowd {
			f.enter()
		}
		time.AfterFunc(crowdPause/4, f.leave)
		if f.calmed(t.Context()); time.Since(begun) != crowdPause/4 {
			t.Errorf("the crowd was gone after %s, and it waited %s", crowdPause/4, time.Since(begun))
		}
		f.enter()
		begun = time.Now()
		if f.calmed(t.Context()); time.Since(begun) != crowdPause {
			t.Errorf("a crowd that stays is waited for %s", time.Since(begun))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		begun = time.Now()
		if f.calmed(ctx); time.Since(begun) != 0 {
			t.Error("it waited although nobody wants it any more")
		}
	})
}
