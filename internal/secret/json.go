package secret

import (
	"bytes"
	"encoding/json"
)

// JSON is Bytes for a text of JSON: each string of it is scrubbed as what it
// means, whatever escapes it is written with, and the rest as text. JSON stays
// JSON; what is none is scrubbed as text.
func (s *Scrubber) JSON(b []byte) []byte { return s.Args(b, nil) }

// Args is JSON for the arguments of a call: what stands for a value has a digest
// of it, [redacted:NAME:DIGEST], 16 hexadecimal digits of HMAC-SHA256 under the
// key. So two calls with different values are different calls, and values can't
// be guessed without the key. Without a key there is no digest.
func (s *Scrubber) Args(b, key []byte) []byte {
	if s.search.Load() == nil && s.known.Load() == nil {
		return b
	}
	var out []byte
	from := 0
	for at := 0; at < len(b); at++ {
		if b[at] != '"' {
			continue
		}
		end := stringEnd(b, at)
		var v string
		if bytes.IndexByte(b[at:end], '\\') >= 0 && json.Unmarshal(b[at:end], &v) == nil { // without escapes it is text
			if clean := s.text(v, key); clean != v {
				literal, err := json.Marshal(clean)
				if err != nil {
					continue
				}
				out = append(append(out, b[from:at]...), literal...)
				from = end
			}
		}
		at = end - 1
	}
	if out != nil {
		b = append(out, b[from:]...)
	}
	if clean := s.replace(b, key, new(Taken)); json.Valid(clean) || !json.Valid(b) {
		return clean
	}
	return []byte(`"[redacted]"`)
}

// stringEnd is the place behind the string that begins at a quote.
func stringEnd(b []byte, at int) int {
	for i := at + 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}
