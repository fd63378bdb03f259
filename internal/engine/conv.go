package engine

import (
	"container/list"
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

// convBudget bounds the conversations kept in memory, in bytes over all threads.
const convBudget = 64 << 20

// conv is a thread's conversation as a model sees it, folded from the facts up
// to a sequence. A request reads only the facts that came since the last one.
type conv struct {
	stream belay.StreamID
	seq    int64  // folded up to here
	said   int64  // the last fact that added a message
	note   string // of the request that is out; the history has it once it is answered
	msgs   []belay.Message
	size   int
	images bool // a message has a picture

	texts   map[belay.TurnID]belay.Content // accepted turns that haven't begun
	dropped int                            // calls of it that were not taken
	calls   []event.ModelCall              // of the last answer, not all answered
	got     map[belay.CallID]belay.ToolResult
}

// convCache keeps the conversations used last.
type convCache struct {
	mu     sync.Mutex
	budget int
	size   int
	order  *list.List // of *conv, the one used last in front
	byID   map[belay.StreamID]*list.Element
}

func newConvCache(budget int) *convCache {
	return &convCache{budget: budget, order: list.New(), byID: map[belay.StreamID]*list.Element{}}
}

// take removes a conversation from the cache for its only user.
func (c *convCache) take(s belay.StreamID) *conv {
	c.mu.Lock()
	defer c.mu.Unlock()
	if el := c.byID[s]; el != nil {
		v := c.order.Remove(el).(*conv)
		delete(c.byID, s)
		c.size -= v.size
		return v
	}
	return newConv(s)
}

func newConv(s belay.StreamID) *conv {
	return &conv{stream: s, texts: map[belay.TurnID]belay.Content{}, got: map[belay.CallID]belay.ToolResult{}}
}

// give puts it back; the ones not used for longest make room.
func (c *convCache) give(v *conv) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.byID[v.stream] = c.order.PushFront(v)
	c.size += v.size
	for c.size > c.budget && c.order.Len() > 1 {
		old := c.order.Remove(c.order.Back()).(*conv)
		delete(c.byID, old.stream)
		c.size -= old.size
	}
}

// upTo folds the conversation up to a sequence.
func (v *conv) upTo(ctx context.Context, st store.Store, to int64) error {
	if v.said > to { // an earlier point than the cached one: start again
		*v = *newConv(v.stream)
	}
	if v.seq >= to {
		return nil
	}
	for ev, err := range st.Read(ctx, v.stream, v.seq) {
		if err != nil {
			return err
		}
		if ev.Seq > to {
			break
		}
		if err := v.apply(ctx, st, ev); err != nil {
			return err
		}
	}
	return nil
}

// feed folds facts that were just appended, so that the next request needs no
// look into the store. A conversation that isn't right before them is left alone.
func (c *convCache) feed(ctx context.Context, st store.Store, s belay.StreamID, events []event.Envelope) {
	if s.Kind() != belay.KindThread || len(events) == 0 || !c.standsAt(s, events[0].Seq-1) {
		return
	}
	v := c.take(s)
	for _, ev := range events {
		if v.apply(ctx, st, ev) != nil {
			return // the next request folds anew and meets the error itself
		}
	}
	c.give(v)
}

func (c *convCache) standsAt(s belay.StreamID, seq int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	el := c.byID[s]
	return el != nil && el.Value.(*conv).seq == seq
}

