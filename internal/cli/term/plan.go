package term

import (
	"fmt"

	"github.com/belay-run/belay/event"
)

// PlanText is a plan for a page; empty when there is none.
func PlanText(items []event.PlanItem) string {
	if len(items) == 0 {
		return ""
	}
	return event.PlanText(items)
}

// planLine is a plan in a line: how far it is, and what is being done.
func planLine(items []event.PlanItem) string {
	done, now := 0, ""
	for _, i := range items {
		if !i.Open() {
			done++
		}
		if i.Status == event.PlanInProgress {
			now = "; now: " + i.Text
		}
	}
	return Short(fmt.Sprintf("%d of %d done%s", done, len(items), now), 200)
}
