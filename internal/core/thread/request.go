package thread

import (
	"encoding/binary"
	"encoding/json"
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/policy"
)

// Kinds of steps.
const (
	KindNormal = "normal"
	KindNudge  = "nudge" // the model stopped without completing: it gets a reminder
	KindGrace  = "grace" // it did so again: only the completion tool is taken
	KindFinal  = "final" // a limit is reached: only the completion tool is taken
)

// maxAttempts bounds the attempts of a request or a call that crashes of the
// runtime cut short.
const maxAttempts = 20

// maxModelFailures is how many attempts of one request may fail.
const maxModelFailures = 4

// request gets an answer for the running step: the first request of a turn, an
// attempt in flight, a retry after a failure, another attempt after a crash.
func request(d *decision) bool {
	t := d.Turn
	st := t.Step
	switch {
	case st == nil:
		kind := KindNormal
		if d.Turn.exhausted() != "" {
			kind = KindFinal
		}
		d.ask(kind)
	case st.Phase == stepAnswered:
		return false
	case st.Phase == stepRequested:
		d.want(d.call())
	case st.Phase == stepFailed && st.Problem.Class == "lost":
		d.fail(belay.Lost, "CONTENT_MISSING", st.Problem.Message)
	case st.Phase == stepFailed && d.overflowed():
	case st.Phase == stepFailed && d.givesUp() && d.fallback():
	case st.Phase == stepFailed && (!st.Problem.Retryable || st.Failures >= maxModelFailures || t.spent()):
		d.failedForGood()
	case st.Attempt-st.Failed >= maxAttempts:
		d.fail(belay.Failed, "CRASH_LOOP", "the runtime stopped again and again while the model was asked")
	case st.Phase == stepFailed && d.now.Before(st.RetryAt):
		d.want(core.Timer{Name: "model/" + string(st.ID)})
		d.wakeAt(st.RetryAt)
	default:
		d.again(st.From)
	}
	return true
}

// ask decides a new step's request.
func (d *decision) ask(kind string) {
	ids := d.ids()
	limit := ""
	if kind == KindFinal {
		limit = d.exhausted()
	}
	to, note := d.to(), joinNotes(d.planNote(), d.goneNote(), d.endsNote(), d.givenNote(), d.acceptanceNote(), d.pinNote(), d.note(kind))
	if d.tooSmall(to) || d.makeRoom(kind, note) {
		return
	}
	ids.Step = belay.StepID(d.derive(belay.PrefixStep, len(d.ready.Decided)))
	r, ok := spending{d}.reserve(kind, note)
	if !ok {
		return
	}
	d.record(core.Fact{IDs: ids, Data: event.ModelRequested{
		Attempt: 1, Kind: kind, Limit: limit, Provider: to.Provider, Model: to.Model,
		From: d.from(), To: d.Seq + int64(len(d.ready.Decided)), Note: note, MaxOutput: r.Most, Tokens: r.Input, Fixed: d.fixed(), Room: max(0, usable(to)), Search: d.maySearch(kind),
	}})
	spending{d}.announce(ids, modelKey(ids.Step, 1), r)
	d.deliversNews()
}

// again decides another attempt of the running step's request: with the same
// messages, or, from a newer boundary, with those that there are now.
func (d *decision) again(from int64) {
	st := d.Turn.Step
	until := st.To
	if from > st.From {
		until = d.Seq
	}
	to := d.to()
	r, ok := spending{d}.reserve(st.Kind, st.Note)
	if !ok {
		return
	}
	d.record(d.fact(event.ModelRequested{
		Attempt: st.Attempt + 1, Kind: st.Kind, Limit: st.Limit, Provider: to.Provider, Model: to.Model,
		From: from, To: until, Note: st.Note, MaxOutput: r.Most, Tokens: r.Input, Fixed: d.fixed(), Room: max(0, usable(to)), Search: d.maySearch(st.Kind),
	}))
	spending{d}.announce(d.ids(), modelKey(st.ID, st.Attempt+1), r)
}

