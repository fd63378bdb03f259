package process_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/process"
)

// Guarantee: T67.
func TestWhatATerminalShowsAsText(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ntext é\n":                                  "plain\ntext é\n",
		"\x1b[1;31mred\x1b[0m\n":                           "red\n",
		"10%\r20%\r\x1b[K100%\ndone\n":                     "100%\ndone\n",
		"windows\r\nlines\r\n":                             "windows\nlines\n",
		"\x1b]0;title\x07text":                             "text",
		"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\ after":   "link after",
		"\x1b(Bcharset\x1b7\x1b8":                          "charset",
		"abc\b\bd\n":                                       "ad\n",
		"é\bf\n":                                           "f\n",
		"bell\a and \x7fdel\x01\n":                         "bell and del\n",
		"\x1b]never ended\nstill here\n":                   "still here\n",
		"\x1b[31\x1b[0mtwo\n":                              "two\n",
		"\b\b\bnothing to take back":                       "nothing to take back",
		"tab\tand nul\x00 stay":                            "tab\tand nul\x00 stay",
		"half a line\r":                                    "half a line",
		strings.Repeat("spin\r", 100_000) + "the last one": "the last one",
	} {
		if got := string(process.PlainText([]byte(in))); got != want {
			t.Errorf("%.60q: got %.80q, want %q", in, got, want)
		}
		var out bytes.Buffer
		p := process.TerminalText{Dst: &out}
		for i := range len(in) {
			p.Write([]byte{in[i]})
		}
		p.Flush()
		if out.String() != want {
			t.Errorf("%.60q byte by byte: got %.80q, want %q", in, out.String(), want)
		}
	}
}

func TestALineWithoutEndCostsNoMemory(t *testing.T) {
	n := 0
	p := process.TerminalText{Dst: writer(func(b []byte) { n += len(b) })}
	block := bytes.Repeat([]byte("x"), 1<<20)
	got := testing.AllocsPerRun(5, func() { p.Write(block) })
	if p.Flush(); n != 6<<20 {
		t.Errorf("passed on %d bytes", n)
	}
	if got > 10 {
		t.Errorf("%v allocations for a megabyte", got)
	}
}

type writer func([]byte)

func (w writer) Write(b []byte) (int, error) { w(b); return len(b), nil }

func TestWhatIsBinary(t *testing.T) {
	for in, want := range map[string]bool{
		"":                             false,
		"text\n\x1b[1mbold\x1b[0m\r\n": false,
		"./a file name\x00./another file name\x00": false, // find -print0
		"grüße":                          false,
		"caf\xe9 au lait, s'il te plait": false, // another encoding
		"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x01\x00\x00\x00\x01\x00\x08\x06\x00\x00\x00\x1f\x15\xc4": true,
		"a\xff\x00b":                false, // too little to tell
		strings.Repeat("\x00", 100): true,
	} {
		if got := process.Binary([]byte(in)); got != want {
			t.Errorf("%.40q: got %v", in, got)
		}
	}
}
