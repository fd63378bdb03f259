package collector

import (
	"runtime"
	"runtime/metrics"
	"testing"
	"time"
)

// now is what the runtime goes by.
func now() int {
	percent := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(percent)
	return int(percent[0].Value.Uint64())
}

// needsNoGOGC fails a test that would look at nothing.
func needsNoGOGC(t *testing.T) {
	t.Helper()
	if fixed() {
		t.Fatal("unset GOGC: it holds against everything here")
	}
}

// While there is a crowd more garbage may lie about, of several crowds until the
// last is gone; a heap of that size is collected as usual.
func TestACrowdWidens(t *testing.T) {
	needsNoGOGC(t)
	runtime.GC()
	one := Widen()
	if got := now(); got <= 2*usualPercent {
		t.Errorf("a crowd is there, with %d bytes in use, and garbage is collected at %d%%", inUse(), got)
	}
	other := Widen()
	one()
	one()
	if got := now(); got <= 2*usualPercent {
		t.Errorf("one of two crowds is gone, and garbage is collected at %d%%", got)
	}
	other()
	if got := now(); got != usualPercent {
		t.Errorf("the crowd is gone, and garbage is collected at %d%%", got)
	}
	heap := make([]byte, wide*100/usualPercent)
	runtime.GC()
	defer Widen()()
	if got := now(); got != usualPercent {
		t.Errorf("%d bytes are in use, and garbage is collected at %d%%", inUse(), got)
	}
	runtime.KeepAlive(heap)
}

// What lies about is collected once, and then as usual: a crowd whose heap grows
// doesn't let it grow by its percentage.
func TestACollectionEndsTheWidening(t *testing.T) {
	needsNoGOGC(t)
	runtime.GC()
	defer Widen()()
	runtime.GC()
	for late := time.Now().Add(20 * time.Second); now() != usualPercent; runtime.Gosched() {
		if time.Now().After(late) {
			t.Fatalf("garbage is still collected at %d%%", now())
		}
	}
}

// The first collection comes late and calls what it was given, as do some after it.
func TestTheFirstCollectionIsLate(t *testing.T) {
	needsNoGOGC(t)
	calls := make(chan struct{}, 100)
	Late(func() { calls <- struct{}{} })
	if got := now(); got != firstPercent {
		t.Errorf("garbage is collected at %d%%", got)
	}
	for n, late := 0, time.Now().Add(20*time.Second); n < forgotten; {
		runtime.GC() // more than once, if it came before the next was waited for
		select {
		case <-calls:
			n++
		default:
			if time.Now().After(late) {
				t.Fatalf("%d collections called, of %d", n, forgotten)
			}
		}
	}
	if now() != usualPercent || room.Load() == nil {
		t.Errorf("afterwards garbage is collected at %d%%, headroom %v", now(), room.Load() != nil)
	}
	runtime.GC()
	runtime.GC()
	select {
	case <-calls:
		t.Error("it is called for ever")
	default:
	}
}

// Who has grown has no headroom, and gives nothing back after collections.
func TestWhoHasGrownIsLeftAlone(t *testing.T) {
	needsNoGOGC(t)
	heap := make([]byte, small+1)
	calls := make(chan struct{}, 100)
	Late(func() { calls <- struct{}{} })
	for late := time.Now().Add(20 * time.Second); room.Load() != nil; runtime.GC() {
		if time.Now().After(late) {
			t.Fatalf("there is headroom, with %d bytes in use", inUse())
		}
	}
	runtime.GC()
	runtime.KeepAlive(heap)
	if got := now(); got != usualPercent || len(calls) > 0 || room.Load() != nil {
		t.Errorf("afterwards garbage is collected at %d%%, it was called %d times, headroom %v", got, len(calls), room.Load() != nil)
	}
}
