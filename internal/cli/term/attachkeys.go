package term

import (
	"context"
	"errors"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/belay-run/belay"
)

// The keys that detach, one after the other.
const (
	keyP = 'P' & 0x1f // Ctrl-P
	keyQ = 'Q' & 0x1f // Ctrl-Q
)

// detaching looks for the keys that detach in what is typed.
type detaching struct{ held bool } // Ctrl-P came, and what follows isn't known

// take returns what is the program's of some keys, and whether to detach.
func (d *detaching) take(keys []byte) (rest []byte, detach bool) {
	for _, k := range keys {
		switch {
		case d.held && k == keyQ:
			return rest, true
		case d.held && k == keyP: // the first one is the program's
			rest = append(rest, keyP)
		case k == keyP:
			d.held = true
		default:
			if d.held {
				rest = append(rest, keyP)
			}
			rest, d.held = append(rest, k), false
		}
	}
	return rest, false
}

// keys gives the program what is typed until ctx ends.
func (s *attachSession) keys(ctx context.Context, in *os.File, end context.CancelCauseFunc) {
	var d detaching
	err := s.each(ctx, in, func(keys []byte) error {
		detach := false
		if s.raw {
			keys, detach = d.take(keys)
		}
		if len(keys) > 0 {
			if _, err := s.t.Write(ctx, keys); err != nil && ctx.Err() == nil {
				s.say(Line(err.Error()))
			}
		}
		if detach {
			return ErrDetached
		}
		return nil
	})
	switch {
	case errors.Is(err, ErrDetached):
		end(err)
	case errors.Is(err, io.EOF) && (s.eof || s.env.IsTerminal(s.env.In)) && ctx.Err() == nil:
		if err := s.t.CloseInput(ctx); err != nil {
			s.say(Line(err.Error()))
		}
	}
}

// each hands over what comes from the standard input, until ctx ends: waiting for
// a key mustn't outlive it.
func (s *attachSession) each(ctx context.Context, in *os.File, give func([]byte) error) error {
	buf := make([]byte, 4<<10)
	if in == nil { // what is in memory is there at once
		for ctx.Err() == nil {
			n, err := s.env.In.Read(buf)
			if gerr := give(buf[:n]); gerr != nil || err != nil {
				return errors.Join(gerr, err)
			}
		}
		return ctx.Err()
	}
	woken, wake, err := os.Pipe()
	if err != nil {
		return belay.Errorf(belay.CodeInternal, "no pipe can be made").Wrap(err)
	}
	defer woken.Close()
	stop := context.AfterFunc(ctx, func() { wake.Close() })
	defer func() {
		if stop() {
			wake.Close()
		}
	}()
	fds := []unix.PollFd{{Fd: int32(in.Fd()), Events: unix.POLLIN}, {Fd: int32(woken.Fd()), Events: unix.POLLIN}}
	for {
		if _, err := unix.Poll(fds, -1); err != nil && !errors.Is(err, syscall.EINTR) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if fds[0].Revents == 0 {
			continue
		}
		n, err := in.Read(buf)
		if n > 0 {
			if err := give(buf[:n]); err != nil {
				return err
			}
		}
		if err != nil {
			return io.EOF
		}
	}
}
