package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/approvals"
	"github.com/belay-run/belay/internal/block"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/store"
)

// turnRun is one turn of a session that this process sees through.
type turnRun struct {
	*app.Runtime
	a         *command.Program
	session   belay.SessionID
	thread    belay.ThreadID
	turn      belay.TurnID
	workspace string
	approvals belay.Approvals
	from      store.Position // what was there before
	watch     *term.Follower
	said      []string                    // what is shown first
	release   func() error                // gives the session back; nil when it isn't owned yet
	founded   bool                        // the session begins with this turn, and nothing of it happened yet
	single    bool                        // the turn is one call of a person
	strict    bool                        // a denied call is an exit code of its own
	queue     belay.QueueMode             // what becomes of the task if the session is busy; empty: it isn't
	join      func(context.Context) error // tries to become the driver of a session that another process drives
	guest     bool                        // another process drove the session when this one came
	abandoned bool                        // left at once: what runs still uses the store
}

// close gives back what the process has; a process that leaves at once is
// given back by the system.
func (w *turnRun) close() {
	if w.abandoned {
		return
	}
	if w.release != nil {
		w.release() //nolint:errcheck // closing the store gives back what is left
	}
	w.Runtime.Close() //nolint:errcheck // everything that was accepted is durable; there is nobody to tell
}

// newWork wires a process that will drive one session; make reports whether its store
// may be made.
func newWork(ctx context.Context, a *command.Program, make bool) (*turnRun, error) {
	st, err := a.Open(ctx, make)
	if err != nil {
		return nil, err
	}
	w := &turnRun{a: a}
	w.watch = term.NewFollower(&a.Env)
	r, err := a.Runtime(st, w.watch.Flow)
	if err != nil {
		return nil, errors.Join(err, st.Close())
	}
	w.Runtime = r
	return w, nil
}

// begin makes a session and gives it its first task, in a worktree of its own if
// apart is set. Both are accepted before anything is driven; the session's
// driver handles them in order.
func (w *turnRun) begin(ctx context.Context, ws, title string, c config.Settings, t Task, apart bool) error {
	w.session = belay.SessionID(belay.NewID(belay.PrefixSession))
	w.thread = belay.ThreadID(belay.NewID(belay.PrefixThread))
	w.workspace = ws
	if err := w.a.Learn(ctx, ws); err != nil {
		return err
	}
	create := belay.CreateSession{Workspace: ws, Title: string(w.a.Secrets().Bytes([]byte(title))), Settings: c.Settings}
	if !apart {
		if begun, err := w.found(ctx, create, c, t); begun || err != nil {
			return err
		}
	}
	var err error
	if w.from, err = w.Store.End(ctx); err != nil {
		return err
	}
	before := []belay.Order{w.a.Order(w.session, w.session.Stream(), create)}
	if apart {
		if err := w.inWorktree(ctx, ws, create); err != nil {
			return err
		}
		before = nil
	}
	use, draft, err := w.claim(ctx, c, nil)
	if err != nil {
		return err
	}
	before = append(before, w.a.Order(w.session, w.session.Stream(), belay.UseWorkspace{Use: &use}))
	if err := app.Verifiable(draft.Rules, t.Acceptance); err != nil {
		return err
	}
	rules, err := w.a.KeepRules(ctx, c, draft)
	if err != nil {
		return err
	}
	return w.enqueue(ctx, c, t, rules, before)
}

// found is begin in one transaction, with the claim. false: that can't be, and
// nothing was written.
func (w *turnRun) found(ctx context.Context, create belay.CreateSession, c config.Settings, t Task) (bool, error) {
	p, err := w.a.At(ctx, w.workspace)
	if err != nil {
		return false, err
	}
	d, err := w.a.Draft(ctx, p, w.a.Principal(), c)
	if err != nil {
		return false, err
	}
	if err := app.Verifiable(d.Rules, t.Acceptance); err != nil {
		return false, err
	}
	ref, err := w.a.KeepRules(ctx, c, d)
	if err != nil {
		return false, err
	}
	submit, err := w.submission(ctx, c, t, ref)
	if err != nil {
		return false, err
	}
	use, changes := belay.WorkspaceUse{}, ""
	if d.Rules.MayChange(nil) {
		use, changes = mayChange(c), config.RepositoryOf(w.workspace)
	}
	begin := func() (*app.Begun, error) {
		to := func(c belay.Command) belay.Order { return w.a.Order(w.session, w.session.Stream(), c) }
		claim := store.Claim{Keep: app.Lease, Writes: changes, Shared: c.Share && changes != ""}
		return w.Engine.Begin(ctx, claim, to(create), to(belay.UseWorkspace{Use: &use}), to(submit))
	}
	f, err := begin()
	if other, ok := errors.AsType[*store.WriterError](err); ok {
		w.sayReadsOnly(&other.Writer)
		use, changes = belay.WorkspaceUse{Use: belay.UseReader, Writer: other.Writer.Session, Path: other.Writer.Path}, ""
		f, err = begin()
	}
	if f == nil || err != nil {
		return false, err
	}
	w.from, w.release, w.founded = f.From, f.Release, true
	return true, nil
}

