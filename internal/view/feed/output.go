package feed

import (
	"encoding/json"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

// outputKept is how many bytes are kept of what a call printed. The whole is in the
// store when the call is over.
const outputKept = 16 << 10

// output is what a running call printed.
type output struct {
	stream    belay.StreamID
	ids       belay.IDs
	attempt   int
	announced store.Position // of the fact that the call started; 0: not seen yet
	tail      tail
}

// prints is what running calls printed, by session.
type prints map[belay.SessionID]map[belay.CallID]*output

func (p prints) set(o *output) {
	if p[o.ids.Session] == nil {
		p[o.ids.Session] = map[belay.CallID]*output{}
	}
	p[o.ids.Session][o.ids.Call] = o
}

func (p prints) drop(session belay.SessionID, call belay.CallID) {
	delete(p[session], call)
	if len(p[session]) == 0 {
		delete(p, session)
	}
}

// dropAll drops what the calls of a stream printed.
func (p prints) dropAll(session belay.SessionID, stream belay.StreamID) {
	for call, o := range p[session] {
		if o.stream == stream {
			p.drop(session, call)
		}
	}
}

func (p prints) held() (n int) {
	for _, of := range p {
		for _, o := range of {
			n += cap(o.tail.kept)
		}
	}
	return n
}

// Output is a message about what a running call prints; it is no fact. Offset is its
// place in all that the call prints, in bytes. Pieces are left out of what comes too
// fast.
type Output struct {
	Stream   belay.StreamID  `json:"stream"`
	Session  belay.SessionID `json:"sessionId,omitempty"`
	Thread   belay.ThreadID  `json:"threadId,omitempty"`
	Turn     belay.TurnID    `json:"turnId,omitempty"`
	Run      belay.RunID     `json:"runId,omitempty"`
	Step     belay.StepID    `json:"stepId,omitempty"`
	Call     belay.CallID    `json:"toolCallId"`
	Attempt  int             `json:"attempt"`
	Offset   int64           `json:"offset"`
	Contents string          `json:"text"`
}

// print takes what a running call prints.
func (h *Hub) print(l event.Delta) {
	if l.IDs.Call == "" {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	session := l.IDs.Session
	o := h.prints[session][l.IDs.Call]
	if o == nil || o.attempt != l.Attempt {
		if len(h.prints) >= maxFlowing {
			h.forgetPrints()
		}
		o = &output{stream: l.Stream, ids: l.IDs, attempt: l.Attempt}
		h.prints.set(o)
	}
	o.tail.add(l.Offset, l.Text)
	o.tail.trim(outputKept, o.tail.end())
	if o.announced > 0 {
		h.topics[session].wake()
		h.topics[""].wake()
	}
}

// forgetPrints drops what calls printed that no fact announces: programs that went on
// in the background.
func (h *Hub) forgetPrints() {
	for session, of := range h.prints {
		for call, o := range of {
			if o.announced == 0 {
				h.prints.drop(session, call)
			}
		}
	}
}

// ran notes what a fact means for what a call prints. The hub is locked.
func (h *Hub) ran(rec store.Record) {
	ev := rec.Event
	session, call := ev.IDs.Session, ev.IDs.Call
	switch p := ev.Data.(type) {
	case event.ToolStarted:
		o := h.prints[session][call]
		if o == nil || o.attempt != p.Attempt {
			o = &output{stream: ev.Stream, ids: ev.IDs, attempt: p.Attempt}
			h.prints.set(o)
		}
		o.announced = rec.Position
	case event.ToolResult, event.ToolFailed, event.ProcessCompleted, event.ProcessTerminated:
		h.prints.drop(session, call)
	case event.TurnCompleted, event.TurnFailed:
		h.prints.dropAll(session, ev.Stream)
	case event.RunStatus:
		if p.Phase == "takeover" {
			h.prints.dropAll(session, ev.Stream)
		}
	}
}

// shown is how much of what a call prints a reader has.
type shown struct {
	attempt int
	upTo    int64
}

// outputs is what a reader lacks of what running calls print, while there is room, and
// whether there is more. The hub is locked.
func (r *Reader) outputs(room *int) (out []Message, more bool) {
	if !r.filter.Takes(TypeOutput) {
		return nil, false
	}
	now := map[belay.CallID]shown{}
	visit := func(of map[belay.CallID]*output) {
		for call, o := range of {
			if o.announced == 0 || !r.scope.has(o.stream, &o.ids) {
				continue
			}
			had := r.shown[call]
			if had.attempt != o.attempt {
				had = shown{attempt: o.attempt}
			}
			for had.upTo < o.tail.end() && *room > 0 {
				m, upTo := o.message(had.upTo)
				had.upTo = upTo
				*room -= len(m.Data)
				out = append(out, m)
			}
			more = more || had.upTo < o.tail.end()
			now[call] = had
		}
	}
	if r.scope.Session != "" {
		visit(r.hub.prints[r.scope.Session])
	} else {
		for _, of := range r.hub.prints {
			visit(of)
		}
	}
	r.shown = now // what is over is forgotten
	return out, more
}

// message is the next piece of an output behind an offset, and where it ends.
func (o *output) message(after int64) (m Message, upTo int64) {
	at, rest := o.tail.piece(after)
	data, err := json.Marshal(Output{Stream: o.stream, Session: o.ids.Session, Thread: o.ids.Thread, Turn: o.ids.Turn, Run: o.ids.Run,
		Step: o.ids.Step, Call: o.ids.Call, Attempt: o.attempt, Offset: at, Contents: string(rest)})
	if err != nil {
		panic("feed: " + err.Error()) // it is plain data
	}
	return Message{Type: TypeOutput, Data: data}, at + int64(len(rest))
}
