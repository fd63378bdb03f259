package history

import (
	"context"
	"iter"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

// Spoken is a message of a conversation, with its turn and when it was said.
// What a thread began with has no time.
type Spoken struct {
	belay.Said
	Time time.Time
}

// Transcript yields a thread's conversation as a model is given it, holding
// one message at a time. Calls that have no answer yet are in it, with the
// answers that others of their message have.
func Transcript(ctx context.Context, st store.Run, id belay.ThreadID) iter.Seq2[Spoken, error] {
	return func(yield func(Spoken, error) bool) {
		v := newConversation(id.Stream())
		v.light = true
		var begun time.Time
		for ev, err := range st.Read(ctx, id.Stream(), 0) {
			first := v.first
			if err == nil {
				err = v.apply(ctx, st, ev)
			}
			if err != nil {
				yield(Spoken{}, err)
				return
			}
			if p, ok := ev.Data.(event.ThreadStarted); ok && !copied(ctx, st, p.Base, yield) {
				return
			}
			for i, m := range v.msgs {
				at := ev.Time
				if i == 0 && first != nil { // it waited for what the turn's model is told
					at = begun
				}
				if !yield(Spoken{belay.Said{Turn: v.speaking(), Message: m}, at}, nil) {
					return
				}
			}
			v.msgs = v.msgs[:0]
			if v.first != first {
				begun = ev.Time
			}
		}
		if m := v.first; m != nil && !yield(Spoken{belay.Said{Turn: v.speaking(), Message: *m}, begun}, nil) {
			return
		}
		if m := v.pending(); len(m.Parts) > 0 {
			yield(Spoken{Said: belay.Said{Turn: v.speaking(), Message: m}}, nil)
		}
	}
}

// copied yields what a thread began with.
func copied(ctx context.Context, st store.Run, base []belay.Ref, yield func(Spoken, error) bool) bool {
	for s, err := range ReadBase(ctx, st, base) {
		if !yield(Spoken{Said: s}, err) || err != nil {
			return false
		}
	}
	return true
}

// speaking is the turn that the newest message belongs to.
func (v *Conversation) speaking() belay.TurnID {
	if n := len(v.turns); n > 0 {
		return v.turns[n-1].turn
	}
	return ""
}

// pending is the answers that are there while others are still awaited.
func (v *Conversation) pending() belay.Message {
	m := belay.Message{Role: belay.RoleTool}
	for _, c := range v.calls {
		if p, ok := v.got[c.ID]; ok {
			m.Parts = append(m.Parts, p)
		}
	}
	return m
}
