package block_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/block"
)

var ids = belay.IDs{Session: "sess_1", Thread: "thr_1", Turn: "turn_1", Step: "step_1"}

func fact(p event.Payload) event.Envelope {
	return event.Envelope{Stream: ids.Thread.Stream(), Seq: 1, IDs: ids, Data: p}
}

// answered are the texts of the blocks of an answer whose text flows in these pieces
// and is whole in the fact at its end.
func answered(text string, pieces []string) (texts []string) {
	var f block.Fold
	f.Apply(fact(event.ModelRequested{Attempt: 1}))
	at := 0
	for _, p := range pieces {
		f.Flow(event.Delta{Stream: ids.Thread.Stream(), IDs: ids, Kind: "text", Attempt: 1, Offset: int64(at), Text: p})
		at += len(p)
	}
	f.Apply(fact(event.ModelCompleted{Attempt: 1, Text: belay.Content{Text: text}}))
	for _, b := range f.Take() {
		texts = append(texts, b.Text)
	}
	return texts
}

// An answer's blocks are the same however its text is cut into pieces, and whatever of
// them is missed; put together they are the answer.
func TestAnAnswerIsTheSameBlocksHoweverItFlows(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	lines := []string{"a line", "", "", "```go", "```", "~~~", "  indented", "\tby a tab", "- item", "ends in ü", "    ", "| a | b |", strings.Repeat("long ü ", 6000)}
	for range 500 {
		var b strings.Builder
		for range r.IntN(30) {
			b.WriteString(lines[r.IntN(len(lines))] + "\n")
		}
		text := b.String()
		want := answered(text, nil)
		var pieces []string
		for at := 0; at < len(text) && r.IntN(40) > 0; {
			n := min(1+r.IntN(1+r.IntN(2000)), len(text)-at)
			pieces = append(pieces, text[at:at+n])
			at += n
		}
		if got := answered(text, pieces); strings.Join(got, "|") != strings.Join(want, "|") {
			t.Fatalf("%.2000q in %d pieces is %d blocks, and at once %d\n%.2000q\n%.2000q", text, len(pieces), len(got), len(want), got, want)
		}
		if len(text) < 32<<10 && strings.TrimSpace(strings.Join(want, "")) != strings.TrimSpace(text) {
			t.Fatalf("%q is\n%q", text, want)
		}
	}
}

// Of an answer of 100,000 lines the fold holds what isn't finished, and looks at each
// byte once: also where one fence, or one line, is all of it.
func TestALongAnswerIsNotHeld(t *testing.T) {
	for name, line := range map[string]string{"paragraphs": "some words of a line of an answer\n\n", "one fence": "\tif x := f(); x > 0 {\n", "one line": "word after word, "} {
		t.Run(name, func(t *testing.T) {
			var f block.Fold
			f.Apply(fact(event.ModelRequested{Attempt: 1}))
			at, parts := int64(0), 0
			say := func(text string) {
				f.Flow(event.Delta{Stream: ids.Thread.Stream(), IDs: ids, Kind: "text", Attempt: 1, Offset: at, Text: text})
				at += int64(len(text))
				parts += len(f.Take())
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if name == "one fence" {
				say("```go\n")
			}
			for i := range 100_000 {
				if say(line); i%10_000 == 0 {
					for _, b := range f.Live() {
						if len(b.Text) > 40<<10 {
							t.Fatalf("%d bytes are held after %d lines", len(b.Text), i)
						}
					}
				}
			}
			runtime.ReadMemStats(&after)
			if parts < 10 {
				t.Errorf("%d blocks were finished", parts)
			}
			if used := int64(after.TotalAlloc - before.TotalAlloc); used > 40*at+(64<<20) {
				t.Errorf("%d bytes were allocated for an answer of %d", used, at)
			}
		})
	}
}

// What a part is cut out of a fence is a fence of its own.
func TestALongFenceStaysOne(t *testing.T) {
	text := "```go\n" + strings.Repeat("x := 1\n", 20_000) + "```\n"
	got := answered(text, nil)
	if len(got) < 3 {
		t.Fatalf("%d blocks", len(got))
	}
	for i, part := range got {
		if !strings.HasPrefix(part, "```go\n") || !strings.HasSuffix(part, "\n```\n") {
			t.Errorf("block %d is %s … %s", i, part[:20], part[len(part)-20:])
		}
	}
	if n := strings.Count(fmt.Sprint(got), "x := 1"); n != 20_000 {
		t.Errorf("%d lines of 20,000", n)
	}
}
