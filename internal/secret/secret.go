// Package secret takes known secret values out of what leaves the runtime:
// logs, outputs, facts. It promises that a registered value doesn't pass, in
// the forms in which programs usually print one: as it is, escaped for JSON or
// a URL, or in base64, also in the middle of something longer. It does not
// guess: what nobody registered it doesn't know. JSON stays JSON when its
// strings are scrubbed before they are encoded.
package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// MinLength is the shortest value that can be registered: a shorter one occurs
// everywhere by chance.
const MinLength = 6

// Scrubber replaces registered values by [redacted:NAME]. The zero value knows
// none. It may be used and added to from several goroutines.
type Scrubber struct {
	mu     sync.Mutex
	forms  []form
	search atomic.Pointer[search]
}

// form is one spelling of a secret and what stands for it.
type form struct{ text, mark string }

// Add registers a value under a name that may be shown. It tells whether the
// value is long enough.
func (s *Scrubber) Add(name, value string) bool {
	value = strings.TrimSpace(value)
	if len(value) < MinLength {
		return false
	}
	mark := "[redacted:" + showable(name) + "]"
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, text := range spellings(value) {
		known := slices.ContainsFunc(s.forms, func(f form) bool { return f.text == text })
		if len(text) >= MinLength && !known {
			s.forms = append(s.forms, form{text, mark})
		}
	}
	s.search.Store(newSearch(s.forms))
	return true
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

// spellings are the forms in which a value may be printed.
func spellings(v string) []string {
	all := []string{v, url.QueryEscape(v), url.PathEscape(v)}
	for _, html := range []bool{true, false} {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(html)
		if enc.Encode(v) == nil {
			all = append(all, strings.Trim(strings.TrimSuffix(b.String(), "\n"), `"`))
		}
	}
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			all = append(all, inner64(enc, v, before))
		}
	}
	return all
}

// inner64 is the part of v's base64 form that doesn't depend on what stands
// around v, when so many bytes modulo 3 stand before it.
func inner64(enc *base64.Encoding, v string, before int) string {
	b := enc.EncodeToString([]byte(strings.Repeat("\x00", before) + v))
	first := []int{0, 2, 3}[before]
	last := len(b)
	if (before+len(v))%3 != 0 {
		last-- // it holds bits of the next byte
	}
	return b[first:last]
}

// Bytes returns b without the registered values; b itself when it has none.
func (s *Scrubber) Bytes(b []byte) []byte {
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
		out = append(append(out, b[from:at]...), f.mark...)
		from = at + len(f.text)
		at, f = t.next(b, from)
	}
	return append(out, b[from:]...)
}

// String is Bytes for strings.
func (s *Scrubber) String(v string) string {
	t := s.search.Load()
	if t == nil {
		return v
	}
	b := []byte(v)
	if _, f := t.next(b, 0); f == nil {
		return v
	}
	return string(s.Bytes(b))
}