func (d *decision) call() core.CallModel {
	st := d.Turn.Step
	to := d.to()
	e := core.CallModel{Provider: to.Provider, Model: to.Model, BaseURL: to.BaseURL, Context: to.Context, Tokens: st.Tokens, Instructions: d.instructionsRef(), Step: st.ID, IDs: d.ids(), Attempt: st.Attempt, Failures: st.Failures, From: st.From, To: st.To, Note: st.Note, Rules: d.Turn.Rules, MaxOutput: st.MaxOutput, Search: st.Search != ""}
	if st.Kind == KindGrace || st.Kind == KindFinal {
		e.ForceTool = d.rules.completionTool()
	}
	return e
}

// maySearch is the rule by which the model's vendor may search the web for the answer of
// a step; empty: it may not. Nobody can be asked in the middle of an answer, and neither
// arguments nor numbers can be looked at: only what is allowed whatever it is counts. After
// a secret was read nothing is, because the results of one search could send it out with
// the next.
func (d *decision) maySearch(kind string) string {
	i := slices.IndexFunc(d.rules.Tools, func(t belay.ToolSpec) bool { return t.Native })
	if i < 0 || kind == KindGrace || kind == KindFinal {
		return ""
	}
	spec, gate := d.rules.Tools[i], d.rules.Gate()
	if _, capped := gate.CapOf(spec.Name); capped || gate.NeedsArgs(spec) || slices.ContainsFunc(d.Taint, func(t policy.Taint) bool { return t.Kind == policy.TaintSecret }) {
		return ""
	}
	q := d.policyRequest(d.rules, spec, &Call{Name: spec.Name, Args: json.RawMessage("{}")}, d.now)
	q.Grants = slices.DeleteFunc(q.Grants, func(g policy.Grant) bool { return g.Left > 0 })
	if v := evaluate(d.rules, &q); v.Decision == policy.Allow {
		return v.Rule
	}
	return ""
}

func (d *decision) note(kind string) string {
	tool := d.rules.completionTool()
	switch kind {
	case KindNudge:
		if note := d.stoppedShort(); note != "" {
			return note
		}
		return "You stopped without calling " + tool + ". If the task is done, call " + tool + " with a summary. If it is not, go on."
	case KindGrace:
		if tool == "" {
			return d.stoppedShort() + " This is your last step: any call is refused."
		}
		return "You stopped again without calling " + tool + ". This is your last step: call " + tool + " now. Any other call is refused."
	case KindFinal:
		return d.limitNote()
	}
	return ""
}

// stoppedShort tells the model why its answer isn't the end; empty: there is no such
// reason.
func (d *decision) stoppedShort() string {
	st := d.Turn.Step
	switch {
	case st != nil && st.Stop == stopLength:
		return "Your answer was cut off because it was too long. Go on from where it stopped."
	case st != nil && st.Misfit != "":
		return "Your answer must be one value of JSON that fits the schema you were given, and nothing else. What is wrong: " + st.Misfit
	}
	return ""
}

// ModelRetryAt is when the next attempt of a request may leave: 1, 2, 4 …
// seconds, or what the provider asked for, and up to a quarter more by a digest
// of the step, so that many sessions don't return together. failures are those
// before the one that just happened; zero is returned when it was the last that
// a request may have.
func ModelRetryAt(now time.Time, step belay.StepID, failures int, after time.Duration) time.Time {
	if failures+1 >= maxModelFailures {
		return time.Time{}
	}
	d := time.Second << min(failures, 6)
	if after > 0 {
		d = after
	}
	return now.Add(d + jitter(string(step), d/4))
}

func jitter(seed string, limit time.Duration) time.Duration {
	if limit <= 0 {
		return 0
	}
	h := belay.DeriveID("j", belay.StreamID(seed), 0, 0)
	return time.Duration(binary.BigEndian.Uint64([]byte(h[2:10])) % uint64(limit))
}
