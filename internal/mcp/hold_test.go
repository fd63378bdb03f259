package mcp

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestAnExchangeLivesAsLongAsAnEffectHoldsIt: an exchange whose question was answered waits
// for as long as something holds it, and is cancelled a while after the last let go, unless
// an attempt took it over.
// Guarantee: T113.
func TestAnExchangeLivesAsLongAsAnEffectHoldsIt(t *testing.T) {
	for _, taken := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			n, cancelled := &connection{}, false
			x := &exchange{held: &question{}, holds: 1, cancel: func() { cancelled = true }}
			n.exchanges = []named{{"call", x}}
			x.holds++ // the person has answered, and what waits then holds it
			n.letGo(x)
			time.Sleep(2 * takeOver)
			if cancelled {
				t.Fatal("it was cancelled while something held it")
			}
			n.letGo(x)
			if taken {
				n.takeOver("call")
			}
			time.Sleep(2 * takeOver)
			synctest.Wait()
			if cancelled == taken {
				t.Errorf("an attempt took it over: %t; it was cancelled: %t", taken, cancelled)
			}
		})
	}
}
