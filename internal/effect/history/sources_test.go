package history

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/lib/lru"
	"github.com/belay-run/belay/internal/store"
)

// kept is a log and what it names.
type kept struct {
	away
	content map[belay.Digest]string
}

func (s *kept) Get(_ context.Context, d belay.Digest) ([]byte, error) {
	text, ok := s.content[d]
	if !ok {
		return nil, store.ErrNotFound
	}
	return []byte(text), nil
}

func (s *kept) Open(ctx context.Context, d belay.Digest) (io.ReadCloser, error) {
	b, err := s.Get(ctx, d)
	return io.NopCloser(bytes.NewReader(b)), err
}

func (s *kept) put(text string) *belay.Ref {
	ref := belay.Ref{Digest: belay.DigestOf([]byte(text)), Size: int64(len(text)), Media: "text/plain"}
	s.content[ref.Digest] = text
	return &ref
}

// What a thread was shown in part, and what stands behind a window, can be read by the
// names that it was told; what was taken back, and what others have, can't.
// Guarantee: M64.
func TestWhatIsNotShownCanBeRead(t *testing.T) {
	st := &kept{content: map[belay.Digest]string{}}
	add := func(ids belay.IDs, p event.Payload) {
		st.facts = append(st.facts, event.Envelope{Seq: int64(len(st.facts) + 1), IDs: ids, Data: p})
	}
	long, output, file := st.put("all of the task"), st.put("all of the output"), st.put("all of the file")
	stranger := st.put("of another thread")
	turn := func(id belay.TurnID, c belay.Content) {
		add(belay.IDs{Turn: id}, event.TurnSubmitted{Text: c})
		add(belay.IDs{Turn: id}, event.TurnStarted{})
	}
	add(belay.IDs{}, event.ThreadStarted{})
	turn("t1", belay.Content{Text: "…", Ref: long, Shown: st.put("a part of the task"), Attached: []belay.Attachment{{Name: "f", Ref: *file, Shown: st.put("a part of the file")}}})
	add(belay.IDs{Turn: "t1"}, event.ModelCompleted{Calls: []event.ModelCall{{ID: "call_1", Name: "look"}, {ID: "call_2", Name: "see"}}})
	add(belay.IDs{Turn: "t1", Call: "call_1"}, event.ToolResult{Name: "look", Output: belay.Content{Text: "a part"}, Whole: output})
	add(belay.IDs{Turn: "t1", Call: "call_2"}, event.ToolResult{Name: "see", Output: belay.Content{Text: "a short one"}})
	add(belay.IDs{Turn: "t1"}, event.TurnCompleted{})
	end := int64(len(st.facts))
	turn("t2", belay.Content{Text: "taken back"})
	add(belay.IDs{Turn: "t2"}, event.TurnCompleted{})
	add(belay.IDs{}, event.HistoryRollbackCompleted{Scope: event.ScopeThread, Target: end, Turns: []belay.TurnID{"t2"}})
	to := int64(len(st.facts))
	add(belay.IDs{}, event.ContextCompactionCompleted{From: 1, To: to, Reads: to + 1, Window: []belay.Ref{*st.put("")}})
	boundary := int64(len(st.facts))

	c := NewCache(st, lru.New(1<<20))
	v := c.Take("thread/t")
	if err := v.UpTo(t.Context(), st, boundary, boundary); err != nil {
		t.Fatal(err)
	}
	if !v.Cut() || len(v.msgs) != 0 {
		t.Errorf("behind a window: %v, %d messages", v.Cut(), len(v.msgs))
	}
	c.Give(v)
	digits := func(r *belay.Ref) string { return r.Digest.Short() }
	for name, want := range map[string]string{
		"t1": "all of the task", "call_1": "all of the output", "call_2": "a short one", digits(long): "all of the task", string(file.Digest): "all of the file", digits(output)[:6]: "all of the output",
		"t2": "", "call_3": "", "": "", "sha256:": "", digits(stranger): "", digits(output)[:5]: "", "thread": "",
	} {
		text, x, err := c.Source(t.Context(), "thread/t", name)
		if text != want || (want == "") != errors.Is(err, store.ErrNotFound) || want != "" && len(x.Chunks) != 1 {
			t.Errorf("%q is %q, %v; want %q", name, text, err, want)
		}
	}
	text, _, err := c.Source(t.Context(), "thread/t", SourceHistory)
	if err != nil || !strings.Contains(text, "a part of the task") || !strings.Contains(text, "a short one") || strings.Contains(text, "taken back") {
		t.Errorf("history: %q, %v", text, err)
	}
	if v := c.Take("thread/t"); v.from != boundary {
		t.Error("what stands on the window was folded anew")
	}
	delete(st.content, output.Digest) // it expired
	if _, _, err := c.Source(t.Context(), "thread/t", "call_1"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("an output that is kept no more: %v", err)
	}
}

// The cache holds what was used last, by bytes, and always one.
func TestTheCacheMakesRoom(t *testing.T) {
	c := NewCache(&kept{}, lru.New(1000))
	give := func(s belay.StreamID, size int) {
		v := c.Take(s)
		v.seq, v.size = 1, size
		c.Give(v)
	}
	x := c.index("sha256:1", "a text")
	if c.index("sha256:1", "") != x {
		t.Error("the chunks of one text were made twice")
	}
	give("a", 600)
	give("b", 400) // the chunks have to go
	if c.index("sha256:1", "a text") == x || c.Take("b").seq == 0 || c.Take("a").seq != 0 {
		t.Error("what was used last isn't kept, or more than there is room for")
	}
	give("c", 5000)
	if c.Take("c").seq == 0 {
		t.Error("what was used last isn't kept, because it is large")
	}
}
