// Command belay runs agents: every step a durable fact, every action governed.
package main

import (
	"context"
	"os"

	"github.com/belay-run/belay/internal/cli"
)

func main() { os.Exit(cli.Main(context.Background(), os.Args[1:], cli.Process())) }
