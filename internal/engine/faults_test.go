package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/modeltest"
	"github.com/belay-run/belay/internal/model/wire"
	"github.com/belay-run/belay/internal/testkit/golden"
	"github.com/belay-run/belay/internal/testkit/modelserver"
	"github.com/belay-run/belay/internal/tool"
)

// TestFaultsOfProviders plays every fault of the table in every protocol: a turn
// of the engine against a server over HTTP, in virtual time. What must come of
// it, as facts, is in testdata/faults, where protocols with the same facts stand
// together. After the turn the thread gets another one, so that the last request
// shows what is left of the answer in the conversation.
// Guarantee: E50, E51, E53.
func TestFaultsOfProviders(t *testing.T) {
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			var texts []string
			who := map[string][]string{}
			for _, p := range protocols(t) {
				if f.textArgs && p == "google" {
					continue
				}
				synctest.Test(t, func(t *testing.T) {
					got := f.play(t, p)
					if who[got] == nil {
						texts = append(texts, got)
					}
					who[got] = append(who[got], p)
				})
			}
			var out strings.Builder
			for _, text := range texts {
				fmt.Fprintf(&out, "== %s\n%s", strings.Join(who[text], " "), text)
			}
			golden.Compare(t, filepath.Join("testdata/faults", f.name+".txt"), out.String())
		})
	}
}

// TestEveryExpectedFaultIsPlayed: a file that no fault writes expects nothing.
func TestEveryExpectedFaultIsPlayed(t *testing.T) {
	files, err := filepath.Glob("testdata/faults/*.txt")
	if err != nil || len(files) != len(faults) {
		t.Errorf("%d files for %d faults, %v", len(files), len(faults), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		if !slices.ContainsFunc(faults, func(f fault) bool { return f.name == name }) {
			t.Errorf("%s belongs to no fault", file)
		}
	}
}

// said is the text of the model's first answer: four pieces in the stream.
const said = "one two six ten "

// work is the first answer, whole: the text and one call. over ends the turn.
var (
	work = modelserver.Scene{Scene: modeltest.Scene{Text: said, Parts: 4, Calls: []model.Call{{Name: "look", Args: `{"n":987654}`}}, Stop: "tool_calls", Usage: &belay.Usage{Input: 100, Output: 10}}}
	over = modelserver.Scene{Scene: modeltest.Scene{Calls: []model.Call{{Name: "complete_task", Args: `{"summary":"done"}`}}, Stop: "tool_calls", Usage: &belay.Usage{Input: 200, Output: 10}}}
)

// played is a fault as it is played in one protocol.
type played struct {
	*fault
	t      *testing.T
	b      *bench
	server *modelserver.Server
	far    *farEnd
	began  time.Time

	mu     sync.Mutex
	second bool     // the second turn has begun
	n      int      // requests of the first turn
	bodies [][]byte // of the requests
	texts  []string // of the last one
	seen   int      // requests that reached the stranger's host
}

func (f *fault) play(t *testing.T, protocol string) string {
	p := f.stage(t, protocol)
	defer p.far.close()
	return p.run()
}

// stage makes an engine and the network that its model is behind.
func (f *fault) stage(t *testing.T, protocol string) *played {
	p := &played{fault: f, t: t}
	p.server = modelserver.New(p.answer)
	stranger := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { p.mu.Lock(); p.seen++; p.mu.Unlock() })
	p.far = newFarEnd(t, p.server, stranger, f.secure)
	base := "http://" + vendorHost + "/v1"
	if f.base != "" {
		base = f.base
	}
	provider := wire.NewGateway(time.Now).Wrap(wire.Account{Provider: protocol}, adapters[protocol](p.far.endpoint(t, base)), wire.Limits{})
	if f.unknownCA {
		p.far.client.Transport.(*http.Transport).TLSClientConfig.RootCAs = nil
	}
	look := pure("look", func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{Text: "seen"}, nil })
	p.b = newBench(t, "steps:\n"+done, func(s *belay.Settings) {
		s.Provider, s.Model, s.Limits.Steps = protocol, "m", 6
		if f.talk {
			s.Completion = belay.CompletionConversational
		}
	}, look)
	p.b.wrap = func(model.Provider) model.Provider { return provider }
	p.began = time.Now()
	return p
}

// answer is what the server says next.
func (p *played) answer(a modelserver.Asked) modelserver.Scene {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bodies, p.texts = append(p.bodies, a.Body), a.Texts
	if a.Key != "sk-planted" {
		p.t.Errorf("the key that came is %q", a.Key)
	}
	if p.second {
		return over
	}
	p.n++
	switch {
	case p.forever, p.n <= len(p.scenes):
		return p.scenes[min(p.n, len(p.scenes))-1]
	case a.Results == 0:
		return work
	}
	return over
}

