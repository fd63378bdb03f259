package pages

import (
	"testing"
	"unsafe"
)

// TestADeepStackStaysWhereItIs: a stack that grows is moved, so what lies on it has
// another address afterwards. After Deepen a long chain of calls moves nothing.
func TestADeepStackStaysWhereItIs(t *testing.T) {
	moved := func(first func()) bool {
		answer := make(chan bool)
		go func() {
			first()
			var here byte
			before := uintptr(unsafe.Pointer(&here))
			chain(20)
			answer <- uintptr(unsafe.Pointer(&here)) != before
		}()
		return <-answer
	}
	if !moved(func() {}) {
		t.Error("a stack that nobody made deep didn't grow: this test shows nothing")
	}
	if moved(Deepen) {
		t.Error("it grew again")
	}
}

// chain is so many calls, of a KiB each.
//
//go:noinline
func chain(n int) byte {
	var frame [1 << 10]byte
	if n > 0 {
		frame[n] = chain(n - 1)
	}
	return frame[n/2]
}
