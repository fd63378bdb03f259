// Package secret takes known secret values out of what leaves the runtime: logs,
// outputs, facts. It promises that a registered value doesn't pass, in the forms
// in which programs usually print one: as it is, escaped for JSON, JSON inside
// JSON, a URL or HTML, in base64, also in the middle of something longer, in
// hexadecimal, and with each byte escaped. It does not guess: a value that isn't
// registered passes. JSON stays JSON when its strings are scrubbed before they
// are encoded.
//
// spellings.go lists the forms.
package secret

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
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
	forms  []form
	search atomic.Pointer[search]
}

// form is one spelling of a secret and what stands for it.
type form struct{ text, mark, value string }

// sign is the mark with a digest of the value, where there is a key.
func (f *form) sign(key []byte) string {
	if len(key) == 0 {
		return f.mark
	}
	m := hmac.New(sha256.New, key)
	m.Write([]byte(f.value))
	return strings.TrimSuffix(f.mark, "]") + ":" + hex.EncodeToString(m.Sum(nil)[:8]) + "]"
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
	for _, part := range parts(value) {
		for _, text := range spellings(part) {
			if len(text) >= MinLength && !known[text] {
				known[text] = true
				s.forms = append(s.forms, form{text, mark, part})
			}
		}
	}
	s.search.Store(newSearch(s.forms))
	return true
}

// minLine is the shortest line of a value that is taken out by itself.
const minLine = 16

// parts are a value, and each of its lines that is long enough, because programs
// print a key line by line and indent it. The marks of PEM hold nothing.
func parts(value string) []string {
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

// Bytes returns b without the registered values; b itself when it has none.
func (s *Scrubber) Bytes(b []byte) []byte { return s.replace(b, nil) }

func (s *Scrubber) replace(b, key []byte) []byte {
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
		at, f = t.next(b, from)
	}
	return append(out, b[from:]...)
}

// Holds reports whether a registered value is in b.
func (s *Scrubber) Holds(b []byte) bool {
	t := s.search.Load()
	if t == nil {
		return false
	}
	_, f := t.next(b, 0)
	return f != nil
}

// String is Bytes for strings.
func (s *Scrubber) String(v string) string { return s.text(v, nil) }

func (s *Scrubber) text(v string, key []byte) string {
	return string(s.replace([]byte(v), key))
}
