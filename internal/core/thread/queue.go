package thread

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
)

// Queued is a turn that was accepted and hasn't begun.
type Queued struct {
	Turn  belay.TurnID   `json:"turn"`
	Kind  belay.TurnKind `json:"kind"`
	Task  belay.TaskID   `json:"task,omitempty"`
	Run   belay.RunID    `json:"run,omitempty"`
	Rules belay.Ref      `json:"rules"`

	Place int64           `json:"place,omitempty"` // in the order in which the session accepted turns; 0: it counts no more
	Mode  belay.QueueMode `json:"mode,omitempty"`  // what was asked for, other than to wait
	Into  belay.TurnID    `json:"into,omitempty"`  // steer: the turn that ran when it came
	At    time.Time       `json:"at,omitzero"`     // collect: when it came
	Line  string          `json:"line,omitempty"`  // what is left of it if it is dropped

	Since    int64    `json:"since,omitempty"`    // the fact that brought the rules
	Priority int      `json:"priority,omitempty"` // when threads wait for budget
	Needs    []string `json:"needs,omitempty"`    // what its attachments need of a model

	Tokens int64 `json:"tokens,omitempty"` // of its text and attachments

	Limits *belay.Limits `json:"limits,omitempty"` // besides those of its rules
	Rest   bool          `json:"rest,omitempty"`   // of those, what the thread hasn't spent of money and tokens

	Note string `json:"note,omitempty"` // to the model, with the first request

	Checks []belay.Check `json:"checks,omitempty"` // that must pass before it completes
	Rounds int           `json:"rounds,omitempty"` // of checks that may fail; 0: belay.DefaultRounds
	Again  bool          `json:"again,omitempty"`  // its task was tried before
}

// dropped is the note to the model, before the next turn, about turns that
// didn't run because too many waited.
type dropped struct {
	Lines []string `json:"lines"`
	More  int      `json:"more,omitempty"` // that don't fit
}

// Bounds of Dropped.
const (
	maxDroppedLine  = 160 // bytes of one line
	maxDroppedLines = 20
)

// urgent reports whether the turn stands in front of those that wait.
func urgent(m belay.QueueMode) bool {
	return m == belay.QueueInterrupt || m == belay.QueueRollback
}

// Busy reports whether something is left to do: a turn runs or waits, files are to be
// restored or kept, the conversation is to be shortened, or programs run.
func (s *State) Busy() bool {
	return s.occupied() || s.Wish != nil || s.Compacting != nil || s.Restore != nil || s.Keep != nil || s.Undo != "" || len(s.Procs) > 0
}

// occupied reports whether another turn comes before one that is submitted now.
func (s *State) occupied() bool { return s.Turn != nil || len(s.Queue) > 0 }

