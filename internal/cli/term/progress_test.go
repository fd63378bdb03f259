package term

import (
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// The progress line says what was spent so far, and how much of the budget that is.
func TestProgressShowsWhatIsSpent(t *testing.T) {
	var out strings.Builder
	l := &renderer{out: &out, moving: true, steps: map[belay.StepID]int{}, calls: map[belay.CallID]string{}}
	limit := belay.Amounts{MicroUSD: 2_000_000, Tokens: 50_000}
	l.fact(event.Envelope{Data: event.TurnSubmitted{Budget: &belay.BudgetGrant{ID: "g", Limit: limit, Amount: belay.Amounts{MicroUSD: 1_500_000, Tokens: 50_000}}}})
	l.fact(event.Envelope{Data: event.CostRecorded{Source: "estimated", Cost: event.Cost{Amount: 100_000, Usage: belay.Usage{Input: 900, Output: 100}}}})
	l.fact(event.Envelope{Data: event.LimitChanged{Op: event.LimitSet, Limit: belay.Amounts{MicroUSD: 4_000_000, Tokens: 50_000}}})
	l.start("thinking", time.Time{})
	l.paint(time.Time{})
	if !strings.HasSuffix(out.String(), " · about $0.10 · budget 15 %") {
		t.Errorf("%q", out.String())
	}
}
