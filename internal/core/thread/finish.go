package thread

import (
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/policy"
)

// finish looks at a step that is over: the turn ends, asks a person, or takes
// another step. Success is never inferred: in required mode only the completion
// tool ends a turn well, and that happened in run.
func finish(s *State, r *Rules, now time.Time, rd *core.Ready) bool {
	t := s.Turn
	st := t.Step
	stopped := len(st.Calls) == 0
	last := st.Kind == KindFinal && s.exhausted() != "" // a resume can have raised the limit
	switch {
	case stopped && t.Completion == belay.CompletionConversational && st.Stop == stopRefused:
		s.fail(rd, belay.Failed, "MODEL_REFUSED", "the model refused to answer")
	case stopped && t.Completion == belay.CompletionConversational && st.Stop != stopLength && st.Misfit == "" && !last:
		done := event.TurnCompleted{Summary: st.Text, Stats: t.stats()}
		if len(r.Answer()) > 0 {
			out := st.Text
			done.Output = &out
		}
		rd.Decided = append(rd.Decided, core.Fact{IDs: s.turnIDs(), Data: done})
		s.report(rd, belay.Completed, st.Text, "")
	case last:
		s.endFinal(rd)
	case st.Kind == KindGrace && st.Misfit != "":
		s.endSilent(rd, "the model's answer doesn't fit the schema of the output, also after a nudge and a grace step: "+st.Misfit)
	case st.Kind == KindGrace:
		s.endSilent(rd, "the model stopped without a valid call of "+r.completionTool()+", also after a nudge and a grace step")
	case t.GaveUp:
		s.fail(rd, belay.Blocked, "FAILURES", "three different failures in a row ("+strings.Join(t.Failing, ", ")+") and nobody wanted to go on")
	case s.exhausted() != "":
		s.ask(r, rd, KindFinal)
	case stopped && !t.Nudged:
		s.ask(r, rd, KindNudge)
	case stopped:
		s.ask(r, rd, KindGrace)
	case len(t.Failing) >= maxFailing:
		s.troubled(r, rd, now)
	default:
		s.ask(r, rd, KindNormal)
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
func (s *State) endSilent(rd *core.Ready, reason string) {
	if s.Turn.Denied {
		s.fail(rd, belay.Denied, "STOPPED_AFTER_DENIAL", "the model gave up after a call was denied")
		return
	}
	s.fail(rd, belay.NoCompletion, "NO_COMPLETION", reason)
}

// troubled asks a person whether to go on after different failures in a row;
// without a person the turn is blocked.
func (s *State) troubled(r *Rules, rd *core.Ready, now time.Time) {
	t := s.Turn
	what := strings.Join(t.Failing, ", ")
	switch {
	case r.headless():
		s.fail(rd, belay.Blocked, "FAILURES", "three different failures in a row: "+what)
	case t.Ask == nil || !t.Ask.Open:
		s.askToGoOn(r, rd, now, what)
	case !now.Before(t.Ask.Until):
		rd.Decided = append(rd.Decided, s.resolve(t.Ask, nil, "deny", "deadline", "", "nobody answered in time")...)
	default:
		wakeAt(rd, t.Ask.Until)
	}
}

func (s *State) askToGoOn(r *Rules, rd *core.Ready, now time.Time, what string) {
	until := now.Add(askTimeout(r))
	ids := s.ids()
	ids.Action = belay.ActionID(s.derive(belay.PrefixAction, len(rd.Decided), 0))
	rd.Decided = append(rd.Decided,
		core.Fact{IDs: ids, Data: event.ActionRequired{
			Kind: "continue", Prompt: belay.Content{Text: "Three different failures in a row: " + what + ". Go on?"},
			Decisions: decisions("continue"), Default: string(policy.Deny), Owner: "approver", Until: until,
		}},
		core.Fact{IDs: ids, Data: event.RunStatus{Status: "waiting_input", WaitingFor: string(ids.Action), Until: until}})
}
