package kill

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// full is set where every point is worth its time; else a sample is killed.
var full = os.Getenv("BELAY_KILL") == "full"

// stride returns which points are killed: every one, or one of so many with a
// first one that is drawn by chance.
func stride(t *testing.T, sampled int) (first, step int) {
	if full {
		return 0, 1
	}
	first = rand.IntN(sampled)
	t.Logf("one of %d points, from %d on", sampled, first)
	return first, sampled
}

// lives is what came of some lives of machines.
type lives struct {
	limited bool // what their sessions may spend
	lost    int
	ops     map[string]int // steps of budgets
}

// life plays the scenario with a kill in each of the first processes, and then
// to its end. hit reports whether the last kill came before the end.
func (l *lives) life(t *testing.T, kills ...int) (hit bool) {
	t.Helper()
	m := newMachine(t)
	defer m.discard()
	if l.limited {
		m.limit()
	}
	for i := 0; ; i++ {
		var env []string
		if i < len(kills) {
			env = []string{fmt.Sprintf("%s=%d", killAt, kills[i])}
		}
		var e end
		if i == 0 {
			e = m.start(env...)
		} else {
			e = m.resume(env...)
		}
		switch {
		case e.killed:
			hit = i == len(kills)-1
			continue
		case e.exit != 0:
			t.Errorf("kills %v: exit %d\n%s", kills, e.exit, e.out)
		}
		if m.check(fmt.Sprint("kills ", kills)) {
			l.lost++
		}
		l.add(m.books.Ops)
		return hit
	}
}

func (l *lives) add(ops map[string]int) {
	if l.ops == nil {
		l.ops = map[string]int{}
	}
	for op, n := range ops {
		l.ops[op] += n
	}
}

// TestKillAtEveryPoint kills the process at each point once: without limits of what
// is spent, and with a budget of which a person gives more, and slices of quotas.
// Guarantee: O3, E1, E17, E71.
func TestKillAtEveryPoint(t *testing.T) {
	for name, sampled := range map[string]int{"unlimited": 12, "limited": 8} {
		t.Run(name, func(t *testing.T) {
			first, step := stride(t, sampled)
			begun := time.Now()
			points, all := 0, lives{limited: name == "limited"}
			for at := accepted + first; all.life(t, at); at += step {
				points++
			}
			if points < 60/step {
				t.Errorf("only %d points", points)
			}
			t.Logf("%d points in %.1f s: %d ended done, %d done (lost); %v", points, time.Since(begun).Seconds(), points-all.lost, all.lost, all.ops)
			for _, op := range []string{"thread thread asked", "thread thread granted", "thread thread refused", "thread thread returned", "ask",
				"session session set", "session session asked", "session session granted", "session session refused", "session session returned",
				"session quota set", "session quota granted", "session quota returned", "ledger quota granted", "ledger quota returned"} {
				if (all.ops[op] > 0) != all.limited {
					t.Errorf("%d times: %s", all.ops[op], op)
				}
			}
		})
	}
}

// TestKillAtPairsOfPoints kills the process that resumes as well.
// Guarantee: O3, E17, E71.
func TestKillAtPairsOfPoints(t *testing.T) {
	n := 300
	if !full {
		n = 6
	}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 2))
	begun := time.Now()
	unlimited, limited := lives{}, lives{limited: true}
	for range n / 2 {
		unlimited.life(t, accepted+r.IntN(60), 1+r.IntN(48))
		limited.life(t, accepted+r.IntN(80), 1+r.IntN(60))
	}
	lost := unlimited.lost + limited.lost
	t.Logf("%d pairs in %.1f s, seed %d: %d ended done, %d done (lost)", n, time.Since(begun).Seconds(), seed, n-lost, lost)
}

