// Command belay runs agents: every step a durable fact, every action governed.
package main

import (
	"context"
	"os"

	"github.com/belay-run/belay/internal/cli"
	"github.com/belay-run/belay/internal/collector"
	"github.com/belay-run/belay/internal/pages"
	"github.com/belay-run/belay/internal/sandbox"
)

func main() {
	sandbox.Main()
	pages.Deepen()
	collector.Late(pages.Forget)
	sys := cli.Process()
	sys.Forget = pages.Forget
	exit := cli.Main(context.Background(), os.Args[1:], sys)
	sandbox.Settle()
	os.Exit(exit)
}
