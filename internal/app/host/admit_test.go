package host

import (
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/view"
)

// TestAnAgentThatFailedTooOftenIsTriedOnce: after three failed runs in a row new work waits;
// one run is tried five minutes after, and what a person says counts first.
func TestAnAgentThatFailedTooOftenIsTriedOnce(t *testing.T) {
	start := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	at := func(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }
	ends := func(good ...bool) view.AgentRuns {
		r := view.AgentRuns{Runs: len(good)}
		for i, g := range good {
			r.Ends = append(r.Ends, view.AgentEnd{At: at(i), Good: g})
		}
		return r
	}
	failed := ends(false, false, false) // the last one at 2
	for name, c := range map[string]struct {
		control config.AgentControl
		runs    view.AgentRuns
		now     int
		op      string
		until   int // 0: none
		try     bool
	}{
		"nothing is known":               {now: 9, op: event.Admitted},
		"two failed":                     {runs: ends(false, false), now: 3, op: event.Admitted},
		"one of three was good":          {runs: ends(false, true, false), now: 3, op: event.Admitted},
		"three failed":                   {runs: failed, now: 3, op: event.Paused, until: 7},
		"five minutes later":             {runs: failed, now: 7, op: event.Paused, until: 7, try: true},
		"it is the trial":                {control: config.AgentControl{Trial: "mine", Tried: at(7)}, runs: failed, now: 8, op: event.Admitted},
		"another one is":                 {control: config.AgentControl{Trial: "other", Tried: at(7)}, runs: failed, now: 8, op: event.Paused, until: 12},
		"the other one takes its time":   {control: config.AgentControl{Trial: "other", Tried: at(7)}, runs: failed, now: 12, op: event.Paused, until: 12, try: true},
		"a person resumed it":            {control: config.AgentControl{Resumed: at(3)}, runs: failed, now: 4, op: event.Admitted},
		"it was resumed before the last": {control: config.AgentControl{Resumed: at(1)}, runs: failed, now: 4, op: event.Admitted},
		"paused":                         {control: config.AgentControl{Op: config.AgentPaused}, runs: failed, now: 9, op: event.Paused},
		"stopped: what it has it ends":   {control: config.AgentControl{Op: config.AgentStopped}, now: 9, op: event.Admitted},
		"stopped at once":                {control: config.AgentControl{Op: config.AgentStopped, Now: true}, now: 9, op: event.Refused},
	} {
		p, why, try := admitted("reviewer", belay.TurnID("mine"), c.control, c.runs, at(c.now))
		until := time.Time{}
		if c.until > 0 {
			until = at(c.until)
		}
		if p.Op != c.op || !p.Until.Equal(until) || try != c.try || p.Op != event.Admitted && why == "" {
			t.Errorf("%s: %+v (%s), try %t; want %s until %v, try %t", name, p, why, try, c.op, until, c.try)
		}
	}
}
