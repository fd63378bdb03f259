package secret_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/secret"
	"github.com/belay-run/belay/internal/testkit/secrets"
)

func knowing() *secret.Scrubber {
	var s secret.Scrubber
	s.Look(secret.Known{})
	s.Sign([]byte("0123456789abcdef0123456789abcdef"))
	return &s
}

// pieces are the parts of a value of which none may be left; its prefix is public.
func pieces(v string) (all []string) {
	const n = 12
	for i := min(16, max(0, len(v)-n)); i+n <= len(v); i++ {
		all = append(all, v[i:i+n])
	}
	return append(all, v)
}

func left(text, v string) string {
	for _, p := range pieces(v) {
		if strings.Contains(text, p) {
			return p
		}
	}
	return ""
}

var marked = regexp.MustCompile(`\[redacted:([a-z-]+):[0-9a-f]{16}\]`)

// Guarantee: X22.
func TestValuesInKnownFormsAreTakenOut(t *testing.T) {
	s := knowing()
	all := secrets.All()
	if len(all) < 80 {
		t.Fatalf("%d secrets", len(all))
	}
	for _, c := range all {
		for _, text := range []string{c.Text, "before " + c.Text + " after", "+" + c.Text + "\n", c.Text + "\n" + c.Text} {
			got := s.String(text)
			form := marked.FindStringSubmatch(got)
			if p := left(got, c.Value); p != "" || form == nil || form[1] != c.Form {
				t.Errorf("%s: %q becomes %q, with %q", c.Form, text, got, p)
				break
			}
			if again := s.String(got); again != got {
				t.Errorf("%s: %q is scrubbed again to %q", c.Form, got, again)
			}
			if !s.Holds([]byte(text)) {
				t.Errorf("%q is said to hold none", text)
			}
		}
	}
}

