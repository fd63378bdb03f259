package history

import (
	"context"
	"math"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/core/window"
	"github.com/belay-run/belay/internal/store"
)

// Cut reports whether the conversation has something in part only, or stands on a
// window that leaves something out.
func (v *Conversation) Cut() bool { return v.cut || v.hidden }

// SourceHistory is the name of all that was said in a conversation.
const SourceHistory = "history"

// shortest is how many digits of a digest name a source.
const shortest = 6

// source is what a name stands for: content, or a text. A name is that of a call or a
// turn, the beginning of a digest, or SourceHistory.
func (v *Conversation) source(name string) (ref *belay.Ref, text string, found bool) {
	if at, ok := v.asked[belay.TurnID(name)]; ok {
		p := v.msgs[at].Parts[0]
		return p.Whole, p.Text, true
	}
	digits := strings.TrimPrefix(strings.ToLower(name), "sha256:")
	var all strings.Builder
	for _, m := range v.msgs {
		if name == SourceHistory {
			all.WriteString(plain(m, math.MaxInt))
		}
		for _, p := range m.Parts {
			switch {
			case p.Result != nil && string(p.Result.ID) == name:
				return p.Whole, p.Result.Text, true
			case p.Whole != nil && len(digits) >= shortest && strings.HasPrefix(strings.TrimPrefix(string(p.Whole.Digest), "sha256:"), digits):
				return p.Whole, "", true
			}
		}
	}
	return nil, all.String(), name == SourceHistory
}

// Source is a text that a thread's conversation has in part only, or no more, and its
// chunks. ErrNotFound is that there is none of that name, or that it is kept no more.
func (c *Cache) Source(ctx context.Context, s belay.StreamID, name string) (string, *window.Index, error) {
	v, ok := c.entires.Take(entire(s))
	if !ok {
		v = &Conversation{stream: s, entire: true}
		v.forget()
	}
	err := v.UpTo(ctx, c.st, 0, math.MaxInt64)
	ref, text, found := v.source(name)
	c.entires.Put(entire(s), v, v.size)
	switch {
	case err != nil:
		return "", nil, err
	case !found:
		return "", nil, store.ErrNotFound
	case ref == nil:
		return text, c.index(belay.DigestOf([]byte(text)), text), nil
	}
	b, err := c.st.Get(ctx, ref.Digest)
	if err != nil {
		return "", nil, err
	}
	return string(b), c.index(ref.Digest, string(b)), nil
}
