package secret

import (
	"bytes"
	"encoding/base64"
	"strings"
	"unicode"

	"github.com/belay-run/belay/internal/lib/lazyregexp"
)

// What looks like a secret and is none: placeholders, identifiers, paths,
// references. Each function reports whether a match is a secret after all.

var (
	uuid       = lazyregexp.Expr{Text: `^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`}
	typedID    = lazyregexp.Expr{Text: `^[a-z]{2,8}_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$`} // as facts have them: tok_, cmd_, …
	identifier = lazyregexp.Expr{Text: `^[A-Za-z_$@][\w$]*(?:(?:\.|->|::|\?\.|/)[A-Za-z_$][\w$-]*)*[!?]?$`}
	words      = lazyregexp.Expr{Text: `^[A-Za-z]+(?:[-_. ][A-Za-z]+)*$`}
	constant   = lazyregexp.Expr{Text: `^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$`}
	path       = lazyregexp.Expr{Text: `^(?:~|\.{0,2})/|^[A-Za-z]:\\|://|^sha\d+[:-]`}
	flagBefore = lazyregexp.Expr{Text: `(?:^|[\s"'=])--[A-Za-z-]*$|\blogin\s\S+\s$`}
	notSecret  = lazyregexp.Expr{Text: `(?i)(?:public|primary|foreign|cache|sort|partition|routing|registry|object|project|issue|index|map|group|order|row|item|next|page|continuation|cancel|cancellation|stop|bos|eos|pad|unk|mask|max|min|end|start)_?$`}
	nameTail   = lazyregexp.Expr{Text: `(?:FILE|PATH|DIR|URL|URI|HOST|USER|USERNAME|NAME|ID|ARN|TTL|EXPIRY|EXPIRES|EXPIRATION|LENGTH|LEN|SIZE|MIN|MAX|TYPE|ALGORITHM|ALGO|COUNT|LIMIT|HINT|POLICY|REGION|METHOD|MODE|ENABLED|REQUIRED|ENV|VAR|HEADER|FIELD|PREFIX|SUFFIX|PUB|PUBLIC)$`}
)

// fillers are in texts that stand for a value.
var fillers = [...]string{"example", "placeholder", "changeme", "change-me", "change_me", "changethis", "replace", "your", "dummy", "fake", "todo", "redacted", "xxxx", "****", "....", "<", "${", "{{", "insert", "sample", "not-a", "not_a", "notreal", "not-real", "test-", "-test", "test_", "_test", "mytoken", "mysecret", "mypassword", "password", "passwd", "secret", "foobar", "abcdef", "undefined", "process.env", "os.environ", "getenv", "secrets.", "env."}

// isPlaceholder reports whether a value stands for another one.
func isPlaceholder(v []byte) bool {
	s := strings.ToLower(string(v))
	for _, f := range fillers {
		if strings.Contains(s, f) {
			return true
		}
	}
	return distinct(v) < 4 || s == "pass" || s == "user" || s == "token" || s == "test"
}

// isOwn reports whether a value with a vendor's prefix isn't the one of the
// vendor's documentation.
func isOwn(_, _, v []byte) bool {
	s := strings.ToLower(string(v))
	return !strings.Contains(s, "example") && !strings.Contains(s, "xxxx") && !strings.Contains(s, "your") && !strings.Contains(s, "....") && distinct(v) > 5
}

// isMixed is isOwn for prefixes that words have too.
func isMixed(before, match, v []byte) bool {
	n := 0
	for _, is := range []func(byte) bool{isDigit, isLower, isUpper} {
		if bytes.ContainsFunc(v[min(3, len(v)):], func(r rune) bool { return r < 128 && is(byte(r)) }) {
			n++
		}
	}
	return n > 1 && isOwn(before, match, v)
}

