package load

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/belay-run/belay/internal/testkit/needs"
	"github.com/belay-run/belay/internal/testkit/tmux"
)

// speaker is a model server whose answer has so many lines. asked is called at each
// request.
func speaker(t *testing.T, lines int, asked func()) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked()
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range lines {
			fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":\"line %d of the answer\\n\\n\"}}]}\n\n", i)
		}
		fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// told are the variables of a program that asks a server.
func (p *place) told(url string) []string {
	return append(p.env, "BELAY_PROVIDER=ollama", "BELAY_MODEL=m", "BELAY_BASE_URL="+url, "TERM=screen-256color", "LANG=C.UTF-8")
}

// TestALongAnswer: each line of an answer is on the terminal once and in order, and the
// conversation's memory doesn't follow how many there are. That of a thousand is read
// before the heap has grown to the size that it keeps; from ten thousand on it has.
func TestALongAnswer(t *testing.T) {
	many := 40_000
	if full || os.Getenv("BELAY_SCREEN") == "full" {
		many = 100_000
	}
	most := shows(t, many)
	for few, limit := range map[int]float64{1_000: 1.25, 10_000: 1.15} {
		little := shows(t, few)
		ratio := float64(most) / float64(little)
		figure(t, fmt.Sprintf("memory for %d lines by that for %d", many, few), fmt.Sprintf("%.2f ×", ratio), fmt.Sprintf("%.2f ×", limit))
		if ratio > limit {
			t.Errorf("%d MB for an answer of %d lines, %d MB for one of %d", most>>20, many, little>>20, few)
		}
	}
}

// answer is an answer of so many lines.
func answer(lines int) string {
	var b strings.Builder
	for i := range lines {
		fmt.Fprintf(&b, "line %d of the answer\n\n", i)
	}
	return b.String()
}

// shows has a conversation show an answer of so many lines, and returns the most memory
// that it had.
func shows(t *testing.T, lines int) int {
	t.Helper()
	p := newPlace(t, "")
	far := speaker(t, lines, func() {})
	s := tmux.New(t)
	s.Run("set-option", "-g", "history-limit", "300000")
	w := s.Window("long", p.ws, 80, 24, append(append([]string{"env", "-i"}, p.told(far)...), program, "--store", p.store, "--completion", "conversational")...)
	w.Waits("? help")
	before := resident(t, w.PID())
	began := time.Now()
	w.Type("tell me")
	w.Press("Enter")
	w.Until("its end", func(screen string) bool { return strings.Contains(screen, "completed in") })
	took := time.Since(began)
	w.Type("/context") // reads the answer, as the next request would
	w.Press("Enter")
	w.Until("what fills the context", func(screen string) bool { return strings.Contains(screen, "LARGEST") })
	most := resident(t, w.PID())
	shown := w.All()
	rest := shown
	for i := range lines {
		at := strings.Index(rest, fmt.Sprintf("\nline %d of the answer\n", i))
		if at < 0 {
			t.Fatalf("line %d isn't there, or not in order", i)
		}
		rest = rest[at+1:]
	}
	if n := strings.Count(shown, "\nline "); n != lines {
		t.Errorf("%d lines are shown, want %d", n, lines)
	}
	figure(t, fmt.Sprintf("an answer of %d lines, %d kB: memory at the prompt, most", lines, len(answer(lines))>>10), fmt.Sprintf("%d, %d MB", before>>20, most>>20), "")
	figure(t, "it took", took.Round(time.Millisecond), "")
	return most
}

// resident is the most memory that a process had.
func resident(t *testing.T, pid int) int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	needs.Facility(t, "proc", err == nil, "the memory of a process can't be read")
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kb, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kb << 10
}

// TestTheFirstPrompt measures a conversation's first prompt beside a run's first request,
// in turns.
func TestTheFirstPrompt(t *testing.T) {
	p := newPlace(t, "")
	came := make(chan time.Time, 1)
	far := speaker(t, 1, func() { came <- time.Now() })
	var prompts, requests []time.Duration
	for range of(20, 2) {
		cmd := exec.CommandContext(t.Context(), program, "--store", p.store)
		cmd.Dir, cmd.Env = p.ws, p.told(far)
		prompts = append(prompts, prompted(t, cmd))
		cmd = exec.CommandContext(t.Context(), program, "--store", p.store, "run", "--completion", "conversational", "hello")
		cmd.Dir, cmd.Env = p.ws, p.told(far)
		began := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		requests = append(requests, (<-came).Sub(began))
	}
	prompt, request := quantile(prompts, 0.5), quantile(requests, 0.5)
	figure(t, "the first prompt of a conversation, p50", prompt.Round(time.Millisecond/10), "")
	figure(t, "the first request of a run, p50", request.Round(time.Millisecond/10), "")
	figure(t, "one by the other", fmt.Sprintf("%.2f ×", float64(prompt)/float64(request)), "1.5 ×")
}

// prompted is how long a conversation takes to show its first prompt.
func prompted(t *testing.T, cmd *exec.Cmd) time.Duration {
	began := time.Now()
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	needs.Facility(t, "pty", err == nil, "no pseudo-terminal can be opened")
	defer tty.Close()
	var shown []byte
	for buf := make([]byte, 4096); !bytes.Contains(shown, []byte("? help")); {
		n, err := tty.Read(buf)
		if err != nil {
			t.Fatalf("%v:\n%s", err, shown)
		}
		shown = append(shown, buf[:n]...)
	}
	took := time.Since(began)
	cmd.Process.Signal(syscall.SIGTERM) //nolint:errcheck // it may have ended
	cmd.Wait()                          //nolint:errcheck // it was ended
	return took
}
