package history

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/store"
)

// away is a log whose contents can't be read for a while.
type away struct {
	store.Run
	facts []event.Envelope
	err   error
}

func (s *away) Read(_ context.Context, _ belay.StreamID, after int64) iter.Seq2[event.Envelope, error] {
	return func(yield func(event.Envelope, error) bool) {
		for _, e := range s.facts {
			if e.Seq > after && !yield(e, nil) {
				return
			}
		}
	}
}

func (s *away) Get(context.Context, belay.Digest) ([]byte, error) {
	if s.err != nil {
		return nil, s.err
	}
	return []byte("look at it"), nil
}

// A request that fails on the way to its messages is made of all of them when it is
// tried again.
func TestAConversationIsWholeAfterAnErrorAmidAFact(t *testing.T) {
	text := belay.Content{Text: "look", Ref: &belay.Ref{Digest: belay.DigestOf([]byte("look at it"))}}
	st := &away{err: errors.New("the disk is away")}
	for i, p := range []event.Payload{event.TurnSubmitted{Text: text}, event.TurnStarted{}} {
		st.facts = append(st.facts, event.Envelope{Seq: int64(i + 1), IDs: belay.IDs{Turn: "t"}, Data: p})
	}
	v := newConversation("thread/t")
	if err := v.UpTo(t.Context(), st, 0, 2); !errors.Is(err, st.err) {
		t.Fatal(err)
	}
	st.err = nil
	if err := v.UpTo(t.Context(), st, 0, 2); err != nil {
		t.Fatal(err)
	}
	if len(v.msgs) != 1 || v.msgs[0].Parts[0].Text != "look at it" {
		t.Errorf("the messages are %+v", v.msgs)
	}
}

// TestAPictureOfAResultIsPartOfIt, unless the model takes none.
func TestAPictureOfAResultIsPartOfIt(t *testing.T) {
	pic := belay.Attachment{Name: "a.png", Ref: belay.Ref{Digest: "sha256:x", Size: 3, Media: "image/png"}}
	st := &away{}
	for i, p := range []event.Payload{
		event.TurnSubmitted{Text: belay.Content{Text: "look"}}, event.TurnStarted{},
		event.ModelCompleted{Calls: []event.ModelCall{{ID: "c1", Name: "web_fetch", Args: []byte("{}")}, {ID: "c2", Name: "read", Args: []byte("{}")}}},
		event.ToolResult{Name: "web_fetch", Output: belay.Content{Text: "a picture", Attached: []belay.Attachment{pic}}}, event.ToolResult{Name: "read", Output: belay.Content{Text: "text"}},
	} {
		st.facts = append(st.facts, event.Envelope{Seq: int64(i + 1), IDs: belay.IDs{Turn: "t", Call: belay.CallID([]string{"", "", "", "c1", "c2"}[i])}, Data: p})
	}
	v := newConversation("thread/t")
	if err := v.UpTo(t.Context(), st, 0, 5); err != nil {
		t.Fatal(err)
	}
	m := v.msgs[len(v.msgs)-1]
	if m.Role != belay.RoleTool || len(m.Parts) != 2 || len(m.Parts[0].Result.Parts) != 1 || *m.Parts[0].Result.Parts[0].Image != pic || m.Parts[1].Result.Parts != nil {
		t.Errorf("%+v", m)
	}
	if flat := m.Flat(); len(flat.Parts) != 4 || flat.Parts[0].Result.Parts != nil || flat.Parts[2].Text != "[belay] web_fetch returned: a.png" || *flat.Parts[3].Image != pic || m.Parts[0].Result.Parts == nil {
		t.Errorf("flat: %+v of %+v", flat, m)
	}
	without := v.Shown(model.Abilities{})[2].Parts[0].Result.Parts[0]
	if without.Image != nil || without.Text != "[belay] [image: a.png (image/png, 3 bytes) isn't shown: this model takes no images]" || m.Parts[0].Result.Parts[0].Image == nil {
		t.Errorf("a model that takes none gets %+v", without)
	}
}
