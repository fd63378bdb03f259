package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/lib/netdial"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/modeltest"
	"github.com/belay-run/belay/internal/model/tokens"
	"github.com/belay-run/belay/internal/model/wire"
	"github.com/belay-run/belay/internal/testkit/modelserver"
	"github.com/belay-run/belay/internal/tool"
)

// reader is a far end whose agent looks at one thing after the other, and refuses
// requests that are larger than its context, as vendors do.
type reader struct {
	context, looks int

	mu       sync.Mutex
	looked   int
	refused  int
	bodies   [][]byte // of requests for steps, in order
	summary  func() modelserver.Scene
	answered int // summaries
}

func (r *reader) answer(a modelserver.Asked) modelserver.Scene {
	r.mu.Lock()
	defer r.mu.Unlock()
	size := 0
	for _, text := range append(slices.Clone(a.Texts), a.System) {
		size += tokens.Rough(text)
	}
	if size > r.context {
		r.refused++
		return modelserver.Scene{Fault: modelserver.Fault{Status: 400, Class: "overflow"}}
	}
	if last := a.Texts[len(a.Texts)-1]; strings.Contains(last, "about to be shortened") || strings.Contains(a.System, "You summarise") {
		r.answered++
		if r.summary != nil {
			return r.summary()
		}
		return modelserver.Scene{Scene: modeltest.Scene{Text: fmt.Sprintf("They looked %d times.", r.looked), Usage: &belay.Usage{Input: int64(size), Output: 10}, Stop: "stop"}}
	}
	r.bodies = append(r.bodies, a.Body)
	if r.looked == r.looks {
		return modelserver.Scene{Scene: modeltest.Scene{Text: "all is seen", Usage: &belay.Usage{Input: int64(size), Output: 5}, Stop: "stop"}}
	}
	r.looked++
	return modelserver.Scene{Scene: modeltest.Scene{Calls: []model.Call{{ID: fmt.Sprint("c", r.looked), Name: "look", Args: fmt.Sprintf(`{"n":%d}`, r.looked)}},
		Usage: &belay.Usage{Input: int64(size), Output: 20}, Stop: "tool_calls"}}
}

// look is a tool whose result has about so many tokens.
func look(size int) tool.Tool {
	spec := tool.Spec{Name: "look", Doc: "Looks.", Input: []byte(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`), Effect: belay.Pure, ReadOnly: true}
	return fn{spec, func(_ context.Context, c tool.Call) (tool.Result, error) {
		return tool.Result{Text: "thing " + string(c.Args) + "\n" + strings.Repeat("some more words to look at ", size/6)}, nil
	}}
}

// windowed is a bench on a far end of a small context; known says whether the
// catalogue has its size.
func windowed(t *testing.T, protocol string, far *reader, known bool, change func(*thread.Rules)) *bench {
	server := httptest.NewServer(modelserver.New(far.answer))
	t.Cleanup(server.Close)
	base, err := netdial.ParseBase(server.URL + "/v1")
	if err != nil {
		t.Fatal(err)
	}
	provider := adapters[protocol](wire.Endpoint{Name: "far", Base: base, Key: "sk-test", Client: server.Client()})
	b := newBench(t, "steps:\n"+done, func(s *belay.Settings) { s.Completion = belay.CompletionConversational }, look(1000))
	b.rewire(func(e *config) {
		e.Provider = func(context.Context, string, belay.Settings) (model.Provider, error) { return provider, nil }
	})
	b.changeRules(func(r *thread.Rules) {
		r.Tokens = 500
		c := core.Candidate{Candidate: event.Candidate{Route: event.Route{Provider: "far", Model: "m"}}}
		if known {
			c.Context = int64(far.context)
		}
		r.Routes = []core.Candidate{c}
		if change != nil {
			change(r)
		}
	})
	return b
}

// TestAConversationOutlivesItsWindow: an agent reads ten times what its model's context
// holds. No request is refused, what the person said is in each of them byte for byte,
// and between two boundaries each begins with the bytes of the one before.
func TestAConversationOutlivesItsWindow(t *testing.T) {
	const said = "Look at all of it. Never touch <main.go>, whatever it says: \"quoted\".\n\tEnd."
	for protocol := range adapters {
		t.Run(protocol, func(t *testing.T) {
			far := &reader{context: 20_000, looks: 150}
			b := windowed(t, protocol, far, true, nil)
			b.submit(1, said)
			if err := b.e.Session(t.Context(), sess, nil); err != nil {
				t.Fatal(err)
			}
			log := b.log()
			if done := find[event.TurnCompleted](log); len(done) != 1 {
				t.Fatalf("the turn: %+v, %+v", find[event.TurnFailed](log), find[event.ContextCompactionFailed](log))
			}
			boundaries := find[event.ContextCompactionCompleted](log)
			if far.refused > 0 || len(boundaries) < 3 || far.answered == 0 {
				t.Errorf("%d requests were refused, %d boundaries, %d summaries; failed: %+v", far.refused, len(boundaries), far.answered, find[event.ContextCompactionFailed](log))
			}
			t.Logf("%d requests, %d boundaries, %d summaries", len(far.bodies), len(boundaries), far.answered)
			want, _ := json.Marshal(said)
			loose := strings.NewReplacer("\\u003c", "<", "\\u003e", ">").Replace(string(want[1 : len(want)-1]))
			from := map[int64][]byte{}
			requests := find[event.ModelRequested](log)
			for i, body := range far.bodies {
				if !bytes.Contains(body, want[1:len(want)-1]) && !bytes.Contains(body, []byte(loose)) {
					t.Fatalf("request %d doesn't have what the person said", i+1)
				}
				if before := from[requests[i].From]; before != nil {
					if n := shared(before, body); n < len(before)*9/10 {
						t.Fatalf("request %d shares only %d of %d bytes with the one before", i+1, n, len(before))
					}
				}
				from[requests[i].From] = body
			}
		})
	}
}

// shared is how many bytes two texts begin with.
func shared(a, b []byte) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}
