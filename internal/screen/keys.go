package screen

import (
	"bytes"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	uv "github.com/charmbracelet/ultraviolet"
)

// Event is what happens at a terminal: Key, Paste, Focus or Resize.
type Event interface{ event() }

// Key is a key that was pressed. Name is its character, or such as "enter", "esc",
// "up", "shift+tab", "alt+enter", "ctrl+c". Text is what it types; empty for a key
// that types nothing.
type Key struct{ Name, Text string }

// Paste is text that was pasted, with "\n" between its lines. What isn't UTF-8 is
// replaced by U+FFFD.
type Paste struct{ Text string }

// Focus says whether the terminal's window has the focus from now on.
type Focus struct{ On bool }

// Resize says that the terminal has another size.
type Resize struct{ Width, Height int }

func (Key) event()    {}
func (Paste) event()  {}
func (Focus) event()  {}
func (Resize) event() {}

// escTime is how long the rest of a sequence may take: after it, Esc was the key.
const escTime = 50 * time.Millisecond

// keys makes events of a terminal's bytes. Sequences are decoded by ultraviolet; text
// between the marks of a paste is kept as it is, whatever it contains.
type keys struct {
	decoder uv.EventDecoder
	buf     []byte
	pasting bool
	emit    func(Event)
}

var pasteStart, pasteEnd = []byte("\x1b[200~"), []byte("\x1b[201~")

// read sends what is read from a terminal, and an empty chunk at its end. The function
// that it returns ends it, and waits until nothing is read any more.
func read(in *os.File, chunks chan<- []byte) (end func(), err error) {
	r, err := uv.NewCancelReader(in)
	if err != nil {
		return nil, err
	}
	stop := make(chan struct{})
	var reading sync.WaitGroup
	reading.Go(func() {
		for {
			buf := make([]byte, 4<<10)
			n, err := r.Read(buf)
			select {
			case <-stop:
				return
			default:
			}
			if err != nil {
				n = 0
			}
			select {
			case chunks <- buf[:n]:
			case <-stop:
				return
			}
			if n == 0 {
				return
			}
		}
	})
	return func() {
		close(stop)
		r.Cancel()
		reading.Wait()
		r.Close() //nolint:errcheck // it was only read from
	}, nil
}

// late returns a channel that fires when the rest of a sequence should have come.
func (k *keys) late() <-chan time.Time {
	if len(k.buf) == 0 || k.pasting {
		return nil
	}
	return time.After(escTime)
}

// take adds bytes that were read.
func (k *keys) take(chunk []byte) {
	// what was searched for the end of a paste isn't searched again
	searched := max(0, len(k.buf)-len(pasteEnd))
	k.buf = append(k.buf, chunk...)
	if !k.pasting {
		k.decode(false)
		return
	}
	if at := bytes.Index(k.buf[searched:], pasteEnd); at >= 0 {
		k.pasted(searched + at)
		k.decode(false)
	}
}

// pasted emits the paste that ends at a position of the buffer.
func (k *keys) pasted(end int) {
	text := strings.ToValidUTF8(string(k.buf[:end]), "\uFFFD")
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
	k.buf, k.pasting = k.buf[end+len(pasteEnd):], false
	k.emit(Paste{Text: text})
}

// decode emits what is complete. With late, no more bytes belong to a sequence that
// isn't.
func (k *keys) decode(late bool) {
	for len(k.buf) > 0 {
		if bytes.HasPrefix(k.buf, pasteStart) {
			k.buf, k.pasting = k.buf[len(pasteStart):], true
			at := bytes.Index(k.buf, pasteEnd)
			if at < 0 {
				return
			}
			k.pasted(at)
			continue
		}
		if k.buf[0] != 0x1b && !utf8.FullRune(k.buf) && !late {
			return
		}
		if r, size := utf8.DecodeRune(k.buf); r == utf8.RuneError {
			k.buf = k.buf[size:]
			k.emit(Key{Name: "\uFFFD", Text: "\uFFFD"})
			continue
		}
		n, e := k.decoder.Decode(k.buf)
		_, unknown := e.(uv.UnknownEvent)
		if (unknown || k.buf[0] == 0x1b && n <= 2) && !late && !complete(k.buf) {
			return
		}
		k.buf = k.buf[max(n, 1):]
		k.decoded(e)
	}
	k.buf = nil
}

// complete reports whether Esc and the byte after it are a key of their own: the
// beginning of a longer sequence isn't.
func complete(buf []byte) bool {
	return len(buf) > 1 && buf[0] == 0x1b && !bytes.ContainsAny(buf[1:2], "\x1b[]OPX^_") && utf8.FullRune(buf[1:])
}

func (k *keys) decoded(e uv.Event) {
	switch e := e.(type) {
	case uv.KeyPressEvent:
		text := e.Text
		if e.Mod.Contains(uv.ModCtrl) || e.Mod.Contains(uv.ModAlt) {
			text = ""
		}
		name := e.Keystroke()
		if name == "alt+esc" { // Esc was pressed twice
			k.emit(Key{Name: "esc"})
			name = "esc"
		}
		if text != "" && text != " " {
			name = text
		}
		k.emit(Key{Name: name, Text: text})
	case uv.FocusEvent:
		k.emit(Focus{On: true})
	case uv.BlurEvent:
		k.emit(Focus{})
	case uv.MultiEvent:
		for _, one := range e {
			k.decoded(one)
		}
	}
}
