package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/model/scripted"
	"github.com/belay-run/belay/internal/testkit/memory"
	"github.com/belay-run/belay/internal/tool"
)

const asksScript = `
steps:
  - calls: [{tool: asks, args: {}}]
  - calls: [{tool: complete_task, args: {summary: done}}]
`

// asks is a tool that does its work when a person has answered.
type asks struct{}

func (asks) Spec() tool.Spec {
	return tool.Spec{Name: "asks", Doc: "ask", Input: json.RawMessage(`{"type":"object","additionalProperties":false}`), Effect: belay.AtMostOnce, Destructive: true}
}

func (asks) Run(ctx context.Context, c tool.Call) (tool.Result, error) {
	if c.Input == nil {
		return tool.Result{}, &tool.NeedsInput{Text: "Who?", State: []byte(`{"of":"the call"}`),
			FormAsked: event.FormAsked{Server: "far", Schema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`)}}
	}
	if r, err := (effects{}).Run(ctx, c); err != nil {
		return r, err
	}
	return tool.Result{Text: c.Input.Action + " " + string(c.Input.Content) + " " + string(c.Input.State)}, nil
}

// TestACallThatAsksSurvivesACrashAtEveryPoint: a person is asked once, the answer goes on
// with the call in whatever process, and the work is done at most once.
// Guarantee: T113.
func TestACallThatAsksSurvivesACrashAtEveryPoint(t *testing.T) {
	script, err := scripted.Parse("asks", []byte(asksScript))
	if err != nil {
		t.Fatal(err)
	}
	set, err := tool.NewSet(append([]tool.Tool{mortalOf(asks{})}, tool.TurnTools()...)...)
	if err != nil {
		t.Fatal(err)
	}
	points, lost := 0, 0
	for hit := true; hit; points++ {
		synctest.Test(t, func(t *testing.T) {
			m := newMachine(t)
			defer m.discard()
			m.script, m.tools = script, set
			_, hit = m.run(points + 1)
			if m.checkAsked(points + 1) {
				lost++
			}
		})
	}
	if points < 25 || lost > points/4 {
		t.Errorf("%d points, %d calls lost", points, lost)
	}
}

// checkAsked holds the facts of a life against what a call that asks promises, and
// reports whether the call is lost.
func (m *machine) checkAsked(at int) (lost bool) {
	m.t.Helper()
	h := m.data.Open(memory.Options{})
	defer h.Close()
	m.checkStream(m.t.Context(), h, thr.Stream(), at)
	asked, answered, end := 0, 0, ""
	for e, err := range h.Read(m.t.Context(), thr.Stream(), 0) {
		if err != nil {
			m.t.Fatal(err)
		}
		switch p := e.Data.(type) {
		case event.ActionRequired:
			if p.Kind == "form" {
				asked++
			}
		case event.ActionResolved:
			if p.Decision == "answer" {
				answered++
			}
		case event.ToolResult:
			if p.Name == "asks" {
				end += p.Output.Text
			}
		case event.ToolFailed:
			if p.Name == "asks" && p.Final {
				end += p.Problem.Class
			}
		}
	}
	b, _ := os.ReadFile(filepath.Join(m.dir, "effects.log"))
	runs := bytes.Count(b, []byte("\n"))
	lost = end == "lost"
	whole := asked == 1 && answered == 1 && runs == 1 && end == `accept {"name":"Ada"} {"of":"the call"}`
	if !whole && !(lost && runs <= 1 && asked <= 1) {
		m.t.Errorf("crash %d: %d questions, %d answers, %d runs: %q", at, asked, answered, runs, end)
	}
	return lost
}
