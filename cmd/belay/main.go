// Command belay runs agents: every step a durable fact, every action governed.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/belay-run/belay/internal/cli"
)

func main() {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	dir, _ := os.Getwd() // a directory that is gone is reported by what needs it
	os.Exit(cli.Main(context.Background(), os.Args[1:], cli.Sys{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Env: os.Environ(), Dir: dir, Now: time.Now, Signals: signals, IsTerminal: isTerminal,
	}))
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && f != nil && term.IsTerminal(int(f.Fd()))
}
