package sessions

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/effect/history"
	"github.com/belay-run/belay/internal/model/tokens"
)

// ContextUsage is what fills the context of a thread's model: of the next request, or
// of one that was sent. Its tokens are counted here; the vendor's count differs a little.
type ContextUsage struct {
	app.Fresh
	Session  belay.SessionID `json:"sessionId"`
	Thread   belay.ThreadID  `json:"threadId"`
	Step     belay.StepID    `json:"stepId,omitempty"` // whose request it is; left out: the next one
	Provider string          `json:"provider,omitempty"`
	Model    string          `json:"model,omitempty"`

	Context int64 `json:"context,omitempty"` // tokens that the model reads; left out: not known
	Usable  int64 `json:"usable,omitempty"`  // of that, for input
	Used    int64 `json:"used"`
	Free    int64 `json:"free,omitempty"` // of what is usable
	Full    int   `json:"full,omitempty"` // percent of what is usable that is used
	At      int   `json:"compactAt"`      // percent at which the conversation is shortened; 0: never

	Kinds   []ContextKind           `json:"kinds"`
	Largest []ContextPart           `json:"largest"` // items, the largest first
	Pins    []ContextPin            `json:"pins"`    // that people made
	Omitted []event.ContextOmission `json:"omitted"`

	From       int64              `json:"from"`       // the boundary that the conversation stands on; 1: none
	Boundaries []WindowBoundary   `json:"boundaries"` // where it was shortened, the oldest first
	Compacting string             `json:"compacting,omitempty"`
	Failed     *CompactionFailure `json:"failed,omitempty"` // why it was not shortened, the last time it was tried

	Reported belay.Usage     `json:"reported,omitzero"`  // of the answer before
	Messages []belay.Message `json:"messages,omitempty"` // of the request, as far as they were asked for
}

// ContextKind is what one kind of content takes.
type ContextKind struct {
	Kind   string `json:"kind"` // prompt, instructions, summary, pins, said, notes, answers, calls, results, files
	Items  int    `json:"items"`
	Tokens int64  `json:"tokens"`
}

// ContextPart is a piece of content.
type ContextPart struct {
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Tokens int64  `json:"tokens"`
}

// ContextPin is a text that a person pinned.
type ContextPin struct {
	ID     string `json:"pinId"`
	Text   string `json:"text"`
	By     string `json:"by,omitempty"`
	Tokens int64  `json:"tokens"`
}

// WindowBoundary is where a conversation was shortened.
type WindowBoundary struct {
	Sequence int64         `json:"sequence"`
	Time     time.Time     `json:"time"`
	Trigger  string        `json:"trigger"`  // threshold, overflow, manual
	Strategy string        `json:"strategy"` // prune, summarise, truncate
	Before   int64         `json:"tokensBefore"`
	After    int64         `json:"tokensAfter"`
	Cost     event.CostSum `json:"cost,omitzero"` // of the summary
	Pins     int           `json:"pins,omitempty"`
	Pruned   int           `json:"pruned,omitempty"`  // results that were left out
	Dropped  int           `json:"dropped,omitempty"` // messages that were left out
	Void     bool          `json:"void,omitempty"`    // the conversation was taken back to before it
	Summary  belay.Content `json:"summary,omitzero"`

	started int64
	pins    int64 // tokens of them
	omitted []event.ContextOmission
}

// CompactionFailure is why a conversation was not shortened.
type CompactionFailure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// mostParts bounds how many items are listed.
const mostParts = 10

// ContextWish is which request's context is wanted.
type ContextWish struct {
	Step     string // a step's id or its beginning, or its number in the newest turn; empty: the next one
	Messages bool
}

func threadContext(ctx context.Context, c *app.Call, f app.Fresh, q app.Query) (*ContextUsage, error) {
	th, err := c.Thread(ctx, belay.ThreadID(q.ID))
	if err != nil {
		return nil, err
	}
	if !th.Open {
		return nil, input.At("path id", belay.Errorf(belay.CodeNotFound, "there is no thread %s", q.ID).WithHint("GET /v1/sessions/{id} lists a session's"))
	}
	return Context(ctx, c.Runtime, f, th, ContextWish{Step: q.Values.Get("step"), Messages: q.Values.Get("messages") == "true"})
}

