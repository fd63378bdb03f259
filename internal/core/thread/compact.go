package thread

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/budget"
)

// What fills the model's context, in tokens or parts of what it has for input.
const (
	newestKept   = 20_000 // of the conversation stay word for word; at most a quarter
	mostSummary  = 4_096  // that a summary has, besides what its model thinks
	prunedTarget = 60     // percent: a conversation with old results left out is short enough
	pinnedPart   = 25     // percent that pins may have
	recallPart   = 10     // percent that a turn is shown of what stands behind a boundary
	regrowth     = 10     // percent that must have come since a boundary before the next one
	failsToBreak = 2      // summaries in a row, after which none is made until there is a fifth more
)

// Bounds of what the state keeps of the window.
const (
	maxBoundaries = 16
	maxFocus      = 1 << 10 // bytes
)

// windowState is what the model is shown of the conversation.
type windowState struct {
	Boundaries []boundary         `json:"boundaries,omitempty"` // in force, the newest last
	Pins       []pin              `json:"pins,omitempty"`
	Compacting *compaction        `json:"compacting,omitempty"`
	Wish       *event.CompactWish `json:"wish,omitempty"`   // of a person, that hasn't begun
	Fails      int                `json:"fails,omitempty"`  // compactions in a row
	FailedAt   int64              `json:"failAt,omitempty"` // tokens of the conversation then
	Stuck      bool               `json:"stuck,omitempty"`  // not even truncating made it shorter
	RetryAt    time.Time          `json:"retryAt,omitzero"` // when another compaction may begin
}

// boundary is a fact from which on the model is shown a shorter window.
type boundary struct {
	Seq    int64 `json:"seq"`
	Tokens int64 `json:"tokens"` // of the conversation then
}

// compaction is one that is announced, until its cost is recorded.
type compaction struct {
	IDs     belay.IDs `json:"ids"`
	Started int64     `json:"started"`
	Over    bool      `json:"over,omitempty"`
	Orphan  bool      `json:"orphan,omitempty"` // its driver ended
	event.ContextCompactionStarted
}

// runs reports whether its effect is wanted.
func (c *compaction) runs() bool { return c != nil && !c.Over && !c.Orphan }

// from is the boundary that the next request's conversation stands on.
func (w *windowState) from() int64 {
	if n := len(w.Boundaries); n > 0 {
		return w.Boundaries[n-1].Seq
	}
	return 1
}

// tooSmall reports whether the fixed prompt alone fills more than half of the model's
// context. Then a model that reads more is taken, or the turn ends.
func (d *decision) tooSmall(to core.Candidate) bool {
	if to.Context <= 0 || d.fixed() <= to.Context/2 {
		return false
	}
	reason := fmt.Sprintf("instructions and tools have about %d tokens, and %s reads %d", d.fixed(), to.Model, to.Context)
	if !d.moveOn(true, "CONTEXT_TOO_SMALL: "+reason) {
		d.fail(belay.Failed, "CONTEXT_TOO_SMALL", reason+": take a model that reads more, or fewer tools (--tools)")
	}
	return true
}

// usable is how many tokens of its context a model has for input, 0 if that isn't
// known: the rest is for the answer, and for what counts err.
func usable(to core.Candidate) int64 {
	output := min(cmp.Or(to.MaxOutput, mostOutput), mostOutput, to.Context/4)
	return to.Context - output - to.Context/50
}

// Window is the model that the thread's next request goes to under some rules, with
// the context that it is known to have, and how much of that is for input; 0: not known.
func (s *State) Window(r *Rules) (to core.Candidate, room int64) {
	d := decision{State: s, rules: r}
	to = d.to()
	return to, max(0, usable(to))
}

// From is the boundary that the thread's next request stands on; 1: none.
func (s *State) From() int64 { return s.from() }

// shorten is the stage of compactions, with and without a turn: it wants the one
// that was announced, and begins what a person asked for while no turn runs.
func shorten(d *decision) bool {
	switch c := d.Compacting; {
	case c != nil && c.Orphan:
		d.record(core.Fact{IDs: c.IDs, Data: event.ContextCompactionFailed{Trigger: c.Trigger, Strategy: c.Strategy, Started: c.Started, Charge: event.ChargeAll,
			Problem: event.Problem{Class: "lost", Code: "LOST", Message: "the runtime stopped while the conversation was shortened", Retryable: true}}})
	case c.runs():
		d.want(d.compact(c))
	case d.Turn != nil || d.rules == nil && !d.lost:
	case c == nil && d.Wish != nil && len(d.Queue) == 0 && d.rules != nil:
		spending{d}.announceCompaction(event.TriggerManual, d.settings().manual())
	}
	return false
}

