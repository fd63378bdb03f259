package term

import (
	"bufio"
	"cmp"
	"context"
	"io"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/block"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view"
)

// Log is where the facts of a followed session are.
type Log interface {
	store.Blobs
	Changed(ctx context.Context) <-chan struct{}
	Scan(ctx context.Context, after store.Position) iter.Seq2[store.Record, error]
}

// Questions are the open questions of a followed session, and the way to answer them.
type Questions interface {
	// Question returns one of a thread as it stands now; nil if it doesn't wait.
	Question(ctx context.Context, thread belay.ThreadID, id belay.ActionID) (*block.Preview, error)
	// Answer gives a thread an answer, and those agents whose questions are alike if that
	// is wanted; raise is by what a budget is raised, as it was typed.
	Answer(ctx context.Context, thread belay.ThreadID, c belay.RespondAction, raise string, alike bool) error
}

// Followed is what a follower shows: a turn of a session.
type Followed struct {
	Log       Log
	Questions Questions
	Session   belay.SessionID
	Thread    belay.ThreadID
	Turn      belay.TurnID // empty: the next one that is submitted
	From      store.Position
	Guest     bool            // another process drives the session: only the thread is followed
	Approvals belay.Approvals // how questions of the turn are treated
	Principal string          // gives commands here
}

// Follower follows the log of one session and shows it. Its goroutine is the only
// one that writes to the terminal while a session runs; the others hand it what
// flows and what they have to say.
type Follower struct {
	env   *Env
	w     Followed
	stop  context.CancelCauseFunc
	fold  block.Fold
	live  *printer
	now   figures
	asked map[belay.ActionID]bool // questions that were shown
	ask   *prompt                 // what is being asked here; nil when nothing is
	next  []prompt
	End   TurnEnd
	Told  *belay.Error // why a command was refused
	into  belay.TurnID // the turn that this one became part of
	task  belay.TaskID // of the turn

	lines   chan string   // what the person typed; nil until something was asked
	wants   chan struct{} // a line is wanted
	reading bool          // one is being read
	kicked  chan struct{}

	mu    sync.Mutex
	flows []event.Delta
	notes []string
}

// TurnEnd is how the turn ended, as its facts say.
type TurnEnd struct {
	Over      bool
	Outcome   belay.Outcome
	Code      string
	Reason    string
	Summary   belay.Content
	Next      string
	Output    *belay.Content
	Artifacts []string
	Stats     event.TurnStats
	Files     []block.File
	Wall      time.Duration // from its beginning
	Said      bool          // an answer that was shown is its summary
	Published []view.Artifact
	Call      *Called // the last one
	From, To  int64   // the facts that the last request was made of
	Hint      string  // what can be done about the last request that failed
}

// NewFollower makes a follower that prints to e.
func NewFollower(e *Env) *Follower {
	return &Follower{env: e, asked: map[belay.ActionID]bool{}, kicked: make(chan struct{}, 1)}
}

// Begin is called when the session is known, before anything runs; stop ends what
// is followed, and lines are shown first.
func (u *Follower) Begin(f Followed, stop context.CancelCauseFunc, lines ...string) {
	u.w, u.stop = f, stop
	u.live = newPrinter(u.env, f.Principal)
	u.fold.Load = func(r belay.Ref) ([]byte, error) { return f.Log.Get(context.Background(), r.Digest) }
	for _, l := range lines {
		u.live.println(Line(l))
	}
}

// Follows names the turn that is followed, when that was over before.
func (u *Follower) Follows(turn belay.TurnID) { u.w.Turn = turn }

// Past takes a fact of the turn that was there before, and shows nothing of it.
func (u *Follower) Past(ev event.Envelope) {
	u.now.fact(ev)
	u.fold.Apply(ev)
	for _, b := range u.fold.Take() {
		u.ends(b)
	}
	u.End.Fold(ev)
}

// Turn is the turn that is followed; empty as long as it isn't known.
func (u *Follower) Turn() belay.TurnID { return u.w.Turn }