func (h *handler) submit(c belay.SubmitTurn) error {
	if !h.Open {
		return belay.Errorf(belay.CodeBadState, "the thread isn't open")
	}
	if slices.ContainsFunc(h.Known, func(k Known) bool { return k.Turn == c.Turn }) {
		h.repeated(Queued{Turn: c.Turn, Task: c.Task, Run: c.Run})
		h.takeBudget(c.Budget)
		return nil
	}
	if err := (belay.Queueing{Mode: c.Queue}).Check(); err != nil {
		return err
	}
	mode, busy := cmp.Or(c.Queue, h.Line.Mode, belay.QueueEnqueue), h.occupied()
	if busy && mode == belay.QueueReject {
		return h.refused(c, "a turn of the thread hasn't ended")
	}
	submitted := event.TurnSubmitted{Kind: c.Kind, Text: c.Text, By: h.order.Principal, Rules: c.Rules, Place: c.Place, Priority: c.Priority, Budget: c.Budget, Checks: c.Checks, Rounds: c.Rounds, Again: c.Again, Note: c.Note, Rest: c.Rest && h.Depth > 0}
	if c.Limits != (belay.Limits{}) {
		submitted.Limits = &c.Limits
	}
	if more := h.unknown(slices.Concat(c.Taint, c.Text.From)); len(more) > 0 {
		ids := h.threadIDs()
		ids.Turn = c.Turn
		h.record(core.Fact{IDs: ids, Data: event.ContextResolved{Taint: more}})
	}
	if mode == belay.QueueCollect || busy && mode != belay.QueueEnqueue {
		submitted.Queue = mode
	}
	q := Queued{Turn: c.Turn, Task: c.Task, Run: c.Run, Line: line(c.Text.Text)}
	dropped := 0
	if h.full() {
		i := h.evictionIndex()
		switch {
		case i < 0:
			return h.refused(c, fmt.Sprintf("%d turns wait already", len(h.Queue)))
		case !urgent(mode) && h.placeOf(mode, c.Place) <= i:
			// It was overtaken on its way here by one that was accepted later.
			h.record(core.Fact{IDs: h.idsOf(q), Data: submitted})
			h.makeRoom(q, len(h.Queue))
			return nil
		}
		h.makeRoom(h.Queue[i], len(h.Queue)-1)
		dropped = 1
	}
	h.record(core.Fact{IDs: h.idsOf(q), Data: submitted})
	if !busy {
		return nil
	}
	n := len(h.Queue) - dropped + 1
	at := max(h.placeOf(mode, c.Place)+1-dropped, 1)
	h.record(h.threadFact(event.QueueChanged{Op: event.QueueAdded, Turn: c.Turn, Mode: mode, Position: at, Length: n, By: h.order.Principal}))
	if stops := h.stops(mode); stops != nil {
		stops.By, stops.Reason = h.order.Principal, "turn "+string(c.Turn)+" was submitted in its place"
		h.record(h.fact(*stops))
	}
	return nil
}

// stops is the wish to end the running turn that a mode brings with it, or nil.
func (h *handler) stops(mode belay.QueueMode) *event.RunStatus {
	switch {
	case h.Turn == nil || !urgent(mode):
		return nil
	case mode == belay.QueueRollback && (h.Turn.Stop == nil || !h.Turn.Stop.Back):
		return &event.RunStatus{Status: "cancelling", Phase: phaseRollback}
	case h.Turn.Stop == nil:
		return &event.RunStatus{Status: "cancelling"}
	}
	return nil
}

// phaseGrace marks a wish to end the turn after one more step.
const phaseGrace = "grace"

// phaseRollback marks a wish to end the turn and to take it back.
const phaseRollback = "rollback"

// Takes reports whether a turn that is submitted in a mode now is taken: a busy
// error says why it isn't. Who submits for a task asks before; what comes at the
// same moment is settled by submitting.
func (s *State) Takes(mode belay.QueueMode) error {
	switch mode = cmp.Or(mode, s.Line.Mode); {
	case s.occupied() && mode == belay.QueueReject:
		return belay.Errorf(belay.CodeBusy, "a turn of the thread hasn't ended").At(string(s.Thread)).WithHint("queue enqueue lets it wait")
	case s.full() && s.evictionIndex() < 0:
		return belay.Errorf(belay.CodeBusy, "%d turns wait already", len(s.Queue)).At(string(s.Thread)).WithHint("wait for one to end, or interrupt")
	}
	return nil
}

// full reports whether no more turns may wait.
func (s *State) full() bool {
	return s.occupied() && len(s.Queue) >= cmp.Or(s.Line.Cap, belay.MaxQueued)
}

// evictionIndex is the place of the turn that makes room, or -1.
func (qs *queueState) evictionIndex() int {
	if cmp.Or(qs.Line.Drop, belay.DropNew) == belay.DropNew {
		return -1
	}
	return slices.IndexFunc(qs.Queue, func(q Queued) bool { return !urgent(q.Mode) })
}

