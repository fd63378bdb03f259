package history

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/tool"
)

// Conversation is a thread's conversation as a model sees it, folded from the facts up
// to a sequence. It is fed with every append, so that a request reads nothing
// that this process wrote.
type Conversation struct {
	stream belay.StreamID
	from   int64      // the boundary that it stands on; 0: none
	seq    int64      // folded up to here
	behind *belay.Ref // what the window doesn't show any more
	stands int64      // the window of the boundary stands for everything up to here
	said   int64      // the last fact that added a message
	note   string     // of the request that is out; the history has it once it is answered
	msgs   []belay.Message
	size   int
	media  bool            // a message has a picture or a document
	cut    bool            // a message has a text in part
	hidden bool            // a window stands for messages that it doesn't have
	entire bool            // no window stands for anything; asked is kept
	turns  []span          // that are in force, in order
	based  int             // messages of the base
	light  bool            // the base is left out of msgs: only where its turns are is kept
	told   []belay.Message // msgs as far as they were made for a model that takes not all media
	can    model.Abilities // of that model

	texts   map[belay.TurnID]submitted // accepted turns that haven't begun
	first   *belay.Message             // of a turn that has begun, which nothing follows yet: it takes what the model is told of its surroundings
	dropped int                        // calls of it that were not taken
	calls   []event.ModelCall          // of the last answer, not all answered
	got     map[belay.CallID]belay.Part
	asked   map[belay.TurnID]int    // messages that are the texts of turns
	changed map[belay.CallID]string // notes to the model about calls that ran with other arguments
}

// submitted is the text of a turn, and the fact that has it.
type submitted struct {
	belay.Content
	seq int64
}

// Preview is how many bytes a fact has of a text that is elsewhere.
const Preview = 200

// span is the place of a turn in a conversation.
type span struct {
	turn     belay.TurnID
	from, to int   // messages; to is where it ended so far
	start    int64 // the fact that began it
	end      int64 // the fact that ended it; 0 while it runs
	outcome  belay.Outcome
	text     string // the beginning of what was asked
	copied   bool   // it came with the base: from and to count the base's messages
}

func newConversation(s belay.StreamID) *Conversation {
	return &Conversation{stream: s, texts: map[belay.TurnID]submitted{}, got: map[belay.CallID]belay.Part{}, changed: map[belay.CallID]string{}}
}

// forget begins again.
func (v *Conversation) forget() {
	entire := v.entire
	*v = *newConversation(v.stream)
	if v.entire = entire; entire {
		v.asked = map[belay.TurnID]int{}
	}
}

// UpTo folds the conversation up to a sequence, from a boundary if from is above 1.
func (v *Conversation) UpTo(ctx context.Context, st store.Run, from, to int64) error {
	if from <= 1 {
		from = 0
	}
	if v.said > to || v.from != from { // an earlier point than the cached one, or another window: start again
		v.forget()
	}
	if v.from != from {
		if err := v.standOn(ctx, st, from); err != nil {
			v.forget()
			return err
		}
	}
	if v.seq >= to {
		v.settleFirst()
		return nil
	}
	for ev, err := range st.Read(ctx, v.stream, v.seq) {
		if err != nil {
			return err
		}
		if ev.Seq > to && !silent(ev.Data) {
			break
		}
		if ev.Seq != v.seq+1 {
			return store.Damaged(store.RowName(v.stream, v.seq+1), "facts of the conversation are not there")
		}
		if err := v.apply(ctx, st, ev); err != nil {
			v.forget() // a part of the fact may be in it
			return err
		}
	}
	v.settleFirst()
	return nil
}

// silent reports whether a fact surely adds no message. A conversation up to a
// request takes the silent facts that follow, so that it stands at the end of
// the log when the answer comes.
func silent(p event.Payload) bool {
	switch p := p.(type) {
	case event.TurnSubmitted, event.ModelRequested, event.ModelDelta, event.ChannelMessage, event.RunStatus, event.ReasoningSummary, event.HistoryWindowLoaded, event.HistoryReconstructed:
		return true
	case event.QueueChanged:
		return p.Op != event.QueueJoined && p.Op != event.QueueTold
	}
	return false
}

