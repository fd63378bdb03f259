// Command belay runs agents: every step a durable fact, every action governed.
package main

import (
	"context"
	"os"

	"github.com/belay-run/belay/internal/cli"
	"github.com/belay-run/belay/internal/sandbox"
)

func main() {
	sandbox.Main()
	exit := cli.Main(context.Background(), os.Args[1:], cli.Process())
	sandbox.Cleanup()
	os.Exit(exit)
}
