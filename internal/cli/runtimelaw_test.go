package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/client"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/block"
	"github.com/belay-run/belay/internal/chat"
	"github.com/belay-run/belay/internal/chat/remote"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/serve"
	"github.com/belay-run/belay/internal/cli/term"
)

// talk is a model's side of a conversation with everything that a stream carries.
var talk = `
steps:
  - text: "` + strings.Repeat("The lock is released before the append. ", 40) + `"
    chunks: 40
    chunkDelay: 2ms
    calls:
      - {tool: todo, args: {items: [{text: look, status: completed}]}}
  - calls:
      - {tool: ask_user, args: {question: 'Which colour?'}}
  - text: "Blue it is. ` + strings.Repeat("And so on. ", 30) + `"
    chunks: 30
    chunkDelay: 2ms
    calls:
      - {tool: complete_task, args: {summary: Done.}}
`

// side is a runtime to hold against the law.
type side struct {
	chat.Runtime
	ws string
}

// programOf is the program in this process, with a folder for its workspace and store.
func programOf(t *testing.T, dir, script string) *command.Program {
	t.Helper()
	ws := filepath.Join(dir, "ws")
	if err := os.MkdirAll(ws, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "script.yaml")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	env := term.Env{Out: io.Discard, Err: io.Discard, Now: time.Now, IsTerminal: func(any) bool { return false },
		Environ: []string{"HOME=" + dir, "USER=tester", "PATH=" + os.Getenv("PATH"), "BELAY_SCRIPT=" + file, "BELAY_STORE=" + filepath.Join(dir, "store")}}
	a := &command.Program{Sys: Sys{Env: env, Dir: ws}}
	a.Build = build(a.Sys)
	return a
}

// localSide is the runtime of this process.
func localSide(t *testing.T, script string) side {
	t.Helper()
	a := programOf(t, t.TempDir(), script)
	a.TakePlace(&command.Flags{})
	ws, _, err := a.EnterChecked(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r, err := a.LocalChat(t.Context(), ws)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return side{r, ws}
}

// remoteSide is a server in this process, and cuts the streams of its client.
func remoteSide(t *testing.T, script string, h *http.Client) side {
	t.Helper()
	a := programOf(t, t.TempDir(), script)
	said, out := io.Pipe()
	a.Out = out
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		ended <- perform(ctx, a, []string{"--json", "serve", "--listen", "127.0.0.1:0", "--drain", "1ms"})
	}()
	t.Cleanup(func() {
		stop()
		if exit := <-ended; exit != belay.ExitOK {
			t.Errorf("the server ended with %d", exit)
		}
	})
	var at serve.Served
	if err := json.NewDecoder(bufio.NewReader(said)).Decode(&at); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(at.URL, client.Options{Token: at.Token, HTTP: h})
	if err != nil {
		t.Fatal(err)
	}
	return side{remote.New(at.URL, c, a.Build.Reads, func() error { return nil }), a.Dir}
}

// cuts is how often streams are cut.
const cuts = 50

// cutter breaks streams off after a few bytes, so many times.
type cutter struct {
	rand *rand.Rand
	left atomic.Int32
}

// RoundTrip implements http.RoundTripper.
func (c *cutter) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && strings.HasSuffix(r.URL.Path, "/stream") && c.left.Add(-1) >= 0 {
		resp.Body = &short{resp.Body, 1500 + c.rand.IntN(3000)}
	}
	return resp, err
}

// short is a body that breaks off.
type short struct {
	io.ReadCloser
	left int
}

func (s *short) Read(p []byte) (int, error) {
	if s.left == 0 {
		return 0, errors.New("cut")
	}
	n, err := s.ReadCloser.Read(p[:min(len(p), s.left)])
	s.left -= n
	return n, err
}

// heard is what a conversation was, without what differs between two of them.
type heard struct {
	Facts   []string // of the thread: their types
	Answers []string
	Refused []string // codes and fields
	Read    []string
	Blocks  []string
	flowed  bool
}

// shownBlocks are the blocks of a fold, without what differs between two conversations.
func shownBlocks(f *block.Fold) (out []string) {
	for _, b := range f.Take() {
		text := string(b.Kind) + " " + b.Text
		if b.Call != nil {
			text += b.Call.What + " " + b.Call.State
		}
		for _, p := range b.Plan {
			text += fmt.Sprint(p)
		}
		if b.Asked != nil {
			text += b.Asked.Prompt + " " + b.Asked.Decision + " " + b.Asked.Answer
		}
		if b.End != nil {
			text += string(b.End.Outcome) + " " + b.End.Summary
		}
		out = append(out, text)
	}
	return out
}

