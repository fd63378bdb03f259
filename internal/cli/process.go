package cli

import (
	"context"
	"os"
	"syscall"
	"time"

	xterm "golang.org/x/term"

	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/lib/signals"
)

// Process is what this process gets from the operating system. It takes over
// the signals that tell a program to stop, so it is called once.
func Process() command.Sys {
	sent := make(chan os.Signal, 4)
	signals.Notify(context.Background(), sent, os.Interrupt, syscall.SIGTERM)
	dir, err := os.Getwd()
	if err != nil {
		dir = "" // a directory that is gone is reported by what needs it
	}
	return command.Sys{Env: term.Env{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Environ: os.Environ(), Now: time.Now, Signals: sent, IsTerminal: isTerminal}, Dir: dir}
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && f != nil && xterm.IsTerminal(int(f.Fd()))
}
