package effect

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/belay-run/belay/internal/engine"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/effect/history"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/tokens"
	"github.com/belay-run/belay/internal/secret"
	"github.com/belay-run/belay/internal/store"
)

// Sizes of what an event holds itself; what is longer goes to a blob.
const (
	inlineText  = 4 << 10 // bytes of a text
	inlineArgs  = 2 << 10 // bytes of one call's arguments
	inlineCalls = 6 << 10 // bytes of all arguments of an answer
	maxCalls    = 48      // calls of one answer; more are dropped, with a note to the model
	maxAnswer   = 4 << 20 // bytes of an answer, reasoning included; a longer one has failed, and isn't asked for again

	callIDBytes = 48 // of a call's id, which it gets with its place in the log
)

// Checkpoints of text that flows.
const (
	deltaBytes = 4 << 10
	deltaEvery = 2 * time.Second
)

// callModel performs one attempt of a request.
func (v *performer) callModel(ctx context.Context, run *engine.Run, eff core.CallModel) []core.Fact {
	a := &answer{v: v, run: run, eff: eff, began: v.e.c.Now()}
	a.since = a.began
	a.text = answerText{st: v.e.c.Store}
	defer a.text.close()
	a.clean = v.e.c.Secrets.Writer(&a.text)
	a.thoughts.clean = v.e.c.Secrets.Writer(&a.thoughts.text)
	err := v.read(ctx, run, a)
	_ = a.clean.Close() // into memory: can't fail
	if err != nil && a.usable(ctx, err) {
		a.stop, err = stopCut, nil
	}
	if err == nil {
		var facts []core.Fact
		if facts, err = a.whole(ctx); err == nil {
			return facts
		}
	}
	return a.failureFacts(ctx, err)
}

// failureFacts are the facts of an attempt without an answer.
func (a *answer) failureFacts(ctx context.Context, err error) []core.Fact {
	eff, p := a.eff, a.failed(ctx, err)
	if p.Problem.Class != "rate_limited" {
		return []core.Fact{{IDs: eff.IDs, Data: p}}
	}
	limit := event.RateLimitHit{Provider: a.settings.Provider, Model: a.settings.Model, RetryAt: p.RetryAt}
	return []core.Fact{{IDs: eff.IDs, Data: limit}, {IDs: eff.IDs, Data: p}}
}

// stopCut ends an answer whose stream broke off after whole calls.
const stopCut = "cut"

// usable reports whether an answer that broke off has calls to continue with: what
// came whole is kept, and the model continues from its results. Asking again would
// pay for the same calls twice.
func (a *answer) usable(ctx context.Context, err error) bool {
	if ctx.Err() != nil || len(a.calls) == 0 || model.AsError(err).Class != "transient" {
		return false
	}
	return !slices.ContainsFunc(a.calls, func(c model.Call) bool { return !json.Valid([]byte(c.Args)) })
}

// read takes the provider's chunks into a.
func (v *performer) read(ctx context.Context, run *engine.Run, a *answer) error {
	prov, err := v.resolveProvider(ctx, a)
	if err != nil {
		return err
	}
	c := v.e.convs.Take(v.stream)
	defer v.e.convs.Give(c)
	known, anew := c.Known(a.eff.From), !c.Known(1)
	if err := c.UpTo(ctx, v.e.c.Store, a.eff.From, a.eff.To); err != nil {
		return err
	}
	if a.eff.From > 1 && !known {
		run.Record(core.Fact{IDs: a.eff.IDs, Data: event.HistoryWindowLoaded{From: a.eff.From, To: a.eff.To, Total: a.eff.To}})
		if anew {
			run.Record(core.Fact{IDs: a.eff.IDs, Data: event.HistoryReconstructed{From: a.eff.From, To: a.eff.To, Source: "log"}})
		}
	}
	can := model.AbilitiesOf(prov, a.settings.Model)
	a.tools = a.shared.offers[offer{c.Cut(), a.eff.Search && can.Search}]
	r := a.request(c.Shown(can))
	if r.System, err = v.system(ctx, a.rules, a.eff.Rules, a.eff.Instructions); err != nil {
		return err
	}
	if err := v.fits(a, r); err != nil {
		return err
	}
	return a.listen(ctx, prov.Stream(ctx, r))
}

