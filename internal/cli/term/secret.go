package term

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/files"
)

// ReadSecret reads one value: without echo from a terminal, else all of
// standard input but the end of its line. Of one that is longer than a value may
// be, a part is returned that is too long, too.
func (e *Env) ReadSecret(ctx context.Context, name string, longest int64) (string, error) {
	if e.In == nil {
		return "", belay.Errorf(belay.CodeUsage, "there is no standard input to read the value from").WithHint("belay secret set %s <FILE", name)
	}
	if f, ok := e.In.(*os.File); ok && e.IsTerminal(f) {
		return e.typeSecret(ctx, f, name)
	}
	b, err := io.ReadAll(io.LimitReader(e.In, longest+3))
	if err != nil {
		return "", belay.Errorf(belay.CodeUsage, "standard input can't be read: %s", files.Reason(err)).WithHint("belay secret set %s <FILE", name)
	}
	return string(bytes.TrimSuffix(bytes.TrimSuffix(b, []byte("\n")), []byte("\r"))), nil
}

// ErrInterrupted means that typing a secret was cancelled.
var ErrInterrupted = errors.New("interrupted at the terminal")

// typeSecret reads a line that the terminal doesn't show. An interrupt gives
// the terminal back as it was.
func (e *Env) typeSecret(ctx context.Context, f *os.File, name string) (string, error) {
	fd := int(f.Fd())
	was, err := term.GetState(fd)
	if err == nil { // before the prompt: who sees it may type at once
		err = noEcho(fd)
	}
	if err != nil {
		return "", belay.Errorf(belay.CodeUsage, "the terminal can't be asked: %s", files.Reason(err)).WithHint("belay secret set %s <FILE", name)
	}
	defer term.Restore(fd, was) //nolint:errcheck // there is nobody to tell
	fmt.Fprintf(e.Err, "value of %s (not shown): ", Line(name))
	type typed struct {
		value []byte
		err   error
	}
	got := make(chan typed, 1)
	go func() { // a read from a terminal can't be taken back: it ends with the process
		b, err := term.ReadPassword(fd)
		got <- typed{b, err}
	}()
	select {
	case t := <-got:
		fmt.Fprintln(e.Err)
		if t.err != nil {
			return "", belay.Errorf(belay.CodeUsage, "nothing was typed").WithHint("belay secret set %s <FILE", name)
		}
		return string(t.value), nil
	case <-e.Signals:
	case <-ctx.Done():
	}
	fmt.Fprintln(e.Err)
	return "", ErrInterrupted
}

// ReadLine asks for a line at the terminal. It reads no more than that line, so what is
// typed after it is there for who reads next.
func (e *Env) ReadLine(ctx context.Context, question string) (string, error) {
	fmt.Fprint(e.Err, question)
	type typed struct {
		text string
		err  error
	}
	got := make(chan typed, 1)
	go func() { // a read from a terminal can't be taken back: it ends with the process
		var line []byte
		one := make([]byte, 1)
		for {
			n, err := e.In.Read(one)
			if n > 0 && one[0] != '\n' {
				line = append(line, one[0])
			}
			if err != nil || n > 0 && one[0] == '\n' || len(line) > maxLine {
				got <- typed{strings.TrimSpace(string(line)), err}
				return
			}
		}
	}()
	select {
	case t := <-got:
		if t.err != nil && t.text == "" {
			return "", ErrInterrupted
		}
		return t.text, nil
	case <-e.Signals:
	case <-ctx.Done():
	}
	fmt.Fprintln(e.Err)
	return "", ErrInterrupted
}

// maxLine bounds a line that is typed, in bytes.
const maxLine = 1000
