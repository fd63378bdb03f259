package term

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestFactsOfAStormAreShownInPortions: what changes all the time is looked at
// once in a while, what has changed after a pause at once, and the end doesn't
// wait.
func TestFactsOfAStormAreShownInPortions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := NewFollower(&Env{})
		u.live = &printer{}
		now := make(chan struct{})
		close(now)
		took := func(changed, ended <-chan struct{}) (time.Duration, bool) {
			began := time.Now()
			over := u.until(t.Context(), changed, nil, ended)
			return time.Since(began), over
		}
		if d, over := took(now, nil); d != portion || over {
			t.Errorf("facts that come one after the other are looked at after %s (the end: %t)", d, over)
		}
		later := make(chan struct{})
		time.AfterFunc(time.Second, func() { close(later) })
		if d, over := took(later, nil); d != time.Second || over {
			t.Errorf("a fact after a second is looked at after %s (the end: %t)", d, over)
		}
		if d, over := took(nil, now); d != 0 || !over {
			t.Errorf("the end comes after %s (%t)", d, over)
		}
	})
}