func (v *conv) apply(ctx context.Context, st store.Store, ev event.Envelope) error {
	v.seq = ev.Seq
	switch p := ev.Data.(type) {
	case event.TurnSubmitted:
		v.texts[ev.IDs.Turn] = p.Text
	case event.TurnStarted:
		m, err := input(ctx, st, v.texts[ev.IDs.Turn])
		delete(v.texts, ev.IDs.Turn)
		v.note = ""
		v.push(m)
		return err
	case event.ModelRequested:
		v.note = p.Note
	case event.ModelCompleted:
		return v.answer(ctx, st, p)
	case event.ToolResult:
		text, err := whole(ctx, st, p.Output)
		v.result(belay.ToolResult{ID: ev.IDs.Call, Name: p.Name, Text: text})
		return err
	case event.ToolFailed:
		if p.Final {
			text, err := whole(ctx, st, p.Output)
			v.result(belay.ToolResult{ID: ev.IDs.Call, Name: p.Name, Text: problemText(p.Problem, text), Error: true})
			return err
		}
	case event.TurnFailed:
		if _, queued := v.texts[ev.IDs.Turn]; queued { // it never began: the model knows nothing of it
			delete(v.texts, ev.IDs.Turn)
			return nil
		}
		text, err := whole(ctx, st, belay.Content{Text: p.Partial, Ref: p.PartialRef})
		v.push(belay.Text(belay.RoleUser, noteText(endText(p, text))))
		return err
	}
	return nil
}

// noteText marks what the runtime says, so that it is not taken for the person.
func noteText(note string) string { return "[belay] " + note }

// endText tells the model how the turn before ended. Text that was cut stands
// here and not as an answer of the model: it never finished it.
func endText(p event.TurnFailed, partial string) string {
	text := "That turn ended: " + string(p.Outcome) + " (" + p.Reason + ")."
	if partial != "" {
		text += " Your answer was cut off after:\n" + partial
	}
	return text
}

func (v *conv) push(m belay.Message) {
	v.said = v.seq
	v.msgs = append(v.msgs, m)
	for _, p := range m.Parts {
		v.size += len(p.Text) + 64
		v.images = v.images || p.Image != nil
		if p.Call != nil {
			v.size += len(p.Call.Args)
		}
		if p.Result != nil {
			v.size += len(p.Result.Text)
		}
	}
}

func (v *conv) answer(ctx context.Context, st store.Store, p event.ModelCompleted) error {
	m := belay.Message{Role: belay.RoleAssistant}
	text, err := whole(ctx, st, p.Text)
	if err != nil {
		return err
	}
	if text != "" {
		m.Parts = append(m.Parts, belay.Part{Text: text})
	}
	for _, c := range p.Calls {
		args := c.Args
		if c.ArgsRef != nil {
			if args, err = st.Get(ctx, c.ArgsRef.Digest); err != nil {
				return err
			}
		}
		m.Parts = append(m.Parts, belay.Part{Call: &belay.ToolCall{ID: c.ID, Name: c.Name, Args: args}})
	}
	if v.note != "" {
		v.push(belay.Text(belay.RoleUser, noteText(v.note)))
		v.note = ""
	}
	v.calls, v.dropped = p.Calls, p.Dropped
	clear(v.got)
	v.push(m)
	return nil
}

// result keeps a call's answer; the message of all answers follows once the
// last one is there, in the order of the calls.
func (v *conv) result(r belay.ToolResult) {
	v.got[r.ID] = r
	if len(v.got) < len(v.calls) {
		return
	}
	m := belay.Message{Role: belay.RoleTool}
	for _, c := range v.calls {
		r := v.got[c.ID]
		m.Parts = append(m.Parts, belay.Part{Result: &r})
	}
	if v.dropped > 0 {
		m.Parts = append(m.Parts, belay.Part{Text: noteText(fmt.Sprintf("%d more calls of your answer were dropped: it had too many. Make them now if they are still needed.", v.dropped))})
	}
	v.calls, v.dropped = nil, 0
	clear(v.got)
	v.push(m)
}

// whole is the full text of a content.
func whole(ctx context.Context, st store.Store, c belay.Content) (string, error) {
	if c.Ref == nil {
		return c.Text, nil
	}
	b, err := st.Get(ctx, c.Ref.Digest)
	return string(b), err
}

// problemText is how a model reads a failure.
func problemText(p event.Problem, output string) string {
	var b strings.Builder
	b.WriteString(p.Code + ": " + p.Message)
	if p.Hint != "" {
		b.WriteString("\n" + p.Hint)
	}
	if output != "" {
		b.WriteString("\n" + output)
	}
	return b.String()
}