// compact is the effect of a compaction.
func (d *decision) compact(c *compaction) core.Compact {
	e := core.Compact{IDs: c.IDs, Started: c.Started, ContextCompactionStarted: c.ContextCompactionStarted, Plan: d.Plan, Instructions: d.instructionsRef()}
	if left, limited := d.turnTime(); limited {
		e.Within = max(left, time.Millisecond)
	}
	for _, p := range d.Pins {
		e.Pins = append(e.Pins, p.PinChange)
	}
	if t := d.Turn; t != nil && t.Ask != nil && t.Ask.Open {
		e.Question = t.Ask.Action
	}
	for _, p := range d.Procs {
		if p.Left && !p.Over {
			e.Processes = append(e.Processes, string(p.IDs.Process)+" "+p.What)
		}
	}
	e.Agents = d.openAgents()
	return e
}

// compacting are the settings of compactions.
type compacting struct{ belay.Compacting }

func (d *decision) settings() compacting { return compacting{d.rules.Settings.Compact} }

func (c compacting) strategy() belay.CompactStrategy { return cmp.Or(c.Strategy, belay.CompactHybrid) }

// manual is the strategy when a person asks.
func (c compacting) manual() belay.CompactStrategy {
	if c.strategy() == belay.CompactOff {
		return belay.CompactHybrid
	}
	return c.strategy()
}

func (c compacting) at() int64 { return int64(cmp.Or(c.At, belay.DefaultCompactAt)) }

// makeRoom looks whether the next request still fits well into the model's context,
// and begins to shorten the conversation if it doesn't. wait means that the request
// can't leave before that is over.
func (d *decision) makeRoom(kind, note string) (wait bool) {
	room := usable(d.to())
	tokens, _, _ := d.estimate(note)
	fits := room <= 0 || tokens <= room
	before := len(d.ready.Decided)
	waits := false
	switch {
	case d.Compacting.runs():
		return !fits
	case kind == KindFinal && fits:
		return false
	case d.Wish != nil:
		waits = d.tryToShorten(event.TriggerManual, fits)
	case room > 0 && tokens >= room*d.settings().at()/100 && (!fits || d.regrown(room)):
		waits = d.tryToShorten(event.TriggerThreshold, fits)
	}
	asked := len(d.ready.Decided) > before && !d.announced()
	return asked || !fits && (d.announced() || waits)
}

// regrown reports whether enough came since the last boundary for another one.
func (d *decision) regrown(room int64) bool {
	n := len(d.Boundaries)
	return n == 0 || d.Counts.All-d.Boundaries[n-1].Tokens >= room*regrowth/100
}

// announced reports whether this decision begins a compaction.
func (d *decision) announced() bool {
	return slices.ContainsFunc(d.ready.Decided, func(f core.Fact) bool {
		_, is := f.Data.(event.ContextCompactionStarted)
		return is
	})
}

// tryToShorten begins a compaction, unless too many failed. fits means that the next
// request can do without. waits: one may begin a little later, or once there is an answer to
// what it may cost.
func (d *decision) tryToShorten(trigger string, fits bool) (waits bool) {
	how := d.settings().strategy()
	broken := d.Fails >= failsToBreak && d.Counts.All <= d.FailedAt+d.FailedAt/5
	switch {
	case d.Compacting != nil: // its cost isn't recorded yet
		return false
	case d.now.Before(d.RetryAt):
		if !fits {
			d.want(core.Timer{Name: "compact"})
			d.wakeAt(d.RetryAt)
		}
		return true
	case trigger == event.TriggerManual:
		how = d.settings().manual()
	case how == belay.CompactOff:
		return false
	case broken && (fits || d.Stuck && d.Counts.All <= d.FailedAt):
		return false
	case broken:
		how = belay.CompactTruncate
	}
	if left, limited := d.turnTime(); limited && left <= 0 { // none for a summary
		how = belay.CompactTruncate
	}
	return (spending{d}).announceCompaction(trigger, how)
}

