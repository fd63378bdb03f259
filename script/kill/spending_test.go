package kill

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core/coretest"
	"github.com/belay-run/belay/internal/core/quota"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/modeltest"
	"github.com/belay-run/belay/internal/testkit/modelserver"
)

// An answer of wholeAnswer tokens costs a cent.
const (
	wholeAnswer = 4096
	cent        = 10_000 // millionths of a dollar
	priced      = `models:
  - {provider: far, model: big, context: 200000, output: 8192, usd_per_million: {input: 0, output: 2.441406}}
  - {provider: far, model: spare, context: 200000, output: 8192, usd_per_million: {input: 0, output: 2.441406}}
  - {provider: far, model: judge, context: 200000, output: 8192, usd_per_million: {input: 0, output: 2.441406}}
`
	asks = `version: 1
checkers:
  - {id: reviewer, provider: far, model: judge, instructions: "Allow everything.", when: {tool: [todo]}}
`
)

// spending is some turns at once in a server and three other processes that share its
// store, and how they have half a cent each together.
type spending struct {
	*machine
	turns  int
	judged bool  // each calls a tool first, a model judges that, and one in three requests goes to a fallback
	answer int64 // tokens of each answer
	kills  bool  // servers are killed

	served atomic.Int64 // tokens of answers
	asked  atomic.Int64
	killed atomic.Int64 // processes but for the server's

	low, blocked int // facts that say so
}

// say is the far end. Its usage comes after all else, and late.
func (s *spending) say(a modelserver.Asked) modelserver.Scene {
	n := s.answer
	sc := modelserver.Scene{Fault: modelserver.Fault{Gait: 2 * time.Millisecond}}
	sc.Text, sc.Stop = "done", "stop"
	switch {
	case a.Model == "judge":
		n = 100
		sc.Text = `{"decision":"allow","reason":"harmless"}`
	case s.judged && a.Model == "big" && a.N%3 == 0:
		return modelserver.Scene{Scene: modeltest.Scene{Fail: "auth"}}
	case s.judged && a.Results == 0:
		sc.Calls, sc.Stop = []model.Call{{Name: "todo", Args: `{"items":[{"id":"a","text":"look","status":"pending"}]}`}}, "tool_calls"
	}
	sc.Usage = &belay.Usage{Input: 10, Output: n}
	s.served.Add(n)
	s.asked.Add(1)
	return sc
}

// play starts the processes, gives them the turns, and returns how they ended and what
// the store says about what they took.
func (s *spending) play(t *testing.T) (ends map[belay.Outcome]int, books coretest.Sums, deaths int) {
	t.Helper()
	far := httptest.NewServer(modelserver.New(s.say))
	defer far.Close()
	config := filepath.Join(s.dir, ".config", "belay")
	settings := "provider: far\nmodel: big\ncompletion: conversational\napprovals: deny\nproviders:\n  far: {protocol: openai-chat, base-url: " + far.URL + "/v1}\n" +
		fmt.Sprintf("quotas:\n  - {of: tenant, limit: %d.%02dusd, per: month}\n", s.turns/2/100, s.turns/2%100)
	err := os.MkdirAll(config, 0o700)
	files := map[string]string{"belay.yaml": settings, "models.yaml": priced}
	if s.judged {
		files["belay.yaml"] += "fallback: far/spare\nallow: [todo]\n"
		files["policy.yaml"] = asks
	}
	for name, text := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(config, name), []byte(text), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 8))
	server := &serving{machine: s.machine}
	server.script = ""
	var kills []int
	if s.kills {
		kills = []int{1 + r.IntN(4*s.turns), 1 + r.IntN(2*s.turns)}
	}
	ready, over := make(chan struct{}), make(chan error, 1)
	go func() { over <- server.keepUp(ready, kills...) }()
	select {
	case <-ready:
	case err := <-over:
		t.Fatalf("the server doesn't come up: %v\n%s", err, server.stderr.String())
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	var all sync.WaitGroup
	begun := make(chan struct{})
	all.Go(func() { s.submit(ctx, server, begun) })
	<-begun
	for n := range uint64(3) {
		all.Go(func() { s.runs(rand.New(rand.NewPCG(seed, 9+n)), s.turns/2/3) })
	}
	all.Wait()
	ends = s.ended(ctx)
	server.end()
	if err := <-over; err != nil {
		t.Errorf("the server ended badly: %v\n%s", err, server.stderr.String())
	}
	if v := s.run(nil, "verify"); v.exit != 0 {
		t.Errorf("verify exits %d:\n%s", v.exit, v.out)
	}
	if d, _, _, err := engine.Load(t.Context(), s.db, quota.Stream); err != nil {
		t.Error(err)
	} else if q := d.(*quota.Decider).State(); len(q.Grants) > 0 || len(q.Windows) != 1 {
		t.Errorf("the quotas say at the end %+v", q)
	}
	return ends, coretest.Books(t, "at rest", s.log()), server.deaths + int(s.killed.Load())
}