func (v *Conversation) apply(ctx context.Context, st store.Run, ev event.Envelope) error {
	v.seq = ev.Seq
	if p, waits := ev.Data.(event.TurnSubmitted); ev.Seq <= v.stands {
		if waits {
			v.texts[ev.IDs.Turn] = submitted{p.Text, ev.Seq}
		}
		return nil
	}
	switch p := ev.Data.(type) {
	case event.ThreadStarted:
		return v.begin(ctx, st, p.Beginning)
	case event.TurnSubmitted:
		v.texts[ev.IDs.Turn] = submitted{p.Text, ev.Seq}
	case event.TurnStarted:
		m, err := input(ctx, st, v.texts[ev.IDs.Turn].Content)
		delete(v.texts, ev.IDs.Turn)
		v.settleFirst()
		v.note, v.said = "", ev.Seq
		v.turns = append(v.turns, span{turn: ev.IDs.Turn, from: len(v.msgs), start: ev.Seq, text: asked(m)})
		if v.entire {
			v.asked[ev.IDs.Turn] = len(v.msgs)
		}
		v.first = &m
		return err
	case event.ContextResolved:
		return v.surroundings(ctx, st, p.Text)
	case event.QueueChanged:
		return v.queueChanged(ctx, st, p)
	case event.ModelRequested:
		v.settleFirst()
		v.note = p.Note
	case event.ModelCompleted:
		return v.answer(ctx, st, p)
	case event.ToolArgs:
		return v.edited(ctx, st, ev.IDs.Call, p)
	case event.ToolResult:
		text, err := whole(ctx, st, p.Output)
		v.result(belay.ToolResult{ID: ev.IDs.Call, Name: p.Name, Text: text, Parts: shown(p.Output.Attached)}, p.Whole)
		return err
	case event.ToolFailed:
		if p.Final {
			text, err := whole(ctx, st, p.Output)
			v.result(belay.ToolResult{ID: ev.IDs.Call, Name: p.Name, Text: problemText(p.Problem, text), Error: true}, p.Whole)
			return err
		}
	case event.HistoryRollbackCompleted:
		v.wentBack(p)
	case event.TurnCompleted:
		v.ended(ev, belay.Completed)
	case event.TurnFailed:
		if _, queued := v.texts[ev.IDs.Turn]; queued { // it never began: the model knows nothing of it
			delete(v.texts, ev.IDs.Turn)
			return nil
		}
		if t := v.running(); t == nil || t.turn != ev.IDs.Turn { // it was part of one that has just ended
			return nil
		}
		text, err := whole(ctx, st, belay.Content{Text: p.Partial, Ref: p.PartialRef})
		v.push(belay.Text(belay.RoleUser, Note(endText(p, text))))
		v.ended(ev, p.Outcome)
		return err
	}
	return nil
}

// queueChanged adds the text of a turn that became part of the running one, and
// a note to the model about those that were dropped.
func (v *Conversation) queueChanged(ctx context.Context, st store.Run, p event.QueueChanged) error {
	switch p.Op {
	case event.QueueJoined:
		m, err := input(ctx, st, v.texts[p.Turn].Content)
		delete(v.texts, p.Turn)
		v.ask(p.Turn, m)
		return err
	case event.QueueTold:
		v.push(belay.Text(belay.RoleUser, Note(p.Note)))
	}
	return nil
}

// Note marks what the runtime says, so that it is not taken for the person.
func Note(note string) string { return noteMark + note }

const noteMark = "[belay] "

// IsNote reports whether a text is marked as the runtime's.
func IsNote(text string) bool { return strings.HasPrefix(text, noteMark) }

// endText tells the model how the turn before ended. Text that was cut stands
// here and not as an answer of the model: it never finished it.
func endText(p event.TurnFailed, partial string) string {
	text := "That turn ended: " + string(p.Outcome) + " (" + p.Reason + ")."
	if partial != "" {
		text += " Your answer was cut off after:\n" + partial
	}
	return text
}

// ask adds the text of a turn.
func (v *Conversation) ask(turn belay.TurnID, m belay.Message) {
	v.settleFirst()
	if v.entire {
		v.asked[turn] = len(v.msgs)
	}
	v.push(m)
}

// surroundings adds what the model is told of where it works: to the first message of
// the turn, as long as nothing follows it.
func (v *Conversation) surroundings(ctx context.Context, st store.Run, c belay.Content) error {
	text, err := whole(ctx, st, c)
	switch {
	case text == "" || err != nil:
	case v.first != nil:
		v.said = v.seq
		v.first.Parts = append(v.first.Parts, belay.Part{Text: Note(text)})
	default:
		v.push(belay.Text(belay.RoleUser, Note(text)))
	}
	return err
}

// settleFirst puts the first message of a turn in its place.
func (v *Conversation) settleFirst() {
	if m := v.first; m != nil {
		v.first = nil
		v.msgs = append(v.msgs, *m)
		v.weigh(*m)
	}
}

func (v *Conversation) push(m belay.Message) {
	v.settleFirst()
	v.said = v.seq
	v.msgs = append(v.msgs, m)
	v.weigh(m)
}

// weigh counts what a message holds.
func (v *Conversation) weigh(m belay.Message) {
	for range m.Attachments() {
		v.media = true
	}
	for _, p := range m.Parts {
		v.size += len(p.Text) + 64
		v.cut = v.cut || p.Whole != nil
		if p.Call != nil {
			v.size += len(p.Call.Args) + p.Call.Echo.Size()
		}
		v.size += p.Echo.Size()
		if p.Result != nil {
			v.size += len(p.Result.Text) + 64*len(p.Result.Parts)
		}
	}
}

