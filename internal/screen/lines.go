package screen

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/belay-run/belay/internal/lib/signals"
)

// Line is a line that was entered where keys don't come one by one. A line that ends in
// "\" continues in the next one; lines that were pasted together come as one.
type Line struct{ Text string }

// End says that the input has ended: no line comes any more.
type End struct{}

func (Line) event() {}
func (End) event()  {}

// pasteTime is how long a terminal takes at most between two lines of a paste. A person
// takes longer.
const pasteTime = 30 * time.Millisecond

// Lines is a conversation's place where the cursor can't be moved, or shouldn't: a pipe,
// a dumb terminal, one that is read aloud. Finished lines are written one after the
// other, and the terminal's own line editing gives what is entered.
type Lines struct {
	in       io.Reader
	out      io.Writer
	terminal bool
	size     func() (width, height int)
	events   chan Event
	chunks   chan []byte
	signals  chan os.Signal
	end      context.CancelFunc
	done     sync.WaitGroup

	mu     sync.Mutex
	unread func() // ends reading; nil: nothing is read
	prompt string // what is asked for at the end of what was written
	asked  bool   // the prompt stands there
}

// OpenLines begins to read lines. On a terminal those of a paste come as one line, a
// prompt is shown. The caller closes it. in of a terminal is an *os.File.
func OpenLines(in io.Reader, out io.Writer, terminal bool, size func() (width, height int)) (*Lines, error) {
	ctx, end := context.WithCancel(context.Background())
	l := &Lines{in: in, out: out, terminal: terminal, size: size, end: end,
		events: make(chan Event, 8), chunks: make(chan []byte), signals: make(chan os.Signal, 8)}
	signals.Notify(ctx, l.signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	if terminal {
		unread, err := read(in.(*os.File), l.chunks)
		if err != nil {
			end()
			return nil, noTerminal(err)
		}
		l.unread = unread
	} else {
		go l.read(ctx) // a read from a pipe can't be ended: it ends with the input, or with the process
	}
	l.done.Go(func() {
		defer close(l.events)
		l.pump(ctx)
	})
	return l, nil
}

// read sends what is read, and an empty chunk at its end.
func (l *Lines) read(ctx context.Context) {
	for {
		buf := make([]byte, 4<<10)
		n, err := l.in.Read(buf)
		for _, chunk := range [][]byte{buf[:n], nil} {
			if len(chunk) == 0 && err == nil {
				continue
			}
			select {
			case l.chunks <- chunk:
			case <-ctx.Done():
				return
			}
			if len(chunk) == 0 {
				return
			}
		}
	}
}

// pump makes events of what is read and of signals.
func (l *Lines) pump(ctx context.Context) {
	// emit sends an event, once the terminal has shown what it shows of it. Both in one, so
	// that no prompt is drawn between them.
	emit := func(e Event) {
		l.mu.Lock()
		switch e.(type) {
		case Line:
			l.asked = false // the terminal shows what was entered, and the line's end
		case Key:
			l.asked, l.prompt = l.terminal, "^C"
		}
		select {
		case l.events <- e:
			l.mu.Unlock()
			return
		default:
		}
		l.mu.Unlock()
		select {
		case l.events <- e:
		case <-ctx.Done():
		}
	}
	var buf []byte
	chunks := l.chunks
	for {
		var whole <-chan time.Time
		if n := len(buf); n > 0 && buf[n-1] == '\n' && !bytes.HasSuffix(buf, []byte("\\\n")) {
			whole = time.After(pasteTime)
		}
		select {
		case chunk := <-chunks:
			buf = append(buf, chunk...)
			if len(chunk) == 0 {
				chunks = nil
				l.lines(&buf, true, emit)
				emit(End{})
			} else if !l.terminal {
				l.lines(&buf, false, emit)
			}
		case <-whole:
			l.lines(&buf, true, emit)
		case sig := <-l.signals:
			if sig != syscall.SIGINT {
				return
			}
			buf = nil
			emit(Key{Name: "ctrl+c"})
		case <-ctx.Done():
			return
		}
	}
}

// lines emits what the buffer has: on a terminal all of it is one line, else each one is,
// and what isn't closed only if all is wanted.
func (l *Lines) lines(buf *[]byte, all bool, emit func(Event)) {
	for len(*buf) > 0 {
		n := len(*buf)
		if !l.terminal {
			n = lineEnd(*buf)
			if n < 0 && !all {
				return
			}
			if n < 0 {
				n = len(*buf)
			}
		}
		text := strings.NewReplacer("\r\n", "\n", "\\\n", "\n").Replace(strings.ToValidUTF8(string((*buf)[:n]), "\uFFFD"))
		*buf = (*buf)[n:]
		emit(Line{strings.TrimSuffix(text, "\n")})
	}
}

// lineEnd is where the first line ends that isn't continued; -1: none does.
func lineEnd(buf []byte) int {
	for at := 0; ; {
		i := bytes.IndexByte(buf[at:], '\n')
		if i < 0 {
			return -1
		}
		if at += i + 1; at < 2 || buf[at-2] != '\\' {
			return at
		}
	}
}

// Print writes lines.
func (l *Lines) Print(lines ...string) {
	if len(lines) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	text := strings.Join(lines, "\n") + "\n"
	if l.asked {
		text = "\n" + text
	}
	l.asked = false
	l.write(text)
}

// Draw asks for the next line, where a terminal does so: the region's last line is what
// it is asked for with. A region without lines asks for none. It does nothing while an
// event waits to be taken: the caller draws again after each.
func (l *Lines) Draw(r Region) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.events) > 0 {
		return
	}
	prompt := ""
	if n := len(r.Lines); n > 0 {
		prompt = r.Lines[n-1]
	}
	switch {
	case !l.terminal || prompt == l.prompt && l.asked:
	case l.asked && prompt == "":
		return // what is being typed is behind it
	case l.asked:
		l.write("\n" + prompt)
	case prompt != "":
		l.write(prompt)
	}
	l.prompt, l.asked = prompt, l.terminal && prompt != ""
}

func (l *Lines) write(text string) { io.WriteString(l.out, text) } //nolint:errcheck // the end of the input tells that nobody is there

// Redraw does nothing.
func (l *Lines) Redraw() {}

// Size is how many columns and rows there are.
func (l *Lines) Size() (width, height int) { return l.size() }

// Events brings lines, "ctrl+c" and the end of the input. It is closed when the process
// is asked to end.
func (l *Lines) Events() <-chan Event { return l.events }

// Release gives the input to f.
func (l *Lines) Release(f func() error) (err error) {
	l.mu.Lock()
	unread := l.unread
	l.unread = nil
	l.mu.Unlock()
	if unread == nil {
		return f()
	}
	unread()
	err = f()
	l.mu.Lock()
	defer l.mu.Unlock()
	var again error
	if l.unread, again = read(l.in.(*os.File), l.chunks); err == nil {
		err = again
	}
	return err
}

// Stop does nothing: the terminal stops the process itself.
func (l *Lines) Stop() error { return nil }

// Send writes a sequence that prints nothing, where there is a terminal.
func (l *Lines) Send(string) {}

// Guard is deferred by each goroutine beside the one that has deferred Close.
func (l *Lines) Guard() {}

// Close ends reading. It may be called more than once.
func (l *Lines) Close() {
	l.end()
	l.mu.Lock()
	unread := l.unread
	l.unread = nil
	if l.asked {
		l.write("\n")
	}
	l.asked = false
	l.mu.Unlock()
	if unread != nil {
		unread()
	}
	l.done.Wait()
}
