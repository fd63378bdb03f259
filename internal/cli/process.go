package cli

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"
)

// Process is what this process gets from the operating system. It takes over
// the signals that tell a program to stop, so it is called once.
func Process() Sys {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	dir, err := os.Getwd()
	if err != nil {
		dir = "" // a directory that is gone is reported by what needs it
	}
	return Sys{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Env: os.Environ(), Dir: dir, Now: time.Now, Signals: signals, IsTerminal: isTerminal,
	}
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && f != nil && term.IsTerminal(int(f.Fd()))
}