// Context looks at what fills the context of a thread's model.
func Context(ctx context.Context, r *app.Runtime, f app.Fresh, th *thread.State, w ContextWish) (*ContextUsage, error) {
	p, err := readContext(ctx, r, th, w.Step)
	if err != nil {
		return nil, err
	}
	out := p.out
	out.Fresh, out.Session, out.Thread = f, th.Session, th.Thread
	var rules thread.Rules
	if p.rules.Digest != "" {
		read, err := r.RulesOf(ctx, p.rules)
		if err != nil {
			return nil, err
		}
		rules = *read
	}
	to, room := th.Window(&rules)
	out.Provider, out.Model, out.Context, out.Usable = to.Provider, to.Model, to.Context, room
	if p.at != nil {
		out.Step, out.From = p.step, p.at.From
		if p.at.Provider != to.Provider || p.at.Model != to.Model {
			out.Provider, out.Model, out.Context, out.Usable = p.at.Provider, p.at.Model, 0, 0
		}
	}
	if c := rules.Settings.Compact; c.Strategy != belay.CompactOff {
		out.At = cmp.Or(c.At, belay.DefaultCompactAt)
	}
	msgs, err := history.Messages(ctx, r.Store, th.Thread.Stream(), out.From, p.to)
	if err != nil {
		return nil, err
	}
	if p.at != nil && p.at.Note != "" {
		msgs = append(msgs, belay.Text(belay.RoleUser, history.Note(p.at.Note)))
	}
	if w.Messages {
		out.Messages = msgs
	}
	if err := p.weigh(ctx, r, &rules, msgs); err != nil {
		return nil, err
	}
	for _, pin := range th.Pins {
		out.Pins = append(out.Pins, ContextPin{ID: pin.ID, Text: pin.Text, By: pin.By, Tokens: int64(tokens.Rough(pin.Text))})
	}
	if out.Usable > 0 {
		out.Free, out.Full = max(0, out.Usable-out.Used), int(out.Used*100/out.Usable)
	}
	return out, nil
}

// contextFold is what a thread's facts say of its context.
type contextFold struct {
	out   *ContextUsage
	rules belay.Ref
	to    int64 // the last fact that counts

	step belay.StepID // that was asked for
	at   *event.ModelRequested

	weights map[string]*ContextKind
	calls   map[belay.CallID]string
}

// readContext folds a thread's facts up to the request of a step, or to the last one.
func readContext(ctx context.Context, r *app.Runtime, th *thread.State, step string) (*contextFold, error) {
	p := &contextFold{out: &ContextUsage{Kinds: []ContextKind{}, Largest: []ContextPart{}, Pins: []ContextPin{}, Omitted: []event.ContextOmission{}, Boundaries: []WindowBoundary{},
		From: th.From()}, weights: map[string]*ContextKind{}, calls: map[belay.CallID]string{}}
	if step != "" {
		if err := p.find(ctx, r, th, step); err != nil {
			return nil, err
		}
	}
	for ev, err := range r.Store.Read(ctx, th.Thread.Stream(), 0) {
		if err != nil {
			return nil, err
		}
		if p.at != nil && ev.Seq > p.to {
			break
		}
		p.apply(ev)
	}
	if p.at == nil {
		p.to = th.Seq
		if c := th.Compacting; c != nil && !c.Over {
			p.out.Compacting = c.Trigger
		} else if th.Wish != nil {
			p.out.Compacting = "asked"
		}
	}
	for i := range p.out.Boundaries {
		if b := &p.out.Boundaries[i]; b.Sequence == p.out.From {
			p.out.Omitted = append(p.out.Omitted, b.omitted...)
		}
	}
	return p, nil
}

// find looks for the request of a step: by the step's id, the beginning of it, or its
// number in the newest turn.
func (p *contextFold) find(ctx context.Context, r *app.Runtime, th *thread.State, step string) error {
	number, _ := strconv.Atoi(step)
	turn, n := belay.TurnID(""), 0
	found := map[belay.StepID]event.ModelRequested{}
	counted := map[belay.StepID]bool{}
	for ev, err := range r.Store.Read(ctx, th.Thread.Stream(), 0) {
		if err != nil {
			return err
		}
		req, ok := ev.Data.(event.ModelRequested)
		if !ok {
			continue
		}
		id := ev.IDs.Step
		if ev.IDs.Turn != turn {
			turn, n = ev.IDs.Turn, 0
			if number > 0 {
				clear(found)
			}
		}
		if !counted[id] {
			counted[id], n = true, n+1
		}
		_, rest, _ := strings.Cut(string(id), "_")
		if number > 0 && n == number || number == 0 && (strings.HasPrefix(string(id), step) || rest != "" && strings.HasPrefix(rest, step)) {
			found[id] = req
		}
	}
	switch len(found) {
	case 1:
		for id, req := range found {
			p.step, p.at, p.to = id, &req, req.To
		}
		return nil
	case 0:
		return input.At("query step", belay.Errorf(belay.CodeNotFound, "no request of a step %q was sent", input.Shown(step)).At(string(th.Session)).
			WithHint("belay events --type model.requested --json %s lists them", th.Session))
	}
	return input.At("query step", belay.Errorf(belay.CodeUsage, "%d steps have an id that begins with %q", len(found), input.Shown(step)).WithHint("write more of it"))
}

