package server

import (
	"context"
	"errors"
	"github.com/belay-run/belay/internal/app"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestRetentionComesCalmly: first when the server has started long since, then once
// an hour; sooner only where a round had no room for all. What fails is tried again
// in the next round, and nothing is logged of a round that found nothing.
// Guarantee: S53.
func TestRetentionComesCalmly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		begun, rounds := time.Now(), []time.Duration(nil)
		tells := []app.Retained{{}, {Outputs: 2, Contents: 1, Bytes: 7, More: true}, {Contents: 1}, {}}
		house := TenantConfig{Retain: func(context.Context) (app.Retained, error) {
			rounds = append(rounds, time.Since(begun))
			n := len(rounds)
			if n > len(tells) {
				return app.Retained{}, errors.New("the disk is full")
			}
			return tells[n-1], nil
		}}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			(&tenant{config: house, log: slog.New(slog.NewTextHandler(&log, nil))}).retain(ctx)
		}()
		time.Sleep(retainFirst + 3*retainEvery + retainMore + time.Second)
		stop()
		<-ended
		want := []time.Duration{retainFirst, retainFirst + retainEvery, retainFirst + retainEvery + retainMore,
			retainFirst + 2*retainEvery + retainMore, retainFirst + 3*retainEvery + retainMore}
		if len(rounds) != len(want) {
			t.Fatalf("rounds at %v, want %v", rounds, want)
		}
		for i := range want {
			if rounds[i] != want[i] {
				t.Errorf("round %d at %s, want %s", i+1, rounds[i], want[i])
			}
		}
		for said, times := range map[string]int{"outputs=2 contents=1 bytes=7": 1, "outputs=0 contents=1": 1, "the disk is full": 1, "msg=retention": 3} {
			if strings.Count(log.String(), said) != times {
				t.Errorf("%q isn't there %d times:\n%s", said, times, log.String())
			}
		}
	})
}

// TestWhereNothingIsRetainedNothingWaits: a house without retention has no goroutine.
func TestWhereNothingIsRetainedNothingWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		(&tenant{}).retain(t.Context())
		if time.Since(begun) != 0 {
			t.Errorf("it took %s", time.Since(begun))
		}
	})
}
