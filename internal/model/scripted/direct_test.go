package scripted_test

import (
	"context"
	"errors"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/scripted"
)

func ask(t *testing.T, ctx context.Context, msgs ...belay.Message) (calls []model.Call, text, stop string, err error) {
	t.Helper()
	for c, e := range (scripted.Direct{}).Stream(ctx, model.Request{Messages: msgs}) {
		if e != nil {
			return calls, text, stop, e
		}
		text, stop = text+c.Text, c.Stop
		if c.Call != nil {
			calls = append(calls, *c.Call)
		}
	}
	return calls, text, stop, nil
}

// Guarantee: T44.
func TestTheCallIsAskedForAsItWasWritten(t *testing.T) {
	for _, args := range []string{`{"path": "a"}`, `{"path":`, "", "{}\n"} {
		text, err := scripted.DirectCall{Tool: "read", Args: args}.Text()
		if err != nil {
			t.Fatal(err)
		}
		calls, said, stop, err := ask(t, t.Context(), belay.Text(belay.RoleUser, text))
		if err != nil || len(calls) != 1 || calls[0].Name != "read" || calls[0].Args != args || said != "" || stop != "tool_calls" {
			t.Errorf("%q: %+v %q %s %v", args, calls, said, stop, err)
		}
	}
}

func TestTheResultIsRepeated(t *testing.T) {
	text, _ := scripted.DirectCall{Tool: "read"}.Text()
	for _, result := range []string{"A project.\n", ""} {
		calls, said, stop, err := ask(t, t.Context(), belay.Text(belay.RoleUser, text),
			belay.Message{Role: belay.RoleAssistant, Parts: []belay.Part{{Call: &belay.ToolCall{ID: "c", Name: "read"}}}},
			belay.Message{Role: belay.RoleTool, Parts: []belay.Part{{Result: &belay.ToolResult{ID: "c", Text: result}}}})
		if err != nil || len(calls) != 0 || said != result || stop != "stop" {
			t.Errorf("%+v %q %s %v", calls, said, stop, err)
		}
	}
}

func TestWhatIsNoCallIsRefused(t *testing.T) {
	for _, text := range []string{"fix it", "{}", `{"tool":""}`, `["read"]`} {
		_, _, _, err := ask(t, t.Context(), belay.Text(belay.RoleUser, text))
		if e := model.AsError(err); e.Class != "bad_request" {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, _, _, err := ask(t, t.Context()); err == nil {
		t.Error("an empty conversation is answered")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, _, err := ask(t, ctx, belay.Text(belay.RoleUser, "x")); !errors.Is(err, context.Canceled) {
		t.Errorf("an ended context: %v", err)
	}
}