func (p *contextFold) apply(ev event.Envelope) {
	o := p.out
	switch f := ev.Data.(type) {
	case event.TurnStarted:
		p.rules = f.Rules
	case event.ThreadUpdated:
		if f.Rules != nil {
			p.rules = *f.Rules
		}
	case event.ContextResolved:
		o.Omitted = append([]event.ContextOmission{}, f.Omitted...)
	case event.ModelCompleted:
		o.Reported = f.Usage
	case event.ContextCompactionCompleted:
		o.Failed = nil
		b := WindowBoundary{Sequence: ev.Seq, Time: ev.Time, Trigger: f.Trigger, Strategy: f.Strategy, Before: f.TokensBefore, After: f.TokensAfter,
			Pins: len(f.Items), Pruned: f.Pruned, Dropped: f.Dropped, Summary: f.Summary, started: f.Started, omitted: f.Omitted}
		for _, item := range f.Items {
			b.pins += item.Tokens
		}
		o.Boundaries = append(o.Boundaries, b)
	case event.ContextCompactionFailed:
		o.Failed = &CompactionFailure{f.Problem.Code, f.Problem.Message}
	case event.CostRecorded:
		for i := range o.Boundaries {
			if f.For == event.CompactionKey(o.Boundaries[i].started) {
				o.Boundaries[i].Cost = o.Boundaries[i].Cost.Add(f.Sum())
			}
		}
	case event.HistoryRollbackCompleted:
		for i := range o.Boundaries {
			if f.Scope == event.ScopeThread && o.Boundaries[i].Sequence > f.Target {
				o.Boundaries[i].Void = true
			}
		}
	}
}

// Kinds of content, in the order in which they are shown.
var contextKinds = []string{"prompt", "instructions", "summary", "pins", "said", "notes", "answers", "calls", "results", "files"}

// weigh counts what the request has.
func (p *contextFold) weigh(ctx context.Context, r *app.Runtime, rules *thread.Rules, msgs []belay.Message) error {
	fixed := rules.Tokens
	if p.at != nil {
		fixed = cmp.Or(p.at.Fixed, fixed)
	}
	for _, item := range rules.Context {
		n := item.Tokens
		if n == 0 && item.Ref != nil {
			text, err := r.Store.Get(ctx, item.Ref.Digest)
			if err != nil {
				return err
			}
			n = int64(tokens.Rough(string(text)))
		}
		n = min(n, fixed)
		fixed -= n
		p.add("instructions", item.Name, n)
	}
	if fixed > 0 {
		p.add("prompt", "system prompt and tools", fixed)
	}
	for i, m := range msgs {
		p.message(ctx, r, i, m)
	}
	for _, kind := range contextKinds {
		if k := p.weights[kind]; k != nil {
			p.out.Kinds = append(p.out.Kinds, *k)
			p.out.Used += k.Tokens
		}
	}
	slices.SortStableFunc(p.out.Largest, func(a, b ContextPart) int { return cmp.Compare(b.Tokens, a.Tokens) })
	p.out.Largest = p.out.Largest[:min(len(p.out.Largest), mostParts)]
	return nil
}

func (p *contextFold) add(kind, name string, n int64) {
	k := p.weights[kind]
	if k == nil {
		k = &ContextKind{Kind: kind}
		p.weights[kind] = k
	}
	k.Items, k.Tokens = k.Items+1, k.Tokens+n
	p.out.Largest = append(p.out.Largest, ContextPart{kind, name, n})
}

// message counts the parts of a message. The first one of a window has a summary, and
// what was pinned.
func (p *contextFold) message(ctx context.Context, r *app.Runtime, i int, m belay.Message) {
	if i == 0 && history.IsShortened(m) {
		n := tokens.Message(m)
		for _, b := range slices.Backward(p.out.Boundaries) {
			if !b.Void && b.Sequence <= p.out.From && b.Dropped > 0 {
				if b.Pins > 0 {
					p.add("pins", "what stays word for word", b.pins)
					p.weights["pins"].Items = b.Pins
				}
				n = max(0, n-b.pins)
				break
			}
		}
		p.add("summary", "what stands for what was left out", n)
		return
	}
	for _, part := range m.Flat().Parts {
		n := tokens.Message(belay.Message{Role: m.Role, Parts: []belay.Part{part}})
		switch {
		case part.Call != nil:
			name := part.Call.Name + " " + event.CutText(string(part.Call.Args), 80)
			p.calls[part.Call.ID] = name
			p.add("calls", name, n)
		case part.Result != nil:
			p.add("results", cmp.Or(p.calls[part.Result.ID], part.Result.Name), n)
		case part.Image != nil:
			content, _ := r.Store.Get(ctx, part.Image.Ref.Digest) // what is gone counts as one of unknown size
			p.add("files", part.Image.Name, tokens.Profile{}.Attached(part.Image.Ref, content))
		case part.File != nil:
			p.add("files", part.File.Name, tokens.Profile{}.Attached(part.File.Ref, nil))
		case m.Role == belay.RoleAssistant:
			p.add("answers", app.Cut(part.Text, 80), n)
		case history.IsNote(part.Text):
			p.add("notes", app.Cut(part.Text, 80), n)
		default:
			p.add("said", app.Cut(part.Text, 80), n)
		}
	}
}