func (v *Conversation) answer(ctx context.Context, st store.Run, p event.ModelCompleted) error {
	m := belay.Message{Role: belay.RoleAssistant}
	text, err := whole(ctx, st, p.Text)
	if err != nil {
		return err
	}
	if text != "" {
		m.Parts = append(m.Parts, belay.Part{Text: text})
	}
	for _, pic := range p.Images {
		m.Parts = append(m.Parts, belay.Part{Text: pictureNote(pic)})
	}
	for _, c := range p.Calls {
		args := c.Args
		if c.ArgsRef != nil {
			if args, err = st.Get(ctx, c.ArgsRef.Digest); err != nil {
				return err
			}
		}
		name := c.Name
		if c.Via != "" { // as the model said it
			name, args = c.Via, tool.Wrapped(c.Name, args)
		}
		m.Parts = append(m.Parts, belay.Part{Call: &belay.ToolCall{ID: c.ID, Name: name, Args: args}})
	}
	if err := echoes(ctx, st, p.Echo, &m); err != nil {
		return err
	}
	if v.note != "" {
		v.push(belay.Text(belay.RoleUser, Note(v.note)))
		v.note = ""
	}
	v.calls, v.dropped = p.Calls, p.Dropped
	clear(v.got)
	v.push(m)
	return nil
}

// result keeps a call's answer; the message of all answers follows once the
// last one is there, in the order of the calls.
func (v *Conversation) result(r belay.ToolResult, all *belay.Ref) {
	if !slices.ContainsFunc(v.calls, func(c event.ModelCall) bool { return c.ID == r.ID }) {
		return // the runtime made the call
	}
	if note := v.changed[r.ID]; note != "" {
		r.Text = note + "\n" + r.Text
		delete(v.changed, r.ID)
	}
	if i := slices.IndexFunc(v.calls, func(c event.ModelCall) bool { return c.ID == r.ID && c.Via != "" }); i >= 0 {
		r.Name = v.calls[i].Via
	}
	v.got[r.ID] = belay.Part{Result: &r, Whole: all}
	if len(v.got) < len(v.calls) {
		return
	}
	m := belay.Message{Role: belay.RoleTool}
	for _, c := range v.calls {
		m.Parts = append(m.Parts, v.got[c.ID])
	}
	if v.dropped > 0 {
		m.Parts = append(m.Parts, belay.Part{Text: Note(fmt.Sprintf("%d more calls of your answer were dropped: it had too many. Make them now if they are still needed.", v.dropped))})
	}
	v.calls, v.dropped = nil, 0
	clear(v.got)
	v.push(m)
}

// whole is the full text of a content.
func whole(ctx context.Context, st store.Run, c belay.Content) (string, error) {
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

// edited notes that a call runs with other arguments than the model gave: its
// result says so, or the model would take it for the result of its own.
func (v *Conversation) edited(ctx context.Context, st store.Run, id belay.CallID, p event.ToolArgs) error {
	args, err := whole(ctx, st, belay.Content{Text: string(p.Args), Ref: p.ArgsRef})
	if err == nil {
		v.changed[id] = editText(p, args)
	}
	return err
}

// editText is how a model reads that its call was changed.
func editText(p event.ToolArgs, args string) string {
	shown := event.CutText(args, maxEditShown)
	if len(shown) < len(args) {
		shown += fmt.Sprintf(" … (%d bytes in all)", len(args))
	}
	return Note(fmt.Sprintf("A person (%s) changed this call before allowing it. %s got these arguments in place of yours: %s\nWhat follows is the result of that.", p.By, p.Name, shown))
}

// maxEditShown bounds what a model is shown of the arguments that it got instead.
const maxEditShown = 8 << 10

// echoes puts what the vendor wants back into the message of its answer: what
// stands before the answer as parts, the rest with its calls.
func echoes(ctx context.Context, st store.Run, c belay.Content, m *belay.Message) error {
	text, err := whole(ctx, st, c)
	if err != nil || text == "" {
		return err
	}
	var list []event.ModelEcho
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return store.Damaged("echo", "what a vendor wants back can't be read")
	}
	var before []belay.Part
	calls := m.Calls()
	for i := range list {
		switch n := list[i].Call; {
		case n == 0:
			before = append(before, belay.Part{Echo: &list[i].Echo})
		case n <= len(calls):
			calls[n-1].Echo = &list[i].Echo
		}
	}
	m.Parts = append(before, m.Parts...)
	return nil
}

// pictureNote replaces a picture of an answer when the model reads it later.
func pictureNote(a belay.Attachment) string {
	return Note(fmt.Sprintf("you made the picture %s (%s, %d bytes), which is published", a.Name, a.Ref.Media, a.Ref.Size))
}
