package history

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/model/tokens"
	"github.com/belay-run/belay/internal/store"
)

// begin takes up the conversation that a thread begins with, or its window.
func (v *Conversation) begin(ctx context.Context, st store.Run, b belay.Beginning) error {
	n := 0
	defer func() { v.based = len(v.msgs) }()
	for s, err := range ReadBase(ctx, st, b.Base) {
		if err != nil {
			return err
		}
		if last := len(v.turns) - 1; s.Turn != "" && (last < 0 || v.turns[last].turn != s.Turn) {
			v.turns = append(v.turns, span{turn: s.Turn, from: n, end: v.seq, copied: true, text: asked(s.Message)})
		}
		n++
		if last := len(v.turns) - 1; last >= 0 && v.turns[last].turn == s.Turn {
			v.turns[last].to = n
		}
		if !v.light && (v.entire || len(b.Window) == 0) {
			v.push(s.Message)
		}
	}
	if v.light || v.entire {
		return nil
	}
	v.hidden = len(b.Window) > 0
	return v.pushAll(ctx, st, b.Window)
}

// pushAll adds messages that are kept as content.
func (v *Conversation) pushAll(ctx context.Context, st store.Run, refs []belay.Ref) error {
	for s, err := range ReadBase(ctx, st, refs) {
		if err != nil {
			return err
		}
		v.push(s.Message)
	}
	return nil
}

// standOn takes up the window of a boundary; facts are folded from there on.
func (v *Conversation) standOn(ctx context.Context, st store.Run, from int64) error {
	for ev, err := range st.Read(ctx, v.stream, from-1) {
		if err != nil {
			return err
		}
		p, ok := ev.Data.(event.ContextCompactionCompleted)
		if !ok || ev.Seq != from {
			break
		}
		err = v.pushAll(ctx, st, p.Window)
		v.hidden = true
		v.from, v.stands, v.seq, v.said = from, p.To, p.Reads-1, p.To
		v.based, v.behind = len(v.msgs), p.Hidden
		if p.Running != "" {
			v.turns = append(v.turns, span{turn: p.Running})
		}
		return err
	}
	return store.Damaged(store.RowName(v.stream, from), "the boundary of the conversation is not there")
}

// hasBase reports whether a fact begins a thread with a history.
func hasBase(p event.Payload) bool {
	t, ok := p.(event.ThreadStarted)
	return ok && len(t.Base) > 0
}

// wentBack makes the conversation what it was at the target, or tells the
// model which files aren't any more what it made of them.
func (v *Conversation) wentBack(p event.HistoryRollbackCompleted) {
	if p.Scope == event.ScopeThread {
		v.back(p.Target)
	}
	if note := backNote(p); note != "" {
		v.push(belay.Text(belay.RoleUser, Note(note)))
	}
}

// back leaves out the turns that ended after a fact, and what was noted since.
func (v *Conversation) back(target int64) {
	n := v.based
	var turns []span
	for _, t := range v.turns {
		if t.copied || t.end > 0 && t.end <= target {
			turns = append(turns, t)
		}
		if !t.copied && t.end > 0 && t.end <= target {
			n = t.to
		}
	}
	v.turns, v.msgs = turns, v.msgs[:n:n] // what follows is written elsewhere: a request may still hold this
	maps.DeleteFunc(v.asked, func(_ belay.TurnID, at int) bool { return at >= n })
	v.first, v.calls, v.dropped, v.note, v.said = nil, nil, 0, "", v.seq
	clear(v.got)
	v.size, v.media, v.cut, v.told = 0, false, false, nil
	for _, m := range v.msgs {
		v.weigh(m)
	}
}