// converse plays the person's side, and follows from item to item.
func (s side) converse(t *testing.T) heard {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var h heard
	refused := func(err error) {
		e, _ := errors.AsType[*belay.Error](err)
		if e == nil {
			t.Fatalf("the refusal is %v", err)
		}
		h.Refused = append(h.Refused, fmt.Sprint(e.Code, " ", e.Where))
	}
	if err := s.Do(ctx, "no_such_command", nil, nil); belay.CodeOf(err) != belay.CodeNotFound {
		t.Errorf("an unknown command is %v", err)
	}
	refused(s.Read(ctx, "no_such_read", chat.Query{}, nil))
	refused(s.Do(ctx, "submit_turn", map[string]string{"text": ""}, nil))
	refused(s.Read(ctx, "read_sessions", chat.Query{Values: url.Values{"colour": {"blue"}}}, nil))
	refused(s.Do(ctx, "interrupt_turn", map[string]string{"sessionId": "s1"}, nil))
	for _, err := range s.Follow(ctx, "s1", "") {
		refused(err)
	}
	var told app.Result
	if err := s.Do(ctx, "submit_turn", map[string]any{"sessionId": "s1", "text": "Why does it fail?", "workspace": s.ws}, &told); err != nil {
		t.Fatal(err)
	}
	texts := map[belay.StepID]string{} // as they flowed, put together
	seen := map[belay.EventID]bool{}
	var fold block.Fold
	for item, err := range s.Follow(ctx, told.Session, "") {
		if err != nil {
			t.Fatal(err)
		}
		if item.Flow != nil {
			fold.Flow(*item.Flow)
		}
		if item.Fact != nil {
			fold.Apply(*item.Fact)
		}
		switch {
		case item.Flow != nil && item.Flow.Kind == "text":
			step := item.Flow.IDs.Step
			if have := int64(len(texts[step])); item.Flow.Offset > have {
				t.Errorf("text of %s begins at %d, and there are %d bytes", step, item.Flow.Offset, have)
			}
			texts[step] = texts[step][:item.Flow.Offset] + item.Flow.Text
		case item.Fact != nil:
			if seen[item.Fact.ID()] {
				t.Errorf("%s came twice", item.Fact.ID())
			}
			seen[item.Fact.ID()] = true
			if item.Fact.Stream.Kind() == belay.KindThread {
				h.Facts = append(h.Facts, item.Fact.Type())
			}
			if p, ok := item.Fact.Data.(event.ModelCompleted); ok {
				h.Answers = append(h.Answers, p.Text.Text)
				if flowed := texts[item.Fact.IDs.Step]; !strings.HasPrefix(p.Text.Text, flowed) {
					t.Errorf("%q flowed of the answer %q", flowed, p.Text.Text)
				}
			}
			s.answer(ctx, t, item.Fact)
		}
		if item.Fact != nil && item.Fact.Type() == "turn.completed" {
			break
		}
	}
	h.Blocks, h.flowed = shownBlocks(&fold), len(texts) > 0
	var page struct {
		Events []event.Envelope `json:"events"`
	}
	if err := s.Read(ctx, "read_sessions_id_events", chat.Query{ID: "s1", Values: url.Values{"types": {"turn.*"}, "first": {"10"}}}, &page); err != nil {
		t.Fatal(err)
	}
	for _, e := range page.Events {
		h.Read = append(h.Read, e.Type())
	}
	var bundle bytes.Buffer
	if err := s.Read(ctx, "exportSession", chat.Query{ID: "s1"}, &bundle); err != nil || bundle.Len() == 0 {
		t.Errorf("the export has %d bytes: %v", bundle.Len(), err)
	}
	return h
}

// answer answers what is asked.
func (s side) answer(ctx context.Context, t *testing.T, e *event.Envelope) {
	t.Helper()
	if _, ok := e.Data.(event.ActionRequired); !ok {
		return
	}
	if err := s.Do(ctx, "respond_action", map[string]any{"actionId": e.IDs.Action, "decision": "answer", "message": "blue"}, nil); err != nil {
		t.Error(err)
	}
}

// TestAConversationIsTheSameThroughAServer plays one script in this process and through
// a server whose streams are cut again and again.
func TestAConversationIsTheSameThroughAServer(t *testing.T) {
	t.Parallel()
	want := localSide(t, talk).converse(t)
	if !want.flowed || len(want.Blocks) < 6 {
		t.Errorf("no text flowed, or these are all blocks: %q", want.Blocks)
	}
	if len(want.Answers) != 3 || !strings.HasPrefix(want.Answers[2], "Blue it is.") {
		t.Errorf("the answers are %q", want.Answers)
	}
	cut := &cutter{rand: rand.New(rand.NewPCG(1, 2))}
	cut.left.Store(cuts)
	far := remoteSide(t, talk, &http.Client{Transport: cut})
	got := far.converse(t)
	for cut.left.Load() > 0 { // whoever comes later sees the same
		if again := far.replay(t); !slices.Equal(again, want.Blocks) {
			t.Fatalf("seen again, the blocks are %q, want %q", again, want.Blocks)
		}
	}
	if a, b := shownAs(t, want), shownAs(t, got); a != b {
		t.Errorf("in process:\n%s\nthrough a server:\n%s", a, b)
	}
}

// replay follows the conversation that has ended, from its first fact on.
func (s side) replay(t *testing.T) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var fold block.Fold
	for item, err := range s.Follow(ctx, "s1", "") {
		if err != nil {
			t.Fatal(err)
		}
		if item.Fact == nil {
			continue
		}
		if fold.Apply(*item.Fact); item.Fact.Type() == "turn.completed" {
			break
		}
	}
	return shownBlocks(&fold)
}

func shownAs(t *testing.T, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
