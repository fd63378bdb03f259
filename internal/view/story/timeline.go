package story

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/belay-run/belay/event"
)

// Row is a line of a timeline. Depth 0 is a session, a turn or an attempt of a
// task, 1 a step, 2 a call, 3 what a call did.
type Row struct {
	Depth int
	Kind  string // session, task, turn, step, call, ask, note
	ID    string
	Text  string
	At    time.Duration // since the first fact
	Took  time.Duration // until its last fact
	Open  bool          // not over yet
}

// String is the row as it is printed.
func (r Row) String() string {
	lasted := took(r.Took)
	switch {
	case r.Open:
		lasted += " …"
	case r.Kind == "note" || r.Kind == "session" || r.Kind == "task":
		lasted = ""
	}
	return strings.TrimRight(fmt.Sprintf("%8s  %9s  %s%s", "+"+took(r.At), lasted, strings.Repeat("  ", r.Depth), r.Text), " ")
}

// Timeline groups the facts of a log: sessions and refused commands, tasks with
// more than one attempt, then turns with their steps, calls and questions, each
// in the order in which they began. Times are those of the facts.
func Timeline(events []event.Envelope) []Row {
	s := tell(events)
	l := &lines{start: s.start, end: s.end}
	for _, x := range s.sessions.list {
		l.session(x)
	}
	for _, t := range s.tasks.list {
		l.task(t)
	}
	for _, t := range s.turns.list {
		l.turn(t)
	}
	return l.rows
}

type lines struct {
	start, end time.Time
	rows       []Row
}

// add appends a row that goes from one fact to another; no last fact means that
// it is open.
func (l *lines) add(depth int, kind, id string, from, to *event.Envelope, format string, args ...any) {
	r := Row{Depth: depth, Kind: kind, ID: id, Text: Clean(fmt.Sprintf(format, args...))}
	if from != nil {
		r.At = from.Time.Sub(l.start)
	}
	switch {
	case to == nil:
		r.Open = true
		if from != nil {
			r.Took = l.end.Sub(from.Time)
		}
	case from != nil:
		r.Took = to.Time.Sub(from.Time)
	}
	l.rows = append(l.rows, r)
}

func (l *lines) note(depth int, e *event.Envelope, format string, args ...any) {
	l.add(depth, "note", "", e, e, format, args...)
}

func (l *lines) session(x *session) {
	if x.created != nil {
		l.add(0, "session", string(x.id), x.created, x.created, "session %s %s", short(string(x.id)), says(*x.created))
	}
	for _, e := range x.refused {
		l.note(0, e, "refused: %s", says(*e))
	}
}

// task shows what the turns don't: that there were several attempts.
func (l *lines) task(t *task) {
	if len(t.attempts.list) < 2 {
		return
	}
	for i, a := range t.attempts.list {
		from, how := cmp.Or(a.started, a.ended), "completed"
		switch p := payload(a.ended).(type) {
		case nil:
			how = "runs"
		case event.TaskAttemptFailed:
			how = string(p.Outcome) + ": " + p.Reason
		}
		l.add(0, "task", string(a.id), from, from, "task %s attempt %d %s: %s", short(string(t.id)), i+1, short(string(a.id)), how)
	}
}

func (l *lines) turn(t *turn) {
	text := ""
	if t.submitted != nil {
		given := as[event.TurnSubmitted](t.submitted).Text
		text = " " + join(", ", quote(given.Text), Attached(given))
	}
	l.add(0, "turn", string(t.ids.Turn), cmp.Or(t.started, t.submitted), t.ended, "turn %s%s: %s", short(string(t.ids.Turn)), text, state(t))
	var notes []*event.Envelope
	notes = append(append(append(append(notes, t.takeovers...), t.updates...), t.pauses...), t.stop)
	for _, st := range t.steps.list {
		notes = l.notesBefore(notes, first(st.requests))
		l.step(st)
	}
	for _, a := range t.asks.list {
		if a.call == nil {
			l.ask(1, a)
		}
	}
	l.notesBefore(notes, nil)
}

// first and last are the ends of a list; nil when it is empty.
func first[T any](list []*T) *T {
	if len(list) == 0 {
		return nil
	}
	return list[0]
}

func last[T any](list []*T) *T { return first(list[max(len(list)-1, 0):]) }

// notesBefore writes the notes that belong before a fact and returns the rest.
func (l *lines) notesBefore(notes []*event.Envelope, before *event.Envelope) []*event.Envelope {
	var rest []*event.Envelope
	for _, e := range notes {
		if e == nil {
			continue
		}
		if before != nil && e.Seq > before.Seq {
			rest = append(rest, e)
			continue
		}
		switch p := e.Data.(type) {
		case event.RunStatus:
			if p.Phase == "takeover" {
				l.note(1, e, "another process took over (epoch %d)", p.Epoch)
				continue
			}
			l.note(1, e, "%s", join(" by ", "asked to stop", p.By)+when(p.Reason, ": %s"))
		case event.ThreadUpdated:
			l.note(1, e, "%s", says(*e))
		}
	}
	return rest
}