// refused turns away a turn that can't wait. A task that waits for its end gets one.
func (h *handler) refused(c belay.SubmitTurn, why string) error {
	if c.Task == "" {
		return belay.Errorf(belay.CodeBusy, "%s", why).WithHint("wait for one to end, or interrupt")
	}
	q := Queued{Turn: c.Turn, Task: c.Task, Run: c.Run}
	h.record(core.Fact{IDs: h.idsOf(q), Data: event.TurnSubmitted{Kind: c.Kind, Text: c.Text, By: h.order.Principal, Rules: c.Rules, Budget: c.Budget}})
	h.endQueued(q, belay.Failed, "BUSY", why)
	return nil
}

// makeRoom ends the turn that waits longest because no more may wait; left do.
func (h *handler) makeRoom(q Queued, left int) {
	why := "too many turns wait: it made room for another one"
	changed := event.QueueChanged{Op: event.QueueDropped, Turn: q.Turn, Length: left, By: h.order.Principal}
	if h.Line.Drop == belay.DropSummarise {
		changed.Note = cmp.Or(q.Line, "(a turn without text)")
		why += "; the next turn is told of it"
	}
	h.endQueued(q, belay.Cancelled, "QUEUE_DROPPED", why)
	h.record(h.threadFact(changed))
}

// line is what is left of a text: its beginning, in one line.
func line(text string) string {
	return event.CutText(strings.Join(strings.Fields(text), " "), maxDroppedLine)
}

// waits is the place of a turn in the row, or an error.
func (s *State) waits(turn belay.TurnID) (int, error) {
	i := slices.IndexFunc(s.Queue, func(q Queued) bool { return q.Turn == turn })
	if i < 0 {
		return 0, belay.Errorf(belay.CodeBadState, "turn %s doesn't wait in %s", turn, s.Thread).WithHint("get_thread_read lists those that do")
	}
	return i, nil
}

func (h *handler) promote(c belay.PromoteTurn) error {
	i, err := h.waits(c.Turn)
	if err != nil {
		return err
	}
	to := cmp.Or(c.Position, 1)
	if to < 1 || to > len(h.Queue) {
		return belay.Errorf(belay.CodeBadCommand, "there is no place %d: %d turns wait", to, len(h.Queue)).At("position")
	}
	if to != i+1 {
		h.record(h.threadFact(event.QueueChanged{Op: event.QueuePromoted, Turn: c.Turn, Position: to, Length: len(h.Queue), By: h.order.Principal}))
	}
	return nil
}

// reorder takes an order of exactly the turns that wait: one that was made when
// others did is refused.
func (h *handler) reorder(c belay.ReorderTurns) error {
	have := make([]belay.TurnID, len(h.Queue))
	for i, q := range h.Queue {
		have[i] = q.Turn
	}
	if slices.Equal(have, c.Order) {
		return nil
	}
	if want := slices.Sorted(slices.Values(c.Order)); !slices.Equal(slices.Sorted(slices.Values(have)), want) {
		return belay.Errorf(belay.CodeConflict, "the order must name each turn that waits once; %d wait now", len(have)).At("order").WithHint("get_thread_read lists them; repeat the command")
	}
	h.record(h.threadFact(event.QueueChanged{Op: event.QueueReordered, Order: c.Order, Length: len(c.Order), By: h.order.Principal}))
	return nil
}

func (h *handler) configure(c belay.ConfigureQueue) error {
	if !h.Open {
		return belay.Errorf(belay.CodeBadState, "the thread isn't open")
	}
	err := c.Queue.Check()
	if err == nil && c.Queue != h.Line {
		h.record(h.threadFact(event.QueueChanged{Op: event.QueuePolicy, Policy: &c.Queue, Length: len(h.Queue), By: h.order.Principal}))
	}
	return err
}

// placeOf is where a turn is put into the queue. Turns come by way of their
// tasks, which may overtake each other: so those that the session accepted
// later, and that weren't moved, come after it.
func (q *queueState) placeOf(mode belay.QueueMode, place int64) int {
	if urgent(mode) {
		return 0
	}
	at := len(q.Queue)
	for place > 0 && at > 0 && q.Queue[at-1].Place > place {
		at--
	}
	return at
}

