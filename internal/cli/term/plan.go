package term

import "github.com/belay-run/belay/event"

// PlanText is a plan for a page; empty when there is none.
func PlanText(items []event.PlanItem) string {
	if len(items) == 0 {
		return ""
	}
	return event.PlanText(items)
}
