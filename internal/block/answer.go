package block

import (
	"bytes"
	"unicode/utf8"

	"github.com/belay-run/belay"
)

// maxPart is how many bytes a part of an answer has, about, when nothing in it says
// where it ends: a long fence, a long line.
const maxPart = 32 << 10

// answer is the text of one attempt of a request. Only what isn't finished of it is
// held. Each byte is looked at once.
type answer struct {
	step     belay.StepID
	attempt  int
	end      int64  // bytes that came
	rest     []byte // those that aren't in a part yet
	looked   int    // bytes of rest whose lines were looked at
	searched int    // and those behind them in which no line ends
	blank    bool   // the last of them is blank: a part may end there
	fence    []byte // the line that opened the fence that rest is in; nil: none
	prefix   string // what the next part begins with
	parts    int    // that were taken off
}

// is reports whether it is the answer to this attempt of a request.
func (a *answer) is(step belay.StepID, attempt int) bool {
	return a != nil && a.step == step && a.attempt == attempt
}

// put adds what is new of a piece at an offset, and returns the parts that are
// finished with it. A piece behind a hole is not taken.
func (a *answer) put(offset int64, text string) (parts []string) {
	have := a.end - offset
	if have < 0 || have >= int64(len(text)) {
		return nil
	}
	text = text[have:]
	a.end += int64(len(text))
	a.rest = append(a.rest, text...)
	return a.split()
}

// split takes the parts off that are finished.
func (a *answer) split() (parts []string) {
	for {
		if a.blank && len(a.rest) > a.looked && !bytes.ContainsAny(a.rest[a.looked:a.looked+1], " \t\r\n") {
			a.blank = false // the first character tells: what goes on is indented
			parts = a.take(parts, a.looked)
		}
		upTo := min(len(a.rest), a.looked+maxPart)
		n := bytes.IndexByte(a.rest[a.searched:upTo], '\n')
		if n < 0 {
			if a.searched = upTo; upTo < a.looked+maxPart {
				return parts
			}
			parts = a.cut(parts, a.looked+wholeRunes(a.rest[a.looked:upTo])) // a line without an end
			continue
		}
		begins, line := a.looked, a.rest[a.looked:a.searched+n]
		a.looked = a.searched + n + 1
		a.searched = a.looked
		blank := len(bytes.TrimSpace(line)) == 0
		if a.fence == nil && !blank && a.blank {
			a.blank = false
			if !indented(line) { // what is goes on with what was before it
				parts = a.take(parts, begins)
			}
		}
		switch {
		case a.fence != nil:
			if closes(a.fence, line) {
				a.fence = nil
			}
		case fenceOf(line) != nil:
			a.fence = bytes.Clone(line)
		default:
			a.blank = blank
		}
		if a.looked > maxPart {
			parts = a.cut(parts, a.looked)
		}
	}
}

// take ends a part behind n bytes.
func (a *answer) take(parts []string, n int) []string {
	if part := a.rest[:n]; len(bytes.TrimSpace(part)) > 0 {
		parts = append(parts, a.prefix+string(part))
		a.parts++
	}
	a.rest, a.looked, a.searched, a.prefix = a.rest[n:], max(a.looked-n, 0), max(a.searched-n, 0), ""
	return parts
}

// cut ends a part where it doesn't end by itself. A fence that is open is closed there
// and opened again, so that each part is Markdown of its own.
func (a *answer) cut(parts []string, n int) []string {
	had := len(parts)
	if parts = a.take(parts, n); a.fence == nil || len(parts) == had {
		return parts
	}
	last := &parts[len(parts)-1]
	*last = closedLine(*last) + string(fenceOf(a.fence)) + "\n"
	a.prefix = string(a.fence) + "\n"
	return parts
}

// over returns the last part, if there is one.
func (a *answer) over() []string { return a.take(nil, len(a.rest)) }

// fenceOf is the mark of a line that opens or closes a fence, or nil.
func fenceOf(line []byte) []byte {
	s := bytes.TrimLeft(line, " ")
	if len(line)-len(s) > 3 || len(s) < 3 || s[0] != '`' && s[0] != '~' {
		return nil
	}
	n := len(s) - len(bytes.TrimLeft(s, string(s[:1])))
	if n < 3 || s[0] == '`' && bytes.IndexByte(s[n:], '`') >= 0 {
		return nil
	}
	return s[:n]
}

// closes reports whether a line closes a fence.
func closes(open, line []byte) bool {
	mark, end := fenceOf(open), bytes.TrimSpace(line)
	return fenceOf(line) != nil && end[0] == mark[0] && len(end) >= len(mark) && len(bytes.Trim(end, string(mark[:1]))) == 0
}

func indented(line []byte) bool {
	return bytes.HasPrefix(line, []byte("  ")) || bytes.HasPrefix(line, []byte("\t"))
}

// wholeRunes is how many bytes of b are whole characters.
func wholeRunes(b []byte) int {
	n := len(b)
	for i := 1; i <= min(utf8.UTFMax, n); i++ {
		if utf8.RuneStart(b[n-i]) {
			if !utf8.FullRune(b[n-i:]) {
				return n - i
			}
			break
		}
	}
	return n
}

// closedLine is text that ends its last line.
func closedLine(s string) string {
	if s == "" || s[len(s)-1] == '\n' {
		return s
	}
	return s + "\n"
}
