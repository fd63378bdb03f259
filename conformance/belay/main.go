// Command belay is the program with one format of scenarios more: it plays those
// of KeepUpGym (byoungd/keep-up) as they are.
package main

import (
	"context"
	"os"

	"github.com/belay-run/belay/conformance/gym"
	"github.com/belay-run/belay/internal/cli"
	"github.com/belay-run/belay/internal/eval"
	"github.com/belay-run/belay/internal/sandbox"
)

func main() {
	sandbox.Main()
	sys := cli.Process()
	sys.Formats = []eval.Format{gym.Read}
	exit := cli.Main(context.Background(), os.Args[1:], sys)
	sandbox.Cleanup()
	os.Exit(exit)
}
