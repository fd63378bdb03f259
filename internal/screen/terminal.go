package screen

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/belay-run/belay"
)

// Terminal is a terminal that belongs to this program until Close: keys come one by
// one, pastes are marked, and changes of focus and size are told.
type Terminal struct {
	*Screen
	in, out   *os.File
	events    chan Event
	chunks    chan []byte // what was read; an empty one is the end of the input
	resized   chan struct{}
	signals   chan os.Signal
	continues chan struct{} // SIGCONT came
	end       context.CancelFunc
	done      sync.WaitGroup

	guardian *guardian // gives the terminal back if this process can't

	mu     sync.Mutex // held while the terminal's modes change
	cooked *term.State
	raw    *term.State // as Terminal has set it
	closed bool
	unread func() // ends reading; nil: nothing is read
}

// Pastes are marked, the focus is told.
const (
	modesOn  = "\x1b[?2004h\x1b[?1004h"
	modesOff = "\x1b[?2004l\x1b[?1004l" + wrapOn + showCursor + plainText
)

// Open takes over a terminal. The caller must defer Close.
func Open(in, out *os.File) (*Terminal, error) {
	cooked, err := term.GetState(int(in.Fd()))
	if err != nil {
		return nil, noTerminal(err)
	}
	guardian := newGuardian(in, out)
	ctx, end := context.WithCancel(context.Background())
	t := &Terminal{in: in, out: out, cooked: cooked, end: end,
		events: make(chan Event), chunks: make(chan []byte), resized: make(chan struct{}, 1), continues: make(chan struct{}, 1), signals: make(chan os.Signal, 8)}
	t.Screen = New(out, t.Size, modesOn, modesOff)
	signal.Notify(t.signals, syscall.SIGWINCH, syscall.SIGTSTP, syscall.SIGCONT, syscall.SIGTERM, syscall.SIGHUP)
	t.done.Go(func() { t.watch(ctx) })
	t.done.Go(func() {
		defer close(t.events)
		t.pump(ctx)
	})
	t.mu.Lock()
	t.guardian = guardian.ready()
	err = t.take()
	t.mu.Unlock()
	if err != nil {
		t.Close()
		return nil, noTerminal(err)
	}
	return t, nil
}

func noTerminal(err error) error {
	return belay.Errorf(belay.CodeUsage, "the terminal can't be set: %s", err).WithHint("--plain needs no terminal")
}

// Size returns how many columns and rows the terminal has; 80 × 24 if it doesn't say.
func (t *Terminal) Size() (width, height int) { return Size(t.out) }

// Size returns how many columns and rows a terminal has; 80 × 24 if it doesn't say.
func Size(out *os.File) (width, height int) {
	width, height, err := term.GetSize(int(out.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}

// Events brings what happens at the terminal. It is closed when there is no more input
// or the process is asked to end (SIGTERM, SIGHUP); the terminal is given back by then.
func (t *Terminal) Events() <-chan Event { return t.events }

// Release gives the terminal, as it was, to f and takes it again. The keys that are
// pressed meanwhile are for f.
func (t *Terminal) Release(f func() error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return f()
	}
	t.give()
	return errors.Join(f(), t.take())
}

// Stop stops the process and all others of its group, as Ctrl+Z does where no program
// reads the keys. It returns when the process continues.
func (t *Terminal) Stop() error {
	return t.Release(func() error { return t.stop(0) })
}

// stop stops processes, this one among them, and returns when it continues. The kernel
// may stop another thread first: without the wait this one would take the terminal and
// draw before it is stopped itself. SIGTSTP stays caught once it was.
func (t *Terminal) stop(pid int) error {
	select {
	case <-t.continues:
	default:
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return err
	}
	select {
	case <-t.continues:
	case <-time.After(time.Second): // the time passes while it is stopped, too
	}
	return nil
}

// Close gives the terminal back as it was, without the region. It may be called more
// than once.
func (t *Terminal) Close() {
	t.leave()
	t.done.Wait()
}

// Guard is deferred by each goroutine that works beside the one that has deferred
// Close: it gives the terminal back before a panic ends the process.
func (t *Terminal) Guard() {
	if r := recover(); r != nil {
		t.leave()
		panic(r)
	}
}

func (t *Terminal) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	t.closed = true
	signal.Stop(t.signals)
	t.give()
	t.Screen.Close()
	t.guardian.dismiss()
	t.end()
}

// give ends reading and gives the terminal back as it was.
func (t *Terminal) give() {
	if t.unread != nil {
		t.unread()
		t.unread = nil
	}
	t.Pause()
	term.Restore(int(t.in.Fd()), t.cooked) //nolint:errcheck // a terminal that is gone has no modes
}

// take makes the terminal raw and begins to read.
func (t *Terminal) take() (err error) {
	if _, err = term.MakeRaw(int(t.in.Fd())); err != nil {
		return err
	}
	if t.raw, err = term.GetState(int(t.in.Fd())); err != nil {
		return err
	}
	t.Resume()
	t.unread, err = read(t.in, t.chunks)
	return err
}

// pump makes events until the input ends.
func (t *Terminal) pump(ctx context.Context) {
	emit := func(e Event) {
		select {
		case t.events <- e:
		case <-ctx.Done():
		}
	}
	k := &keys{emit: emit}
	for {
		select {
		case chunk := <-t.chunks:
			if len(chunk) == 0 {
				k.decode(true)
				t.leave()
				return
			}
			k.take(chunk)
		case <-k.late():
			k.decode(true)
		case <-t.resized:
			width, height := t.Size()
			emit(Resize{Width: width, Height: height})
		case <-ctx.Done():
			return
		}
	}
}

// watch does what signals ask for.
func (t *Terminal) watch(ctx context.Context) {
	for {
		select {
		case sig := <-t.signals:
			switch sig {
			case syscall.SIGWINCH:
				t.Redraw()
				select {
				case t.resized <- struct{}{}:
				default:
				}
			case syscall.SIGTSTP:
				t.stopped()
			case syscall.SIGCONT:
				select {
				case t.continues <- struct{}{}:
				default:
				}
				t.continued()
			default:
				t.leave()
			}
		case <-ctx.Done():
			return
		}
	}
}

// stopped stops this process, as SIGTSTP would have. The terminal is given back
// before, if no other program has it already.
func (t *Terminal) stopped() {
	stop := func() error { return t.stop(syscall.Getpid()) }
	if !t.mu.TryLock() {
		stop() //nolint:errcheck // a process may send itself signals
		return
	}
	t.mu.Unlock()
	t.Release(stop) //nolint:errcheck // the next read tells that the terminal is gone
}

// continued takes the terminal again if a shell had it: the process was stopped by a
// signal that can't be caught.
func (t *Terminal) continued() {
	if !t.mu.TryLock() {
		return // Release is about to take it
	}
	defer t.mu.Unlock()
	now, err := term.GetState(int(t.in.Fd()))
	if err != nil || t.closed || t.raw == nil || *now == *t.raw {
		return
	}
	term.Restore(int(t.in.Fd()), t.raw) //nolint:errcheck // the next read tells that the terminal is gone
	t.takeBack()
}
