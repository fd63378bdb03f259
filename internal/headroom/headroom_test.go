package headroom

import (
	"runtime"
	"testing"
	"time"
)

// collectUntil collects until something holds, and tells whether it does.
func collectUntil(holds func() bool) bool {
	for late := time.Now().Add(20 * time.Second); !holds(); runtime.Gosched() {
		if time.Now().After(late) {
			return false
		}
		runtime.GC()
	}
	return true
}

// The headroom stays while the heap is small, and goes when it has grown.
func TestHeadroomGoesWhenTheHeapHasGrown(t *testing.T) {
	h := Take()
	for range 5 {
		runtime.GC()
	}
	if inUse() < roomBytes+grown && h.room.Load() == nil {
		t.Errorf("%d bytes are in use, and there is no headroom", inUse())
	}
	heap := make([]byte, roomBytes+grown)
	if !collectUntil(func() bool { return h.room.Load() == nil }) {
		t.Errorf("%d bytes are in use, and the headroom is still there", inUse())
	}
	runtime.KeepAlive(heap)
}

// What was let go comes no more.
func TestHeadroomIsReleasedOnce(t *testing.T) {
	h := Take()
	h.Release()
	for range 3 {
		runtime.GC()
	}
	if h.room.Load() != nil {
		t.Error("it is back")
	}
}
