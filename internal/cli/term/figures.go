package term

import (
	"fmt"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/block"
	"github.com/belay-run/belay/internal/view"
)

// figures are what the progress line says of a running turn.
type figures struct {
	step  int
	doing string // empty: nothing runs
	since time.Time
	usage belay.Usage
	cost  event.CostSum
	limit belay.Amounts // the session's budget; zero: none, or others spend of it too
	spent belay.Amounts // of it
}

func (f *figures) start(doing string, at time.Time) { f.doing, f.since = doing, at }

// fact takes what a fact says about them.
func (f *figures) fact(ev event.Envelope) {
	f.cost = f.cost.Add(ev.Cost())
	switch p := ev.Data.(type) {
	case event.TurnSubmitted:
		if b := p.Budget; b != nil && b.ID != "" {
			f.limit, f.spent = b.Limit, b.Limit.Sub(b.Amount)
		}
	case event.LimitChanged:
		if p.Op == event.LimitSet && f.limit != (belay.Amounts{}) {
			f.limit = p.Limit
		}
	case event.CostRecorded:
		f.spent = f.spent.Add(belay.Amounts{MicroUSD: p.Amount, Tokens: p.Usage.Total()})
	case event.ModelRequested:
		if p.Attempt == 1 || f.step == 0 {
			f.step++
		}
		f.start("thinking", ev.Time)
	case event.ModelCompleted:
		f.usage = f.usage.Add(p.Usage)
	case event.ModelFailed, event.TurnCompleted, event.TurnFailed:
		f.doing = ""
	case event.ContextCompactionStarted:
		f.start("shortening the conversation", ev.Time)
	case event.ToolStarted, event.ToolResult, event.ToolFailed:
		f.start("thinking", ev.Time)
	case event.RunStatus:
		if p.Status == view.WaitingResource {
			f.start("waiting for budget", ev.Time)
		}
	}
}

// maxDoing is how many characters of the progress line say what runs.
const maxDoing = 40

// line is the progress line; empty when nothing runs.
func (f *figures) line(live []block.Block, now time.Time) string {
	if f.doing == "" {
		return ""
	}
	doing, printed := running(live, f.doing)
	s := fmt.Sprintf("step %d · %s · %s", f.step, doing, Ago(now.Sub(f.since)))
	if n := f.usage.Total(); n > 0 {
		s += " · " + Count(n) + " tokens"
	}
	if f.cost.MicroUSD > 0 {
		s += " · " + Money(f.cost)
	}
	if f.limit != (belay.Amounts{}) {
		s += fmt.Sprintf(" · budget %.0f %%", budgetShare(f.spent, f.limit))
	}
	if printed != "" {
		s += " │ " + printed
	}
	return s
}

// running is what the newest of the blocks that aren't finished does: a call, and the
// last line that its program printed, or the end of what a model says.
func running(live []block.Block, otherwise string) (doing, printed string) {
	for i := len(live) - 1; i >= 0; i-- {
		switch b := live[i]; {
		case b.Kind == block.KindCall && b.Call.State == block.Running:
			return Short(b.Call.What, maxDoing), b.Call.Last()
		case (b.Kind == block.KindAnswer || b.Kind == block.KindReasoning) && strings.TrimSpace(b.Text) != "":
			r := []rune(Line(strings.TrimSpace(b.Text)))
			return string(r[max(0, len(r)-maxDoing):]), ""
		}
	}
	return otherwise, ""
}