// submit gives the server half of the turns. begun is closed when it has one.
func (s *spending) submit(ctx context.Context, server *serving, begun chan<- struct{}) {
	var once sync.Once
	defer once.Do(func() { close(begun) })
	k, done, err := server.client(nil)
	if err != nil {
		s.t.Error(err)
		return
	}
	defer done()
	for n := range s.turns - s.turns/2/3*3 {
		in := submission{Session: sessionID(n), Turn: belay.TurnID(fmt.Sprint("turn-", n)), Text: "go", Workspace: s.ws}
		if err := until(ctx, func() error { return k.Command(ctx, "submit_turn", string(in.Turn), in, &answered{}) }); err != nil {
			s.t.Errorf("turn %d: %v", n, err)
		}
		once.Do(func() { close(begun) })
	}
}

var ofSession = regexp.MustCompile(`session (sess_[0-9a-f-]+)`)

// runs gives turns from processes of their own, one after the other. One that is
// killed is resumed, if it had begun a session.
func (s *spending) runs(r *rand.Rand, turns int) {
	args := []string{"run", "--approvals", "deny", "go"}
	for n := range turns {
		var env []string
		if s.kills && n%3 == 0 {
			env = []string{fmt.Sprintf("%s=%d", killAt, 1+r.IntN(40))}
		}
		e := s.run(env, args...)
		if e.killed {
			s.killed.Add(1)
			id := ofSession.FindStringSubmatch(e.out)
			if id == nil {
				continue
			}
			if e = s.run(nil, "sessions", "resume", "--approvals", "deny", id[1]); strings.Contains(e.out, string(belay.CodeOwned)) {
				continue // the server goes on with it
			}
		}
		if e.exit != 0 && e.exit != belay.ExitBudget {
			s.t.Errorf("a run ended with %d\n%s", e.exit, e.out)
		}
	}
}

// ended waits until all turns that were submitted ended, and counts how.
func (s *spending) ended(ctx context.Context) map[belay.Outcome]int {
	s.t.Helper()
	for {
		open, ends := map[belay.TurnID]bool{}, map[belay.Outcome]int{}
		s.low, s.blocked = 0, 0
		over := func(turn belay.TurnID, outcome belay.Outcome) {
			if ends[outcome]++; !open[turn] {
				s.t.Errorf("%s ended again: %s", turn, outcome)
			}
			delete(open, turn)
		}
		for _, e := range s.log() {
			switch p := e.Data.(type) {
			case event.TurnSubmitted:
				open[e.IDs.Turn] = true
			case event.TurnCompleted:
				over(e.IDs.Turn, belay.Completed)
			case event.TurnFailed:
				over(e.IDs.Turn, p.Outcome)
			case event.QuotaLow:
				s.low++
			case event.QuotaBlocked:
				s.blocked++
			}
		}
		if rows, err := s.db.Lanes(ctx, ""); err == nil && len(open)+len(rows) == 0 {
			return ends
		}
		if rest(ctx, 200*time.Millisecond); ctx.Err() != nil {
			s.t.Errorf("these turns didn't end: %v; the others: %v", open, ends)
			return ends
		}
	}
}

