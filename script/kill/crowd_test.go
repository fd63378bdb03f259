package kill

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/client"
)

// The crowd: who does what at the same time.
const (
	sessionsOfCrowd = 8 // each has a client that submits two turns
	approvers       = 4
	interrupters    = 2
	followers       = 6 // two of everything, the others of a session each
)

// answered is what a command answered.
type answered struct {
	Status   string          `json:"status"`
	Command  belay.CommandID `json:"commandId"`
	Repeated bool            `json:"repeated"`
	Session  belay.SessionID `json:"sessionId"`
	Thread   belay.ThreadID  `json:"threadId"`
	Turn     belay.TurnID    `json:"turnId"`
	Run      belay.RunID     `json:"runId"`
}

// acknowledged is a command that was answered well.
type acknowledged struct {
	name, key string
	in        any
	run       *client.Submit // it was sent to /v1/runs instead
	out       answered
	decision  string
	action    belay.ActionID
}

// tally counts what lives were about.
type tally struct {
	deaths, acknowledged, interrupted, lost, facts, breaks int
	unpaid                                                 int             // turns that ended because nobody raised their budget
	waits                                                  []time.Duration // from a death to the next server's address
	ops                                                    lives           // steps of budgets
}

func (t *tally) add(u tally) {
	t.deaths += u.deaths
	t.acknowledged += u.acknowledged
	t.interrupted += u.interrupted
	t.lost += u.lost
	t.facts += u.facts
	t.breaks += u.breaks
	t.unpaid += u.unpaid
	t.ops.add(u.ops.ops)
	t.waits = append(t.waits, u.waits...)
}

func (t tally) String() string {
	slices.Sort(t.waits)
	var median time.Duration
	if n := len(t.waits); n > 0 {
		median = t.waits[n/2]
	}
	return fmt.Sprintf("%d commands acknowledged, %d turns interrupted, %d without budget, %d calls lost, %d facts followed over %d breaks without gap or repetition; back %d ms after a death (median)",
		t.acknowledged, t.interrupted, t.unpaid, t.lost, t.facts, t.breaks, median.Milliseconds())
}

// crowd is who uses a server at the same time.
type crowd struct {
	*serving
	seed  uint64
	tally tally

	mu     sync.Mutex
	acks   []acknowledged
	begun  map[belay.TurnID]chan struct{} // closed when the turn was acknowledged
	seen   []*followed
	failed []string
}

// followed is what a follower saw.
type followed struct {
	session belay.SessionID // empty: everything
	mu      sync.Mutex
	ids     []belay.EventID
	grew    chan struct{} // capacity 1
	dials   atomic.Int64
}

func (s *serving) gather(seed uint64) *crowd {
	c := &crowd{serving: s, seed: seed, begun: map[belay.TurnID]chan struct{}{}}
	for n := range sessionsOfCrowd {
		c.begun[firstTurn(n)] = make(chan struct{})
	}
	for n := range followers {
		f := &followed{grew: make(chan struct{}, 1)}
		if n >= 2 {
			f.session = sessionID(n - 2)
		}
		c.seen = append(c.seen, f)
	}
	return c
}

func sessionID(n int) belay.SessionID { return belay.SessionID(fmt.Sprintf("s%d", n)) }
func firstTurn(n int) belay.TurnID    { return belay.TurnID(fmt.Sprintf("t%d-first", n)) }
func secondTurn(n int) belay.TurnID   { return belay.TurnID(fmt.Sprintf("t%d-second", n)) }

// severalThreads reports whether a session's turns are of two threads. They aren't
// interrupted.
func severalThreads(n int) bool { return n%4 == interrupters }

func (c *crowd) complain(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = append(c.failed, fmt.Sprintf(format, args...))
}

