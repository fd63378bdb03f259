package kill

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/effect/history"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/modeltest"
	"github.com/belay-run/belay/internal/testkit/modelserver"
)

// story is the answer to a server's request number n: long enough for some
// checkpoints, and no part of it is in another one.
func story(n int) string {
	var b strings.Builder
	for i := range 1500 {
		fmt.Fprintf(&b, "r%d-%04d ", n, i)
	}
	return b.String()
}

// streaming is a machine whose model is a server that takes its time.
type streaming struct {
	*machine
	server   *modelserver.Server
	base     string
	provider string

	mu   sync.Mutex
	proc *os.Process // that asks now
	left int         // bytes until it is killed; less than zero: it isn't
}

// providers are the ones that the lives take in turn.
var providers = []string{"openai", "openai-chat", "anthropic", "google"}

func newStreaming(t *testing.T, n int) *streaming {
	s := &streaming{machine: newMachine(t), provider: providers[n%len(providers)], left: -1}
	s.server = modelserver.New(func(a modelserver.Asked) modelserver.Scene {
		sc := modelserver.Scene{Fault: modelserver.Fault{Gait: time.Millisecond}}
		sc.Scene = modeltest.Scene{Calls: []model.Call{{Name: "complete_task", Args: `{"summary":"done"}`}}, Stop: "tool_calls"}
		if a.Results == 0 {
			sc.Scene = modeltest.Scene{Text: story(a.N), Parts: 60, Calls: []model.Call{{Name: "read", Args: `{"path":"notes/a.txt"}`}}, Stop: "tool_calls"}
		}
		return sc
	})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.server.ServeHTTP(counting{w, s}, r) }))
	t.Cleanup(srv.Close)
	s.base = srv.URL + "/v1"
	return s
}

// counting kills the process that asks when enough was sent to it.
type counting struct {
	http.ResponseWriter
	s *streaming
}

func (c counting) Write(b []byte) (int, error) {
	n, err := c.ResponseWriter.Write(b)
	c.s.sent(n)
	return n, err
}

func (c counting) Flush() { c.ResponseWriter.(http.Flusher).Flush() }

func (s *streaming) sent(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left < 0 || s.proc == nil {
		return
	}
	if s.left -= n; s.left < 0 {
		s.proc.Kill() //nolint:errcheck // it may be gone already
	}
}

// process runs a process: the first begins the session, the others resume it. It
// is killed after so many bytes were sent to it; less than zero is never.
func (s *streaming) process(first bool, after int, env ...string) end {
	s.mu.Lock()
	s.left, s.proc = after, nil
	s.mu.Unlock()
	args := []string{"sessions", "resume", "--last"}
	if first {
		args = []string{"run", "--provider", s.provider, "--base-url", s.base, "--model", "m", "go"}
	}
	return s.runWith(func(p *os.Process) { s.mu.Lock(); s.proc = p; s.mu.Unlock() }, env, args...)
}

// TestKillWhileStreaming kills the process while a server sends its answer, at
// each of the program's points and at random bytes of the stream, over every
// protocol. What was recorded of the answer is a beginning of it; the next
// process asks again, as a new attempt, and only its answer counts.
// Guarantee: E54.
func TestKillWhileStreaming(t *testing.T) {
	t.Run("points", func(t *testing.T) {
		points := 0
		first, step := stride(t, 5)
		for at := accepted + first; ; at += step {
			s := newStreaming(t, at)
			e := s.process(true, -1, fmt.Sprintf("%s=%d", killAt, at))
			for killed := e.killed; killed; killed = e.killed {
				e = s.process(false, -1)
			}
			s.settled(fmt.Sprintf("%s killed at %d", s.provider, at), e)
			hit := strings.Contains(s.transcript.String(), "signal: killed")
			s.discard()
			if !hit {
				break
			}
			points++
		}
		if points < 20/step {
			t.Errorf("only %d points", points)
		}
		t.Logf("%d points", points)
	})
	t.Run("bytes", func(t *testing.T) {
		lives, kills, checkpoints := 6, 0, 0
		if full {
			lives = 80
		}
		seed := rand.Uint64()
		r := rand.New(rand.NewPCG(seed, 5))
		for n := range lives {
			s := newStreaming(t, n)
			e := s.process(true, r.IntN(30_000))
			for i := 0; e.killed; i++ {
				kills++
				checkpoints += s.recorded()
				after := -1
				if i < 2 {
					after = r.IntN(40_000)
				}
				e = s.process(false, after)
			}
			s.settled(fmt.Sprintf("%s, life %d", s.provider, n), e)
			s.discard()
		}
		if kills == 0 || checkpoints == 0 {
			t.Errorf("%d kills, %d checkpoints, seed %d", kills, checkpoints, seed)
		}
		t.Logf("%d lives, %d kills, %d checkpoints before them, seed %d", lives, kills, checkpoints, seed)
	})
}