// Flow takes what happens between facts; it must return at once.
func (u *Follower) Flow(l event.Delta) {
	u.mu.Lock()
	u.flows = append(u.flows, l)
	u.mu.Unlock()
	u.kick()
}

// Note says something between the lines.
func (u *Follower) Note(s string) {
	u.mu.Lock()
	u.notes = append(u.notes, s)
	u.mu.Unlock()
	u.kick()
}

func (u *Follower) kick() {
	select {
	case u.kicked <- struct{}{}:
	default:
	}
}

// Run shows the session until ended is closed, and then what is left.
func (u *Follower) Run(ctx context.Context, ended <-chan struct{}) error {
	var tick <-chan time.Time
	if u.live.moving {
		t := time.NewTicker(200 * time.Millisecond)
		defer t.Stop()
		tick = t.C
	}
	for {
		changed := u.w.Log.Changed(ctx)
		if err := u.log(ctx); err != nil {
			return err
		}
		if u.until(ctx, changed, tick, ended) {
			err := u.log(ctx)
			u.flush()
			u.live.clear()
			return err
		}
	}
}

// portion is how long facts wait at most to be shown with those that come after
// them. Steps of a model take longer, so that what is shown then is shown at
// once; only a storm of facts is read in portions instead of one by one.
const portion = 25 * time.Millisecond

// until shows what flows until there may be new facts, and some time has passed
// since the last ones. True is the end.
func (u *Follower) until(ctx context.Context, changed <-chan struct{}, tick <-chan time.Time, ended <-chan struct{}) bool {
	var due <-chan struct{}
	paced := time.After(portion)
	for {
		u.flush()
		u.prompt()
		select {
		case <-paced:
			due = changed
		case <-due:
			return false
		case <-u.kicked:
		case <-tick:
			live, now := u.fold.Live(), u.env.Now()
			u.live.paint(u.now.line(live, now), live, now)
		case l, ok := <-u.lines:
			u.typed(ctx, l, ok)
		case <-ended:
			return true
		}
	}
}

// log shows what the log has since the last look.
func (u *Follower) log(ctx context.Context) error {
	for r, err := range u.w.Log.Scan(ctx, u.w.From) {
		if err != nil {
			return err
		}
		u.w.From = r.Position
		u.fact(ctx, r.Event)
	}
	return nil
}

func (u *Follower) fact(ctx context.Context, ev event.Envelope) {
	if ev.IDs.Session != u.w.Session {
		return
	}
	if u.w.Guest && ev.IDs.Thread != "" && ev.IDs.Thread != u.w.Thread {
		return // it belongs to the session's driver
	}
	if u.env.JSON {
		u.env.PrintJSON(ev)
	}
	u.flush() // what flowed was there before it
	if _, ok := ev.Data.(event.TurnSubmitted); ok && u.w.Turn == "" {
		u.w.Turn = ev.IDs.Turn // it was accepted by a process that is gone
	}
	switch p := ev.Data.(type) {
	case event.TurnSubmitted:
		if ev.IDs.Turn == u.w.Turn {
			u.task = ev.IDs.Task
		}
	case event.TaskRetrying: // another attempt follows by itself: its turn counts
		if u.task != "" && ev.IDs.Task == u.task && p.Turn != "" {
			u.w.Turn, u.into, u.End = p.Turn, "", TurnEnd{}
		}
	}
	if ev.IDs.Turn == u.w.Turn || u.into != "" && ev.IDs.Turn == u.into {
		u.End.Fold(ev)
	}
	u.now.fact(ev)
	u.fold.Apply(ev)
	u.blocks()
	switch p := ev.Data.(type) {
	case event.ActionRequired:
		u.Asked(ctx, ev.IDs.Thread, ev.IDs.Action)
	case event.ActionResolved:
		u.resolved(ev.IDs.Action)
	case event.QueueChanged:
		if p.Op == event.QueueJoined && p.Turn == u.w.Turn {
			u.into = p.Into
		}
	case event.ChannelMessage:
		if p.Kind == "audit" && p.Principal == u.w.Principal {
			u.Told = &belay.Error{Code: belay.Code(p.Code), Message: p.Message, Hint: p.Hint}
			if p.Command == belay.CommandName(belay.InterruptTurn{}) { // the others say so themselves
				u.live.println("not interrupted: " + Line(p.Message))
			}
		}
	}
}