// run plays both turns and says what the facts are.
func (p *played) run() string {
	var out strings.Builder
	facts := p.b.run()
	for _, e := range facts {
		p.fact(&out, e)
	}
	p.mu.Lock()
	p.second = true
	before := len(p.bodies)
	fmt.Fprintf(&out, "requests that came: %d, %d of them the same bytes as the one before\n", before, repeated(p.bodies))
	p.mu.Unlock()
	if p.base == "" && !p.unknownCA {
		p.again(&out)
	}
	if p.seen > 0 {
		p.t.Errorf("%d requests went to another host", p.seen)
	}
	for _, e := range p.b.log() {
		if raw, _ := event.Encode(e.Data); bytes.Contains(raw, []byte("sk-planted")) {
			p.t.Errorf("%s has the key in it: %s", e.Type(), raw)
		}
	}
	return out.String()
}

// again gives the thread another turn and says what the model reads in it.
func (p *played) again(out *strings.Builder) {
	order := belay.Order{ID: "cmd_again", Principal: "user:ann", Session: sess, Stream: sess.Stream(), Command: belay.SubmitWork{Thread: thr, Task: "task_again", Turn: "turn_again", Text: belay.Content{Text: "what now?"}, Rules: p.b.ref}}
	if err := p.b.h.Enqueue(p.t.Context(), order); err != nil {
		p.t.Fatal(err)
	}
	if err := p.b.e.Session(p.t.Context(), sess, nil); err != nil {
		p.t.Fatal(err)
	}
	fmt.Fprintln(out, "the next turn reads:")
	for _, text := range p.texts {
		if text == "" { // an answer of calls only
			continue
		}
		fmt.Fprintf(out, "  %q\n", event.CutText(text, 240))
	}
	if n := strings.Count(strings.Join(p.texts, "\n"), "one two "); n > 1 && !p.twice {
		p.t.Errorf("the text is in the conversation %d times", n)
	}
}

// repeated counts bodies that are the one before them.
func repeated(bodies [][]byte) (n int) {
	for i := 1; i < len(bodies); i++ {
		if bytes.Equal(bodies[i], bodies[i-1]) {
			n++
		}
	}
	return n
}

// fact says one fact, if it is about the model, a call or the turn's end.
func (p *played) fact(out *strings.Builder, e event.Envelope) {
	at := e.Time.Sub(p.began).Truncate(100 * time.Millisecond).String()
	if p.anytime {
		at = ""
	}
	say := func(format string, args ...any) {
		fmt.Fprintf(out, "%7s %s %s\n", at, e.Type(), strings.TrimRight(fmt.Sprintf(format, args...), " "))
	}
	switch d := e.Data.(type) {
	case event.ModelRequested:
		say("%d %s %s", d.Attempt, d.Kind, d.Limit)
	case event.ModelDelta:
		say("%d, %d: %q", d.Attempt, d.Offset, event.CutText(d.Text, 80))
	case event.ModelFailed:
		next := "no further attempt"
		if !d.RetryAt.IsZero() {
			next = "again after " + d.RetryAt.Sub(e.Time).Truncate(time.Millisecond).String()
		}
		say("%d %s %s, %s\n        %s", d.Attempt, d.Problem.Class, d.Problem.Code, next, d.Problem.Message)
		if d.Offset > 0 {
			fmt.Fprintf(out, "        kept %d bytes: %q\n", d.Offset, event.CutText(d.Partial, 80))
		}
	case event.ModelCompleted:
		say("%d %s %q, %d tokens read", d.Attempt, d.Stop, event.CutText(d.Text.Text, 80), d.Usage.Input)
		for _, c := range d.Calls {
			fmt.Fprintf(out, "        %s %s%s\n", c.Name, event.CutText(string(c.Args), 80), problem(c.Problem))
		}
	case event.ToolResult:
		say("%s", d.Name)
	case event.ToolFailed:
		say("%s%s", d.Name, problem(&d.Problem))
	case event.TurnCompleted:
		say("%q", d.Summary.Text)
	case event.TurnFailed:
		say("%s %s\n        %s", d.Outcome, d.Code, d.Reason)
		if d.Partial != "" {
			fmt.Fprintf(out, "        kept: %q\n", event.CutText(d.Partial, 80))
		}
	}
}

func problem(p *event.Problem) string {
	if p == nil {
		return ""
	}
	return fmt.Sprintf(": %s %s, %s", p.Class, p.Code, p.Message)
}
