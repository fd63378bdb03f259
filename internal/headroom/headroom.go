// Package headroom keeps the garbage collector from small steps: a process that
// is about to grow collects late for the first time. It promises to take no
// memory itself, and to be out of the way once the process has grown.
package headroom

import (
	"runtime"
	"runtime/metrics"
	"sync/atomic"
)

// Headroom counts for the collector as memory in use, and takes none, because it
// is never written. A crowd that comes to a small heap makes it grow many times
// over, and each time all of it would be looked through: with headroom a process
// collects for the first time after some 40 MiB. A heap that has grown is room
// enough by itself, and the headroom is let go.
type Headroom struct {
	room atomic.Pointer[[roomBytes]byte]
}

const (
	roomBytes = 16 << 20
	grown     = 32 << 20 // bytes in use besides, from which on it is let go
)

// collected is garbage from its beginning: its end is the next collection's.
type collected struct{ _ [32]byte }

// Take makes headroom.
func Take() *Headroom {
	h := &Headroom{}
	h.room.Store(new([roomBytes]byte))
	h.afterCollection()
	return h
}

func (h *Headroom) afterCollection() {
	runtime.AddCleanup(new(collected), func(h *Headroom) {
		if h.room.Load() == nil {
			return
		}
		if inUse() > roomBytes+grown {
			h.Release()
			return
		}
		h.afterCollection()
	}, h)
}

// Release lets it go. It may be called more than once.
func (h *Headroom) Release() { h.room.Store(nil) }

// inUse is what the last collection found in use, in bytes.
func inUse() uint64 {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	return live[0].Value.Uint64()
}
