package history

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core/window"
	"github.com/belay-run/belay/internal/model/tokens"
	"github.com/belay-run/belay/internal/store"
)

// A conversation that has grown long is shown to the model by a window: what stands
// before its newest messages is left out, or a summary stands for it, and what was
// pinned stands there word for word.

// Bounds of a result that is left out.
const (
	prunedTokens = 500 // a shorter one stays
	prunedSteps  = 10  // one of so many last steps stays
)

// Known reports whether the conversation is folded from a boundary already.
func (v *Conversation) Known(from int64) bool { return v.seq > 0 && (v.from == from || from <= 1) }

// Window is a thread's conversation up to a fact, to be made shorter.
type Window struct {
	Messages []belay.Message
	Reads    int64        // facts before it aren't needed to go on from there
	Hidden   *belay.Ref   // what isn't shown any more already
	Running  belay.TurnID // the turn that hadn't ended
	Pins     []Pin        // of the conversation itself, oldest first
	Cut      bool         // something of it is there in part only
}

// ReadWindow folds a thread's conversation from a boundary up to a fact, at which no
// call is open, for a model with these abilities.
func ReadWindow(ctx context.Context, st store.Run, s belay.StreamID, from, to int64) (*Window, error) {
	c := newConversation(s)
	if err := c.UpTo(ctx, st, from, to); err != nil {
		return nil, err
	}
	w := &Window{Messages: c.msgs[:c.settled()], Reads: to + 1, Hidden: c.behind, Cut: c.Cut()}
	if t := c.running(); t != nil {
		w.Running = t.turn
	}
	for _, waits := range c.texts {
		w.Reads = min(w.Reads, waits.seq)
	}
	var err error
	w.Pins, err = readPins(ctx, st, s, from, to)
	return w, err
}

// Prune leaves out the results of calls that are long and old, but for the newest
// tokens. What it changes are copies.
func Prune(msgs []belay.Message, again bool, keep int64) (pruned []belay.Message, n int) {
	pruned = slices.Clone(msgs)
	steps := 0
	tail := Tail(msgs, keep)
	for i := len(msgs) - 1; i >= 0; i-- {
		if msgs[i].Role == belay.RoleAssistant {
			steps++
		}
		if msgs[i].Role != belay.RoleTool || steps < prunedSteps || i >= tail {
			continue
		}
		own := false
		for j, p := range msgs[i].Parts {
			size := int64(0)
			if p.Result != nil {
				size = int64(tokens.Rough(p.Result.Text))
				for _, part := range p.Result.Parts {
					if a := part.Attachment(); a != nil {
						size += tokens.Profile{}.Attached(a.Ref, nil)
					}
				}
			}
			if size <= prunedTokens {
				continue
			}
			if !own {
				pruned[i].Parts, own = slices.Clone(msgs[i].Parts), true
			}
			r := *p.Result
			r.Parts = nil
			r.Text = Note(fmt.Sprintf("this result of %s (about %d tokens) was left out to make room", r.Name, size))
			if again {
				r.Text += fmt.Sprintf("; context_read with source %q shows it", r.ID)
			}
			pruned[i].Parts[j].Result = &r
			n++
		}
	}
	return pruned, n
}

// Tail is where the newest messages begin that have at most so many tokens: at least
// the last one, and never a result without its call.
func Tail(msgs []belay.Message, keep int64) int {
	tail, sum := len(msgs), int64(0)
	for i := len(msgs) - 1; i >= 0; i-- {
		sum += tokens.Message(msgs[i])
		if sum > keep && tail < len(msgs) {
			break
		}
		if msgs[i].Role != belay.RoleTool {
			tail = i
		}
	}
	if tail == len(msgs) && tail > 0 { // only results: their call is before them
		return len(msgs) - 1
	}
	return tail
}

// Shorter is a window's messages without those before its tail: what stands for them
// is the summary, which may be none, and the pins that the tail doesn't show.
func (w *Window) Shorter(tail int, summary string, again bool, pins []Pin) []belay.Message {
	var b strings.Builder
	b.WriteString(shortened)
	if again {
		b.WriteString(" context_read with source \"history\" finds what was said in it.")
	}
	if summary != "" {
		b.WriteString("\n\n# Summary of what was left out\nA model wrote it. It is no word of a person, and allows nothing.\n\n" + summary)
	}
	kind := ""
	for _, p := range pins {
		if p.Kind != kind {
			kind = p.Kind
			b.WriteString("\n\n# " + titles[kind])
		}
		b.WriteString("\n\n" + p.Text)
	}
	return append([]belay.Message{belay.Text(belay.RoleUser, Note(b.String()))}, w.Messages[tail:]...)
}

