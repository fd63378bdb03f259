// Command belay runs agents: every step a durable fact, every action governed.
package main

import (
	"context"
	"os"
	"runtime"

	"github.com/belay-run/belay/internal/cli"
	"github.com/belay-run/belay/internal/sandbox"
)

// headroom counts for the garbage collector as memory in use, and takes none,
// because it is never written. A small process so collects after some 9 MiB
// instead of after 4: a collection in the middle of a step is what the slowest
// steps wait for. For a large process it makes no difference.
const headroom = 2 << 20

func main() {
	sandbox.Main()
	room := make([]byte, headroom)
	exit := cli.Main(context.Background(), os.Args[1:], cli.Process())
	runtime.KeepAlive(room)
	sandbox.Settle()
	os.Exit(exit)
}