// rules are what a turn in the workspace is decided by that must pass some checks, kept
// as content.
func (w *turnRun) rules(ctx context.Context, c config.Settings, checks []belay.Check) (belay.Ref, error) {
	if err := w.a.Learn(ctx, w.workspace); err != nil {
		return belay.Ref{}, err
	}
	p, err := w.a.At(ctx, w.workspace)
	if err != nil {
		return belay.Ref{}, err
	}
	d, err := w.a.Draft(ctx, p, w.a.Principal(), c)
	if err == nil {
		err = app.Verifiable(d.Rules, checks)
	}
	if err != nil {
		return belay.Ref{}, err
	}
	return w.a.KeepRules(ctx, c, d)
}

// submit puts a task into the inbox of a session that there is.
func (w *turnRun) submit(ctx context.Context, c config.Settings, t Task) error {
	rules, err := w.rules(ctx, c, t.Acceptance)
	if err != nil {
		return err
	}
	return w.enqueue(ctx, c, t, rules, nil)
}

// enqueue puts a task into the session's inbox, after the orders given.
func (w *turnRun) enqueue(ctx context.Context, c config.Settings, t Task, rules belay.Ref, before []belay.Order) error {
	submit, err := w.submission(ctx, c, t, rules)
	if err != nil {
		return err
	}
	return w.Store.Enqueue(ctx, append(before, w.a.Order(w.session, w.session.Stream(), submit))...)
}

// submission is the command that gives the session a task.
func (w *turnRun) submission(ctx context.Context, c config.Settings, t Task, rules belay.Ref) (belay.SubmitWork, error) {
	w.turn = belay.TurnID(belay.NewID(belay.PrefixTurn))
	w.approvals = c.Approvals
	content, err := w.content(ctx, c, t)
	if err != nil {
		return belay.SubmitWork{}, err
	}
	var again belay.Retry
	if c.Agent != "" {
		under, err := w.RulesOf(ctx, rules)
		if err != nil {
			return belay.SubmitWork{}, err
		}
		again = under.Retry()
	}
	return belay.SubmitWork{
		Thread: w.thread, Task: belay.TaskID(belay.NewID(belay.PrefixTask)), Turn: w.turn, Text: content, Rules: rules, Template: t.Template, Queue: w.queue, Quotas: c.Quotas, Acceptance: t.Acceptance, Retry: again,
	}, nil
}

// content is a task as facts hold it.
func (w *turnRun) content(ctx context.Context, s config.Settings, t Task) (belay.Content, error) {
	p, err := w.a.At(ctx, w.workspace)
	if err != nil {
		return belay.Content{}, err
	}
	return t.Keep(ctx, w.Store, w.a.Secrets(), w.a.Models().Counts(p.Workspace, s.Settings), s.Settings)
}

// update records settings that differ from the session's.
func (w *turnRun) update(ctx context.Context, s *app.SessionState, c config.Settings) error {
	if same(s.Settings, c.Settings) {
		return nil
	}
	update, err := w.Update(ctx, s, c.Settings)
	if err != nil {
		return err
	}
	return w.Store.Enqueue(ctx, w.a.Order(w.session, w.session.Stream(), update))
}

func same(a, b belay.Settings) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

// state is the thread as its facts say, or nil when it isn't open.
func (w *turnRun) state(ctx context.Context) (*app.ThreadState, error) {
	if w.thread == "" {
		return nil, nil
	}
	return app.LoadThread(ctx, w.Store, w.thread.Stream())
}

// unfinished reports whether a turn of the thread hasn't ended, or work waits.
func (w *turnRun) unfinished(ctx context.Context) bool {
	if rows, err := w.Store.Lanes(ctx, w.session); err == nil {
		for _, r := range rows {
			if r.Inbox > 0 || r.Runnable {
				return true
			}
		}
	}
	s, err := w.state(ctx)
	return err == nil && app.Unfinished(s)
}

// errTerminated ends the driving of a turn before it has ended.
var errTerminated = errors.New("the process was asked to end")