// TestKilledAndInterruptedByAnotherProcess: a process follows the log, another
// interrupts at random moments. Such a turn ends cancelled, and resuming brings
// the same answer. The follower sees every fact once and in order.
func TestKilledAndInterruptedByAnotherProcess(t *testing.T) {
	n := 40
	if !full {
		n = 5
	}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 3))
	cancelled, tried := 0, 0
	// An interrupt can come too late for its turn; a sample continues until one didn't.
	for ; tried < n || cancelled == 0 && tried < 40; tried++ {
		if interrupted(t, accepted+r.IntN(56)) {
			cancelled++
		}
	}
	if cancelled == 0 {
		t.Errorf("no turn was cancelled, seed %d", seed)
	}
	t.Logf("%d interrupts, seed %d: %d turns ended cancelled and were resumed", tried, seed, cancelled)
}

func interrupted(t *testing.T, at int) (cancelled bool) {
	t.Helper()
	m := newMachine(t)
	defer m.discard()
	reached := filepath.Join(m.dir, "reached")
	stop := make(chan struct{})
	done := make(chan struct{})
	var f *follower
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
			if _, err := os.Stat(reached); err == nil {
				f = m.follow()
				m.run(nil, "sessions", "interrupt", "--last") // refused when nothing runs any more
				return
			}
		}
	}()
	e := m.start(fmt.Sprintf("%s=%d %s", tellAt, at, reached))
	close(stop)
	<-done
	switch e.exit {
	case belay.ExitCancelled:
		cancelled = true
		if e := m.resume(); e.exit != 0 {
			t.Errorf("interrupted at %d, resumed: exit %d\n%s", at, e.exit, e.out)
		}
	case 0:
	default:
		t.Errorf("interrupted at %d: exit %d\n%s", at, e.exit, e.out)
	}
	m.followed(t, f)
	runs, _ := os.ReadFile(filepath.Join(m.ws, "effects.log"))
	if n := bytes.Count(runs, []byte("\n")); n > 1 {
		t.Errorf("interrupted at %d: the at-most-once call ran %d times", at, n)
	}
	return cancelled
}

// follower is a process that prints the session's facts as they come.
type follower struct {
	cmd *exec.Cmd
	out lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (m *machine) follow() *follower {
	f := &follower{cmd: m.command(nil, "events", "--follow", "--json")}
	f.cmd.Stdout = &f.out
	if err := f.cmd.Start(); err != nil {
		m.t.Error(err)
		return nil
	}
	return f
}

// saw waits until the follower has printed as much as there is, and ends it.
func (f *follower) saw(all string) string {
	for begun := time.Now(); len(f.out.String()) < len(all) && time.Since(begun) < patience; {
		time.Sleep(5 * time.Millisecond)
	}
	f.cmd.Process.Kill()
	f.cmd.Wait()
	return f.out.String()
}

// followed reads the session's facts as a client would and looks for gaps. A
// process that followed since some point in the middle must have seen the same.
func (m *machine) followed(t *testing.T, f *follower) {
	t.Helper()
	e := m.run(nil, "events", "--json")
	if e.exit != 0 {
		t.Errorf("events: exit %d\n%s", e.exit, e.out)
	}
	if f != nil {
		if got := f.saw(e.out); got != e.out {
			t.Errorf("the follower saw %d bytes, the log has %d:\n%s", len(got), len(e.out), got)
		}
	}
	next := map[belay.StreamID]int64{}
	lines := bufio.NewScanner(strings.NewReader(e.out))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var ev event.Envelope
		if err := json.Unmarshal(lines.Bytes(), &ev); err != nil {
			t.Fatalf("events: %v in %s", err, lines.Text())
		}
		next[ev.Stream]++
		if ev.Seq != next[ev.Stream] {
			t.Errorf("%s: sequence %d follows %d", ev.Stream, ev.Seq, next[ev.Stream]-1)
		}
	}
	if len(next) != 3 && len(next) != 4 { // session, thread, one task or two
		t.Errorf("%d streams", len(next))
	}
}
