package history

import (
	"context"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/model/tokens"
	"github.com/belay-run/belay/internal/store"
)

// Past is a thread's conversation as it is in force, with the turns that made it.
type Past struct {
	Session belay.SessionID
	Thread  belay.ThreadID
	Turns   []PastTurn // in order; a turn's number is its place, from 1
	Seq     int64      // of the thread's last fact

	st    store.Run
	begin belay.Beginning // what it began with

	boundaries []int64       // from which on the model is shown a shorter window; the newest last
	conv       *Conversation // what was said after that
}

// PastTurn is a turn of the past. The last one may not have ended.
type PastTurn struct {
	ID      belay.TurnID  `json:"turn"`
	Number  int           `json:"number"`
	Outcome belay.Outcome `json:"outcome,omitempty"` // empty: it hasn't ended, or is a copy
	Copied  bool          `json:"copied,omitempty"`  // it came with the history that the thread began with
	Ended   bool          `json:"ended"`
	Text    string        `json:"text,omitempty"` // the beginning of what was asked
	Start   int64         `json:"-"`              // the fact that began it; 0 for a copy
	End     int64         `json:"-"`              // the fact that ended it

	span span
}

// ReadPast folds a thread's conversation. What the thread began with is not
// held in memory.
func ReadPast(ctx context.Context, st store.Run, id belay.ThreadID) (*Past, error) {
	p := &Past{Thread: id, st: st, conv: newConversation(id.Stream())}
	p.conv.light = true
	for ev, err := range st.Read(ctx, id.Stream(), 0) {
		if err != nil {
			return nil, err
		}
		if t, ok := ev.Data.(event.ThreadStarted); ok {
			p.Session, p.begin = ev.IDs.Session, t.Beginning
		}
		if err := p.conv.apply(ctx, st, ev); err != nil {
			return nil, err
		}
		p.bound(ev)
		p.Seq = ev.Seq
	}
	p.conv.settleFirst()
	for i, s := range p.conv.turns {
		p.Turns = append(p.Turns, PastTurn{ID: s.turn, Number: i + 1, Outcome: s.outcome, Copied: s.copied, Ended: s.end > 0, Text: s.text, Start: s.start, End: s.end, span: s})
	}
	return p, nil
}

// Messages folds a thread's conversation up to a fact, as a model is given it there
// from a boundary on; 1: from its beginning. Calls that aren't all answered are left out.
func Messages(ctx context.Context, st store.Run, s belay.StreamID, from, to int64) ([]belay.Message, error) {
	c := newConversation(s)
	err := c.UpTo(ctx, st, from, to)
	return c.msgs[:c.settled()], err
}