// Guarantee: X22.
func TestLookalikesStay(t *testing.T) {
	s := knowing()
	all := secrets.Lookalikes()
	if len(all) < 80 {
		t.Fatalf("%d look-alikes", len(all))
	}
	for _, text := range all {
		if got := s.String(text); got != text {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}

// Guarantee: X22.
func TestKnownFormsAreTakenOutHoweverTheyAreCut(t *testing.T) {
	s := knowing()
	texts := secrets.Lookalikes()
	for _, c := range secrets.All() {
		texts = append(texts, "x "+c.Text+" y")
	}
	step := 1
	if raceEnabled {
		step = 7
	}
	for i, text := range texts {
		want := s.String(text)
		for cut := rand.N(step); cut < len(text) && i >= len(secrets.Lookalikes()); cut += step {
			var out bytes.Buffer
			w := s.Writer(&out)
			w.Write([]byte(text[:cut])) //nolint:errcheck // into memory
			w.Write([]byte(text[cut:])) //nolint:errcheck // into memory
			if err := w.Close(); err != nil || out.String() != want {
				t.Fatalf("%q cut at %d: %q, want %q", text, cut, out.String(), want)
			}
		}
		var out bytes.Buffer
		w := s.Writer(&out)
		for i := range len(text) {
			w.Write([]byte(text[i : i+1])) //nolint:errcheck // into memory
		}
		if w.Close(); out.String() != want {
			t.Fatalf("%q byte by byte: %q, want %q", text, out.String(), want)
		}
	}
}

// Long texts of all kinds in random pieces.
// Guarantee: X22.
func TestLongStreamsEqualTheirWhole(t *testing.T) {
	s := knowing()
	s.Add("REG", "registered-value")
	r := rand.New(rand.NewPCG(3, 4))
	parts := append(secrets.Lookalikes(), "registered-value", strings.Repeat("A9b+", 3000), strings.Repeat(strings.Repeat("QUJD", 19)+"\n", 120), "\x1b[1m", "%2", "\\u00", "\\", "eyJ", "=")
	for _, c := range secrets.All() {
		parts = append(parts, c.Text, base64.StdEncoding.EncodeToString([]byte(c.Text)), url.QueryEscape(c.Text))
	}
	for round := range 30 {
		var text []byte
		for range 12 {
			text = append(text, parts[r.IntN(len(parts))]...)
			text = append(text, []string{"", " ", "\n", `"`, ","}[r.IntN(5)]...)
		}
		want := s.Bytes(text)
		var out bytes.Buffer
		w := s.Writer(&out)
		for rest := text; len(rest) > 0; {
			n := min(len(rest), 1+r.IntN([]int{3, 40, 3000}[round%3]))
			w.Write(rest[:n]) //nolint:errcheck // into memory
			rest = rest[n:]
		}
		if w.Close(); out.String() != string(want) {
			i := 0
			for i < min(out.Len(), len(want)) && out.Bytes()[i] == want[i] {
				i++
			}
			t.Fatalf("round %d, from %d on: %.200q, want %.200q\nof %q", round, i, out.Bytes()[max(0, i-30):], want[max(0, i-30):], text)
		}
	}
}

func TestJSONWithKnownFormsStaysJSON(t *testing.T) {
	s := knowing()
	for _, c := range secrets.All() {
		text := c.Text
		for depth := range 3 {
			b, _ := json.Marshal(map[string]any{"a": text, "n": 1})
			for name, got := range map[string][]byte{"JSON": s.JSON(b), "Bytes": s.Bytes(b)} {
				if p := left(string(got), c.Value); p != "" && !strings.Contains(c.Text, `\`) || !json.Valid(got) {
					t.Errorf("%s of depth %d: %s becomes %s, with %q", name, depth, b, got, p)
				}
			}
			text = string(b)
		}
	}
}

// What a person says stays, and the document names every form.
func TestWhatIsLeftOutStays(t *testing.T) {
	var s secret.Scrubber
	s.Look(secret.Known{Off: []string{"cookie"}, Keep: []*regexp.Regexp{regexp.MustCompile(`^k3ep`)}})
	for text, want := range map[string]string{
		"Cookie: sid=a8f3k2m9d7x1": "Cookie: sid=a8f3k2m9d7x1",
		"DB_PASSWORD=k3ep-a8f3k2":  "DB_PASSWORD=k3ep-a8f3k2",
		"DB_PASSWORD=a8f3k2m9d7":   "DB_PASSWORD=[redacted:assignment]",
	} {
		if got := s.String(text); got != want {
			t.Errorf("%s becomes %s", text, got)
		}
	}
	doc, err := os.ReadFile("../../docs/secrets.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, form := range secret.Forms() {
		if !bytes.Contains(doc, []byte("`"+form+"`")) {
			t.Errorf("docs/secrets.md doesn't name %s", form)
		}
	}
}

// What stands for a value that several marks could mean, or none, stays.
// Guarantee: X23.
func TestRestoreNeedsOneValue(t *testing.T) {
	s := knowing()
	s.Add("REG", "registered-value")
	content := []byte("A_TOKEN=a8f3k2m9d7x1\nB_TOKEN=b8f3k2m9d7x1\nR=registered-value\nR=cmVnaXN0ZXJlZC12YWx1ZQ\nsee [redacted:doc:00000000000000aa]\n")
	shown := s.String(string(content))
	one := strings.Replace(shown, "R=[redacted:REG]\nR=[redacted:REG]Q\n", "", 1)
	if got, unknown := s.Restore(one, content); unknown != "" || got != strings.Replace(string(content), "R=registered-value\nR=cmVnaXN0ZXJlZC12YWx1ZQ\n", "", 1) {
		t.Errorf("%q becomes %q, %q unknown", one, got, unknown)
	}
	if _, unknown := s.Restore("x [redacted:REG]", content); unknown != "[redacted:REG]" {
		t.Errorf("a mark for two spellings: %q", unknown)
	}
	if _, unknown := s.Restore(marked.FindString(shown), []byte("B=1")); unknown == "" {
		t.Error("a value was found in another file")
	}
	for cut := range content {
		of := s.Cut(content, new(secret.Taken))
		for _, part := range [][]byte{of(0, cut), of(cut, len(content))} {
			if got := s.String(string(part)); strings.Contains(got, "f3k2m9d") || strings.Contains(got, "stered-va") {
				t.Fatalf("cut at %d: %q", cut, got)
			}
		}
	}
}

// The work grows with the text and not faster, whatever it is: no key begins so
// many matches that don't end.
func TestHostileTextsTakeLinearTime(t *testing.T) {
	for _, unit := range []string{"eyJ-", "eyJaaaaaaaa.", "eyJaaaaaaaa.a", "sk-", "sk-a-", "token=", "token=a", "-----BEGIN PRIVATE KEY-----\n", "-----BEGIN PRIVATE KEY-----\n" + strings.Repeat("A", 64) + "\n",
		"password: ", "://a:", "curl -u a:", "curl ", "mysql ", "%25", `\u0070assword=`, "ghp_", "Z2hw", "$2a$10$", "$argon2id$", "MII", "MIIaaaIBAAKC", "cookie: a=bcdefgh", "Authorization: a", "ya29.", "passwd = 'a", "dp.st.", "key-key-", "-----", "\x1b[", "\\", "A"} {
		if raceEnabled && rand.N(4) > 0 {
			continue
		}
		small, large := secret.Steps([]byte(strings.Repeat(unit, 1+8<<10/len(unit)))), secret.Steps([]byte(strings.Repeat(unit, 1+32<<10/len(unit))))
		if large > 6*small+64<<10 || large > 32<<10*500 {
			t.Errorf("%q: %d steps for 8 KiB, %d for 32 KiB", unit, small, large)
		}
	}
}

func BenchmarkKnown(b *testing.B) {
	s := knowing()
	code := strings.Repeat("func (s *Scanner) next(token string) (key []byte, err error) {\n\tif s.password == \"\" {\n\t\treturn nil, fmt.Errorf(\"no path for %s: %w\", token, err)\n\t}\n", 300)
	var lines strings.Builder
	for i := range 400 {
		fmt.Fprintf(&lines, "%d internal/model/wire/stream_%d.go:%d: drwxr-xr-x 2 user user 4096 Nov 23 20:00 pass=%d\n", i, i*7, i*13, i)
	}
	for name, text := range map[string]string{"code": code, "lines": lines.String(), "base64": strings.Repeat("QUJDREVGR0hJSktMTU5PUFFS", 1400), "words": strings.Repeat("the quick brown fox jumps over the lazy dog\n", 800)} {
		in := []byte(text[:32<<10])
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			for b.Loop() {
				s.Bytes(in)
			}
		})
	}
}