// resolveProvider returns the provider to ask, under the rules and with the settings of the
// attempt.
func (v *performer) resolveProvider(ctx context.Context, a *answer) (model.Provider, error) {
	rules, err := v.rules(ctx, a.eff.Rules)
	if err != nil {
		return nil, err
	}
	a.shared, a.rules, a.settings = rules, rules.Rules, rules.Settings
	if err := v.e.ready(ctx, rules.Workspace); err != nil { // what its answer names is looked up there
		return nil, &model.Error{Class: "internal", Code: "WORKSPACE_GONE", Message: err.Error()}
	}
	if a.eff.Provider != "" {
		a.settings.Provider, a.settings.Model, a.settings.BaseURL = a.eff.Provider, a.eff.Model, a.eff.BaseURL
	}
	prov, err := v.provider(ctx, a.eff.IDs.Turn, rules.Configured(), a.settings)
	if err != nil {
		return nil, &model.Error{Class: "auth", Message: err.Error()}
	}
	return prov, nil
}

// request is what is asked, over a conversation.
func (a *answer) request(messages []belay.Message) model.Request {
	r := model.Request{
		Model: a.settings.Model, Messages: messages, Tools: a.tools,
		ForceTool: a.eff.ForceTool, Attempt: a.eff.Attempt, Failures: a.eff.Failures, Key: string(a.eff.Step),
		Content: a.v.e.c.Store.Get, Effort: a.rules.Settings.Effort, Output: a.rules.Answer(), MaxOutput: int(a.eff.MaxOutput),
	}
	if a.eff.Note != "" {
		r.Note = history.Note(a.eff.Note)
	}
	return r
}

// bounded passes on the chunks of an answer until it is too long.
func bounded(chunks iter.Seq2[model.Chunk, error]) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		size := 0
		for chunk, err := range chunks {
			if size += chunk.Size(); size > maxAnswer && err == nil {
				yield(model.Chunk{}, model.TooLarge("the answer has more than %d MB", maxAnswer>>20))
				return
			}
			if !yield(chunk, err) {
				return
			}
		}
	}
}

