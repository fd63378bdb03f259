//go:build unix

package process

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"
)

// ErrNoInput means that a program can't be written to: it was started without
// that, its input was closed, or it has ended.
var ErrNoInput = errors.New("the program takes no input")

// ErrFull means that a program didn't read what it was given in time.
var ErrFull = errors.New("the program doesn't read its input")

// endOfText is what a person types to end the input of a terminal.
const endOfText = 4

// Write gives the program input, or types it on its terminal. It waits at most
// for patience until the program takes it. It returns how many bytes it took;
// fewer than all come with ErrFull, ErrNoInput or the system's error.
func (p *Process) Write(b []byte, patience time.Duration) (int, error) {
	if p.in == nil {
		return 0, ErrNoInput
	}
	if err := p.in.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return 0, told(err)
	}
	n, err := p.in.Write(b)
	return n, told(err)
}

// CloseInput tells the program that no more input comes. On a terminal that is
// the key for it, which a program may take otherwise.
func (p *Process) CloseInput() error {
	switch {
	case p.in == nil:
		return ErrNoInput
	case p.pty:
		_, err := p.Write([]byte{endOfText}, time.Second)
		return err
	}
	return told(p.in.Close())
}

// Resize changes the size of the program's terminal; the program hears of it.
// Without a terminal it is ErrNoInput.
func (p *Process) Resize(s Size) error {
	if !p.pty {
		return ErrNoInput
	}
	return told(resize(p.in, s))
}

// told converts an error of the program's input to one of this package.
func told(err error) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return ErrFull
	case errors.Is(err, os.ErrClosed), errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.EIO), errors.Is(err, io.ErrClosedPipe):
		return ErrNoInput
	}
	return err
}