// isStrong reports whether a value has characters as passwords and keys do.
func isStrong(v []byte) bool {
	letter, digit, symbol := false, 0, 0
	for _, c := range v {
		switch {
		case isDigit(c):
			digit++
		case isLower(c), isUpper(c):
			letter = true
		case strings.IndexByte("!@#^&*+=?~", c) >= 0 || c >= 0x80:
			symbol++
		}
	}
	return len(v) >= 8 && letter && digit+symbol > 0 && distinct(v) > 4
}

func distinct(v []byte) int {
	var seen [256]bool
	n := 0
	for _, c := range v {
		if !seen[c] {
			seen[c], n = true, n+1
		}
	}
	return n
}

// isJWT reports whether the header says how the token is signed.
func isJWT(_, match, _ []byte) bool {
	head, _, _ := bytes.Cut(match, []byte("."))
	raw, _ := base64.RawURLEncoding.DecodeString(string(head))
	return bytes.Contains(raw, []byte(`"alg"`))
}

// isBasic reports whether a value is a name and a password in base64.
func isBasic(_, _, v []byte) bool {
	raw, err := base64.StdEncoding.DecodeString(string(v))
	return err == nil && bytes.IndexByte(raw, ':') > 0 && !bytes.ContainsFunc(raw, unicode.IsControl)
}

func isCookie(before, match, v []byte) bool {
	return isOwn(before, match, v) && isStrong(bytes.ReplaceAll(v, []byte("="), nil))
}

func isFlag(before, _, v []byte) bool {
	return flagBefore.Re().Match(before) && isStrong(v) && !isPlaceholder(v) && !path.Re().Match(v)
}

// isVariable judges a variable of the environment by its name in capitals.
func isVariable(before, match, v []byte) bool {
	name, _, _ := bytes.Cut(match, []byte("="))
	if bytes.ContainsFunc(name, unicode.IsLower) || notSecret.Re().Match(before) || nameTail.Re().Match(name) || isPlaceholder(v) || path.Re().Match(v) || constant.Re().Match(v) || bytes.HasSuffix(v, []byte(")")) {
		return false
	}
	if isStrong(v) {
		return true
	}
	word := bytes.HasPrefix(name, []byte("PASS")) || bytes.HasPrefix(name, []byte("PWD")) || bytes.HasPrefix(name, []byte("SECRET"))
	return word && (len(v) >= 8 || !words.Re().Match(v))
}

// isAssigned judges what is assigned to a name, in code or in configuration.
func isAssigned(before, match, v []byte) bool {
	if notSecret.Re().Match(before) || !isStrong(v) || isPlaceholder(v) || path.Re().Match(v) || constant.Re().Match(v) || words.Re().Match(v) || typedID.Re().Match(v) {
		return false
	}
	token := small(match[0]) == 't'
	if token && uuid.Re().Match(v) {
		return false
	}
	at := bytes.Index(match, v)
	if at > 0 && strings.IndexByte("\"'`", match[at-1]) >= 0 {
		return true
	}
	if last := match[len(match)-1]; last == '(' || last == '[' || last == '{' {
		return false
	}
	if !identifier.Re().Match(v) {
		return true
	}
	return !bytes.ContainsAny(v, ".>:/?$") && isRandom(v)
}

// isRandom reports whether letters and digits change as they don't in names.
func isRandom(v []byte) bool {
	changes, digits := 0, 0
	kind := func(c byte) int {
		switch {
		case isDigit(c):
			return 0
		case isLower(c):
			return 1
		}
		return 2
	}
	for i, c := range v {
		if isDigit(c) {
			digits++
		}
		if i > 0 && kind(c) != kind(v[i-1]) {
			changes++
		}
	}
	return digits >= 4 || 3*changes >= len(v)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isLower(c byte) bool { return c >= 'a' && c <= 'z' }
func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }

// endsWith reports whether a text ends with so many characters of a class, and
// not more.
func endsWith(b []byte, is func(byte) bool, least, most int) bool {
	n := 0
	for n < len(b) && is(b[len(b)-1-n]) {
		n++
	}
	return n >= least && n <= most
}
