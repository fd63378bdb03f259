package cli

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
)

// slow says the beginning of an answer and waits until somebody has seen it.
type slow struct {
	*httptest.Server
	seen  chan struct{}
	ended chan struct{} // the answer is over
}

func newSlow(t *testing.T) *slow {
	s := &slow{seen: make(chan struct{}), ended: make(chan struct{})}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		say := func(text string) {
			for _, c := range text { // one character at a time, as they come from a slow machine
				fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":%q}}]}\n\n", string(c))
			}
			w.(http.Flusher).Flush()
		}
		say("Once upon a time.\n\nThen")
		select {
		case <-s.seen:
		case <-r.Context().Done():
		}
		say(" there was an end.")
		fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
		close(s.ended)
	}))
	t.Cleanup(s.Close)
	return s
}

// watched is output that somebody waits for.
type watched struct {
	mu    sync.Mutex
	more  *sync.Cond
	b     bytes.Buffer
	ended bool
}

func newWatched() *watched {
	w := &watched{}
	w.more = sync.NewCond(&w.mu)
	return w
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.more.Broadcast()
	return w.b.Write(p)
}

// until waits for a text; without it, when the program has ended.
func (w *watched) until(s string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for !strings.Contains(w.b.String(), s) && !w.ended {
		w.more.Wait()
	}
	return w.b.String()
}

// TestTextIsShownAsItComes: in plain mode on standard error, a paragraph at a time,, and with --json
// the facts, before the answer ends.
// Guarantee: X15.
func TestTextIsShownAsItComes(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string // while the answer flows
		then []string
	}{
		"plain": {nil, "Once upon a time.\n", []string{"Once upon a time.\n\nThen there was an end.\n", "completed in "}},
		"json":  {[]string{"--json"}, `"type":"model.requested"`, []string{`"type":"model.completed"`, `"text":{"text":"Once upon a time.\n\nThen there was an end."`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			far, shown, dir := newSlow(t), newWatched(), t.TempDir()
			ws := filepath.Join(dir, "ws")
			if err := os.Mkdir(ws, 0o700); err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			exit := -1
			wg.Go(func() {
				args := append(c.args, "--store", filepath.Join(dir, "store"), "run", "--provider", "ollama", "--base-url", far.URL, "--model", "m", "--completion", "conversational", "tell me")
				var out io.Writer = io.Discard
				if name == "json" {
					out = shown
				}
				exit = Main(t.Context(), args, command.Sys{Env: term.Env{Out: out, Err: shown, Environ: []string{"HOME=" + dir, "USER=tester"}}, Dir: ws})
				shown.mu.Lock()
				shown.ended = true
				shown.more.Broadcast()
				shown.mu.Unlock()
			})
			got := shown.until(c.want)
			select {
			case <-far.ended:
				t.Error("the answer was over before its text was shown")
			default:
			}
			if !strings.Contains(got, c.want) {
				t.Errorf("nothing like %q while the answer flows:\n%s", c.want, got)
			}
			close(far.seen)
			wg.Wait()
			got = shown.until("")
			for _, want := range c.then {
				if !strings.Contains(got, want) {
					t.Errorf("nothing like %q in\n%s", want, got)
				}
			}
			if n := strings.Count(got, "Once upon a time"); name == "plain" && n != 1 || exit != 0 {
				t.Errorf("exit code %d; the text was shown %d times in\n%s", exit, n, got)
			}
		})
	}
}

// TestATerminalShowsTextAsItComes: the same, on a terminal.
// Guarantee: X15.
func TestATerminalShowsTextAsItComes(t *testing.T) {
	t.Parallel()
	far := newSlow(t)
	x := atTerminal(t, "run", "--provider", "ollama", "--base-url", far.URL, "--model", "m", "--completion", "conversational", "tell me")
	x.see("Once upon a time")
	select {
	case <-far.ended:
		t.Error("the answer was over before its text was shown")
	default:
	}
	close(far.seen)
	x.see("there was an end")
	x.exit(0)
}

// TestASecretIsTypedWithoutBeingShown: and an interrupt gives the terminal back.
func TestASecretIsTypedWithoutBeingShown(t *testing.T) {
	t.Parallel()
	x := atTerminal(t, "secret", "set", "gate")
	x.see(`value of gate \(not shown\): `)
	x.press("sk-typed-in-secret\n")
	if out := x.exit(0); strings.Contains(out, "sk-typed") || !strings.Contains(out, "gate is kept") {
		t.Errorf("the terminal shows:\n%s", out)
	}
	x = atTerminal(t, "secret", "set", "gate")
	x.see("not shown")
	x.press(ctrlC)
	x.exit(130)
}