// announceCompaction records that a conversation is about to be shortened, with what
// that may cost. Where the budget is too small for a summary, none is made; waits: nobody
// knows yet whether it is.
func (d spending) announceCompaction(trigger string, how belay.CompactStrategy) (waits bool) {
	to := d.to()
	by := to
	if m := d.rules.Settings.Compact.Model; m != "" {
		provider, model, _ := strings.Cut(m, "/")
		by = d.rules.Candidate(event.Route{Provider: provider, Model: model})
	}
	all := d.Counts.sent(to.Route)
	room := usable(to)
	switch {
	case room <= 0: // not known: half of what there is
		room = max(all/2, 8_000)
	case trigger == event.TriggerOverflow && all > 0: // which was more than there is room for, whatever was said
		room = min(room, max(all*3/4, 8_000))
	}
	plan := budget.Allocate(max(room-d.fixed(), 0), []budget.Request{
		{ID: "newest", Priority: 2, Optimal: min(newestKept, room/4)},
		{ID: "pins", Priority: 1, Optimal: room * pinnedPart / 100},
	})
	c := event.ContextCompactionStarted{Trigger: trigger, Strategy: string(how), From: d.from(), To: d.Seq, Tokens: d.Counts.All, Rules: d.rulesRef(),
		Target: room * prunedTarget / 100, Keep: plan[0].Amount, Pins: plan[1].Amount}
	if d.Turn != nil {
		c.Turns = []belay.TurnID{d.Turn.Turn}
	}
	if d.Wish != nil {
		c.Trigger, c.Focus, c.By = event.TriggerManual, d.Wish.Focus, d.Wish.By
	}
	ids := d.lastIDs()
	key := event.CompactionKey(d.Seq + 1 + int64(len(d.ready.Decided)))
	if how == belay.CompactHybrid || how == belay.CompactSummarise {
		r, left, waits := d.summary(&c, by)
		switch {
		case waits:
			return true
		case !left:
			c.Strategy = string(belay.CompactTruncate)
		default:
			d.record(core.Fact{IDs: ids, Data: c})
			d.announce(ids, key, r)
			return false
		}
	}
	d.record(core.Fact{IDs: ids, Data: c})
	return false
}

// summary says which model summarises, and what it may take; left is false where the
// budget has no room for it. waits: the session, or agents that the turn pays for, may still
// give what is missing.
func (d spending) summary(c *event.ContextCompactionStarted, by core.Candidate) (r reservation, left, waits bool) {
	all, room, most := d.Counts.sent(by.Route), usable(by), int64(mostSummary)
	if by.Route == d.Counts.Asked { // it thinks before it writes
		most += d.Counts.Thinks
	}
	counted := all + d.fixed()
	requests := int64(1)
	if d.rules.Settings.Compact.Model != "" || c.Trigger == event.TriggerOverflow || room > 0 && counted*11/10+most > by.Context {
		c.Chunk = max(room/2, 2_000)
		if room <= 0 {
			c.Chunk = max(min(all/2, 18_000), 2_000)
		}
		requests = all/c.Chunk + 1
	}
	c.Provider, c.Model, c.Output = by.Provider, by.Model, most
	input, output := counted*5/4+(requests-1)*mostSummary, requests*most
	amount, priced := bound(by, input, output, d.now)
	r = reservation{Route: by.Route, Amount: amount, Output: output, Input: counted, Unpriced: !priced}
	turn, has := d.turnLimits()
	limit := d.Purse.Limit
	needs := amount.Add(d.finalRoom())
	switch {
	case !priced && turn.MicroUSD+limit.MicroUSD > 0:
		return r, false, false
	case has.Short(needs.Only(turn)) != "":
		return r, false, d.shortOfLent()
	case d.has().Short(needs.Only(limit)) != "":
		return r, false, !d.askSession(d.has(), needs, needs)
	}
	return r, true, false
}

// rulesRef names the rules that compactions are decided by: the turn's, if one runs.
func (s *State) rulesRef() belay.Ref {
	switch {
	case s.Turn != nil:
		return s.Turn.Rules
	case s.Wish != nil:
		return s.Wish.Rules
	case s.Compacting != nil:
		return s.Compacting.Rules
	}
	return belay.Ref{}
}

// lastIDs are the identities of a fact that no turn waits for, as those of a compaction: it
// belongs to the running turn, or to the one before it.
func (s *State) lastIDs() belay.IDs {
	ids := belay.IDs{Session: s.Session, Thread: s.Thread}
	switch {
	case s.Turn != nil:
		ids.Turn = s.Turn.Turn
	case s.Prev != nil:
		ids.Turn = s.Prev.Turn
	}
	return ids
}