// backNote is the note to the model about a rollback. A rollback of everything
// has none: the model knows nothing of what is gone.
func backNote(p event.HistoryRollbackCompleted) string {
	var b strings.Builder
	switch {
	case p.Scope == event.ScopeFiles:
		fmt.Fprintf(&b, "A person took back what your last %d turns did to files.", p.Count)
		if p.Count == 1 {
			b.Reset()
			b.WriteString("A person took back what your last turn did to files.")
		}
		if len(p.Artifacts) > 0 {
			b.WriteString(" These are as they were before it: " + strings.Join(p.Artifacts, ", "))
			if more := p.Restored - len(p.Artifacts); more > 0 {
				fmt.Fprintf(&b, " and %d more", more)
			}
			b.WriteString(".")
		}
	case len(p.Kept) == 0:
		return ""
	default:
		b.WriteString("More was said after this, and a person took it back.")
	}
	if len(p.Kept) > 0 {
		b.WriteString(" This was not taken back:\n- " + strings.Join(p.Kept, "\n- "))
	}
	b.WriteString("\nLook at what is there before you rely on it.")
	return b.String()
}

// asked is the beginning of a message that begins a turn.
func asked(m belay.Message) string {
	if len(m.Parts) == 0 || m.Role != belay.RoleUser {
		return ""
	}
	return event.CutText(m.Parts[0].Text, Preview)
}

// ended closes the running turn's span.
func (v *Conversation) ended(ev event.Envelope, o belay.Outcome) {
	v.settleFirst()
	if t := v.running(); t != nil && t.turn == ev.IDs.Turn {
		t.to, t.end, t.outcome = len(v.msgs), ev.Seq, o
	}
}

// running is the turn that hasn't ended.
func (v *Conversation) running() *span {
	if n := len(v.turns); n > 0 && v.turns[n-1].end == 0 {
		return &v.turns[n-1]
	}
	return nil
}

// settled is how many messages there are up to the last whole exchange: calls
// without all their answers don't count.
func (v *Conversation) settled() int {
	if len(v.calls) > 0 {
		return len(v.msgs) - 1
	}
	return len(v.msgs)
}

// ReadBase yields the messages of a base, in order, holding one at a time.
func ReadBase(ctx context.Context, st store.Blobs, base []belay.Ref) iter.Seq2[belay.Said, error] {
	return func(yield func(belay.Said, error) bool) {
		for _, ref := range base {
			more, err := readPiece(ctx, st, ref, yield)
			if err != nil {
				yield(belay.Said{}, err)
				return
			}
			if !more {
				return
			}
		}
	}
}

func readPiece(ctx context.Context, st store.Blobs, ref belay.Ref, yield func(belay.Said, error) bool) (more bool, err error) {
	r, err := st.Open(ctx, ref.Digest)
	if err != nil {
		return false, err
	}
	defer r.Close()
	dec := json.NewDecoder(bufio.NewReaderSize(r, 64<<10))
	for {
		var s belay.Said
		switch err := dec.Decode(&s); {
		case errors.Is(err, io.EOF):
			return true, nil
		case err != nil:
			return false, belay.Errorf(belay.CodeStoreDamaged, "a copied conversation can't be read").At(string(ref.Digest)).Wrap(err)
		case !yield(s, nil):
			return false, nil
		}
	}
}

// WriteBase keeps messages as a piece of a base, and counts its tokens as a model
// does; nil when there are none.
func WriteBase(ctx context.Context, st store.Blobs, counts tokens.Profile, said iter.Seq2[belay.Said, error]) (base []belay.Ref, n int64, err error) {
	w, err := st.Writer(ctx, belay.MediaSaid)
	if err != nil {
		return nil, 0, err
	}
	defer w.Close() //nolint:errcheck // it drops what was not committed
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for s, err := range said {
		if err != nil {
			return nil, 0, err
		}
		if err := enc.Encode(s); err != nil {
			return nil, 0, err
		}
		n += tokens.Message(s.Message)
		for a := range s.Attachments() {
			var content []byte
			if a.Image() {
				content, _ = st.Get(ctx, a.Ref.Digest) // what is gone can't be sent either
			}
			n += counts.Attached(a.Ref, content)
		}
	}
	if n == 0 {
		return nil, 0, nil
	}
	ref, err := w.Commit()
	if err != nil {
		return nil, 0, err
	}
	return []belay.Ref{ref}, n, nil
}
