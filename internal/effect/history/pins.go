package history

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/model/tokens"
	"github.com/belay-run/belay/internal/store"
)

// Kinds of pins, in the order in which they stand in a window.
const (
	PinSaid     = "said" // a text of a person
	PinPinned   = "pinned"
	PinPlan     = "plan"
	PinQuestion = "question"
	PinLost     = "lost" // a call whose outcome is unknown
	PinProcess  = "process"
	PinAgent    = "agent" // one that was started and hasn't ended
	PinDenied   = "denied"
	PinChanged  = "changed" // a call that may have changed something
)

// titles are the headings of the kinds.
var titles = map[string]string{
	PinSaid: "What the person said, word for word", PinPinned: "Pinned by a person, word for word", PinPlan: "The plan", PinQuestion: "Open questions",
	PinLost: "Calls whose outcome is unknown", PinProcess: "Running processes", PinAgent: "Agents of yours that haven't ended", PinDenied: "Calls that a person denied", PinChanged: "The last calls that changed something",
}

var pinOrder = []string{PinSaid, PinPinned, PinPlan, PinQuestion, PinLost, PinProcess, PinAgent, PinDenied, PinChanged}

// How many pins of a kind the conversation itself has.
var pinsKept = map[string]int{PinSaid: 5, PinLost: 8, PinDenied: 8, PinChanged: 5}

// Bounds of a pin. Of one that is longer, or that there is no room for, the beginning
// stays.
const (
	maxPinTokens = 4_000
	pinHead      = 200 // bytes that each has, whatever room there is
)

// Pin is something that stays in a conversation when it is shortened.
type Pin struct {
	Kind string `json:"kind"`
	ID   string `json:"id"` // of its turn or call
	Text string `json:"text"`
}

// Sorted are pins in the order of their kinds.
func Sorted(pins []Pin) []Pin {
	pins = slices.Clone(pins)
	slices.SortStableFunc(pins, func(a, b Pin) int { return slices.Index(pinOrder, a.Kind) - slices.Index(pinOrder, b.Kind) })
	return pins
}

// Fit makes pins fit into so many tokens, but for their beginnings: one that is too long
// is cut, and so are the last ones.
func Fit(pins []Pin, room int64, again bool) (fit []Pin, items []event.ContextItem, cut []event.ContextOmission) {
	for _, p := range pins {
		n := int64(tokens.Rough(p.Text))
		most := min(maxPinTokens, room)
		if head := event.CutText(p.Text, max(int(most)*3, pinHead)); n > most && len(head) < len(p.Text) {
			cut = append(cut, event.ContextOmission{Kind: "pin", Name: p.Kind + " " + p.ID, Reason: "budget"})
			p.Text = head + fmt.Sprintf("\n… (about %d tokens in all)", n)
			if again {
				p.Text += fmt.Sprintf(" context_read with source %q shows all of it.", p.ID)
			}
			n = int64(tokens.Rough(p.Text))
		}
		room = max(0, room-n)
		fit = append(fit, p)
		items = append(items, event.ContextItem{Kind: "pin", Name: p.Kind + " " + p.ID, Tokens: n})
	}
	return fit, items, cut
}

// readPins folds what stays of a conversation between a boundary and a fact, with
// what the boundary carried over.
func readPins(ctx context.Context, st store.Run, s belay.StreamID, from, to int64) ([]Pin, error) {
	f := pinFold{texts: map[belay.TurnID]belay.Content{}, calls: map[belay.CallID]event.ModelCall{}, changes: map[belay.CallID]bool{}}
	begin := from - 1
	if from > 1 {
		for ev, err := range st.Read(ctx, s, from-1) {
			p, ok := ev.Data.(event.ContextCompactionCompleted)
			if err != nil {
				return nil, err
			}
			if ok {
				if err := f.carriedOver(ctx, st, p.Pinned); err != nil {
					return nil, err
				}
			}
			begin, f.after = min(p.To, p.Reads-1), p.To
			if f.running = nil; p.Running != "" {
				f.running = []belay.TurnID{p.Running}
			}
			break
		}
	}
	for ev, err := range st.Read(ctx, s, begin) {
		if err != nil {
			return nil, err
		}
		if ev.Seq > to {
			break
		}
		if err := f.apply(ctx, st, ev); err != nil {
			return nil, err
		}
	}
	return f.pins, nil
}

// pinFold folds the pins of a conversation.
type pinFold struct {
	running []belay.TurnID // the turn that hasn't ended, and those that are part of it
	after   int64          // of facts up to here only the texts of turns that wait count
	pins    []Pin
	texts   map[belay.TurnID]belay.Content
	calls   map[belay.CallID]event.ModelCall // of the last answer
	changes map[belay.CallID]bool            // calls that run and may change something
}

