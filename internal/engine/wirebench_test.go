package engine_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/lru"
	"github.com/belay-run/belay/internal/lib/netdial"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/modeltest"
	"github.com/belay-run/belay/internal/model/wire"
	"github.com/belay-run/belay/internal/testkit/modelserver"
)

// canned is a far end that answers every request with the same bytes and reads
// nothing of it, so that what is measured is our own work.
type canned struct{ answer []byte }

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	h := http.Header{"Content-Type": {"text/event-stream"}}
	return &http.Response{StatusCode: 200, Header: h, Body: io.NopCloser(bytes.NewReader(c.answer)), Request: r}, nil
}

// answering is an adapter whose far end says a scene.
func answering(b *testing.B, protocol string, s modeltest.Scene) model.Provider {
	b.Helper()
	server := httptest.NewServer(modelserver.New(func(modelserver.Asked) modelserver.Scene { return modelserver.Scene{Scene: s} }))
	defer server.Close()
	base, err := netdial.ParseBase(server.URL + "/v1")
	if err != nil {
		b.Fatal(err)
	}
	recorded := &recorder{next: http.DefaultTransport}
	e := wire.Endpoint{Name: "far", Base: base, Client: &http.Client{Transport: recorded}}
	ask(b, adapters[protocol](e), model.Request{Model: "m", Messages: []belay.Message{belay.Text(belay.RoleUser, "go")}})
	e.Client = &http.Client{Transport: canned{recorded.answer.Bytes()}}
	return remembering(adapters[protocol](e), wire.NewPrefixes(lru.New(64<<20)))
}

// recorder keeps the answer that comes through it.
type recorder struct {
	next   http.RoundTripper
	answer bytes.Buffer
}

func (t *recorder) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(r)
	if err == nil {
		io.Copy(&t.answer, resp.Body) //nolint:errcheck // the stream's end is checked when it is played
		resp.Body.Close()             //nolint:errcheck // it was read
		resp.Body = io.NopCloser(bytes.NewReader(t.answer.Bytes()))
	}
	return resp, err
}

func ask(b *testing.B, p model.Provider, r model.Request) (chunks int) {
	for c, err := range p.Stream(b.Context(), r) {
		if err != nil {
			b.Fatal(err)
		}
		if chunks++; c.Stop != "" {
			return chunks
		}
	}
	b.Fatal("the answer has no end")
	return 0
}

// BenchmarkRequest is one step's request over a conversation of so many
// messages, two of them new: what it takes to encode it and to hand it to the
// connection, and a short answer. Run it with a fixed number of steps, such as
// -benchtime 200x: the conversation grows with each.
func BenchmarkRequest(b *testing.B) {
	for _, protocol := range protocols(b) {
		for _, n := range []int{10, 100, 1000, 5000} {
			b.Run(fmt.Sprint(protocol, "/", n), func(b *testing.B) {
				p := answering(b, protocol, modeltest.Scene{Text: "ok", Stop: "stop"})
				msgs := longConversation(n + 2*b.N)
				r := model.Request{Model: "m", System: "be brief", Messages: msgs[:n]}
				ask(b, p, r)
				runtime.GC()
				b.ReportAllocs()
				b.ResetTimer()
				for i := range b.N {
					r.Messages = msgs[:n+2*(i+1)]
					ask(b, p, r)
				}
			})
		}
	}
}

// longConversation has n messages of the size that those of agents have.
func longConversation(n int) (msgs []belay.Message) {
	msgs = append(msgs, belay.Text(belay.RoleUser, "do it"))
	for i := 0; len(msgs) < n; i++ {
		id := belay.CallID(fmt.Sprintf("call_%06d", i))
		msgs = append(msgs,
			belay.Message{Role: belay.RoleAssistant, Parts: []belay.Part{{Text: "I look at the next one."}, {Call: &belay.ToolCall{ID: id, Name: "look", Args: fmt.Appendf(nil, `{"path":"file%d.go"}`, i)}}}},
			belay.Message{Role: belay.RoleTool, Parts: []belay.Part{{Result: &belay.ToolResult{ID: id, Name: "look", Text: string(bytes.Repeat([]byte("a line of what there is to see\n"), 20))}}}})
	}
	return msgs[:n]
}

// BenchmarkToken is the decoding of an answer of ten thousand pieces of text:
// time and bytes allocated for each.
func BenchmarkToken(b *testing.B) {
	const tokens = 10_000
	for _, protocol := range protocols(b) {
		b.Run(protocol, func(b *testing.B) {
			p := answering(b, protocol, modeltest.Scene{Text: string(bytes.Repeat([]byte(" word"), tokens)), Parts: tokens, Stop: "stop"})
			r := model.Request{Model: "m", Messages: longConversation(1)}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			begun := time.Now()
			for b.Loop() {
				if n := ask(b, p, r); n < tokens {
					b.Fatalf("%d pieces", n)
				}
			}
			runtime.ReadMemStats(&after)
			n := float64(b.N) * tokens
			b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/n, "B/token")
			b.ReportMetric(float64(after.Mallocs-before.Mallocs)/n, "allocs/token")
			b.ReportMetric(float64(time.Since(begun).Nanoseconds())/n, "ns/token")
		})
	}
}
