package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strings"
)

// spellings are the forms in which a value may be printed.
func spellings(v string) []string {
	all := []string{v}
	for _, s := range [...]string{url.QueryEscape(v), url.PathEscape(v)} {
		all = append(all, s, smallPercent(s))
	}
	for _, s := range inJSON(v) {
		all = append(all, s)
		all = append(all, inJSON(s)...) // JSON inside JSON
	}
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			all = append(all, inner64(enc, v, before))
		}
	}
	quotes := html.EscapeString(v)
	all = append(all, quotes, strings.NewReplacer("&#34;", "&quot;", "&#39;", "&apos;").Replace(quotes), strings.NewReplacer("&#34;", "&quot;", "&#39;", "&#x27;").Replace(quotes))
	small := hex.EncodeToString([]byte(v))
	all = append(all, small, strings.ToUpper(small))
	for _, each := range [...]string{"%%%02x", "%%%02X", `\u%04x`, `\u%04X`, `\\u%04x`, `\\u%04X`, `\x%02x`, `\x%02X`} {
		all = append(all, eachByte(v, each))
	}
	return all
}

// inJSON are the ways in which a text is written between the quotes of JSON:
// with and without the escapes that HTML needs, with escaped slashes, and in
// ASCII.
func inJSON(v string) []string {
	var all []string
	for _, markup := range [...]bool{true, false} {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(markup)
		if enc.Encode(v) == nil {
			s := strings.TrimSuffix(b.String(), "\n")
			all = append(all, s[1:len(s)-1])
		}
	}
	plain := all[len(all)-1]
	return append(all, strings.ReplaceAll(plain, "/", `\/`), inASCII(plain))
}

func inASCII(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r < 0x80:
			b.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default: // a pair of halves
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
		}
	}
	return b.String()
}

// smallPercent writes the escapes of a URL with small letters.
func smallPercent(s string) string {
	b := []byte(s)
	for i := range b {
		if b[i] == '%' && i+2 < len(b) {
			copy(b[i+1:i+3], bytes.ToLower(b[i+1:i+3]))
		}
	}
	return string(b)
}

func eachByte(v, format string) string {
	var b strings.Builder
	for i := range len(v) {
		fmt.Fprintf(&b, format, v[i])
	}
	return b.String()
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
