package block

import (
	"cmp"
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/view/story"
)

// Fold makes blocks of a session's facts and of what flows between them. The zero
// value is ready; it isn't for several goroutines.
type Fold struct {
	// Load reads a content that a fact names. Nil, or an error: what needs it is shown
	// without it.
	Load func(belay.Ref) ([]byte, error)

	out     []Block
	live    []*Block
	answers map[belay.StreamID]*answer
	turns   map[belay.TurnID]*turn
	early   []event.Delta                       // text whose request isn't known yet
	agents  map[belay.StreamID]belay.SubagentID // by their threads
	spawned map[belay.CallID]belay.SubagentID   // calls that started one: it stands for them
	outputs int                                 // calls with an output so far

	programs map[belay.ProcessID]program // that run
}

// program is what a call runs.
type program struct {
	call belay.CallID
	what string
}

// turn is what is known of a turn that hasn't ended.
type turn struct {
	began time.Time
	files []File
	last  belay.Content // the last answer
	hint  string        // what can be done about the last request, which failed

	unshortened string // the code with which its conversation wasn't shortened, as was told
}

// maxEarly bounds the pieces of text that wait for their request.
const maxEarly = 4096

// Take returns the blocks that were finished since the last call, in order, each once.
func (f *Fold) Take() []Block {
	out := f.out
	f.out = nil
	return out
}

// Finished is how many blocks Take would return.
func (f *Fold) Finished() int { return len(f.out) }

// Live returns the blocks that aren't finished, in the order in which they began.
func (f *Fold) Live() []Block {
	out := make([]Block, 0, len(f.live))
	for _, b := range f.live {
		c := *b
		if a := f.answers[c.Thread.Stream()]; c.Kind == KindAnswer && a != nil {
			c.Text = a.prefix + string(a.rest)
		}
		if c.Call != nil {
			call := *c.Call
			c.Call = &call
		}
		if c.Agent != nil {
			agent := *c.Agent
			c.Agent = &agent
		}
		out = append(out, c)
	}
	return out
}

// Programs is how many programs run in the background: their calls have ended.
func (f *Fold) Programs() (n int) {
	for _, p := range f.programs {
		if f.find(KindCall, string(p.call)) == nil {
			n++
		}
	}
	return n
}

// find returns a live block; nil if there is none.
func (f *Fold) find(kind Kind, id string) *Block {
	for _, b := range f.live {
		if b.Kind == kind && b.ID == id {
			return b
		}
	}
	return nil
}

// begin makes a live block of a fact.
func (f *Fold) begin(ev event.Envelope, kind Kind, id string) *Block {
	b := &Block{ID: id, Kind: kind, Thread: ev.IDs.Thread, Turn: ev.IDs.Turn, Began: ev.Time, step: ev.IDs.Step}
	f.live = append(f.live, b)
	return b
}

// done finishes a live block.
func (f *Fold) done(b *Block) {
	if b == nil {
		return
	}
	f.drop(b)
	b.Done = true
	f.out = append(f.out, *b)
}

// drop takes a live block back.
func (f *Fold) drop(b *Block) {
	f.live = slices.DeleteFunc(f.live, func(o *Block) bool { return o == b })
}

// once is a finished block of one fact.
func (f *Fold) once(ev event.Envelope, kind Kind, id string) *Block {
	f.out = append(f.out, Block{ID: id, Kind: kind, Done: true, Thread: ev.IDs.Thread, Turn: ev.IDs.Turn, Began: ev.Time})
	return &f.out[len(f.out)-1]
}

// notice is a finished block that says something; empty text is none.
func (f *Fold) notice(ev event.Envelope, detail bool, text string) {
	if text != "" {
		b := f.once(ev, KindNotice, string(ev.ID()))
		b.Text, b.Detail = text, detail
	}
}

func (f *Fold) load(ref belay.Ref) (string, bool) {
	if f.Load == nil {
		return "", false
	}
	b, err := f.Load(ref)
	return string(b), err == nil
}

// text is a content's text; what can't be read is empty.
func (f *Fold) text(c belay.Content) string {
	if c.Ref == nil {
		return c.Text
	}
	text, _ := f.load(*c.Ref)
	return cmp.Or(text, c.Text)
}

// turn is a turn that hasn't ended.
func (f *Fold) turn(id belay.TurnID) *turn {
	t := f.turns[id]
	if t == nil {
		if f.turns == nil {
			f.turns = map[belay.TurnID]*turn{}
		}
		t = &turn{}
		f.turns[id] = t
	}
	return t
}

// Apply takes a fact, in the order of the log. Facts that nobody follows add nothing.
func (f *Fold) Apply(ev event.Envelope) {
	if f.family(ev) {
		return
	}
	switch p := ev.Data.(type) {
	case event.TurnSubmitted:
		b := f.begin(ev, KindInput, string(ev.IDs.Turn))
		b.Text, b.By, b.With = Written(p, f.text(p.Text)), p.By, story.Attached(p.Text)
	case event.TurnStarted:
		f.turn(ev.IDs.Turn).began = ev.Time
		f.done(f.find(KindInput, string(ev.IDs.Turn)))
	case event.QueueChanged:
		f.queued(ev, p)
	case event.TurnCompleted:
		f.ended(ev, End{Outcome: belay.Completed, Summary: f.summary(ev.IDs.Turn, p.Summary), Next: p.NextSteps, Stats: p.Stats})
	case event.TurnFailed:
		f.ended(ev, End{Outcome: p.Outcome, Code: p.Code, Reason: p.Reason, Hint: f.hint(ev.IDs.Turn, p.Code), Stats: p.Stats})
	case event.RunStatus:
		if p.Phase == "takeover" {
			f.notice(ev, false, "taken over; what was in flight is not any more")
		}
	case event.ActionRequired:
		f.asked(ev, p)
	case event.ActionResolved:
		f.answered(ev, p)
	case event.ArtifactChanged:
		f.changed(ev, p)
	default:
		f.model(ev)
		f.call(ev)
		f.beside(ev)
	}
}

