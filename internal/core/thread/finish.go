package thread

import (
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
)

// finish looks at a step that is over: the turn ends, asks a person, or takes
// another step. Success is never inferred: in required mode only the completion
// tool ends a turn well, and that happened in run.
func finish(d *decision) bool {
	t := d.Turn
	st := t.Step
	stopped := len(st.Calls) == 0
	last := st.Kind == KindFinal && d.Turn.exhausted() != "" // a resume can have raised the limit
	switch {
	case stopped && t.Completion == belay.CompletionConversational && st.Stop == stopRefused:
		d.fail(belay.Failed, "MODEL_REFUSED", "the model refused to answer")
	case stopped && t.Completion == belay.CompletionConversational && st.Stop != stopLength && st.Misfit == "" && !last:
		done := event.TurnCompleted{Summary: st.Text, Stats: t.stats(belay.Completed)}
		if len(d.rules.Answer()) > 0 {
			out := st.Text
			done.Output = &out
		}
		d.record(core.Fact{IDs: d.turnIDs(), Data: done})
		d.report(belay.AttemptEnd{Outcome: belay.Completed, Summary: st.Text, Output: done.Output})
	case last:
		d.endFinal()
	case st.Kind == KindGrace && st.Misfit != "":
		d.endSilent("the model's answer doesn't fit the schema of the output, also after a nudge and a grace step: " + st.Misfit)
	case st.Kind == KindGrace && d.rules.completionTool() == "":
		d.endSilent("the model's answer was cut off, also after a nudge and a grace step")
	case st.Kind == KindGrace:
		d.endSilent("the model stopped without a valid call of " + d.rules.completionTool() + ", also after a nudge and a grace step")
	case t.GaveUp:
		d.fail(belay.Blocked, "FAILURES", "three different failures in a row ("+strings.Join(t.Failing, ", ")+") and nobody wanted to go on")
	case d.Turn.exhausted() != "":
		d.ask(KindFinal)
	case stopped && !t.Nudged:
		d.ask(KindNudge)
	case stopped:
		d.ask(KindGrace)
	case len(t.Failing) >= maxFailing:
		d.askAfterFailures()
	default:
		d.ask(KindNormal)
	}
	return true
}

// Why an answer ended, where it matters here. Source: model.Chunk.
const (
	stopLength  = "length"
	stopRefused = "refused"
)

// endSilent ends a turn that was never completed. When the gate's no was the
// last thing it heard, that is what it ended of.
func (d *decision) endSilent(reason string) {
	if d.Turn.Denied {
		d.fail(belay.Denied, "STOPPED_AFTER_DENIAL", "the model gave up after a call was denied")
		return
	}
	d.fail(belay.NoCompletion, "NO_COMPLETION", reason)
}

// askAfterFailures asks a person whether to go on after different failures in a row;
// without a person the turn is blocked.
func (d *decision) askAfterFailures() {
	t := d.Turn
	what := strings.Join(t.Failing, ", ")
	switch {
	case d.rules.headless():
		d.fail(belay.Blocked, "FAILURES", "three different failures in a row: "+what)
	case t.Ask == nil || !t.Ask.Open:
		d.askPerson(nil, "", event.ActionRequired{Kind: "continue", Prompt: belay.Content{Text: "Three different failures in a row: " + what + ". Go on?"}})
	case !d.now.Before(t.Ask.Until):
		d.resolve(t.Ask, nil, "deny", "deadline", "", "nobody answered in time")
	default:
		d.wakeAt(t.Ask.Until)
	}
}
