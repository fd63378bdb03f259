package window

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/model/tokens"
)

func termsOf(text string) (out []string) {
	eachTerm(text, func(t []byte) { out = append(out, string(t)) })
	return out
}

func TestWordsAndTheirParts(t *testing.T) {
	for text, want := range map[string]string{
		"":                      "",
		"Plain words, 42 too.":  "plain words 42 too",
		"parseHTTPRequest":      "parsehttprequest parse http request",
		"max_line_bytes = x2":   "max_line_bytes max line bytes x2 x 2",
		"__init__ _ a_":         "init a",
		"GoString":              "gostring go string",
		"über Ärger don't":      "über ärger don t",
		"ПриветМир":             "приветмир привет мир",
		"東京 tower":              "東 京 tower",
		"internal/cli/main.go":  "internal cli main go",
		strings.Repeat("a", 99): strings.Repeat("a", 99),
	} {
		if got := strings.Join(termsOf(text), " "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := termsOf(strings.Repeat("a", 500)); len(got) != 1 || len(got[0]) > maxTerm+4 {
		t.Errorf("a long word is %d words, %d bytes", len(got), len(got[0]))
	}
}

// Chunks are the text, cut between lines; none is larger than the limit unless it is
// one line, and none could have taken the line that follows it.
func TestChunksAreWholeLines(t *testing.T) {
	line := rapid.OneOf(rapid.StringMatching(`[a-z ]{0,40}`), rapid.StringMatching(`[A-Z{}();]{0,300}`), rapid.String())
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(line, 0, 60).Draw(t, "lines"), "\n")
		limit := rapid.IntRange(1, 200).Draw(t, "limit")
		at, next := 0, 1
		size := func(c Chunk) (n int) {
			for l := range strings.Lines(c.Of(text)) {
				n += tokens.Rough(l)
			}
			return n
		}
		all := Split(text, limit)
		for i, c := range all {
			switch {
			case c.From != at || c.Line != next || c.Lines < 1:
				t.Fatalf("chunk %d begins at %d, line %d; want %d, %d", i, c.From, c.Line, at, next)
			case c.Lines != strings.Count(strings.TrimSuffix(c.Of(text), "\n"), "\n")+1:
				t.Fatalf("chunk %d has %d lines", i, c.Lines)
			case c.Lines > 1 && size(c) > limit:
				t.Fatalf("chunk %d has %d tokens", i, size(c))
			case i > 0 && size(all[i-1])+tokens.Rough(firstLine(c.Of(text))) <= limit:
				t.Fatalf("chunk %d had room for the line after it", i-1)
			}
			at, next = c.To, c.Last()+1
		}
		if at != len(text) {
			t.Fatalf("the chunks end at %d of %d", at, len(text))
		}
	})
}

func firstLine(s string) string {
	for l := range strings.Lines(s) {
		return l
	}
	return ""
}

// long is a text of many chunks. Line 7,000 is the only one about something else.
func long() string {
	var b strings.Builder
	for i := 1; i <= 10_000; i++ {
		if i == 7000 {
			b.WriteString("func retryBackoff(attempt int) time.Duration { return exponential(attempt) }\n")
			continue
		}
		fmt.Fprintf(&b, "2026-11-23 line %d: the request was answered\n", i)
	}
	return b.String()
}

func TestTheBestChunksAreThoseOfTheQuestion(t *testing.T) {
	text := long()
	x := NewIndex(text, ChunkTokens)
	hits := x.Best(text, "where is the retry backoff computed", 0.3, 3)
	if len(hits) != 1 || !strings.Contains(x.Chunks[hits[0].Chunk-1].Of(text), "retryBackoff") {
		t.Fatalf("found %+v of %d chunks", hits, len(x.Chunks))
	}
	for _, q := range []string{"", "zebra", "zebra of the 7000 backoffs"} {
		if hits := x.Best(text, q, 0.3, 3); len(hits) > 0 {
			t.Errorf("%q found %+v", q, hits)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		q := strings.Join(rapid.SliceOfN(rapid.SampledFrom(strings.Fields("retry backoff line 7000 answered zebra func Duration")), 1, 6).Draw(t, "words"), " ")
		for _, h := range x.Best(text, q, 0, 1000) {
			if h.Relevance <= 0 || h.Relevance > 1 {
				t.Fatalf("%q: %+v", q, h)
			}
		}
	})
}

func TestAnExcerptIsShort(t *testing.T) {
	for name, text := range map[string]string{
		"log": long(), "a line": strings.Repeat("{},", 1<<20), "many lines": strings.Repeat("\n", 1<<20), "broken": strings.Repeat("\xff\xfe", 1<<17),
	} {
		x := NewIndex(text, ChunkTokens)
		got := x.Excerpt("0123456789ab", text, "where is the retry backoff computed", 0.3, true)
		if n := tokens.Rough(got); n >= Long {
			t.Errorf("%s: %d tokens", name, n)
		}
		if has := strings.Contains(got, "func retryBackoff"); has != (name == "log") {
			t.Errorf("%s: what was asked for is in it: %v", name, has)
		}
		if !strings.Contains(got, "0123456789ab") || !strings.Contains(got, fmt.Sprintf("of %d, lines 1-", len(x.Chunks))) {
			t.Errorf("%s: %.300s", name, got)
		}
	}
}

