// Command belay runs agents: every step a durable fact, every action governed.
package main

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"sync/atomic"

	"github.com/belay-run/belay/internal/cli"
	"github.com/belay-run/belay/internal/pages"
	"github.com/belay-run/belay/internal/sandbox"
)

// headroom counts for the garbage collector as memory in use, and takes none,
// because it is never written. A small process so collects after some 9 MiB
// instead of after 4: a collection in the middle of a step is what the slowest
// steps wait for. For a large process it makes no difference.
const headroom = 2 << 20

// firstPercent lets a start come to its end before the first collection, at
// 8 MiB instead of 4: what it allocates stays in use anyway.
const firstPercent = 200

// forgotten is after how many collections pages of the program's file are given
// back. A collection looks at types and at the tables of stacks, which steps
// don't need; a process that collects often needs them all the time.
const forgotten = 8

func main() {
	sandbox.Main()
	pages.Deepen()
	collectLater()
	sys := cli.Process()
	sys.Forget = pages.Forget
	exit := cli.Main(context.Background(), os.Args[1:], sys)
	sandbox.Settle()
	os.Exit(exit)
}

// collectLater says when garbage is collected: late for the first time, and
// from then on as usual, with the headroom. What somebody sets by GOGC holds.
func collectLater() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(firstPercent)
	afterCollection(1)
}

// afterCollection goes on after the next collection, which is the n-th.
func afterCollection(n int) {
	runtime.AddCleanup(new(collected), func(n int) {
		if n == 1 {
			room.Store(new([headroom]byte))
			debug.SetGCPercent(100)
		}
		pages.Forget()
		if n < forgotten {
			afterCollection(n + 1)
		}
	}, n)
}

// collected is garbage from its beginning: its end is the next collection's.
type collected struct{ _ [32]byte }

// room is the headroom.
var room atomic.Pointer[[headroom]byte]
