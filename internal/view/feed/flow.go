package feed

import (
	"encoding/json"
	"slices"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

// Bounds of text that flows.
const (
	flowKept   = 64 << 10 // bytes of a text that are kept; what is before them is in the log's checkpoints
	flowPiece  = 16 << 10 // bytes of one message
	maxFlowing = 1 << 14  // sessions with such texts; when there are more, texts that no fact announces are dropped
)

// flow is the text of a running request.
type flow struct {
	ids       belay.IDs
	attempt   int
	announced store.Position // of the fact that announces it; 0: not seen yet
	text      tail
	reasoning tail
}

// flows are the texts that flow, by session: most readers follow one.
type flows map[belay.SessionID]map[belay.StreamID]*flow

func (f flows) set(session belay.SessionID, stream belay.StreamID, of *flow) {
	if f[session] == nil {
		f[session] = map[belay.StreamID]*flow{}
	}
	f[session][stream] = of
}

func (f flows) drop(session belay.SessionID, stream belay.StreamID) {
	delete(f[session], stream)
	if len(f[session]) == 0 {
		delete(f, session)
	}
}

func (f *flow) is(step belay.StepID, attempt int) bool {
	return f.ids.Step == step && f.attempt == attempt
}

// tail is the end of a growing text.
type tail struct {
	base    int64 // bytes that are not kept
	durable int64 // bytes that checkpoints in the log have
	kept    []byte
}

func (t *tail) end() int64 { return t.base + int64(len(t.kept)) }

// add takes a piece at an offset. What is behind a hole begins anew.
func (t *tail) add(offset int64, text string) {
	switch have := t.end() - offset; {
	case have < 0:
		t.base, t.kept = offset, append(t.kept[:0], text...)
	case have < int64(len(text)):
		t.kept = append(t.kept, text[have:]...)
	}
}

// hole reports whether a piece is missing that no checkpoint has, for a reader who
// has the facts and the text up to an offset. It ends with the next checkpoint.
func (t *tail) hole(had int64) bool { return had < t.base && t.durable < t.base }

// trim lets the beginning go, down to a number of bytes, at most up to an offset, and
// to the beginning of a character.
func (t *tail) trim(keep int, upTo int64) {
	n := int(min(int64(len(t.kept)-keep), upTo-t.base))
	if n < keep/4 { // seldom and much, rather than each time a little
		return
	}
	for n < len(t.kept) && !utf8.RuneStart(t.kept[n]) {
		n++
	}
	t.kept = slices.Clone(t.kept[n:])
	t.base += int64(n)
}

// from is the text behind an offset, and where it begins.
func (t *tail) from(offset int64) (int64, []byte) {
	offset = min(max(offset, t.base), t.end())
	return offset, t.kept[offset-t.base:]
}

// piece is the beginning of from that goes into one message.
func (t *tail) piece(offset int64) (int64, []byte) {
	at, rest := t.from(offset)
	if len(rest) > flowPiece {
		n := flowPiece
		for !utf8.RuneStart(rest[n]) {
			n--
		}
		rest = rest[:n]
	}
	return at, rest
}

// Text is a message about text that flows; it is no fact. Put behind the first
// Offset bytes of what came of this attempt before, it makes a beginning of the
// answer's text.
type Text struct {
	Stream   belay.StreamID  `json:"stream"`
	Session  belay.SessionID `json:"sessionId,omitempty"`
	Thread   belay.ThreadID  `json:"threadId,omitempty"`
	Turn     belay.TurnID    `json:"turnId,omitempty"`
	Run      belay.RunID     `json:"runId,omitempty"`
	Step     belay.StepID    `json:"stepId"`
	Attempt  int             `json:"attempt"`
	Kind     string          `json:"kind"` // text, reasoning
	Offset   int64           `json:"offset"`
	Contents string          `json:"text"`
}

// Show takes what flows between facts, as the engine tells it. It returns at
// once.
func (h *Hub) Show(l event.Delta) {
	if l.Kind == "progress" {
		h.print(l)
		return
	}
	if l.Kind != "text" && l.Kind != "reasoning" || l.IDs.Step == "" {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	session := l.IDs.Session
	f := h.flows[session][l.Stream]
	if f == nil || !f.is(l.IDs.Step, l.Attempt) {
		if len(h.flows) >= maxFlowing {
			h.forget()
		}
		f = &flow{ids: l.IDs, attempt: l.Attempt}
		h.flows.set(session, l.Stream, f)
	}
	if l.Kind == "text" {
		f.text.add(l.Offset, l.Text)
		f.text.trim(flowKept, f.text.durable)
	} else {
		f.reasoning.add(l.Offset, l.Text)
		f.reasoning.trim(flowKept, f.reasoning.end())
	}
	if f.announced > 0 {
		h.topics[session].wake()
		h.topics[""].wake()
	}
}

// forget drops texts that no fact announces: their request may be over.
func (h *Hub) forget() {
	for session, of := range h.flows {
		for stream, f := range of {
			if f.announced == 0 {
				h.flows.drop(session, stream)
			}
		}
	}
}

// told is how much of a stream's text a reader has.
type told struct {
	step            belay.StepID
	attempt         int
	text, reasoning int64 // bytes
}

// texts is what a reader lacks of what flows, up to a number of bytes, and
// whether there is more. It is called with the hub locked, for a reader that has
// all facts the hub has seen.
func (r *Reader) texts(room *int) (out []Message, more bool) {
	if !r.filter.Takes("text") {
		return nil, false
	}
	now := map[belay.StreamID]told{}
	visit := func(of map[belay.StreamID]*flow) {
		for stream, f := range of {
			if f.announced == 0 || !r.scope.has(stream, &f.ids) {
				continue
			}
			had := r.told[stream]
			if had.step != f.ids.Step || had.attempt != f.attempt {
				had = told{step: f.ids.Step, attempt: f.attempt}
			}
			had.reasoning = f.reasoning.messages(f, stream, "reasoning", had.reasoning, room, &out)
			more = more || had.reasoning < f.reasoning.end()
			if !f.text.hole(had.text) {
				had.text = f.text.messages(f, stream, "text", had.text, room, &out)
				more = more || had.text < f.text.end()
			}
			now[stream] = had
		}
	}
	if r.scope.Session != "" {
		visit(r.hub.flows[r.scope.Session])
	} else {
		for _, of := range r.hub.flows {
			visit(of)
		}
	}
	r.told = now // what is over is forgotten
	return out, more
}

// messages adds what is behind an offset while there is room, and says up to
// where.
func (t *tail) messages(f *flow, stream belay.StreamID, kind string, had int64, room *int, out *[]Message) int64 {
	for had < t.end() && *room > 0 {
		m, upTo := f.message(stream, kind, t, had)
		had = upTo
		*room -= len(m.Data)
		*out = append(*out, m)
	}
	return had
}

// message is the next piece of a text behind an offset, and where it ends.
func (f *flow) message(stream belay.StreamID, kind string, t *tail, after int64) (m Message, upTo int64) {
	at, rest := t.piece(after)
	data, err := json.Marshal(Text{Stream: stream, Session: f.ids.Session, Thread: f.ids.Thread, Turn: f.ids.Turn, Run: f.ids.Run,
		Step: f.ids.Step, Attempt: f.attempt, Kind: kind, Offset: at, Contents: string(rest)})
	if err != nil {
		panic("live: " + err.Error()) // it is plain data
	}
	return Message{Type: TypeText, Data: data}, at + int64(len(rest))
}
