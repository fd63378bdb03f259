package chat

import (
	"context"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/belay-run/belay/internal/block"
	"github.com/belay-run/belay/internal/screen"
	"github.com/belay-run/belay/internal/testkit/needs"
)

// answered is a runtime that notes what it is told.
type answered struct {
	Runtime
	mu   sync.Mutex
	told []map[string]any
}

func (r *answered) Do(_ context.Context, command string, in, _ any) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	told := map[string]any{"command": command}
	for k, v := range in.(map[string]any) {
		told[k] = v
	}
	r.told = append(r.told, told)
	return nil
}

// person is a chat whose clock and keys a test has.
type person struct {
	*Chat
	now     time.Time
	runtime *answered
}

func newPerson(t *testing.T) *person {
	t.Helper()
	main, tty, err := pty.Open()
	needs.Facility(t, "pty", err == nil, "no pseudo-terminal can be opened")
	go io.Copy(io.Discard, main) //nolint:errcheck // it ends with the terminal
	terminal, err := screen.Open(tty, tty)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		terminal.Close()
		tty.Close()
		main.Close()
	})
	return &person{Chat: &Chat{Options: Options{Terminal: terminal}}}
}

// begin forgets everything but the terminal.
func (p *person) begin() {
	p.runtime, p.now = &answered{}, time.Unix(1_000_000, 0)
	o := Options{Runtime: p.runtime, Terminal: p.Terminal, Now: func() time.Time { return p.now }}
	p.Chat = &Chat{Options: o, jobs: newJobs(context.Background(), func() {}), items: make(chan arrival, 1)}
}

// over returns what the runtime was told.
func (p *person) over() []map[string]any {
	p.jobs.close()
	return p.runtime.told
}

// asks puts a question on the screen.
func (p *person) asks() {
	asking{p.Chat}.found(block.Preview{ID: "act_1", Version: "v7", Kind: "permission"}, waits{}, 1)
}

func key(r rune) screen.Key {
	if r == ' ' {
		return screen.Key{Name: "space", Text: " "}
	}
	return screen.Key{Name: string(r), Text: string(r)}
}

const sentence = "yes, y and n"

// TestASentenceAnswersNothing types or pastes one at 200 random moments around a
// question. All of it is in the composer afterwards, and nothing was answered: a typed
// one that begins before the question has been there for 400 ms, a pasted one always.
func TestASentenceAnswersNothing(t *testing.T) {
	p := newPerson(t)
	random := rand.New(rand.NewPCG(18, 3))
	for i := range 200 {
		p.begin()
		pasted := i%2 == 0
		before := time.Duration(random.IntN(2000)) * time.Millisecond // until the question comes
		if random.IntN(2) == 0 {
			before = 0
			p.asks()
			wait := random.IntN(int(unnoticed))
			if pasted {
				wait = random.IntN(int(10 * unnoticed))
			}
			p.now = p.now.Add(time.Duration(wait))
		}
		due := p.now.Add(before)
		if pasted {
			p.event(screen.Paste{Text: sentence})
		} else {
			for _, r := range sentence {
				p.event(key(r))
				p.now = p.now.Add(time.Duration(20+random.IntN(400)) * time.Millisecond)
				if p.ask == nil && !p.now.Before(due) {
					p.asks()
				}
			}
		}
		if p.ask == nil {
			p.asks()
		}
		if got := p.comp.Text(); got != sentence || p.entry != nil {
			t.Errorf("round %d: the composer has %q", i, got)
		}
		if told := p.over(); len(told) > 0 {
			t.Errorf("round %d: it was answered: %v", i, told)
		}
	}
}

// TestAnAnswerIsForWhatWasSeen: a key that comes when the question has been there for a
// while answers it, with the version that is on the screen.
func TestAnAnswerIsForWhatWasSeen(t *testing.T) {
	p := newPerson(t)
	p.begin()
	p.asks()
	p.event(screen.Key{Name: "enter"})
	p.now = p.now.Add(unnoticed)
	p.event(screen.Key{Name: "enter"})
	p.event(key('y'))
	told := p.over()
	if len(told) != 1 || told[0]["command"] != "respond_action" || told[0]["decision"] != "allow" || told[0]["version"] != "v7" {
		t.Errorf("%v", told)
	}
}
