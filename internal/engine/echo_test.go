package engine_test

import (
	"context"
	"encoding/json"
	"iter"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/tool"
)

// signing is a provider whose answers begin with reasoning that it signed, and
// whose calls carry a signature.
type signing struct {
	model.Provider
	signature string
}

func (s signing) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		echo := func(v string) *belay.Echo {
			raw, _ := json.Marshal(v)
			return &belay.Echo{By: "vendor/m", Data: raw}
		}
		if !yield(model.Chunk{Echo: echo("thought " + s.signature)}, nil) {
			return
		}
		for c, err := range s.Provider.Stream(ctx, r) {
			if c.Call != nil {
				call := *c.Call
				call.Echo = echo("call " + call.Name)
				c.Call = &call
			}
			if !yield(c, err) {
				return
			}
		}
	}
}

// What a vendor wants back comes back in its place, from memory and from the
// log, however long it is; what has a secret in it is never recorded.
func TestWhatAVendorSignedComesBack(t *testing.T) {
	for name, c := range map[string]struct {
		signature string
		comes     bool
	}{
		"short":         {"sig", true},
		"long":          {strings.Repeat("x", 9000), true},
		"with a secret": {"s3cr3t-value", false},
		"long, with it": {"s3cr3t-value" + strings.Repeat("x", 9000), false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				look := pure("look", func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{Text: "seen"}, nil })
				b := newBench(t, "name: t\nsteps:\n  - calls: [{tool: look, args: {n: 1}}, {tool: look, args: {n: 2}}]\n  - calls: [{tool: complete_task, args: {summary: done}}]\n", nil, look)
				b.wrap = func(p model.Provider) model.Provider { return signing{p, c.signature} }
				log := b.run()
				if len(b.asked) != 2 || len(find[event.TurnCompleted](log)) != 1 {
					t.Fatalf("%d requests", len(b.asked))
				}
				var msgs []belay.Message
				if err := json.Unmarshal([]byte(b.asked[1]), &msgs); err != nil {
					t.Fatal(err)
				}
				got := msgs[1]
				signed := len(got.Parts) == 3 && got.Parts[0].Echo != nil && string(got.Parts[0].Echo.Data) == `"thought `+c.signature+`"` &&
					got.Parts[1].Call.Echo != nil && string(got.Parts[2].Call.Echo.Data) == `"call look"`
				if signed != c.comes {
					t.Errorf("the answer came back as %.300s", b.asked[1])
				}
				for r, err := range b.h.Scan(t.Context(), 0) {
					raw, _ := json.Marshal(r.Event)
					if err != nil || strings.Contains(string(raw), "s3cr3t") {
						t.Errorf("%v: %s", err, raw)
					}
					for _, ref := range refsIn(raw) {
						if content, _ := b.h.Get(t.Context(), ref); strings.Contains(string(content), "s3cr3t") {
							t.Errorf("%s names content with the secret", r.Event.Type())
						}
					}
				}
			})
		})
	}
}