// recorded counts the checkpoints that a killed process has left behind.
func (s *streaming) recorded() (n int) {
	for _, e := range s.facts() {
		if _, ok := e.Data.(event.ModelDelta); ok {
			n++
		}
	}
	return n
}

// facts are those of the thread, none if it has none yet.
func (s *streaming) facts() (out []event.Envelope) {
	s.t.Helper()
	s.open()
	for _, stream := range s.streams() {
		if stream.Kind() != belay.KindThread {
			continue
		}
		for e, err := range s.db.Read(s.t.Context(), stream, 0) {
			if err != nil {
				s.t.Fatal(err)
			}
			out = append(out, e)
		}
	}
	return out
}

// settled holds what is left at the end against what must be.
func (s *streaming) settled(what string, e end) {
	s.t.Helper()
	if e.exit != 0 {
		s.t.Fatalf("%s: exit %d\n%s", what, e.exit, e.out)
	}
	if v := s.run(nil, "verify"); v.exit != 0 {
		s.t.Errorf("%s: verify exits %d:\n%s", what, v.exit, v.out)
	}
	asked, attempts, texts, ends := 0, 0, 0, 0
	parts := map[int]string{} // what was recorded of each attempt while it flowed
	step := belay.StepID("")
	for _, ev := range s.facts() {
		switch d := ev.Data.(type) {
		case event.ModelRequested:
			asked++
			if ev.IDs.Step != step {
				step, attempts = ev.IDs.Step, 0
			}
			if attempts++; d.Attempt != attempts {
				s.t.Errorf("%s: attempt %d is recorded as the %d.", what, attempts, d.Attempt)
			}
		case event.ModelDelta:
			if d.Attempt != attempts || int(d.Offset) != len(parts[d.Attempt]) {
				s.t.Errorf("%s: attempt %d has a piece of attempt %d at %d after %d bytes", what, attempts, d.Attempt, d.Offset, len(parts[d.Attempt]))
			}
			parts[d.Attempt] += d.Text
			if n := teller(parts[d.Attempt]); !strings.HasPrefix(story(n), parts[d.Attempt]) {
				s.t.Errorf("%s: what was recorded of attempt %d is no beginning of answer %d", what, d.Attempt, n)
			}
		case event.ModelCompleted:
			if d.Attempt != attempts {
				s.t.Errorf("%s: attempt %d answers attempt %d", what, attempts, d.Attempt)
			}
			if d.Text.Text != "" {
				texts++
			}
		case event.TurnCompleted:
			ends++
		}
	}
	if heard := len(s.server.Heard()); heard > asked {
		s.t.Errorf("%s: %d requests came, %d were announced", what, heard, asked)
	}
	if texts != 1 || ends != 1 {
		s.t.Errorf("%s: %d answers with text, %d ends", what, texts, ends)
	}
	s.told(what)
}

// told: the conversation has one story, whole, and the server was shown just it.
func (s *streaming) told(what string) {
	s.t.Helper()
	var said []string
	for _, stream := range s.streams() {
		if stream.Kind() != belay.KindThread {
			continue
		}
		for m, err := range history.Transcript(s.t.Context(), s.db, belay.ThreadID(strings.TrimPrefix(string(stream), "thread/"))) {
			if err != nil {
				s.t.Fatal(err)
			}
			for _, p := range m.Message.Parts {
				if strings.HasPrefix(p.Text, "r") {
					said = append(said, p.Text)
				}
			}
		}
	}
	if len(said) != 1 || said[0] != story(teller(said[0])) {
		s.t.Errorf("%s: the conversation has %d stories, or one that is not whole", what, len(said))
	}
	shown := 0
	for _, a := range s.server.Heard() {
		all := strings.Join(a.Texts, "\n")
		switch n := strings.Count(all, "-0000 "); {
		case a.Results == 0 && n != 0:
			s.t.Errorf("%s: request %d brings %d stories before one was told", what, a.N, n)
		case a.Results > 0 && (n != 1 || len(said) == 1 && !strings.Contains(all, strings.TrimSpace(said[0]))):
			s.t.Errorf("%s: request %d brings %d stories", what, a.N, n)
		case a.Results > 0:
			shown++
		}
	}
	if shown == 0 {
		s.t.Errorf("%s: the model was never shown a result", what)
	}
}

// teller is the number of the request that a text answers.
func teller(text string) (n int) {
	fmt.Sscanf(text, "r%d-", &n) //nolint:errcheck // then it is none's
	return n
}