// see drives the session until its turn has ended or waits for an answer that
// can't be given here, shows what happens, and returns the exit code.
func (w *turnRun) see(ctx context.Context) (int, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	w.watch.Begin(term.Followed{Log: w.Store, Questions: w, Session: w.session, Thread: w.thread, Turn: w.turn, From: w.from, Guest: w.guest, Approvals: w.approvals, Principal: w.a.Principal()},
		stop, append([]string{"session " + string(w.session) + " in " + w.workspace}, w.said...)...)
	if !w.founded { // before anything is driven: what happens from now on is shown as it is recorded
		if err := w.standing(ctx); err != nil {
			return w.conclude(ctx, err)
		}
	}
	var wg sync.WaitGroup
	ended, shown := make(chan struct{}), make(chan error, 1)
	driven := make(chan error, 1)
	wg.Go(func() { shown <- w.watch.Run(context.WithoutCancel(ctx), ended) })
	wg.Go(func() { driven <- w.drive(ctx) })
	interrupted := false
	for {
		select {
		case err := <-driven:
			close(ended)
			err = errors.Join(err, <-shown)
			wg.Wait()
			w.turn = w.watch.Turn()
			return w.conclude(ctx, err)
		case sig := <-w.a.Signals:
			switch {
			case sig == syscall.SIGTERM:
				stop(errTerminated)
			case interrupted:
				// At once: whatever runs is killed with this process, and the next
				// one finds out its outcome.
				w.abandoned = true
				fmt.Fprintf(w.a.Err, "\nstopped at once; continue with: %s\n", w.resumeCommand())
				return belay.ExitCancelled, nil
			default:
				interrupted = true
				w.interrupt(ctx, sig)
			}
		}
	}
}

// standing shows what stood before this process began: how far the turn was, and
// the questions that wait.
func (w *turnRun) standing(ctx context.Context) error {
	s, err := w.state(ctx)
	if err != nil || s == nil {
		return err
	}
	if s.Turn != nil {
		if err := w.past(ctx, s.Turn.Turn); err != nil {
			return err
		}
	}
	open, err := w.Actions(ctx, w.session)
	for _, o := range open {
		w.watch.Asked(ctx, o.Thread, o.ID)
	}
	return err
}

// past makes known what happened in a turn before this process followed it.
func (w *turnRun) past(ctx context.Context, turn belay.TurnID) error {
	for rec, err := range w.Store.Window(ctx, store.Window{Stream: w.thread.Stream(), Before: w.from + 1}) {
		if err != nil {
			return err
		}
		if rec.Event.IDs.Turn == turn {
			w.watch.Past(rec.Event)
		}
	}
	return nil
}

// Question reads a question of a thread as it stands now.
func (w *turnRun) Question(ctx context.Context, thread belay.ThreadID, id belay.ActionID) (*block.Preview, error) {
	return approvals.Preview(ctx, w.Runtime, thread, id)
}

// Answer gives a thread an answer of the person at this terminal.
func (w *turnRun) Answer(ctx context.Context, thread belay.ThreadID, c belay.RespondAction, raise string, alike bool) (err error) {
	if c.Budget, err = app.ParseRaise(raise); err != nil {
		return err
	}
	if alike {
		like, err := approvals.Alike(ctx, w.Runtime, thread, c.Action)
		if err != nil {
			return err
		}
		for _, o := range like {
			same := belay.RespondAction{Action: o.ID, Decision: c.Decision, Message: c.Message, Seen: o.Version}
			if _, err := w.Engine.Submit(ctx, w.a.Order(w.session, o.Thread.Stream(), same)); err != nil && belay.CodeOf(err) != belay.CodeAlreadyAnswered {
				return err
			}
		}
	}
	_, err = w.Engine.Submit(ctx, w.a.Order(w.session, thread.Stream(), c))
	return err
}

// interrupt asks the turn to end; its partial text is kept. Behind another turn it
// is taken out, and that one continues.
func (w *turnRun) interrupt(ctx context.Context, sig os.Signal) {
	w.watch.Note("interrupting; again to leave at once")
	c := belay.InterruptTurn{Reason: "interrupted at the terminal (" + sig.String() + ")"}
	if w.queue != "" {
		c.Turn = w.turn
	}
	order := w.a.Order(w.session, w.thread.Stream(), c)
	if err := w.Store.Enqueue(ctx, order); err != nil {
		w.watch.Note("the interrupt can't be recorded: " + err.Error())
	}
}

// keep tells, when everything rests, whether to wait for an answer.
func (w *turnRun) keep(ctx context.Context) func([]store.LaneRow) bool {
	return func([]store.LaneRow) bool {
		if w.approvals != belay.ApprovalsWait && !(w.approvals == belay.ApprovalsAsk && w.a.Interactive()) {
			return false
		}
		return w.asks(context.WithoutCancel(ctx))
	}
}

// asks reports whether a thread of the session, also one of an agent that it started, waits
// for a person.
func (w *turnRun) asks(ctx context.Context) bool {
	s, err := app.StateOf(ctx, w.Store, w.session)
	if err != nil {
		return false
	}
	for _, id := range s.All() {
		if th, err := app.LoadThread(ctx, w.Store, id.Stream()); err == nil && th != nil && len(th.Opens()) > 0 {
			return true
		}
	}
	return false
}

func (w *turnRun) resumeCommand() string {
	return "belay sessions resume " + string(w.session) + w.a.StoreFlag
}