// hint is what can be done about the end of a turn.
func (f *Fold) hint(turn belay.TurnID, code string) string {
	switch code {
	case "CONTEXT_FULL":
		return "belay context shows what fills it, belay compact shortens it; or a model that reads more"
	case "CONTEXT_TOO_SMALL":
		return "a model that reads more, or fewer tools"
	}
	return f.turn(turn).hint
}

// beside takes what happens beside answers and calls.
func (f *Fold) beside(ev event.Envelope) {
	switch p := ev.Data.(type) {
	case event.RoutingFallbackApplied:
		f.notice(ev, false, p.To.Provider+"/"+p.To.Model+" is asked instead of "+p.From.Provider+"/"+p.From.Model)
	case event.ContextCompactionCompleted:
		f.notice(ev, false, Shortened(p))
	case event.ContextCompactionFailed:
		again := false
		if ev.IDs.Turn != "" { // it is tried in several ways: why is told once
			t := f.turn(ev.IDs.Turn)
			again, t.unshortened = t.unshortened == p.Problem.Code, p.Problem.Code
		}
		f.notice(ev, again, NotShortened(p))
	case event.RuntimeWarning:
		f.notice(ev, false, "warning: "+p.Message+" ("+p.Code+")")
	case event.HistoryRollbackCompleted:
		f.notice(ev, false, TakenBack(p))
	}
}

// queued takes a change of the row of waiting inputs.
func (f *Fold) queued(ev event.Envelope, p event.QueueChanged) {
	b := f.find(KindInput, string(p.Turn))
	switch {
	case b == nil:
	case p.Op == event.QueueJoined:
		f.done(b)
	case p.Op == event.QueueRemoved || p.Op == event.QueueDropped:
		f.drop(b)
	}
}

// summary is what a turn says at its end, unless its last answer said it.
func (f *Fold) summary(id belay.TurnID, c belay.Content) string {
	last := f.turn(id).last
	if c.Ref != nil && last.Ref != nil && c.Ref.Digest == last.Ref.Digest {
		return ""
	}
	text := f.text(c)
	if trimmed(text) == trimmed(f.text(last)) {
		return ""
	}
	return text
}

// ended ends a turn, and what wasn't finished of it.
func (f *Fold) ended(ev event.Envelope, e End) {
	t := f.turn(ev.IDs.Turn)
	if !t.began.IsZero() {
		e.Wall = ev.Time.Sub(t.began)
	}
	for _, c := range t.files {
		c = f.change(c)
		c.Hunks = nil // they were shown with the calls
		e.Files = append(e.Files, c)
	}
	for _, b := range slices.Clone(f.live) {
		if b.Turn != ev.IDs.Turn {
			continue
		}
		switch b.Kind {
		case KindAnswer:
			f.say(b, f.answers[ev.Stream].over())
			f.drop(b)
			delete(f.answers, ev.Stream)
		case KindInput, KindReasoning:
			f.drop(b)
		default:
			f.done(b)
		}
	}
	delete(f.turns, ev.IDs.Turn)
	f.once(ev, KindEnd, string(ev.IDs.Turn)).End = &e
}

// changed takes a change of a file, a plan or an artifact.
func (f *Fold) changed(ev event.Envelope, p event.ArtifactChanged) {
	switch p.Kind {
	case "plan":
		f.once(ev, KindPlan, string(ev.ID())).Plan = p.Plan
	case "artifact":
		f.notice(ev, false, "published "+p.Name+", version "+p.Version)
	case "file":
		t := f.turn(ev.IDs.Turn)
		t.files = merge(t.files, p)
		if b := f.find(KindCall, string(ev.IDs.Call)); b != nil {
			b.Call.Files = append(b.Call.Files, f.change(File{Path: p.Path, Op: p.Op, before: p.Before, after: p.After}))
		}
	}
}

// asked takes a question.
func (f *Fold) asked(ev event.Envelope, p event.ActionRequired) {
	b := f.begin(ev, KindQuestion, string(ev.IDs.Action))
	b.Asked = &Question{ID: ev.IDs.Action, Kind: p.Kind, Call: ev.IDs.Call, Prompt: f.text(p.Prompt), Until: p.Until}
	if c := f.find(KindCall, string(ev.IDs.Call)); c != nil {
		c.Call.State = Asking
		if a := c.Call.Allowed; a != nil {
			b.Asked.Rule, b.Asked.Mode = a.Rule, a.Mode
		}
	}
}

// answered takes the answer to a question. That of a call is told with the call.
func (f *Fold) answered(ev event.Envelope, p event.ActionResolved) {
	b := f.find(KindQuestion, string(ev.IDs.Action))
	if b == nil {
		return
	}
	q := *b.Asked // who has the live block keeps it as it was
	q.Decision, q.By, q.Scope, q.Answer = p.Decision, p.By, p.Scope, f.text(p.Message)
	b.Asked = &q
	c := f.find(KindCall, string(q.Call))
	if c == nil || q.Kind != "permission" {
		f.done(b)
		return
	}
	f.drop(b)
	c.Call.State = Wanted
	if p.Decision == "allow" {
		c.Call.Allowed = &Allowed{By: p.By, Scope: p.Scope, Rule: q.Rule, Mode: q.Mode}
		if q.Preview != nil {
			c.Call.asked = q.Preview.Files
		}
	}
}
