package history

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/store"
)

// input is what a person said, as a model sees it: the text, then what came
// with it, each under its name. A picture or a document stays a reference until
// a provider encodes it.
func input(ctx context.Context, st store.Run, c belay.Content) (belay.Message, error) {
	m := belay.Message{Role: belay.RoleUser, Parts: []belay.Part{{}}}
	var err error
	if c.Shown != nil {
		m.Parts[0].Whole, c.Ref = c.Ref, c.Shown
	}
	m.Parts[0].Text, err = whole(ctx, st, c)
	for _, a := range c.Attached {
		if err != nil {
			return m, err
		}
		if parts := seen("attached: ", a); parts != nil {
			m.Parts = append(m.Parts, parts...)
			continue
		}
		p, ref := belay.Part{}, a.Ref
		if a.Shown != nil {
			p.Whole, ref = &a.Ref, *a.Shown
		}
		var b []byte
		b, err = st.Get(ctx, ref.Digest)
		p.Text = Note(fmt.Sprintf("attached: %s, %d bytes:\n", a.Name, a.Ref.Size)) + strings.TrimSuffix(string(b), "\n")
		m.Parts = append(m.Parts, p)
	}
	return m, err
}

// seen is a picture or a document under its name; nil: it is neither.
func seen(how string, a belay.Attachment) []belay.Part {
	switch {
	case a.Image():
		return []belay.Part{{Text: Note(how + a.Name)}, {Image: &a}}
	case a.Document():
		return []belay.Part{{Text: Note(how + a.Name)}, {File: &a}}
	}
	return nil
}

// Shown returns the messages for a model with these abilities: pictures and
// documents that it can't take are replaced by a note. They are kept with the
// conversation, so that a request looks only at what is new, and each request's
// messages begin with those of the one before.
func (v *Conversation) Shown(can model.Abilities) []belay.Message {
	if can.Images && can.Files || !v.media {
		return v.msgs
	}
	if v.can != can || len(v.told) > len(v.msgs) {
		v.can, v.told = can, nil
	}
	for _, m := range v.msgs[len(v.told):] {
		v.told = append(v.told, withheld(m, can))
	}
	return v.told
}

// ShownTo returns messages for a model with these abilities, as Shown does.
func ShownTo(msgs []belay.Message, can model.Abilities) []belay.Message {
	out := make([]belay.Message, len(msgs))
	for i, m := range msgs {
		out[i] = withheld(m, can)
	}
	return out
}

// withheld is a message without what a model can't take. Its parts are its own
// only if something is left out.
func withheld(m belay.Message, can model.Abilities) belay.Message {
	own := false
	for i, p := range m.Parts {
		a, kind := p.Image, "images"
		if p.File != nil {
			a, kind = p.File, "documents"
		}
		if a == nil || p.Image != nil && can.Images || p.File != nil && can.Files {
			continue
		}
		if !own {
			m.Parts, own = slices.Clone(m.Parts), true
		}
		m.Parts[i] = belay.Part{Text: Note(fmt.Sprintf("%s (%s, %d bytes) isn't shown: this model takes no %s", a.Name, a.Ref.Media, a.Ref.Size, kind))}
	}
	return m
}