// blocks shows what is finished. The input is the person's own, and the end is told with
// the result.
func (u *Follower) blocks() {
	for _, b := range u.fold.Take() {
		switch {
		case u.ends(b) || b.Kind == block.KindInput && b.Turn == u.w.Turn:
			continue
		case b.Kind == block.KindQuestion && u.asked[b.Asked.ID]:
			q := *b.Asked
			q.Prompt = "" // it stands above
			b.Asked = &q
		}
		u.live.show(b)
	}
}

// ends takes the end of the turn that is followed.
func (u *Follower) ends(b block.Block) bool {
	if b.Kind != block.KindEnd || b.Turn != u.w.Turn && (u.into == "" || b.Turn != u.into) {
		return false
	}
	u.End.Files, u.End.Wall, u.End.Said = b.End.Files, b.End.Wall, b.End.Summary == ""
	return true
}

// Fold takes what a fact says about how the turn ends.
func (e *TurnEnd) Fold(ev event.Envelope) {
	switch p := ev.Data.(type) {
	case event.ArtifactChanged:
		if a, ok := view.ArtifactOf(ev); ok {
			e.Published = append(slices.DeleteFunc(e.Published, func(o view.Artifact) bool { return o.Name == a.Name }), a)
		}
	case event.ModelRequested:
		e.From, e.To = p.From, p.To
	case event.ModelFailed:
		e.Hint = p.Problem.Hint
	case event.ModelCompleted:
		e.Hint = ""
	case event.ToolResult:
		e.Call = &Called{Tool: p.Name, OK: p.Exit == 0, Outcome: p.Outcome(), Millis: p.Millis}
	case event.ToolFailed:
		e.Call = &Called{Tool: p.Name, Class: p.Problem.Class, Code: p.Problem.Code, Message: p.Problem.Message, Millis: p.Millis}
	case event.TurnCompleted:
		e.Over, e.Outcome, e.Summary, e.Next, e.Output, e.Artifacts, e.Stats = true, belay.Completed, p.Summary, p.NextSteps, p.Output, p.Artifacts, cmp.Or(p.Stats, e.Stats)
	case event.TurnFailed:
		e.Over, e.Outcome, e.Code, e.Reason, e.Stats = true, p.Outcome, p.Code, p.Reason, cmp.Or(p.Stats, e.Stats)
		if p.Partial != "" || p.PartialRef != nil {
			e.Summary = belay.Content{Text: p.Partial, Ref: p.PartialRef}
		}
	}
}

// flush shows what flowed and what was said since the last look.
func (u *Follower) flush() {
	u.mu.Lock()
	flows, notes := u.flows, u.notes
	u.flows, u.notes = nil, nil
	u.mu.Unlock()
	for _, d := range flows {
		if d.IDs.Session == u.w.Session {
			u.fold.Flow(d)
		}
	}
	u.blocks()
	for _, n := range notes {
		u.live.println(Line(n))
	}
}

// read starts to read one line of input, if no read is pending. It reads no more
// than that, so that an editor has the terminal to itself. The goroutine ends
// with the input, or with the process: a read from a terminal can't be
// cancelled.
func (u *Follower) read() {
	if u.reading {
		return
	}
	u.reading = true
	if u.lines == nil {
		u.lines, u.wants = make(chan string), make(chan struct{}, 1)
		go readLines(u.env.In, u.wants, u.lines)
	}
	u.wants <- struct{}{}
}

// readLines reads a line for each that is wanted.
func readLines(in io.Reader, wants <-chan struct{}, lines chan<- string) {
	defer close(lines)
	s := bufio.NewScanner(in)
	for range wants {
		if !s.Scan() {
			return
		}
		lines <- s.Text()
	}
}