// All of a text can be read: by its chunks with their offsets, and by its lines.
func TestEverythingCanBeRead(t *testing.T) {
	text := strings.Repeat("short\n", 1000) + strings.Repeat("longer line ", 3000) + "\nthe end"
	x := NewIndex(text, ChunkTokens)
	var b strings.Builder
	for n := 1; n <= len(x.Chunks); n++ {
		for at, more := 0, true; more; {
			got, err := x.Answer(text, Question{Chunk: n, Offset: at})
			if err != nil {
				t.Fatal(err)
			}
			_, got, _ = strings.Cut(got, "\n")
			if got, _, more = strings.Cut(got, "[… "); !more && n == len(x.Chunks) || more {
				got = strings.TrimSuffix(got, "\n")
			}
			b.WriteString(got)
			at += len(got)
		}
	}
	if b.String() != text {
		t.Errorf("the chunks are %d bytes, the text %d", b.Len(), len(text))
	}
	for q, want := range map[Question]string{
		{Line: 1000}:                "short\n",
		{Line: 999, Until: 1001}:    "short\nshort\n[… lines 1001-1001]\n",
		{Line: 1002, Until: 9}:      "the end",
		{Words: "the END"}:          "[chunk 4 of 4, lines 1002-1002]\nthe end\n",
		{Chunk: 99}:                 "!there is no chunk 99; there are 4",
		{Chunk: 1, Offset: 1 << 20}: "!the chunk has 3000 bytes",
		{Line: 2000}:                "!there are 1002 lines",
		{Words: "zebra"}:            "!no chunk has any of these words",
	} {
		got, err := x.Answer(text, q)
		if err != nil {
			got = "!" + err.Error()
		}
		if got != want {
			t.Errorf("%+v: %.200q, want %q", q, got, want)
		}
	}
	rows, err := x.Answer(text, Question{})
	if n := strings.Count(rows, "\n"); err != nil || n != len(x.Chunks)+1 {
		t.Errorf("%d rows: %s, %v", n, rows, err)
	}
	if !slices.Equal(Split("", 9), nil) {
		t.Error("nothing has chunks")
	}
}

func BenchmarkIndex(b *testing.B) {
	text := strings.Repeat(long(), 10)
	b.Run("cut", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			NewIndex(text, ChunkTokens)
		}
	})
	x := NewIndex(text, ChunkTokens)
	b.Run("ask", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			x.Best(text, "where is the retry backoff computed", 0.3, 3)
		}
	})
}

// What is cited is what a later answer or argument names by its path, or by two words
// that nothing showed before.
// Guarantee: M65.
func TestWhatIsCited(t *testing.T) {
	filler := strings.Repeat("filler ", 50)
	result := func(id belay.CallID, text string) belay.Message {
		return belay.Message{Role: belay.RoleTool, Parts: []belay.Part{{Result: &belay.ToolResult{ID: id, Name: "read", Text: text + filler}}}}
	}
	says := func(text string, calls ...*belay.ToolCall) belay.Message {
		m := belay.Text(belay.RoleAssistant, text)
		for _, c := range calls {
			m.Parts = append(m.Parts, belay.Part{Call: c})
		}
		return m
	}
	read := func(id belay.CallID, path string) *belay.ToolCall {
		return &belay.ToolCall{ID: id, Name: "read", Args: []byte(`{"path":"` + path + `"}`)}
	}
	excerpt := NewIndex(long(), ChunkTokens).Excerpt("0123456789ab", long(), "retryBackoff", 0.3, false)
	for name, c := range map[string]struct {
		then []belay.Message // after the result of reading src/a.go
		want bool
	}{
		"nothing":                        {nil, false},
		"one word":                       {[]belay.Message{says("the scheduler is there")}, false},
		"two words":                      {[]belay.Message{says("the scheduler has a watchdog")}, true},
		"two words in two answers":       {[]belay.Message{says("the scheduler"), says("a watchdog")}, false},
		"an identifier is one word":      {[]belay.Message{says("schedulerWatchdogs")}, false},
		"short words":                    {[]belay.Message{says("a b twice short")}, false},
		"words that the task had":        {[]belay.Message{says("explain the program")}, false},
		"words that it said itself":      {[]belay.Message{says("surely whatever")}, false},
		"its path":                       {[]belay.Message{says("it is in src/a.go")}, true},
		"its path in an argument":        {[]belay.Message{says("", read("c2", "src/a.go"))}, true},
		"words that another showed next": {[]belay.Message{result("c9", "scheduler watchdog"), says("scheduler watchdog")}, true},
	} {
		var u Use
		u.Take(belay.Text(belay.RoleUser, "please explain the program"), true)
		u.Take(says("surely, whatever it takes", read("c1", "src/a.go")), true)
		u.Take(result("c1", "scheduler watchdog schedulerWatchdogs a b twice short explain program surely whatever "), true)
		for _, m := range c.then {
			u.Take(m, m.Role == belay.RoleAssistant)
		}
		if s := u.Sum(); (s.Cited > 0) != c.want || s.Given < 50 || s.Cited == 0 && s.Uncited[0].Name != "read src/a.go" {
			t.Errorf("%s: %+v", name, s)
		}
	}
	var u Use
	u.Take(belay.Message{Role: belay.RoleUser, Parts: []belay.Part{{Text: excerpt, Whole: &belay.Ref{}}}}, true)
	u.Take(says("retryBackoff is exponential(attempt)"), true)
	s := u.Sum()
	if share, known := s.Efficiency(); len(s.Uncited) != 1 || !strings.HasPrefix(s.Uncited[0].Name, "chunk 1 of ") || s.Cited < 500 || known || share != 0 {
		t.Errorf("chunks: %+v, %v", s, share)
	}
	for range 9 {
		u.Take(result("c1", strings.Repeat("unheard ", 1000)), true)
	}
	if s := u.Sum(); len(s.Uncited) != belay.MaxUncited || s.Uncited[0].Tokens < 1000 {
		t.Errorf("the largest: %+v", s.Uncited)
	}
	if share, known := u.Sum().Efficiency(); !known || share <= 0 || share >= belay.LowUse {
		t.Errorf("the share: %v, %v", share, known)
	}
}