// state is how a turn stands, in a few words.
func state(t *turn) string {
	if t.ended == nil {
		switch a := t.open(); {
		case !t.begun():
			return "waits in the queue"
		case a != nil:
			return "waits for a person (" + short(string(a.id)) + ")"
		}
		return "runs"
	}
	switch p := t.ended.Data.(type) {
	case event.TurnCompleted:
		return "completed, " + quote(p.Summary.Text)
	case event.TurnFailed:
		return fmt.Sprintf("%s, %s: %s", p.Outcome, p.Code, p.Reason)
	}
	return ""
}

func (l *lines) step(st *step) {
	p, from := st.request()
	to, said := st.answer, "no answer yet"
	switch {
	case st.answer != nil:
		said = answerText(st)
	case len(st.failures) == len(st.requests) && len(st.failures) > 0:
		to = last(st.failures)
		said = problem(as[event.ModelFailed](to).Problem)
	case st.turn.ended != nil:
		to, said = st.turn.ended, "no answer"
	}
	l.add(1, "step", string(st.id), from, to, "step %d, %s: %s", st.n, p.Kind+when(p.Limit, " (%s)"), said)
	for _, f := range st.failures {
		if p := as[event.ModelFailed](f); f != to {
			l.note(2, f, "attempt %d failed: %s", p.Attempt, problem(p.Problem))
		}
	}
	for _, s := range as[event.ModelCompleted](st.answer).Searches {
		l.note(2, st.answer, "%s", s)
	}
	for _, c := range st.calls {
		l.call(c)
	}
}

func answerText(st *step) string {
	p := as[event.ModelCompleted](st.answer)
	return join(", ", quoted(p.Text.Text), some(len(p.Calls), "call"), unusual(p), tokens(p.Usage))
}

// unusual is what an answer lacks.
func unusual(p event.ModelCompleted) string {
	stop := map[string]string{"length": "cut off because it was too long", "refused": "a refusal"}[p.Stop]
	return join(", ", stop, when(some(p.Dropped, "call"), "%s too many, dropped"))
}

func (l *lines) call(c *call) {
	l.add(2, "call", string(c.id), cmp.Or(first(c.starts), c.verdict, c.over), cmp.Or(c.over, c.step.turn.ended), "%s %s → %s", c.name, cut(c.args, 80), result(c))
	if c.ask != nil {
		l.ask(3, c.ask)
	}
	if c.edit != nil {
		l.note(3, c.edit, "%s", says(*c.edit))
	}
	for i, e := range c.starts[min(1, len(c.starts)):] {
		l.note(3, e, "attempt %d: %s", i+2, whyAgain(c, i+1))
	}
	for _, e := range c.did {
		l.note(3, e, "%s %s", e.Type(), says(*e))
	}
}

// result is how a call ended, in a few words.
func result(c *call) string {
	if c.over == nil {
		switch {
		case c.ask != nil && c.ask.resolved == nil:
			return "waits for a person"
		case len(c.starts) == 0:
			return "not begun"
		}
		e := last(c.ends)
		if p, ok := payload(e).(event.ToolFailed); ok && e.Seq > last(c.starts).Seq {
			return join("; ", "failed ("+problem(p.Problem)+")", again(p.RetryAt))
		}
		return "runs"
	}
	if p, ok := c.failed(); ok {
		return problem(p.Problem)
	}
	return c.outcome()
}

func (l *lines) ask(depth int, a *ask) {
	how := "no answer yet"
	if a.resolved != nil {
		how = says(*a.resolved)
	}
	kind := "a question"
	if a.required != nil {
		kind = as[event.ActionRequired](a.required).Kind
	}
	l.add(depth, "ask", string(a.id), a.required, cmp.Or(a.resolved, a.turn.ended), "asked a person for %s: %s", kind, how)
}

// whyAgain returns why the n-th attempt after the first was made.
func whyAgain(c *call, n int) string {
	p, before := as[event.ToolStarted](c.starts[n]), c.starts[n-1]
	for _, e := range c.ends {
		f, failed := e.Data.(event.ToolFailed)
		switch {
		case !failed || e.Seq <= before.Seq || e.Seq >= c.starts[n].Seq:
		case f.Problem.Code == codeViolation:
			return "a boundary stopped the one before, and it was decided to run it in a wider one: " + p.Boundary
		case codesOfChange[f.Problem.Code]:
			return "the one before wasn't run, because it wasn't any more what had been allowed; that was judged again"
		default:
			return "the one before failed (" + problem(f.Problem) + ") and repeating it is harmless"
		}
	}
	lost := "the process that ran the one before was gone"
	switch {
	case p.Recover:
		return lost + "; it looks up what that did before it does anything"
	case p.Effect == "pure":
		return lost + "; it changes nothing, so it ran again"
	case p.Effect == "idempotent":
		return lost + "; it has the same key, so its work is done once"
	}
	return lost
}
