package history

import (
	"context"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/core/window"
	"github.com/belay-run/belay/internal/store"
)

// Cut reports whether the conversation has a text in part only.
func (v *Conversation) Cut() bool { return v.cut }

// sources are the texts that the conversation has in part only, the first ones first.
func (v *Conversation) sources() (all []belay.Ref) {
	for _, m := range v.msgs {
		for _, p := range m.Parts {
			if p.Whole != nil {
				all = append(all, *p.Whole)
			}
		}
	}
	return all
}

// shortest is how many digits of a digest name a source.
const shortest = 6

// Source is a text that a thread's conversation has in part only, by the beginning of
// its digest, and its chunks. ErrNotFound is that there is none, or that it is kept no
// more.
func (c *Cache) Source(ctx context.Context, s belay.StreamID, name string) (text string, x *window.Index, err error) {
	v := c.Take(s)
	err = v.UpTo(ctx, c.st, v.from, latest)
	all := v.sources()
	c.Give(v)
	if err != nil {
		return "", nil, err
	}
	digits := strings.TrimPrefix(strings.ToLower(name), "sha256:")
	for _, ref := range all {
		if len(digits) < shortest || !strings.HasPrefix(strings.TrimPrefix(string(ref.Digest), "sha256:"), digits) {
			continue
		}
		b, err := c.st.Get(ctx, ref.Digest)
		if err != nil {
			return "", nil, err
		}
		text := string(b)
		return text, c.index(ref.Digest, text), nil
	}
	return "", nil, store.ErrNotFound
}