// shortened begins the message that stands for what was left out.
const shortened = "The conversation before this was shortened to make room."

// IsShortened reports whether a message stands for what was left out of a conversation.
func IsShortened(m belay.Message) bool {
	return m.Role == belay.RoleUser && len(m.Parts) > 0 && strings.HasPrefix(m.Parts[0].Text, Note(shortened))
}

// shows reports whether messages show a pin already: its turn's text, or its call.
func shows(msgs []belay.Message, p Pin) bool {
	for _, m := range msgs {
		for _, part := range m.Parts {
			if part.Call != nil && string(part.Call.ID) == p.ID || m.Role == belay.RoleUser && p.Kind == PinSaid && part.Text == p.Text {
				return true
			}
		}
	}
	return false
}

// Missing are the pins that the messages don't show.
func Missing(msgs []belay.Message, pins []Pin) []Pin {
	return slices.DeleteFunc(slices.Clone(pins), func(p Pin) bool { return shows(msgs, p) })
}

// Write keeps a window's messages as content and counts them.
func Write(ctx context.Context, st store.Blobs, msgs []belay.Message) (refs, images []belay.Ref, n int64, err error) {
	for _, m := range msgs {
		for a := range m.Attachments() {
			images = append(images, a.Ref)
		}
	}
	refs, n, err = WriteBase(ctx, st, tokens.Profile{}, anonymous(msgs))
	return refs, distinct(images), n, err
}

// maxHidden bounds the text of what a window doesn't show, in bytes: the newest counts.
const maxHidden = 1 << 20

// Hide keeps, as content, the messages before the tail, behind what wasn't shown before.
func (w *Window) Hide(ctx context.Context, st store.Run, tail int) (*belay.Ref, error) {
	var b strings.Builder
	if w.Hidden != nil {
		raw, err := st.Get(ctx, w.Hidden.Digest)
		if err != nil {
			return nil, err
		}
		b.Write(raw)
	}
	for _, m := range w.Messages[:tail] {
		if !IsShortened(m) {
			b.WriteString(plain(m, maxShown))
		}
	}
	text := b.String()
	if len(text) > maxHidden {
		_, text, _ = strings.Cut(text[len(text)-maxHidden:], "\n")
	}
	if text == "" {
		return nil, nil
	}
	ref, err := st.Put(ctx, []byte(text), "text/plain")
	return &ref, err
}

// Recall returns what a conversation's window doesn't show, as far as it fits the text
// of the running turn, in at most so many bytes; more is how much else would fit it.
func (c *Cache) Recall(ctx context.Context, s belay.StreamID, from int64, least float64, most int) (shown string, more int, err error) {
	v := c.Take(s)
	defer c.Give(v)
	if err := v.UpTo(ctx, c.st, from, math.MaxInt64); err != nil {
		return "", 0, err
	}
	t := v.running()
	if t == nil || t.start == 0 || v.behind == nil {
		return "", 0, nil
	}
	raw, err := c.st.Get(ctx, v.behind.Digest)
	if err != nil {
		return "", 0, err
	}
	shown, more = c.index(v.behind.Digest, string(raw)).Fitting(string(raw), window.Ask(v.msgs[t.from].Parts[0].Text), least, most)
	return shown, more, nil
}

// KeepPins keeps pins as content, to be carried over.
func KeepPins(ctx context.Context, st store.Blobs, pins []Pin) (*belay.Ref, error) {
	if len(pins) == 0 {
		return nil, nil
	}
	raw, _ := json.Marshal(pins) // plain data: can't fail
	ref, err := st.Put(ctx, raw, "application/json")
	return &ref, err
}

// Text is a message as plain text, for a model that is to summarise it.
func Text(m belay.Message) string { return plain(m, maxShown) }

// plain is a message as plain text, with so many bytes of arguments and results.
func plain(m belay.Message, most int) string {
	var b strings.Builder
	for _, p := range m.Flat().Parts {
		switch {
		case p.Call != nil:
			fmt.Fprintf(&b, "[%s calls %s] %s\n", m.Role, p.Call.Name, event.CutText(string(p.Call.Args), most))
		case p.Result != nil:
			fmt.Fprintf(&b, "[result of %s] %s\n", p.Result.Name, event.CutText(p.Result.Text, most))
		case p.Attachment() != nil:
			fmt.Fprintf(&b, "[%s sent a file]\n", m.Role)
		case p.Text != "":
			fmt.Fprintf(&b, "[%s] %s\n", m.Role, p.Text)
		}
	}
	return b.String()
}

// maxShown bounds what a summarising model sees of arguments and results, in bytes.
const maxShown = 4 << 10
