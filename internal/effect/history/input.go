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
		if shown := shown([]belay.Attachment{a}); shown != nil {
			m.Parts = append(append(m.Parts, belay.Part{Text: Note("attached: " + a.Name)}), shown...)
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

// shown are the pictures and documents among attachments.
func shown(attached []belay.Attachment) (parts []belay.Part) {
	for _, a := range attached {
		switch {
		case a.Image():
			parts = append(parts, belay.Part{Image: &a})
		case a.Document():
			parts = append(parts, belay.Part{File: &a})
		}
	}
	return parts
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
	return replaced(m, func(a *belay.Attachment) string {
		switch {
		case a.Image() && !can.Images:
			return Note(a.Withheld("this model takes no images"))
		case !a.Image() && !can.Files:
			return Note(a.Withheld("this model takes no documents"))
		}
		return ""
	})
}

// replaced is a message with texts in the places of some pictures and documents, those of
// results included; an empty text leaves one as it is. What it changes are copies.
func replaced(m belay.Message, by func(*belay.Attachment) string) belay.Message {
	var own func(parts []belay.Part) ([]belay.Part, bool)
	own = func(parts []belay.Part) (out []belay.Part, changed bool) {
		put := func(i int, p belay.Part) {
			if !changed {
				out, changed = slices.Clone(parts), true
			}
			out[i] = p
		}
		for i, p := range parts {
			if a := p.Attachment(); a != nil {
				if text := by(a); text != "" {
					put(i, belay.Part{Text: text})
				}
			}
			if p.Result == nil {
				continue
			}
			if within, ok := own(p.Result.Parts); ok {
				r := *p.Result
				r.Parts, p.Result = within, &r
				put(i, p)
			}
		}
		return out, changed
	}
	if parts, changed := own(m.Parts); changed {
		m.Parts = parts
	}
	return m
}
