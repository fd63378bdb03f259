package thread

import (
	"cmp"
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
)

// A turn can become part of another one: a steering message of the running turn,
// collected messages of the one that begins. Its text is in the other's
// conversation from queue.changed on, and it ends with the other, in the same
// decision and in the same way.

// joined folds that a waiting turn is part of the running one now.
func (s *State) joined(e event.Envelope, i int) {
	q := s.Queue[i]
	q.Place, q.Mode, q.Into, q.At, q.Line = 0, "", "", time.Time{}, ""
	s.Queue = append(s.Queue[:i:i], s.Queue[i+1:]...)
	s.Turn.Joined = append(s.Turn.Joined, q)
	s.Turn.Nudged = false // it was told something new
	if k := s.known(q.Turn); k != nil {
		k.Start = e.Seq
	}
}

// join makes waiting turns part of another one.
func (d *decision) join(turns []Queued, into belay.TurnID, left int) {
	for _, q := range turns {
		left--
		d.record(core.Fact{IDs: d.idsOf(q), Data: event.QueueChanged{Op: event.QueueJoined, Turn: q.Turn, Into: into, Length: left}})
	}
}

// reportJoined ends the turns that are part of the one that has just ended.
func (d *decision) reportJoined(end belay.AttemptEnd) {
	t := d.Turn
	for _, q := range t.Joined {
		ids := d.idsOf(q)
		if end.Outcome == belay.Completed {
			d.record(core.Fact{IDs: ids, Data: event.TurnCompleted{Summary: end.Summary}})
		} else {
			reason := event.CutText("it was part of turn "+string(t.Turn)+": "+end.Reason, maxSaid)
			d.record(core.Fact{IDs: ids, Data: event.TurnFailed{Outcome: end.Outcome, Code: "JOINED", Reason: reason}})
		}
		d.endAttempt(q, end)
	}
}

// steer gives the running turn the messages that are meant for it, at the next
// boundary: before its first request, or when an answer's calls are over. Calls
// that haven't begun by then don't: the model decides anew. A turn that has used
// up its limits takes none; they run after it.
func steer(d *decision) bool {
	t := d.Turn
	msgs := d.steering()
	if len(msgs) == 0 || d.Turn.exhausted() != "" || t.GaveUp || t.Ask != nil && t.Ask.Open {
		return false
	}
	switch st := t.Step; {
	case st == nil:
		d.join(msgs, t.Turn, len(d.Queue))
	case st.Phase != stepAnswered:
		return false
	case !st.settled():
		d.skipRest()
	default:
		d.join(msgs, t.Turn, len(d.Queue))
		d.ask(KindNormal)
	}
	return false
}

// steering are the messages for the running turn, in the order of the row.
func (s *State) steering() (msgs []Queued) {
	for _, q := range s.Queue {
		if q.Mode == belay.QueueSteer && q.Into == s.Turn.Turn {
			msgs = append(msgs, q)
		}
	}
	return msgs
}

// skipRest ends the calls of the answer that aren't in flight. What runs is
// waited for; what a crash cut short is settled as always.
func (d *decision) skipRest() {
	for _, c := range d.Turn.Step.Calls {
		if c.Phase == CallOver || c.inFlight() {
			continue
		}
		p := event.Problem{Class: "skipped", Code: codeSteered, Message: c.Name + " was not run: a message came in the meantime, and it follows", Hint: "call it again if it is still needed"}
		if c.Attempt > 0 {
			p.Class, p.Message = "cancelled", c.Name+" was not run again: a message came in the meantime, and it follows"
		}
		if c.Ask != nil && c.Ask.Open {
			d.resolve(c.Ask, c, "cancelled", "turn", "", "a message came in the meantime")
		}
		d.record(d.failed(c, p))
	}
}

const codeSteered = "STEERED"

// collected are the turns behind the first one that begin together with it:
// those that were asked to be collected under the same rules.
func (q *queueState) collected() int {
	first := q.Queue[0]
	n := 1
	for n < len(q.Queue) && first.Mode == belay.QueueCollect && q.Queue[n].Mode == belay.QueueCollect &&
		q.Queue[n].Kind == first.Kind && q.Queue[n].Rules.Digest == first.Rules.Digest {
		n++
	}
	return n
}

// collectUntil is when the first turn may begin: once nothing more came for a while
// that could be part of it, but not for ever.
func (q *queueState) collectUntil() time.Time {
	n := q.collected()
	if q.Queue[0].Mode != belay.QueueCollect || n < len(q.Queue) {
		return time.Time{}
	}
	quiet := time.Duration(cmp.Or(q.Line.Quiet, belay.DefaultQuiet))
	return slices.MinFunc([]time.Time{q.Queue[n-1].At.Add(quiet), q.Queue[0].At.Add(maxQuiets * quiet)}, time.Time.Compare)
}

// waitsForQuiet reports whether the first turn may not begin yet, and when it may.
func (d *decision) waitsForQuiet() bool {
	at := d.collectUntil()
	if !d.now.Before(at) {
		return false
	}
	d.want(core.Timer{Name: "quiet/" + string(d.Queue[0].Turn)})
	d.wakeAt(at)
	return true
}

// maxQuiets bounds the wait for quiet, in quiet times since the first message.
const maxQuiets = 10
