// Package collector says when garbage is collected. It promises that a start
// comes to its end first, that a crowd isn't collected for over and over, and
// that what somebody sets by GOGC holds.
package collector

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
)

// headroom counts for the collector as memory in use of a small process, and
// takes none, because it is never written: it so collects after some 10 MiB
// instead of after 7. A collection in the middle of a step is what the slowest
// steps wait for. A process that has grown needs none.
const headroom = 2 << 20

// room is the headroom.
var room atomic.Pointer[[headroom]byte]

const (
	// firstPercent lets a start come to its end before the first collection, at
	// 9 MiB with the headroom instead of 4: what it allocates stays in use anyway.
	firstPercent = 225
	usualPercent = 75

	// forgotten is how many collections call what Late was given, at most.
	forgotten = 8

	// small is how much a process has in use, in bytes, that runs one session or
	// a few. With more of them what they need of the program's file is needed
	// again at once.
	small = 5 << 20

	// wide is how much garbage may lie about while there is a crowd, in bytes.
	// leastInUse is the least that it is a part of: the runtime's own minimum.
	wide       = 96 << 20
	leastInUse = 4 << 20
)

// percent is how much garbage, in parts of what is in use, makes a collection.
var percent = struct {
	sync.Mutex
	usual  int
	crowds int // that Widen was called for
}{usual: usualPercent}

// set tells the runtime. percent is locked.
func set() {
	p := percent.usual
	if percent.crowds > 0 {
		p = max(p, int(wide*100/max(inUse(), leastInUse)))
	}
	debug.SetGCPercent(p)
}

// fixed reports whether somebody has said when garbage is collected.
var fixed = sync.OnceValue(func() bool { return os.Getenv("GOGC") != "" })

// Late makes the first collection of a process come late, and the others as
// usual, with headroom. After each of the first few it calls after, while the
// process is small: a collection looks at types and at the tables of stacks,
// which steps don't need.
func Late(after func()) {
	if fixed() {
		return
	}
	room.Store(new([headroom]byte)) // now, so that the first collection counts it
	usually(firstPercent)
	afterCollection(1, after)
}

func usually(p int) {
	percent.Lock()
	defer percent.Unlock()
	percent.usual = p
	set()
}

// afterCollection continues after the next collection, which is the n-th.
func afterCollection(n int, after func()) {
	runtime.AddCleanup(new(collected), func(n int) {
		if n == 1 {
			usually(usualPercent)
		}
		if grown() {
			room.Store(nil)
			return
		}
		after()
		if n < forgotten {
			afterCollection(n+1, after)
		}
	}, n)
}

// grown reports whether the process isn't small.
func grown() bool {
	has := inUse()
	if room.Load() != nil {
		has -= min(has, headroom)
	}
	return has > small
}

// collected is garbage from its beginning: its end is the next collection's.
type collected struct{ _ [32]byte }

// Widen lets garbage lie about, up to 96 MiB, until the next collection or until
// narrow is called. A crowd that comes to a small heap makes it grow many times
// over, and each time all of it would be looked through. A heap of more than that
// is collected as usual.
func Widen() (narrow func()) {
	if fixed() {
		return func() {}
	}
	crowd(1)
	narrow = sync.OnceFunc(func() { crowd(-1) })
	runtime.AddCleanup(new(collected), func(narrow func()) { narrow() }, narrow)
	return narrow
}

func crowd(n int) {
	percent.Lock()
	defer percent.Unlock()
	if percent.crowds += n; percent.crowds == 0 || percent.crowds == n {
		set()
	}
}

// inUse is what the last collection found in use, in bytes.
func inUse() uint64 {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	return live[0].Value.Uint64()
}
