package kill

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core/coretest"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/modeltest"
	"github.com/belay-run/belay/internal/store/sqlite"
	"github.com/belay-run/belay/internal/testkit/modelserver"
)

// windowFiles are as many files as fill the context of the reader's model twice.
const windowFiles = 16

var fileRead = regexp.MustCompile(`this is file (\d+)`)

// readsOn is a model that reads one file after the other; what comes next follows from
// what it is shown.
func readsOn(a modelserver.Asked) modelserver.Scene {
	size := int64(len(a.Body)) / 4
	usage := &belay.Usage{Input: size, Output: 20, Reported: true}
	if strings.Contains(a.Texts[len(a.Texts)-1], "about to be shortened") || strings.Contains(a.System, "You summarise") {
		return modelserver.Scene{Scene: modeltest.Scene{Text: "They read files.", Usage: usage, Stop: "stop"}}
	}
	last := 0
	for _, f := range fileRead.FindAllStringSubmatch(strings.Join(a.Texts, "\n"), -1) {
		n, _ := strconv.Atoi(f[1])
		last = max(last, n)
	}
	call := model.Call{ID: fmt.Sprint("c", last+1), Name: "read", Args: fmt.Sprintf(`{"path":"f%d.txt"}`, last+1)}
	if last == windowFiles {
		call = model.Call{ID: "end", Name: "complete_task", Args: `{"summary":"all is read"}`}
	}
	return modelserver.Scene{Scene: modeltest.Scene{Calls: []model.Call{call}, Usage: usage, Stop: "tool_calls"}}
}

// TestKillWhileAConversationIsShortened kills the process at its points while it works in
// a context that it fills more than once: no boundary is half, no compaction ends twice,
// and what was reserved for it is charged once.
// Guarantee: O16, E17.
func TestKillWhileAConversationIsShortened(t *testing.T) {
	server := httptest.NewServer(modelserver.New(readsOn))
	defer server.Close()
	life := func(at int) (hit bool) {
		m := newMachine(t)
		defer m.discard()
		config := filepath.Join(m.dir, ".config", "belay")
		err := errors.Join(os.MkdirAll(config, 0o700), os.WriteFile(filepath.Join(config, "belay.yaml"), []byte("budget: 50usd\n"), 0o600),
			os.WriteFile(filepath.Join(config, "models.yaml"), []byte("models:\n  - provider: openai-chat\n    model: m\n    context: 16000\n    usd_per_million: {input: 1, output: 2}\n"), 0o600))
		for n := range windowFiles {
			err = errors.Join(err, os.WriteFile(filepath.Join(m.ws, fmt.Sprintf("f%d.txt", n+1)), []byte(fmt.Sprintf("this is file %d\n", n+1)+strings.Repeat("with words to read in it, one after the other\n", 120)), 0o644))
		}
		if err != nil {
			t.Fatal(err)
		}
		run := []string{"run", "--provider", "openai-chat", "--base-url", server.URL + "/v1", "--model", "m", "--approvals", "deny", "read it all"}
		var env []string
		if at > 0 {
			env = []string{fmt.Sprintf("%s=%d", killAt, at)}
		}
		e := m.run(append(env, "OPENAI_API_KEY=sk-test"), run...)
		if e.killed {
			hit = true
			e = m.run([]string{"OPENAI_API_KEY=sk-test"}, "sessions", "resume", "--last", "--approvals", "deny")
		}
		if e.exit != 0 {
			t.Errorf("killed at %d: exit %d\n%s", at, e.exit, e.out)
			return hit
		}
		m.windows(at)
		return hit
	}
	first, step := stride(t, 60)
	killed := 0
	for at := accepted + first; life(at); at += step {
		killed++
	}
	if killed < 120/step {
		t.Errorf("only %d points", killed)
	}
}

// windows holds the facts of a life against the laws of a window.
func (m *machine) windows(at int) {
	m.t.Helper()
	var facts []event.Envelope
	ends, boundaries, completed := map[int64]int{}, 0, 0
	db, err := sqlite.Open(m.t.Context(), m.store, sqlite.Options{ReadOnly: true})
	if err != nil {
		m.t.Fatal(err)
	}
	defer db.Close()
	for r, err := range db.Scan(m.t.Context(), 0) {
		if err != nil {
			m.t.Fatal(err)
		}
		facts = append(facts, r.Event)
		switch p := r.Event.Data.(type) {
		case event.ContextCompactionCompleted:
			ends[p.Started]++
			boundaries++
		case event.ContextCompactionFailed:
			ends[p.Started]++
		case event.TurnCompleted:
			completed++
		}
	}
	for _, e := range facts {
		if _, is := e.Data.(event.ContextCompactionStarted); is && ends[e.Seq] != 1 {
			m.t.Errorf("killed at %d: the compaction #%d ended %d times", at, e.Seq, ends[e.Seq])
		}
	}
	if books := coretest.Books(m.t, at, facts); completed != 1 || boundaries < 2 || len(books.Ops) == 0 {
		m.t.Errorf("killed at %d: %d turns completed, %d boundaries, books %v", at, completed, boundaries, books.Ops)
	}
}