// play returns when each accepted turn has ended and the followers saw it.
func (c *crowd) play(ctx context.Context, what string) {
	c.t.Helper()
	work, stop := context.WithCancel(ctx)
	defer stop()
	var submitting, others sync.WaitGroup
	for n := range sessionsOfCrowd {
		submitting.Go(func() {
			c.caller(work, fmt.Sprint("submitter ", n), nil, func(ctx context.Context, k *client.Client) { c.submit(ctx, k, n) })
		})
	}
	for n := range approvers {
		others.Go(func() {
			c.caller(work, fmt.Sprint("approver ", n), nil, func(ctx context.Context, k *client.Client) { c.approve(ctx, k, n) })
		})
	}
	for n := range interrupters {
		others.Go(func() {
			c.caller(work, fmt.Sprint("interrupter ", n), nil, func(ctx context.Context, k *client.Client) { c.interrupt(ctx, k, n) })
		})
	}
	for n, f := range c.seen {
		others.Go(func() {
			c.caller(work, fmt.Sprint("follower ", n), &f.dials, func(ctx context.Context, k *client.Client) { c.follow(ctx, k, f) })
		})
	}
	submitting.Wait()
	inTime := ctx.Err() == nil
	if inTime {
		c.caughtUp(ctx, what)
	}
	stop()
	others.Wait() // an answer that comes too late is a fact too
	if inTime {
		c.tellAgain(ctx, what)
	} else {
		c.t.Errorf("%s: not all turns ended in time", what)
	}
	for _, f := range c.failed {
		c.t.Errorf("%s: %s", what, f)
	}
}

// caller gives somebody a client of their own.
func (c *crowd) caller(ctx context.Context, who string, dials *atomic.Int64, f func(context.Context, *client.Client)) {
	k, done, err := c.client(dials)
	if err != nil {
		c.complain("%s: %v", who, err)
		return
	}
	defer done()
	f(ctx, k)
}

// passing reports whether an error is one that goes by: the server is away.
func passing(err error) bool {
	switch belay.CodeOf(err) {
	case belay.CodeUnreachable, belay.CodeDraining, belay.CodeStoreBusy:
		return true
	}
	return false
}

// until asks again while the server is away; wait goes between.
func until(ctx context.Context, f func() error) error {
	for {
		err := f()
		if err == nil || !passing(err) || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		rest(ctx, 5*time.Millisecond)
	}
}

