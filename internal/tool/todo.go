package tool

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// todoName is the name of the tool that keeps the plan.
const todoName = "todo"

// CodeBadPlan is the code of a list that is no plan.
const CodeBadPlan = "BAD_PLAN"

// Bounds of a plan: it is one fact.
const (
	maxPlanItems = 40
	maxPlanText  = 240 // bytes of an item, as a fact holds them
	maxItemID    = 32
)

//go:embed todo.md
var todoDoc string

// todoSchema is written by hand: a derived one has no enum, and is longer.
const todoSchema = `{"type":"object","properties":{"items":{"type":"array","description":"all items","items":{"type":"object","properties":` +
	`{"id":{"type":"string"},"text":{"type":"string"},"status":{"enum":["pending","in_progress","completed","cancelled"]}},` +
	`"required":["text"],"additionalProperties":false}}},"required":["items"],"additionalProperties":false}`

type todoArgs struct {
	Items []todoItem `json:"items"`
}

type todoItem struct {
	ID     string `json:"id"`     // its number, if absent
	Text   string `json:"text"`   // what to do
	Status string `json:"status"` // pending, if absent
}

// TodoTool replaces the thread's plan. Its only effect is a fact: running it
// again records the same again.
func TodoTool() Tool {
	spec := Spec{Name: todoName, Doc: strings.TrimSpace(todoDoc), Input: []byte(todoSchema), Effect: belay.Idempotent, ReadOnly: true, Access: belay.Read,
		Exclusive: true, OutputLimit: maxPlanItems * (maxPlanText + 64)}
	return New(spec, func(ctx context.Context, c Call, in todoArgs) (Result, error) {
		items, err := planOf(in.Items)
		if err != nil {
			return Result{}, err
		}
		if err := c.Sink.Durable(event.ArtifactChanged{Kind: "plan", Op: "changed", Plan: items}); err != nil {
			return Result{}, err
		}
		if len(items) == 0 {
			return Result{Text: "the plan is empty"}, nil
		}
		return Result{Text: event.PlanText(items)}, nil
	})
}

func badPlan(format string, args ...any) error {
	return Failf(BadArguments, CodeBadPlan, format, args...)
}

// planOf checks a list and fills in what it leaves out.
func planOf(in []todoItem) ([]event.PlanItem, error) {
	if len(in) > maxPlanItems {
		return nil, Failf(BadArguments, CodeBadPlan, "a plan has at most %d items, not %d", maxPlanItems, len(in)).
			WithHint("join small items; drop what is done")
	}
	items := make([]event.PlanItem, 0, len(in))
	var now []string
	for i, it := range in {
		item, err := planItem(i, it)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(items, func(o event.PlanItem) bool { return o.ID == item.ID }) {
			return nil, badPlan("two items have the id %q", item.ID)
		}
		if item.Status == event.PlanInProgress {
			now = append(now, item.ID)
		}
		items = append(items, item)
	}
	if len(now) > 1 {
		return nil, Failf(BadArguments, CodeBadPlan, "%d items are in_progress (%s); one at a time", len(now), strings.Join(now, ", ")).
			WithHint("set all but one to pending")
	}
	return items, nil
}

func planItem(i int, it todoItem) (event.PlanItem, error) {
	item := event.PlanItem{ID: strings.TrimSpace(it.ID), Text: strings.Join(strings.Fields(it.Text), " "), Status: it.Status}
	if item.ID == "" {
		item.ID = strconv.Itoa(i + 1)
	}
	if item.Status == "" {
		item.Status = event.PlanPending
	}
	switch {
	case len(item.ID) > maxItemID || belay.CheckID("id", item.ID) != nil:
		return item, badPlan("items.%d: an id has 1 to %d letters, digits and . _ : -", i, maxItemID)
	case item.Text == "":
		return item, badPlan("items.%d: the text is blank", i)
	case event.TextLen(item.Text) > maxPlanText:
		return item, badPlan("items.%d: the text has %d bytes; %d are the most", i, event.TextLen(item.Text), maxPlanText)
	case !slices.Contains([]string{event.PlanPending, event.PlanInProgress, event.PlanCompleted, event.PlanCancelled}, item.Status):
		return item, badPlan("items.%d: status %s is none of pending, in_progress, completed, cancelled", i, fmt.Sprintf("%.40q", item.Status))
	}
	return item, nil
}