// TestKillProcessesOfOneQuota: 200 sessions in four processes at a time, a
// server and three that begin one after the other, with a dollar for all. What counts
// is what the far end served. With whole answers nearly everything is spent, and the
// rest of the turns ends for that; with short ones, processes that are killed, a model
// that judges calls and fallbacks it is never more.
// Guarantee: E71, M2.
func TestKillProcessesOfOneQuota(t *testing.T) {
	turns := 200
	if !full {
		turns = 40
	}
	for name, s := range map[string]*spending{
		"whole answers":            {answer: wholeAnswer},
		"short answers, and kills": {answer: wholeAnswer / 4, judged: true, kills: true},
	} {
		t.Run(name, func(t *testing.T) {
			begun := time.Now()
			s.machine, s.turns = newMachine(t), turns
			defer s.discard()
			ends, books, deaths := s.play(t)
			spent, limit := s.served.Load()*cent/wholeAnswer, int64(turns/2*cent)
			t.Logf("%d answers for %d of %d millionths; %d were reserved, %d charged; turns: %v; %d deaths, %.1f s; %v",
				s.asked.Load(), spent, limit, books.Reserved.MicroUSD, books.Charged.MicroUSD, ends, deaths, time.Since(begun).Seconds(), books.Ops)
			if spent > limit || books.Charged.MicroUSD > limit || !s.kills && spent < limit*9/10 {
				t.Errorf("%d millionths were served and %d charged of %d", spent, books.Charged.MicroUSD, limit)
			}
			completed, over := ends[belay.Completed], ends[belay.OverBudget]
			exact := completed == int(s.asked.Load()) && completed+over == turns && s.low == 1 && s.blocked == over
			if s.asked.Load() == 0 || len(ends) > 2 || !s.kills && !exact {
				t.Errorf("%d answers; turns ended %v; low %d times, blocked %d times", s.asked.Load(), ends, s.low, s.blocked)
			}
			if s.kills != (deaths > 0) {
				t.Errorf("%d servers died", deaths)
			}
		})
	}
}

// TestKillWhileASliceIsReturned: a process dies after it closed a slice of a quota and
// before it knows that the quotas took it. The server that comes next tells them.
// Guarantee: E71, M2.
func TestKillWhileASliceIsReturned(t *testing.T) {
	s := &serving{machine: newMachine(t)}
	defer s.discard()
	config := filepath.Join(s.dir, ".config", "belay")
	if err := errors.Join(os.MkdirAll(config, 0o700), os.WriteFile(filepath.Join(config, "belay.yaml"), []byte("quotas:\n  - {of: tenant, limit: 1000calls, per: month}\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	count, work := filepath.Join(s.dir, "points"), []string{"run", "--script", s.script, "--mode", "accept_edits", "--approvals", "deny", "go"}
	s.run([]string{countIn + "=" + count}, work...)
	points, err := os.ReadFile(count)
	if err != nil {
		t.Fatal(err)
	}
	closed := func() bool {
		s.answer() // opens the store
		last := ""
		for _, e := range s.log() {
			if p, ok := e.Data.(event.LimitChanged); ok && p.Scope == "quota" && e.Stream.Kind() == belay.KindSession {
				last = p.Op
			}
		}
		return last == event.LimitReturning
	}
	for at, _ := strconv.Atoi(string(points)); !s.run([]string{fmt.Sprint(killAt, "=", at)}, work...).killed || !closed(); at-- {
		if at == 1 {
			t.Fatal("at no point a slice is closed and not returned")
		}
	}
	ready, over := make(chan struct{}), make(chan error, 1)
	go func() { over <- s.keepUp(ready) }()
	for begun := time.Now(); closed(); rest(t.Context(), 100*time.Millisecond) {
		if time.Since(begun) > patience {
			t.Fatalf("it isn't returned after %s", patience)
		}
	}
	s.end()
	if err := <-over; err != nil {
		t.Errorf("the server ended badly: %v\n%s", err, s.stderr.String())
	}
}
