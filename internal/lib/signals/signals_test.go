package signals

import (
	"context"
	"os"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestASignalThatComesTwiceIsOne: as who signals a program and its group sends it. Another
// signal, and the same a while later, are heard.
func TestASignalThatComesTwiceIsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		heard, got := make(chan os.Signal, 8), make(chan os.Signal, 8)
		go pass(ctx, heard, got)
		for _, s := range []struct {
			sig   os.Signal
			after time.Duration
		}{
			{syscall.SIGINT, 0}, {syscall.SIGINT, time.Millisecond}, {syscall.SIGINT, 400 * time.Millisecond}, // one
			{syscall.SIGTERM, 0}, {syscall.SIGTERM, 20 * time.Millisecond}, // another
			{syscall.SIGINT, 200 * time.Millisecond}, {syscall.SIGINT, 100 * time.Millisecond}, // a second one
		} {
			time.Sleep(s.after)
			heard <- s.sig
			synctest.Wait()
		}
		end()
		synctest.Wait()
		close(got)
		if all := slices.Collect(func(yield func(os.Signal) bool) {
			for s := range got {
				if !yield(s) {
					return
				}
			}
		}); !slices.Equal(all, []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGINT}) {
			t.Errorf("heard %v", all)
		}
	})
}