func (f *pinFold) apply(ctx context.Context, st store.Run, ev event.Envelope) error {
	if p, ok := ev.Data.(event.TurnSubmitted); ok {
		f.texts[ev.IDs.Turn] = p.Text
	}
	if ev.Seq <= f.after {
		return nil
	}
	call := ev.IDs.Call
	switch p := ev.Data.(type) {
	case event.ThreadStarted:
		return f.begin(ctx, st, p.Beginning)
	case event.TurnStarted:
		f.running = nil
		return f.said(ctx, st, ev.IDs.Turn)
	case event.QueueChanged:
		if p.Op == event.QueueJoined {
			return f.said(ctx, st, p.Turn)
		}
	case event.HistoryRollbackCompleted:
		if p.Scope == event.ScopeThread { // what was said since is gone
			back := map[string]bool{}
			for _, t := range p.Turns {
				back[string(t)] = true
			}
			f.pins = slices.DeleteFunc(f.pins, func(p Pin) bool { return back[p.ID] })
		}
	case event.ModelCompleted:
		clear(f.calls)
		for _, c := range p.Calls {
			f.calls[c.ID] = c
		}
	case event.ToolStarted:
		_, wanted := f.calls[call] // else the runtime made it
		f.changes[call] = wanted && !p.ReadOnly && p.Effect != string(belay.Pure)
	case event.PermissionResolved:
		if p.Decision == "deny" && p.Message != "" {
			f.add(Pin{PinDenied, string(call), f.line(call) + "\ndenied by " + p.By + ": " + p.Message})
		}
	case event.ToolResult:
		if f.changes[call] {
			f.add(Pin{PinChanged, string(call), f.line(call) + "\n→ " + event.CutText(p.Output.Text, maxOutcome)})
		}
		delete(f.changes, call)
	case event.ToolFailed:
		switch {
		case !p.Final:
			return nil
		case p.Problem.Class == "lost":
			f.add(Pin{PinLost, string(call), f.line(call)})
		case f.changes[call]:
			f.add(Pin{PinChanged, string(call), f.line(call) + "\n→ failed, " + p.Problem.Code + ": " + event.CutText(p.Problem.Message, maxOutcome)})
		}
		delete(f.changes, call)
	}
	return nil
}

// Bounds of what a pin of a call has, in bytes.
const (
	maxLine    = 1 << 10
	maxOutcome = 300
)

// line is a call in one line.
func (f *pinFold) line(id belay.CallID) string {
	c := f.calls[id]
	args := string(c.Args)
	if c.ArgsRef != nil {
		args = fmt.Sprintf("(%d bytes of arguments)", c.ArgsRef.Size)
	}
	return c.Name + " " + event.CutText(args, maxLine)
}

// carriedOver takes up the pins that were kept as content.
func (f *pinFold) carriedOver(ctx context.Context, st store.Run, ref *belay.Ref) error {
	if ref == nil {
		return nil
	}
	raw, err := st.Get(ctx, ref.Digest)
	if err != nil {
		return err
	}
	if json.Unmarshal(raw, &f.pins) != nil {
		return store.Damaged(string(ref.Digest), "what a boundary carries over can't be read")
	}
	return nil
}

// begin takes up the pins of what a thread begins with: those of the window that it
// goes on from, or what people said in the base.
func (f *pinFold) begin(ctx context.Context, st store.Run, b belay.Beginning) error {
	if b.Pinned != nil {
		return f.carriedOver(ctx, st, b.Pinned)
	}
	for s, err := range ReadBase(ctx, st, b.Base) {
		if err != nil {
			return err
		}
		if s.Role == belay.RoleUser && len(s.Parts) > 0 && s.Parts[0].Text != "" && !strings.HasPrefix(s.Parts[0].Text, Note("")) {
			f.add(Pin{PinSaid, string(s.Turn), s.Parts[0].Text})
		}
	}
	return nil
}

// said pins the text of a turn.
func (f *pinFold) said(ctx context.Context, st store.Run, turn belay.TurnID) error {
	c := f.texts[turn]
	if c.Shown != nil {
		c.Ref = c.Shown
	}
	text, err := whole(ctx, st, c)
	delete(f.texts, turn)
	f.running = append(f.running, turn)
	if err == nil && text != "" {
		f.add(Pin{PinSaid, string(turn), text})
	}
	return err
}

// add takes a pin; of its kind the newest stay, and all texts of the running turn.
func (f *pinFold) add(p Pin) {
	f.pins = append(f.pins, p)
	for n := len(f.pins) - 1; n >= 0; n-- {
		of := 0
		for _, o := range f.pins[n:] {
			if o.Kind == p.Kind {
				of++
			}
		}
		if of > pinsKept[p.Kind] && f.pins[n].Kind == p.Kind && !slices.Contains(f.running, belay.TurnID(f.pins[n].ID)) {
			f.pins = slices.Delete(f.pins, n, n+1)
			return
		}
	}
}