// overflowed decides what comes of a request that was larger than its model reads,
// and reports whether that is something else than the end of the turn.
func (d *decision) overflowed() bool {
	st := d.Turn.Step
	if st.Problem.Class != classOverflow {
		return false
	}
	if d.from() > st.From { // the conversation is shorter than the one that was refused
		d.again(d.from())
		return true
	}
	return d.Compacting.runs() || d.tryToShorten(event.TriggerOverflow, false) || d.announced()
}

// applyWindow folds what the model is shown of the conversation.
func (s *State) applyWindow(e event.Envelope) {
	w := &s.windowState
	switch p := e.Data.(type) {
	case event.ThreadUpdated:
		if p.Pin != nil {
			w.applyPin(*p.Pin)
		}
		if p.Compact != nil {
			w.Wish = p.Compact
		}
	case event.ModelRequested:
		for i := range w.Pins {
			w.Pins[i].Told = true
		}
	case event.ContextCompactionStarted:
		w.Compacting = &compaction{IDs: e.IDs, Started: e.Seq, ContextCompactionStarted: p}
		w.Wish = nil
	case event.ContextCompactionCompleted:
		if c := s.closeCompaction(p.Started); c != nil {
			s.Counts.All = p.TokensAfter + max(0, s.Counts.All-c.Tokens)
			s.Counts.Used, s.Counts.Sealed, s.Counts.Gap = 0, 0, false
			s.forget()
			w.Boundaries = keep(append(w.Boundaries, boundary{Seq: e.Seq, Tokens: s.Counts.All}), maxBoundaries)
			w.forgetFailures()
		}
	case event.ContextCompactionFailed:
		switch c := s.closeCompaction(p.Started); {
		case c == nil || p.Problem.Class == "cancelled":
			return
		case p.Problem.Class == "lost":
			if c.Trigger == event.TriggerManual { // it is begun again
				w.Wish = &event.CompactWish{Focus: c.Focus, By: c.By, Rules: c.Rules}
			}
			return
		}
		w.Fails, w.FailedAt, w.RetryAt = w.Fails+1, s.Counts.All, p.RetryAt
		w.Stuck = p.Strategy == string(belay.CompactTruncate)
	case event.CostRecorded:
		if c := w.Compacting; c != nil && p.For == event.CompactionKey(c.Started) {
			w.Compacting = nil
		}
	case event.RunStatus:
		if p.Phase == "takeover" && w.Compacting.runs() {
			w.Compacting.Orphan = true
		}
	case event.HistoryRollbackCompleted:
		if p.Scope == event.ScopeThread {
			w.Boundaries = slices.DeleteFunc(w.Boundaries, func(b boundary) bool { return b.Seq > p.Target })
			w.Wish = nil
			w.forgetFailures()
			if w.Compacting != nil {
				s.closeCompaction(w.Compacting.Started)
			}
		}
	}
}

func (w *windowState) forgetFailures() {
	w.Fails, w.FailedAt, w.Stuck, w.RetryAt = 0, 0, false, time.Time{}
}

// closeCompaction ends the compaction that a fact announced; nil: it isn't under way.
// It is known until its cost is recorded, if it has one.
func (s *State) closeCompaction(started int64) *compaction {
	c := s.Compacting
	if c == nil || c.Over || c.Started != started {
		return nil
	}
	c.Over, c.Orphan = true, false
	if !slices.ContainsFunc(s.Purse.Open, func(r reservation) bool { return r.For == event.CompactionKey(started) }) {
		s.Compacting = nil
	}
	return c
}

// wantCompaction takes a person's wish that the conversation be shortened.
func (h *handler) wantCompaction(c belay.CompactThread) error {
	switch {
	case !h.Open || h.Turn == nil && h.Prev == nil:
		return belay.Errorf(belay.CodeBadState, "there is no conversation to shorten").At(string(h.Session)).WithHint("belay run begins one")
	case event.TextLen(c.Focus) > maxFocus:
		return belay.Errorf(belay.CodeTooLarge, "the focus has %d bytes; at most %d are taken", len(c.Focus), maxFocus)
	case h.Compacting != nil && !h.Compacting.Over || h.Wish != nil:
		return belay.Errorf(belay.CodeBadState, "the conversation is being shortened already").At(string(h.Session)).WithHint("belay context %s shows it", h.Session)
	}
	h.record(h.threadFact(event.ThreadUpdated{Compact: &event.CompactWish{Focus: c.Focus, By: h.order.Principal, Rules: c.Rules}}))
	return nil
}