func rest(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// tell brings a command until it is answered, always under its key.
func (c *crowd) tell(ctx context.Context, k *client.Client, a acknowledged) (answered, error) {
	err := until(ctx, func() error {
		a.out = answered{}
		if a.run != nil {
			return k.Run(ctx, a.key, *a.run, &a.out)
		}
		return k.Command(ctx, a.name, a.key, a.in, &a.out)
	})
	if err == nil {
		c.mu.Lock()
		c.acks = append(c.acks, a)
		c.mu.Unlock()
	}
	return a.out, err
}

// submission is what submit_turn takes of a crowd.
type submission struct {
	Session   belay.SessionID `json:"sessionId"`
	Thread    belay.ThreadID  `json:"threadId,omitempty"`
	Turn      belay.TurnID    `json:"turnId,omitempty"`
	Text      string          `json:"text"`
	Workspace string          `json:"workspace,omitempty"`
}

// submit gives a session two turns, and waits until both have ended: by reading, or
// by following the run. The second is behind the first, or in a thread of its own.
func (c *crowd) submit(ctx context.Context, k *client.Client, n int) {
	var runs []belay.RunID
	for i, turn := range []belay.TurnID{firstTurn(n), secondTurn(n)} {
		thread := belay.ThreadID("")
		if i > 0 && severalThreads(n) {
			thread = "thread-of-" + belay.ThreadID(turn)
		}
		a := acknowledged{name: "submit_turn", key: string(turn), in: submission{sessionID(n), thread, turn, fmt.Sprintf("please work, %d of %d", i, n), c.workspace(n)}}
		out, err := c.tell(ctx, k, a)
		if err != nil {
			c.complain("submit %s: %v", turn, err)
			return
		}
		if i == 0 {
			close(c.begun[turn])
		}
		runs = append(runs, out.Run)
	}
	for i, run := range runs {
		if (n+i)%2 == 0 {
			c.wait(ctx, k, run)
		} else {
			c.watch(ctx, k, run)
		}
	}
}

func (c *crowd) wait(ctx context.Context, k *client.Client, run belay.RunID) {
	for ctx.Err() == nil {
		var shown struct {
			Status string `json:"status"`
		}
		err := until(ctx, func() error { return k.Get(ctx, "/v1/runs/"+string(run), nil, &shown) })
		if err != nil && belay.CodeOf(err) != belay.CodeNotFound { // accepted, and not begun
			c.complain("run %s: %v", run, err)
			return
		}
		if shown.Status == "ended" {
			return
		}
		rest(ctx, 10*time.Millisecond)
	}
}

// watch follows a run to its end.
func (c *crowd) watch(ctx context.Context, k *client.Client, run belay.RunID) {
	for ctx.Err() == nil {
		var failed error
		for _, err := range k.Stream(ctx, "/v1/runs/"+string(run)+"/stream", client.StreamOptions{}) {
			failed = err
		}
		if failed == nil {
			return
		}
		if belay.CodeOf(failed) != belay.CodeNotFound {
			c.complain("the stream of run %s: %v", run, failed)
			return
		}
		rest(ctx, 10*time.Millisecond)
	}
}

// late are the refusals of an answer that somebody else gave before.
var late = []belay.Code{belay.CodeAlreadyAnswered, belay.CodeUnknownAction, belay.CodeBadState}

// approve answers whatever is asked, each approver in another way.
func (c *crowd) approve(ctx context.Context, k *client.Client, n int) {
	answered := map[string]bool{}
	r := rand.New(rand.NewPCG(c.seed, uint64(100+n)))
	for ctx.Err() == nil {
		var open struct {
			Actions []struct {
				ID      belay.ActionID `json:"actionId"`
				Version string         `json:"version"`
			} `json:"actions"`
		}
		if err := until(ctx, func() error { return k.Get(ctx, "/v1/actions", nil, &open) }); err != nil {
			if ctx.Err() == nil {
				c.complain("actions: %v", err)
			}
			return
		}
		for _, a := range open.Actions {
			key := fmt.Sprintf("%d-%s-%s", n, a.ID, a.Version)
			if answered[key] {
				continue
			}
			answered[key] = true
			decision := "allow"
			if r.IntN(8) == 0 {
				decision = "deny"
			}
			in := struct {
				Action   belay.ActionID `json:"actionId"`
				Decision string         `json:"decision"`
				Version  string         `json:"version"`
			}{a.ID, decision, a.Version}
			_, err := c.tell(ctx, k, acknowledged{name: "respond_action", key: key, in: in, decision: decision, action: a.ID})
			if err != nil && !slices.Contains(late, belay.CodeOf(err)) && ctx.Err() == nil {
				c.complain("respond %s: %v", a.ID, err)
			}
		}
		rest(ctx, 10*time.Millisecond)
	}
}

// interrupt ends the first turns of some sessions soon after they were accepted.
func (c *crowd) interrupt(ctx context.Context, k *client.Client, n int) {
	r := rand.New(rand.NewPCG(c.seed, uint64(200+n)))
	for s := n; s < sessionsOfCrowd; s += 2 * interrupters {
		select {
		case <-c.begun[firstTurn(s)]:
		case <-ctx.Done():
			return
		}
		rest(ctx, time.Duration(r.IntN(60))*time.Millisecond)
		in := struct {
			Session belay.SessionID `json:"sessionId"`
			Turn    belay.TurnID    `json:"turnId"`
		}{sessionID(s), firstTurn(s)}
		_, err := c.tell(ctx, k, acknowledged{name: "interrupt_turn", key: "stop-" + string(firstTurn(s)), in: in})
		if err != nil && belay.CodeOf(err) != belay.CodeBadState && ctx.Err() == nil { // it came too late
			c.complain("interrupt %s: %v", firstTurn(s), err)
		}
	}
}

// follow writes down which facts come, until ctx ends.
func (c *crowd) follow(ctx context.Context, k *client.Client, f *followed) {
	path, o := "/v1/stream", client.StreamOptions{Since: "start"}
	if f.session != "" {
		path, o = "/v1/sessions/"+string(f.session)+"/stream", client.StreamOptions{}
	}
	for ctx.Err() == nil {
		for e, err := range k.Stream(ctx, path, o) {
			if belay.CodeOf(err) == belay.CodeNotFound && len(f.ids) == 0 { // nobody has submitted yet
				break
			}
			if err != nil {
				if ctx.Err() == nil {
					c.complain("following %q: %v", f.session, err)
				}
				return
			}
			if e.Type == client.TypeText {
				continue
			}
			f.take(c, e)
		}
		rest(ctx, 10*time.Millisecond)
	}
}

func (f *followed) take(c *crowd, e client.Event) {
	fact, err := e.Fact()
	if err != nil || fact.Seq == 0 {
		c.complain("following %q: %s is no fact: %v %s", f.session, e.Type, err, e.Data)
		return
	}
	f.mu.Lock()
	f.ids = append(f.ids, fact.ID())
	f.mu.Unlock()
	select {
	case f.grew <- struct{}{}:
	default:
	}
}
