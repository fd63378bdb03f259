package tokens

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/belay-run/belay"
	"github.com/tiktoken-go/tokenizer/codec"
)

// Counts for facts are made when a program starts.
var countedAtStart = Text("hello world") + Instructions("Work.", nil) + (Profile{}).Attached(belay.Ref{}, []byte("hello"))

var loadedAtStart = countedAtStart == 0 || o200k.is != nil || cl100k.is != nil

// Guarantee: M4.
func TestNothingIsLoadedBeforeItIsAskedFor(t *testing.T) {
	if loadedAtStart {
		t.Error("starting a program loads a vocabulary")
	}
	if Count(Default, "hello"); o200k.is == nil {
		t.Error("counting doesn't load")
	}
}

// The counts are OpenAI's own, from the cookbook on counting with tiktoken, and
// those that anybody can see with its tokenizer.
func TestKnownCounts(t *testing.T) {
	for _, c := range []struct {
		text          string
		cl100k, o200k int
	}{
		{"", 0, 0},
		{"hello world", 2, 2},
		{"tiktoken is great!", 6, 6},
		{"antidisestablishmentarianism", 6, 6},
		{"2 + 2 = 4", 7, 7},
		{"お誕生日おめでとう", 9, 8},
		{strings.Repeat("a", 20_000), 2500, 2500},
	} {
		if got := Count("cl100k_base", c.text); got != c.cl100k {
			t.Errorf("cl100k_base %.40q: got %d, want %d", c.text, got, c.cl100k)
		}
		if got := Count("o200k_base", c.text); got != c.o200k {
			t.Errorf("o200k_base %.40q: got %d, want %d", c.text, got, c.o200k)
		}
		if a, b := Count("", c.text), Count("o200k_base", c.text); a != b {
			t.Errorf("%.40q: the default counts %d, o200k_base %d", c.text, a, b)
		}
	}
}

// corpus are texts as agents see them: documents, code, data.
func corpus(t testing.TB) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, pattern := range []string{"../../../docs/*.md", "../../engine/*.go", "../catalog/models.json", "../../../LICENSE"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatal(pattern, err)
		}
		for _, p := range paths {
			b, err := os.ReadFile(p)
			if err != nil {
				t.Fatal(err)
			}
			if len(b) > 1000 {
				files[p] = string(b)
			}
		}
	}
	return files
}

func TestPiecesCountAsTheWhole(t *testing.T) {
	whole := codec.NewO200kBase()
	for name, text := range corpus(t) {
		want, err := whole.Count(text)
		if err != nil {
			t.Fatal(err)
		}
		got := Count(Default, text)
		allowed := 0
		if len(text) > maxExact { // extrapolated
			allowed = want / 5
		}
		if got < want-allowed || got > want+allowed {
			t.Errorf("%s: %d tokens in pieces, %d as a whole", name, got, want)
		}
		if rough := Rough(text); 10*rough < 8*want || 10*rough > 12*want {
			t.Errorf("%s: roughly %d, counted %d", name, rough, want)
		}
	}
}

// Guarantee: M4.
func TestALongTextCostsAsMuchAsAShortOne(t *testing.T) {
	unit := "The quick brown fox jumps over 13 lazy dogs.\n"
	one := Count(Default, strings.Repeat(unit, 1000))
	got := Count(Default, strings.Repeat(unit, 100_000))
	if got < 99*one || got > 101*one {
		t.Errorf("100 times the text has %d tokens, the text %d", got, one)
	}
	for _, text := range []string{strings.Repeat("a", 1<<22), strings.Repeat(" ", 1<<22), strings.Repeat("A'", 1<<21), strings.Repeat("\xff", 1<<22), strings.Repeat("\u0301", 1<<20)} {
		if n := Count(Default, text); n <= 0 || n > len(text) {
			t.Errorf("%d bytes of %q have %d tokens", len(text), text[:2], n)
		}
	}
}

func TestCutsAreBetweenCharacters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Repeat(rapid.StringN(1, 8, -1).Draw(t, "unit"), rapid.IntRange(1, 3000).Draw(t, "times"))
		var parts []string
		for rest := text; rest != ""; {
			var p string
			if p, rest = piece(rest); p == "" || len(p) > maxPiece || !utf8.ValidString(p) {
				t.Fatalf("a piece of %d bytes, valid %v", len(p), utf8.ValidString(p))
			}
			parts = append(parts, p)
		}
		if strings.Join(parts, "") != text {
			t.Fatal("the pieces aren't the text")
		}
	})
}