// listen takes chunks until the last one.
func (a *answer) listen(ctx context.Context, chunks iter.Seq2[model.Chunk, error]) error {
	for chunk, err := range bounded(chunks) {
		if err != nil {
			return err
		}
		a.take(ctx, chunk)
		if err := a.checkPictureCount(); err != nil {
			return err
		}
		if chunk.Stop != "" {
			return nil
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return &model.Error{Class: "transient", Code: "CUT", Message: "the provider's stream ended in the middle of the answer"}
}

func (e *Performers) provider(ctx context.Context, workspace string, s belay.Settings) (model.Provider, error) {
	if e.c.Provider == nil {
		return nil, belay.Errorf(belay.CodeNoProvider, "no provider is configured")
	}
	return e.c.Provider(ctx, workspace, s)
}

// maxRetryAfter is the longest Retry-After that a turn waits for. A longer one
// ends it: a new turn can continue later.
const maxRetryAfter = 10 * time.Minute

// answer collects the chunks of one attempt.
type answer struct {
	v     *performer
	run   *engine.Run
	eff   core.CallModel
	rules *thread.Rules
	tools []model.ToolDef // that it offers

	shared *sharedRules
	began  time.Time
	first  time.Time // the first piece came

	settings belay.Settings // of this attempt: it may go to another model than the session's

	text  answerText
	clean *secret.Writer // in front of text: a secret may come in pieces
	shown int            // bytes of text that were shown live
	since time.Time      // of the last checkpoint
	calls []model.Call
	echo  []event.ModelEcho
	usage belay.Usage
	stop  string

	thoughts     reasoning
	searches     []*model.Search
	pictures     []*model.Image
	pictureBytes int
}

func (a *answer) take(ctx context.Context, c model.Chunk) {
	a.run.Beat()
	if a.first.IsZero() {
		a.first = a.v.e.c.Now()
	}
	if c.Reasoning != "" {
		a.think(c.Reasoning)
	}
	if c.Text != "" {
		_, _ = a.clean.Write([]byte(strings.ToValidUTF8(c.Text, "\uFFFD"))) // into memory: can't fail
		a.show()
		a.checkpoint(ctx)
	}
	if c.Image != nil {
		a.draw(c.Image)
	}
	if c.Echo != nil {
		a.echo = append(a.echo, event.ModelEcho{Echo: *c.Echo})
	}
	if c.Call != nil {
		a.calls = append(a.calls, *c.Call)
		if c.Call.Echo != nil {
			a.echo = append(a.echo, event.ModelEcho{Call: len(a.calls), Echo: *c.Call.Echo})
		}
	}
	if c.Search != nil {
		a.searches = append(a.searches, c.Search)
	}
	if c.Usage != nil {
		a.usage = reported(*c.Usage)
	}
	a.stop = c.Stop
}

// reported is a usage as a provider reported it. One that can't be counts as none.
func reported(u belay.Usage) belay.Usage {
	u.Reported = true
	return belay.Usage{}.Add(u)
}

// show passes on what has come since the last time.
func (a *answer) show() {
	if text := a.text.from(a.shown); text != "" {
		a.v.e.c.Live(event.Delta{Stream: a.v.stream, IDs: a.eff.IDs, Kind: "text", Attempt: a.eff.Attempt, Offset: int64(a.shown), Text: text})
		a.shown += len(text)
	}
}

// checkpoint records text that is still flowing, every 4 KB or two seconds.
func (a *answer) checkpoint(ctx context.Context) {
	now := a.v.e.c.Now()
	if len(a.text.open) < deltaBytes && now.Sub(a.since) < deltaEvery {
		return
	}
	for at, piece := range a.text.settle(ctx) {
		a.run.Record(core.Fact{IDs: a.eff.IDs, Data: event.ModelDelta{Attempt: a.eff.Attempt, Offset: int64(at), Text: piece}})
	}
	a.since = now
}

// lastCheckpoint are the checkpoints of what came of a long text since the last one:
// whoever followed them has all of it and needn't read it.
func (a *answer) lastCheckpoint(ctx context.Context) (facts []core.Fact) {
	for at, piece := range a.text.settle(ctx) {
		if a.text.out != nil {
			facts = append(facts, core.Fact{IDs: a.eff.IDs, Data: event.ModelDelta{Attempt: a.eff.Attempt, Offset: int64(at), Text: piece}})
		}
	}
	return facts
}

// whole returns the facts of a whole answer, for one append: what the provider
// showed of its reasoning, the pictures, and the answer.
func (a *answer) whole(ctx context.Context) ([]core.Fact, error) {
	facts, err := a.reasoned(ctx)
	if err != nil {
		return nil, err
	}
	pictures, list, err := a.drawn(ctx)
	if err != nil {
		return nil, err
	}
	facts = append(facts, a.lastCheckpoint(ctx)...)
	p, err := a.completed(ctx, list)
	if err != nil {
		return nil, err
	}
	facts = append(facts, pictures...)
	if t := a.clean.Taken(); t.Count > 0 {
		facts = append(facts, core.Fact{IDs: a.eff.IDs, Data: redacted(t, nil)})
	}
	return append(facts, core.Fact{IDs: a.eff.IDs, Data: p}), nil
}

func (a *answer) completed(ctx context.Context, pictures []belay.Attachment) (event.ModelCompleted, error) {
	p := event.ModelCompleted{Attempt: a.eff.Attempt, Stop: a.stop, Usage: a.usage, Images: pictures,
		FirstMS: a.first.Sub(a.began).Milliseconds(), TookMS: a.v.e.c.Now().Sub(a.began).Milliseconds()}
	if a.text.len() == 0 && len(a.calls) == 0 && len(pictures) == 0 {
		if a.stop == "refused" { // another try meets the same refusal
			return p, &model.Error{Class: "refused", Code: "REFUSED", Message: "the model refused to answer"}
		}
		return p, &model.Error{Class: "transient", Code: "EMPTY", Message: "the model's answer was empty"}
	}
	var err error
	if p.Text, err = a.text.content(ctx, a.v.e); err != nil {
		return p, err
	}
	if p.Searches, err = a.searched(ctx); err != nil {
		return p, err
	}
	if p.Misfit, err = a.outputError(ctx, p.Text); err != nil {
		return p, err
	}
	if p.Echo, err = a.v.e.keepEcho(ctx, a.echo); err != nil {
		return p, err
	}
	budget := inlineCalls
	for _, c := range a.calls[:min(len(a.calls), maxCalls)] {
		mc, err := a.call(ctx, c, &budget)
		if err != nil {
			return p, err
		}
		p.Calls = append(p.Calls, mc)
	}
	err = a.fit(ctx, &p)
	return p, err
}

// fit makes an answer fit into a fact: its text goes to a blob, problems are
// shortened, and finally calls at the end are dropped, with a note to the model.
func (a *answer) fit(ctx context.Context, p *event.ModelCompleted) error {
	for n := 0; ; n++ {
		raw, err := event.Encode(*p)
		if err != nil {
			return err
		}
		if room := event.MaxPayload - 512 - len(p.Calls)*callIDBytes - len(raw); room >= 0 {
			break
		}
		switch {
		case p.Text.Ref == nil && len(p.Text.Text) > history.Preview:
			ref, err := a.v.e.c.Store.Put(ctx, []byte(p.Text.Text), "text/plain")
			if err != nil {
				return err
			}
			p.Text.Text, p.Text.Ref = event.CutText(p.Text.Text, history.Preview), &ref
		case n < len(p.Calls):
			if pr := p.Calls[n].Problem; pr != nil {
				pr.Message, pr.Hint = event.CutText(pr.Message, 60), ""
			}
		case len(p.Searches) > 0:
			if err := a.shortenSearches(ctx, p); err != nil {
				return err
			}
		default:
			p.Calls = p.Calls[:len(p.Calls)-1]
		}
	}
	p.Dropped = len(a.calls) - len(p.Calls)
	return nil
}

// failed is the fact of an attempt without an answer. Text that came is kept.
func (a *answer) failed(ctx context.Context, err error) event.ModelFailed {
	p := event.ModelFailed{Attempt: a.eff.Attempt, Offset: int64(a.text.len())}
	if a.text.len() > 0 {
		// A context that ended must not cost the text that was there.
		if c, err := a.text.content(context.WithoutCancel(ctx), a.v.e); err == nil {
			p.Partial, p.PartialRef = c.Text, c.Ref
		}
	}
	if ctx.Err() != nil {
		p.Problem = event.Problem{Class: "cancelled", Code: "CANCELLED", Message: "the request was cancelled"}
		a.charged(&p)
		return p
	}
	me, isModel := errors.AsType[*model.Error](err)
	if !isModel {
		me = &model.Error{Class: "internal", Message: err.Error()}
		if belay.CodeOf(err) == belay.CodeInternal {
			me = model.AsError(err)
		}
	}
	if errors.Is(err, store.ErrNotFound) {
		p.Problem = event.Problem{Class: "lost", Code: "CONTENT_MISSING", Message: "a part of the conversation is not in the store any more"}
		return p
	}
	p.Problem = event.Problem{Class: me.Class, Code: cmp.Or(me.Code, strings.ToUpper(me.Class)), Message: event.CutText(a.v.e.c.Secrets.String(me.Message), 1000), Hint: me.Hint, Retryable: me.Retryable()}
	p.Limit = me.Limit
	a.charged(&p)
	if me.RetryAfter > maxRetryAfter {
		p.Problem.Retryable = false
		p.Problem.Message += fmt.Sprintf(" (the provider asks to wait %s)", me.RetryAfter)
	}
	if p.Problem.Retryable {
		p.RetryAt = thread.ModelRetryAt(a.v.e.c.Now().UTC().Truncate(time.Microsecond), a.eff.Step, a.eff.Failures, me.RetryAfter)
	}
	return p
}

// charged says what an attempt without an answer takes all the same.
func (a *answer) charged(p *event.ModelFailed) {
	switch hangs := p.Problem.Code; {
	case a.stop != "" && a.usage.Reported: // it was whole, and of no use
		p.Charge, p.Usage = event.ChargeAnswer, a.usage
	case hangs == "NO_ANSWER" || hangs == "SILENT" || hangs == "TOO_LONG":
		p.Charge = event.ChargeAll
	case p.Problem.Class == "cancelled" || !a.first.IsZero():
		p.Charge, p.Tokens = event.ChargePart, int64(a.text.count.Rough())
		for _, c := range a.calls {
			p.Tokens += int64(tokens.Rough(c.Args))
		}
	}
}

// content keeps text, which has no secrets any more, in the event while it is short, else
// in a blob with a preview, and counts it.
func (e *Performers) content(ctx context.Context, text, media string) (belay.Content, error) {
	c := belay.Content{Text: text}
	if text != "" {
		c.Tokens = tokens.Text(text)
	}
	if event.TextLen(text) <= inlineText {
		return c, nil
	}
	ref, err := e.c.Store.Put(ctx, []byte(text), media)
	c.Text, c.Ref = event.CutText(text, history.Preview)+" …", &ref
	return c, err
}
