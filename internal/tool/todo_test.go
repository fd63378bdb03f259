package tool_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/tooltest"
)

type (
	args  = map[string]any
	items = []any
)

func TestTodoReplacesThePlan(t *testing.T) {
	for _, c := range []struct {
		name  string
		items items
		want  string // id:status:text, …
		text  string
	}{
		{"what is left out is filled in", items{args{"text": "a"}, args{"text": "b", "status": "in_progress"}}, "1:pending:a 2:in_progress:b", "[ ] 1. a\n[>] 2. b\n0 of 2 done"},
		{"ids may be chosen", items{args{"id": "x.1", "text": "a", "status": "completed"}}, "x.1:completed:a", "[x] x.1. a\n1 of 1 done"},
		{"cancelled is done with", items{args{"text": "a", "status": "cancelled"}}, "1:cancelled:a", "[-] 1. a\n1 of 1 done"},
		{"texts are one line", items{args{"text": " a \n b\t c "}}, "1:pending:a b c", "[ ] 1. a b c\n0 of 1 done"},
		{"an empty list clears it", items{}, "", "the plan is empty"},
	} {
		b := tooltest.NewBench(t)
		r, err := b.Run(t.Context(), tool.TodoTool(), args{"items": c.items})
		if err != nil || r.Text != c.text {
			t.Errorf("%s: got %q, %v", c.name, r.Text, err)
			continue
		}
		fact, ok := b.Sink.Facts()[0].(event.ArtifactChanged)
		var got []string
		for _, i := range fact.Plan {
			got = append(got, i.ID+":"+i.Status+":"+i.Text)
		}
		if !ok || len(b.Sink.Facts()) != 1 || fact.Kind != "plan" || strings.Join(got, " ") != c.want {
			t.Errorf("%s: got %+v", c.name, b.Sink.Facts())
		}
	}
}

func TestTodoRefuses(t *testing.T) {
	many := items{}
	for range 41 {
		many = append(many, args{"text": "x"})
	}
	for _, c := range []struct {
		says  string
		items items
	}{
		{"at most 40 items, not 41", many},
		{"2 items are in_progress (1, 2)", items{args{"text": "a", "status": "in_progress"}, args{"text": "b", "status": "in_progress"}}},
		{`two items have the id "2"`, items{args{"id": "2", "text": "a"}, args{"text": "b"}}},
		{"items.1: the text is blank", items{args{"text": "a"}, args{"text": " \n"}}},
		{"items.0: the text has 241 bytes; 240", items{args{"text": strings.Repeat("x", 241)}}},
		{"items.0: the text has 246 bytes", items{args{"text": strings.Repeat("\x01", 41)}}},
		{`items.0: status "done" is none of`, items{args{"text": "a", "status": "done"}}},
		{"items.0: an id has 1 to 32", items{args{"id": "a b", "text": "a"}}},
		{"items.0: an id has 1 to 32", items{args{"id": strings.Repeat("x", 33), "text": "a"}}},
	} {
		b := tooltest.NewBench(t)
		_, err := b.Run(t.Context(), tool.TodoTool(), args{"items": c.items})
		if e := tooltest.Failure(err); e == nil || e.Class != "bad_arguments" || e.Code != tool.CodeBadPlan || !strings.Contains(e.Message, c.says) {
			t.Errorf("%q: got %v", c.says, err)
		}
		if len(b.Sink.Facts()) != 0 {
			t.Errorf("%q: it is a fact all the same", c.says)
		}
	}
}

func TestTheLargestPlanFitsIntoAFact(t *testing.T) {
	all := items{}
	for i := range 40 {
		all = append(all, args{"id": fmt.Sprintf("%032d", i), "text": strings.Repeat("\"", 120), "status": "cancelled"})
	}
	b := tooltest.NewBench(t)
	r, err := b.Run(t.Context(), tool.TodoTool(), args{"items": all})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := event.Encode(b.Sink.Facts()[0])
	if err != nil || len(raw) > event.MaxPayload {
		t.Errorf("%d bytes, %v", len(raw), err)
	}
	if limit := tool.TodoTool().Spec().OutputLimit; len(r.Text) > limit {
		t.Errorf("the result has %d bytes, more than %d are cut", len(r.Text), limit)
	}
	if note := event.TextLen(r.Text); note > event.MaxPayload-2<<10 {
		t.Errorf("the reminder of it takes %d bytes of a fact", note)
	}
}

func TestItemsAreOpenUntilTheyEnd(t *testing.T) {
	var open []string
	for _, s := range []string{event.PlanPending, event.PlanInProgress, event.PlanCompleted, event.PlanCancelled} {
		if (event.PlanItem{Status: s}).Open() {
			open = append(open, s)
		}
	}
	if !slices.Equal(open, []string{"pending", "in_progress"}) {
		t.Errorf("got %v", open)
	}
}