// A token has at least a byte, and putting two texts together changes only what
// is where they meet.
func TestCountsAddUp(t *testing.T) {
	word := rapid.OneOf(rapid.StringMatching(`[a-zA-Z]{1,12}`), rapid.StringMatching(`[0-9]{1,9}`), rapid.StringMatching(`[ \n\t]{1,4}`), rapid.StringMatching(`[{}();:="'.,/-]{1,4}`), rapid.String())
	rapid.Check(t, func(t *rapid.T) {
		vocab := rapid.SampledFrom([]string{"o200k_base", "cl100k_base"}).Draw(t, "vocabulary")
		a := strings.Join(rapid.SliceOfN(word, 0, 30).Draw(t, "a"), "")
		b := strings.Join(rapid.SliceOfN(word, 0, 30).Draw(t, "b"), "")
		na, nb, n := Count(vocab, a), Count(vocab, b), Count(vocab, a+b)
		if n > na+nb+12 || n < na+nb-12 {
			t.Fatalf("%d and %d are %d", na, nb, n)
		}
		if n > len(a+b) || (n == 0) != (a+b == "") {
			t.Fatalf("%d tokens in %d bytes", n, len(a+b))
		}
		if r := Rough(a + b); r < 0 || r > len(a+b) || (r == 0) != (a+b == "") {
			t.Fatalf("roughly %d tokens in %d bytes", r, len(a+b))
		}
	})
}

// What was measured for 1080p and other sizes by whoever sent them.
func TestPictures(t *testing.T) {
	for _, c := range []struct {
		rule string
		w, h int
		want int
	}{
		{"patches32", 256, 256, 77}, {"patches32", 1024, 1024, 1229}, {"patches32", 1920, 1080, 2448}, {"patches32", 4032, 3024, 14364},
		{"tiles512", 512, 512, 85 + 170}, {"tiles512", 1024, 1024, 85 + 170*4}, {"tiles512", 4096, 8192, 85 + 170*6}, {"tiles512", 2048, 768, 85 + 170*8},
		{"tiles512_mini", 512, 512, 2833 + 5667},
		{"patches28", 512, 512, 19 * 19}, {"patches28", 1024, 1024, 37 * 37}, {"patches28", 4032, 3024, 1600},
		{"patches28_large", 1920, 1080, 69 * 39}, {"patches28_large", 8000, 8000, 4784},
		{"flat1120", 1, 1, 1120}, {"flat1120", 9000, 9000, 1120},
		{"tiles768", 384, 384, 258}, {"tiles768", 1000, 1000, 4 * 258},
		{"", 10, 10, 2500}, {"unheard of", 10, 10, 2500},
		{"patches28_large", 0, 0, 69 * 39}, // a screen
		{"patches28", -5, 9, 1600},
		{"patches32", 1 << 40, 1, 3125 * 6 / 5},
	} {
		if got := pictures(c.rule, c.w, c.h); got != c.want {
			t.Errorf("%s %d×%d: got %d, want %d", c.rule, c.w, c.h, got, c.want)
		}
	}
}

func BenchmarkCount(b *testing.B) {
	text := corpus(b)["../../engine/drive.go"]
	prose := corpus(b)["../../../docs/architecture.md"]
	Count(Default, "")
	for name, s := range map[string]string{"code": text, "prose": prose, "20000 a": strings.Repeat("a", 20_000), "4 MiB": strings.Repeat(prose, (4<<20)/len(prose))} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(s)))
			b.ReportAllocs()
			for b.Loop() {
				Count(Default, s)
			}
		})
	}
	b.Run("roughly", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			Rough(text)
		}
	})
}

func TestPiecesSumToTheRoughCountOfTheWhole(t *testing.T) {
	for _, text := range []string{"", "a", "Some words,  12345 and ÄÖÜ 漢字\n\n\nHTTPServer(x)"} {
		for n := 1; n <= 5; n++ {
			var s Sum
			for rest := text; rest != ""; {
				at := min(n, len(rest))
				s.Add(rest[:at])
				rest = rest[at:]
			}
			if s.Rough() != Rough(text) || s.Text() != Text(text) {
				t.Errorf("%q by %d bytes: %d and %d, want %d and %d", text, n, s.Rough(), s.Text(), Rough(text), Text(text))
			}
		}
	}
}
