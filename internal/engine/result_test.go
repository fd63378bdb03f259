package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/tool"
)

// TestAResultIsHeldAgainstWhatItsToolPromised: data of a result is recorded where it fits the
// tool's output schema, beside the fact when it is long. What doesn't fit fails the call once,
// and its text is still there for the model.
func TestAResultIsHeldAgainstWhatItsToolPromised(t *testing.T) {
	schema := []byte(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)
	long := `{"n":1,"pad":"` + strings.Repeat("x", 4000) + `"}`
	for name, c := range map[string]struct {
		schema, data string
		text         string
		pictures     int
		bad          string // in the problem; empty: the call ends well
		shown        string
	}{
		"fits":               {string(schema), `{"n":1}`, "one", 0, "", "one"},
		"without text":       {string(schema), `{"n":1}`, "", 0, "", `{"n":1}`},
		"long":               {string(schema), long, "long", 0, "", "long"},
		"no schema":          {"", `[1]`, "one", 0, "", "one"},
		"another type":       {string(schema), `{"n":"one"}`, "one", 0, `field "n" must be an integer`, "one"},
		"none":               {string(schema), "", "one", 0, "no data", "one"},
		"no JSON":            {"", `{"n":`, "one", 0, "not JSON", "one"},
		"too much":           {"", `"` + strings.Repeat("x", tool.MaxData) + `"`, "one", 0, "bytes", "one"},
		"too many pictures":  {"", "", "one", tool.MaxAttached + 1, "pictures", "one"},
		"as many as allowed": {"", "", "one", tool.MaxAttached, "", "one"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := tool.Spec{Name: "deaf", Doc: "d", Input: noArgs, Output: []byte(c.schema), Effect: belay.Pure}
			b := newBench(t, callsDeaf, nil, fn{spec, func(_ context.Context, call tool.Call) (tool.Result, error) {
				r := tool.Result{Text: c.text, Data: []byte(c.data)}
				for range c.pictures {
					ref, err := call.Sink.Keep([]byte("png"), "image/png")
					if err != nil {
						return r, err
					}
					r.Attached = append(r.Attached, belay.Attachment{Name: strings.Repeat("n", 1000), Ref: ref})
				}
				return r, nil
			}})
			log := b.run()
			results, failed := find[event.ToolResult](log), find[event.ToolFailed](log)
			if c.bad != "" {
				if len(failed) != 1 || failed[0].Problem.Code != tool.CodeBadResult || !failed[0].Final || !strings.Contains(failed[0].Problem.Message, c.bad) || failed[0].Output.Text != c.shown {
					t.Errorf("the call ended as %+v", failed)
				}
				return
			}
			if len(failed) != 0 || len(results) == 0 || results[0].Output.Text != c.shown || len(results[0].Output.Attached) != c.pictures {
				t.Fatalf("results %+v, failures %+v", results, failed)
			}
			data := string(results[0].Data)
			if ref := results[0].DataRef; ref != nil {
				raw, err := b.h.Get(t.Context(), ref.Digest)
				if err != nil || data != "" {
					t.Errorf("data %q beside %+v: %v", data, ref, err)
				}
				data = string(raw)
			}
			if data != c.data || name == "long" && results[0].DataRef == nil {
				t.Errorf("the data is %.100q", data)
			}
		})
	}
}