// Find is a turn by its number or its id, or the beginning of the id; 0 is the
// place before the first turn.
func (p *Past) Find(name string) (PastTurn, error) {
	if n, err := strconv.Atoi(name); err == nil && n >= 0 && n <= len(p.Turns) {
		if n == 0 {
			return PastTurn{Ended: true}, nil
		}
		return p.Turns[n-1], nil
	}
	var found []PastTurn
	for _, t := range p.Turns {
		if string(t.ID) == name {
			return t, nil
		}
		if name != "" && strings.HasPrefix(string(t.ID), name) {
			found = append(found, t)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return PastTurn{}, belay.Errorf(belay.CodeUsage, "%d turns have an id that begins with %s", len(found), name).WithHint("write more of it, or the turn's number")
	}
	return PastTurn{}, belay.Errorf(belay.CodeNotFound, "the conversation has no turn %s; it has %d", name, len(p.Turns)).At(string(p.Session)).
		WithHint("belay sessions show --turns %s lists them", p.Session)
}

// Before is the turn before the first of some, or the place before the first turn. Turns
// that became part of another one are that one.
func (p *Past) Before(turns map[belay.TurnID]bool) PastTurn {
	before := PastTurn{Ended: true}
	for i, t := range p.Turns {
		if turns[t.ID] || i == len(p.Turns)-1 {
			break
		}
		before = t
	}
	return before
}

// Last is the turn that ended last, or the place before the first.
func (p *Past) Last() PastTurn {
	for i := len(p.Turns) - 1; i >= 0; i-- {
		if p.Turns[i].Ended {
			return p.Turns[i]
		}
	}
	return PastTurn{Ended: true}
}

// BeforeLast is the place before the last n turns that have ended.
func (p *Past) BeforeLast(n int) (PastTurn, error) {
	own := slices.DeleteFunc(slices.Clone(p.Turns), func(t PastTurn) bool { return t.Copied || !t.Ended })
	switch {
	case len(own) < n:
		return PastTurn{}, belay.Errorf(belay.CodeBadState, "only %d of its turns have ended", len(own)).At(string(p.Session)).
			WithHint("belay sessions show --turns %s lists them", p.Session)
	case len(own) == n:
		return PastTurn{Ended: true}, nil
	}
	return own[len(own)-1-n], nil
}

// forkNote tells the model where a copy of an unfinished turn stops.
const forkNote = "The conversation was copied in the middle of that turn, after its last whole step. What the turn did afterwards is not known here."

// Fork is how a thread begins that continues after a turn: what was said up to
// its end, kept as content. Of a turn that hasn't ended the steps that have
// are copied; calls and their answers stay together. It is counted as a model does.
func (p *Past) Fork(ctx context.Context, t PastTurn, counts tokens.Profile) (belay.Beginning, error) {
	if to := p.conv.settled(); t.ID != "" && !t.Copied && !t.Ended && to <= t.span.from+1 {
		return belay.Beginning{}, belay.Errorf(belay.CodeBadState, "turn %d hasn't ended, and none of its steps has", t.Number).At(string(p.Session)).
			WithHint("belay fork %s --turn %d, or wait until it has ended", p.Session, t.Number-1)
	}
	return p.fork(ctx, t, counts, forkNote)
}

// ForkNow is how a thread begins that continues from the last whole step, be it that
// nothing but the text of the turn was said. The note comes last.
func (p *Past) ForkNow(ctx context.Context, counts tokens.Profile, note string) (belay.Beginning, error) {
	if len(p.Turns) == 0 {
		return belay.Beginning{}, belay.Errorf(belay.CodeBadState, "nothing was said yet")
	}
	return p.fork(ctx, p.Turns[len(p.Turns)-1], counts, note)
}

func (p *Past) fork(ctx context.Context, t PastTurn, counts tokens.Profile, running string) (belay.Beginning, error) {
	b := belay.Beginning{ForkedFrom: &belay.Fork{Session: p.Session, Thread: p.Thread, Turn: t.ID, Sequence: t.End}}
	if t.ID == "" {
		return b, nil
	}
	if t.Copied {
		b.ForkedFrom.Sequence = 0
		return b, p.write(ctx, &b, counts, head(ReadBase(ctx, p.st, p.begin.Base), t.span.to))
	}
	to, note, known := t.span.to, "", t.End
	if !t.Ended {
		to, note = p.conv.settled(), running
		b.ForkedFrom.Sequence, known = p.Seq, t.Start
	}
	if err := p.write(ctx, &b, counts, p.said(to, note)); err != nil {
		return b, err
	}
	if p.begin.Tokens == 0 && len(p.begin.Base) > 0 {
		b.Tokens = 0 // that wasn't counted
	} else {
		b.Tokens += p.begin.Tokens
	}
	b.Base = slices.Concat(p.begin.Base, b.Base)
	if err := p.window(ctx, &b, counts, b.ForkedFrom.Sequence); err != nil {
		return b, err
	}
	b.Images = distinct(slices.Concat(p.begin.Images, b.Images))
	if len(b.Base) > belay.MaxBase || len(b.Images) > belay.MaxImages {
		shown := b.Images[max(0, len(b.Images)-belay.MaxImages):]
		if err := p.write(ctx, &b, counts, showing(ReadBase(ctx, p.st, b.Base), shown)); err != nil {
			return b, err
		}
	}
	return b, p.remember(ctx, &b, known)
}

// bound folds which boundaries are in force.
func (p *Past) bound(ev event.Envelope) {
	switch f := ev.Data.(type) {
	case event.ContextCompactionCompleted:
		p.boundaries = append(p.boundaries, ev.Seq)
	case event.HistoryRollbackCompleted:
		if f.Scope == event.ScopeThread {
			p.boundaries = slices.DeleteFunc(p.boundaries, func(seq int64) bool { return seq > f.Target })
		}
	}
}

// window adds what the model is shown at a fact, where that isn't the base.
func (p *Past) window(ctx context.Context, b *belay.Beginning, counts tokens.Profile, at int64) error {
	from := int64(0)
	for _, seq := range p.boundaries {
		if seq <= at {
			from = seq
		}
	}
	if from == 0 && len(p.begin.Window) == 0 {
		return nil
	}
	w, err := ReadWindow(ctx, p.st, p.Thread.Stream(), from, at)
	if err != nil {
		return err
	}
	if b.Window, b.Tokens, err = WriteBase(ctx, p.st, counts, anonymous(w.Messages)); err == nil {
		b.Pinned, err = KeepPins(ctx, p.st, w.Pins)
	}
	return err
}

// anonymous are messages as content has them, whatever turns they belong to.
func anonymous(msgs []belay.Message) iter.Seq2[belay.Said, error] {
	return func(yield func(belay.Said, error) bool) {
		for _, m := range msgs {
			if !yield(belay.Said{Message: m}, nil) {
				return
			}
		}
	}
}

// write makes what is said a beginning's base, and names the pictures and
// documents in it.
func (p *Past) write(ctx context.Context, b *belay.Beginning, counts tokens.Profile, said iter.Seq2[belay.Said, error]) (err error) {
	b.Images = nil
	b.Base, b.Tokens, err = WriteBase(ctx, p.st, counts, func(yield func(belay.Said, error) bool) {
		for s, err := range said {
			for a := range s.Attachments() {
				b.Images = append(b.Images, a.Ref)
			}
			if !yield(s, err) {
				return
			}
		}
	})
	b.Images = distinct(b.Images)
	return err
}

// distinct keeps the last of equal references.
func distinct(refs []belay.Ref) (out []belay.Ref) {
	for i, r := range refs {
		if !slices.Contains(refs[i+1:], r) {
			out = append(out, r)
		}
	}
	return out
}

// showing leaves out the pictures and documents that aren't in the list: a thread can begin
// with so many only.
func showing(said iter.Seq2[belay.Said, error], shown []belay.Ref) iter.Seq2[belay.Said, error] {
	return func(yield func(belay.Said, error) bool) {
		for s, err := range said {
			s.Message = replaced(s.Message, func(a *belay.Attachment) string {
				if slices.Contains(shown, a.Ref) {
					return ""
				}
				return Note(a.Name + " isn't shown any more")
			})
			if !yield(s, err) {
				return
			}
		}
	}
}

// head is the first n of what is said.
func head(said iter.Seq2[belay.Said, error], n int) iter.Seq2[belay.Said, error] {
	return func(yield func(belay.Said, error) bool) {
		i := 0
		for s, err := range said {
			if i++; i > n || !yield(s, err) {
				return
			}
		}
	}
}

// said are the thread's own messages up to one, and a note after them.
func (p *Past) said(to int, note string) iter.Seq2[belay.Said, error] {
	return func(yield func(belay.Said, error) bool) {
		var turn belay.TurnID
		turns := p.conv.turns
		for i, m := range p.conv.msgs[:to] {
			for len(turns) > 0 && (turns[0].copied || turns[0].from <= i) {
				turn, turns = turns[0].turn, turns[1:]
			}
			if !yield(belay.Said{Turn: turn, Message: m}, nil) {
				return
			}
		}
		if note != "" {
			yield(belay.Said{Turn: turn, Message: belay.Text(belay.RoleUser, Note(note))}, nil)
		}
	}
}

// Sizes of the notes that a thread which begins with a history gets, in bytes.
const (
	roomForFiles = 5 << 10
	roomForLost  = 5 << 10
	maxForkTaint = 16 // origins
)

// remember adds what the thread knew of files at a fact, the most recent as far
// as they fit, and the calls whose outcome is unknown now: files were not rolled
// back.
func (p *Past) remember(ctx context.Context, b *belay.Beginning, at int64) error {
	d := thread.New(p.Thread.Stream())
	for ev, err := range p.st.Read(ctx, p.Thread.Stream(), 0) {
		if err != nil {
			return err
		}
		d.Apply(ev)
		if ev.Seq == at {
			b.Files = newestFiles(d.State().Files.List())
		}
	}
	b.Taint = thread.TaintNames(d.State().Taint, maxForkTaint)
	room := roomForLost
	lost := d.State().LostKeys
	for i := len(lost) - 1; i >= 0; i-- {
		if room -= event.TextLen(lost[i]) + 3; room < 0 {
			break
		}
		b.Lost = append([]string{lost[i]}, b.Lost...)
	}
	return nil
}

func newestFiles(all []event.FileSeen) []event.FileSeen {
	room := roomForFiles
	for i := len(all) - 1; i >= 0; i-- {
		if room -= event.TextLen(all[i].Path) + len(all[i].Digest) + 24; room < 0 {
			return all[i+1:]
		}
	}
	return all
}