// moved makes the row what a person says it is: where turns come from counts no
// more.
func (q *queueState) moved() {
	for i := range q.Queue {
		q.Queue[i].Place = 0
	}
}

// enqueue folds that a turn was accepted.
func (s *State) enqueue(e event.Envelope, p event.TurnSubmitted) {
	q := Queued{Turn: e.IDs.Turn, Kind: p.Kind, Task: e.IDs.Task, Run: e.IDs.Run, Rules: p.Rules, Mode: p.Queue, Line: line(p.Text.Text), Place: p.Place, Priority: p.Priority, Since: e.Seq, Tokens: p.Text.Tokens, Limits: p.Limits, Checks: p.Checks, Rounds: p.Rounds, Again: p.Again, Note: p.Note, Rest: p.Rest}
	if urgent(p.Queue) {
		q.Place = 0
	}
	if p.Queue == belay.QueueSteer {
		q.Into = s.next()
	}
	if p.Queue == belay.QueueCollect {
		q.At = e.Time
	}
	for _, a := range p.Text.Attached {
		if n := needed(a); n != "" && !slices.Contains(q.Needs, n) {
			q.Needs = append(q.Needs, n)
		}
	}
	s.Purse.take(p.Budget)
	at := s.placeOf(p.Queue, p.Place)
	s.Queue = slices.Insert(s.Queue, at, q)
	s.Known = keep(append(s.Known, Known{Turn: e.IDs.Turn, Run: e.IDs.Run}), maxKnown)
}

// next is the turn that runs, or that begins first.
func (s *State) next() belay.TurnID {
	switch {
	case s.Turn != nil:
		return s.Turn.Turn
	case len(s.Queue) > 0:
		return s.Queue[0].Turn
	}
	return ""
}

// applyQueue folds a change of the row.
func (s *State) applyQueue(e event.Envelope, p event.QueueChanged) {
	i := slices.IndexFunc(s.Queue, func(q Queued) bool { return q.Turn == p.Turn })
	switch p.Op {
	case event.QueuePromoted:
		if i >= 0 && p.Position >= 1 && p.Position <= len(s.Queue) {
			s.moved()
			q := s.Queue[i]
			s.Queue = slices.Insert(slices.Delete(s.Queue, i, i+1), p.Position-1, q)
		}
	case event.QueueReordered:
		s.moved()
		slices.SortStableFunc(s.Queue, func(a, b Queued) int {
			return cmp.Compare(slices.Index(p.Order, a.Turn), slices.Index(p.Order, b.Turn))
		})
	case event.QueueDropped:
		s.drop(p.Note)
	case event.QueueTold:
		s.Dropped = nil
	case event.QueueJoined:
		if i >= 0 && s.Turn != nil {
			s.joined(e, i)
		}
	case event.QueuePolicy:
		if p.Policy != nil {
			s.Line = *p.Policy
		}
	}
}

// drop keeps what is left of a turn that made room.
func (q *queueState) drop(note string) {
	if note == "" {
		return
	}
	if q.Dropped == nil {
		q.Dropped = &dropped{}
	}
	if len(q.Dropped.Lines) == maxDroppedLines {
		q.Dropped.More++
		return
	}
	q.Dropped.Lines = append(q.Dropped.Lines, note)
}

// tell lists what was dropped, for the turn that begins now.
func (d *decision) tell() {
	if d.Dropped == nil {
		return
	}
	var b strings.Builder
	b.WriteString("Messages came while you were busy, and too many to take them all. Of these only the beginning is left:")
	for _, l := range d.Dropped.Lines {
		b.WriteString("\n- " + l)
	}
	if d.Dropped.More > 0 {
		fmt.Fprintf(&b, "\n- and %d more", d.Dropped.More)
	}
	d.record(d.threadFact(event.QueueChanged{Op: event.QueueTold, Note: b.String(), Length: len(d.Queue)}))
}
