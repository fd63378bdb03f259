package engine

import (
	"context"
	"fmt"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

// input is what a person said, as a model sees it: the text, then what came
// with it, each under its name. A picture stays a reference until a provider
// encodes it.
func input(ctx context.Context, st store.Store, c belay.Content) (belay.Message, error) {
	text, err := whole(ctx, st, c)
	m := belay.Text(belay.RoleUser, text)
	for _, a := range c.Attached {
		if err != nil {
			return m, err
		}
		if a.Image() {
			m.Parts = append(m.Parts, belay.Part{Text: noteText("attached: " + a.Name)}, belay.Part{Image: &a})
			continue
		}
		var b []byte
		b, err = st.Get(ctx, a.Ref.Digest)
		m.Parts = append(m.Parts, belay.Part{Text: noteText(fmt.Sprintf("attached: %s, %d bytes:\n", a.Name, a.Ref.Size)) + strings.TrimSuffix(string(b), "\n")})
	}
	return m, err
}

// withoutImages are the messages for a model that takes no pictures: it is told
// what it doesn't see. The conversation itself stays as it is.
func withoutImages(msgs []belay.Message) []belay.Message {
	out := make([]belay.Message, len(msgs))
	for i, m := range msgs {
		out[i] = m
		for j, p := range m.Parts {
			if p.Image == nil {
				continue
			}
			if &out[i].Parts[0] == &m.Parts[0] {
				out[i].Parts = append([]belay.Part(nil), m.Parts...)
			}
			out[i].Parts[j] = belay.Part{Text: noteText(fmt.Sprintf("%s (%s, %d bytes) isn't shown: this model takes no images", p.Image.Name, p.Image.Ref.Media, p.Image.Ref.Size))}
		}
	}
	return out
}
