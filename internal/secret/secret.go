// Package secret takes secret values out of what leaves the runtime: logs,
// outputs, facts. It promises that a registered value doesn't pass, in the
// spellings in which programs usually print one: as it is, escaped for JSON, JSON
// inside JSON, a URL or HTML, in base64, also in the middle of something longer, in
// hexadecimal, and with each byte escaped. Unregistered values are found
// by the forms in which vendors and programs write them: as they are, escaped for
// a URL or JSON, with codes of a terminal in between, and in base64. JSON stays
// JSON when its strings are scrubbed before they are encoded.
//
// spellings.go lists the spellings, known.go the forms.
package secret

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// MinLength is the shortest value that can be registered: a shorter one occurs
// everywhere by chance.
const MinLength = 6

// Scrubber replaces registered values by [redacted:NAME], in arguments by
// [redacted:NAME:DIGEST]. The zero value knows none. It may be used and added to from several goroutines.
type Scrubber struct {
	mu     sync.Mutex
	forms  []spelling
	search atomic.Pointer[search]
	known  atomic.Pointer[Known] // nil: none
	key    atomic.Pointer[[]byte]
}

// spelling is one of a registered value, and what stands for it.
type spelling struct{ text, mark, value string }

// sign is the mark with a digest of the value, where there is a key.
func (f *spelling) sign(key []byte) string {
	if len(key) == 0 {
		return f.mark
	}
	return strings.TrimSuffix(f.mark, "]") + ":" + digest([]byte(f.value), key) + "]"
}

// Look has the scrubber look for known forms.
func (s *Scrubber) Look(k Known) { s.known.Store(&k) }

// Sign gives the marks of values in known forms digests under a key.
func (s *Scrubber) Sign(key []byte) { s.key.Store(&key) }

// mark stands for a value in a known form.
func (s *Scrubber) mark(form int, value []byte) string {
	var key []byte
	if k := s.key.Load(); k != nil {
		key = *k
	}
	return (&spelling{mark: "[redacted:" + forms[form].name + "]", value: string(value)}).sign(key)
}

// registered is the name under which values that were registered are counted.
const registered = "registered"

// Taken is what was taken out of a text.
type Taken struct {
	Count int      // places
	Rules []string // names of forms; registered for values that were
}

func (t *Taken) add(rule string) {
	if t.Count++; !slices.Contains(t.Rules, rule) {
		t.Rules = append(t.Rules, rule)
	}
}

// Add adds what was taken out of another part of a text.
func (t *Taken) Add(o Taken) {
	n := t.Count + o.Count
	for _, rule := range o.Rules {
		t.add(rule)
	}
	t.Count = n
}

// Add registers a value under a name that may be shown. It reports whether the
// value is long enough.
func (s *Scrubber) Add(name, value string) bool {
	value = strings.TrimSpace(value)
	if len(value) < MinLength {
		return false
	}
	mark := "[redacted:" + showable(name) + "]"
	s.mu.Lock()
	defer s.mu.Unlock()
	known := make(map[string]bool, len(s.forms))
	for _, f := range s.forms {
		known[f.text] = true
	}
	for _, part := range linesOf(value) {
		for _, text := range spellings(part) {
			if len(text) >= MinLength && !known[text] {
				known[text] = true
				s.forms = append(s.forms, spelling{text, mark, part})
			}
		}
	}
	s.search.Store(newSearch(s.forms))
	return true
}

// minLine is the shortest line of a value that is taken out by itself.
const minLine = 16

// linesOf are a value, and each of its lines that is long enough, because programs
// print a key line by line and indent it. The marks of PEM hold nothing.
func linesOf(value string) []string {
	all := []string{value}
	for line := range strings.Lines(value) {
		if line = strings.TrimSpace(line); len(line) >= minLine && line != value && !strings.HasPrefix(line, "-----") {
			all = append(all, line)
		}
	}
	return all
}

// showable keeps of a name what can't break the text around the mark.
func showable(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
}

// Bytes returns b without secrets; b itself when it has none.
func (s *Scrubber) Bytes(b []byte) []byte { return s.replace(b, nil, new(Taken)) }

// Text returns a text without secrets, and what was taken out.
func (s *Scrubber) Text(v string) (string, Taken) {
	var t Taken
	return string(s.replace([]byte(v), nil, &t)), t
}

// replace signs registered values with the key.
func (s *Scrubber) replace(b, key []byte, taken *Taken) []byte {
	b = s.unregistered(b, key, taken)
	known := s.known.Load()
	if known == nil {
		return b
	}
	l := known.look(b, true, true)
	if len(l.spans) == 0 {
		return b
	}
	out, _ := l.without(s, b, 0, taken)
	return out
}

// unregistered is b without registered values.
func (s *Scrubber) unregistered(b, key []byte, taken *Taken) []byte {
	t := s.search.Load()
	if t == nil {
		return b
	}
	at, f := t.next(b, 0)
	if f == nil {
		return b
	}
	out := make([]byte, 0, len(b))
	from := 0
	for f != nil {
		out = append(append(out, b[from:at]...), f.sign(key)...)
		from = at + len(f.text)
		taken.add(registered)
		at, f = t.next(b, from)
	}
	return append(out, b[from:]...)
}

// Holds reports whether a secret is in b.
func (s *Scrubber) Holds(b []byte) bool {
	if t := s.search.Load(); t != nil {
		if _, f := t.next(b, 0); f != nil {
			return true
		}
	}
	known := s.known.Load()
	return known != nil && len(known.look(b, true, true).spans) > 0
}

// String is Bytes for strings.
func (s *Scrubber) String(v string) string { return s.text(v, nil) }

func (s *Scrubber) text(v string, key []byte) string {
	return string(s.replace([]byte(v), key, new(Taken)))
}
