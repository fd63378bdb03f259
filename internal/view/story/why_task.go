package story

import (
	"cmp"

	"github.com/belay-run/belay/event"
)

// whyTask explains how a task stands: by its attempts.
func (s *story) whyTask(t *task) Answer {
	var a Answer
	if n := len(t.attempts); n > 0 {
		a = s.whyRun(t.attempts[n-1])
	}
	last := a.Head
	a.Kind, a.ID, a.Says = "task", string(t.id), nil
	switch {
	case t.ended != nil:
		a.head("Task %s is over: %s", short(string(t.id)), says(*t.ended))
	case t.cancel != nil:
		a.head("Task %s is being cancelled: %s", short(string(t.id)), says(*t.cancel))
	default:
		a.head("Task %s runs.", short(string(t.id)))
	}
	for i, x := range t.attempts {
		switch p := payload(x.ended).(type) {
		case event.TaskAttemptCompleted:
			a.say("Attempt %d (%s) completed.", i+1, short(string(x.id)))
		case event.TaskAttemptFailed:
			a.say("Attempt %d (%s) ended %s: %s.", i+1, short(string(x.id)), p.Outcome, p.Reason)
		default:
			a.say("Attempt %d (%s) hasn't ended.", i+1, short(string(x.id)))
		}
	}
	for _, r := range t.retries {
		p, _ := r.Data.(event.TaskRetrying)
		a.say("It was tried again: %s.", orText(p.Reason, "no reason was given"))
	}
	if last != "" {
		a.say("%s", last)
	}
	a.stands(t.created, t.cancel, t.ended)
	a.stands(t.retries...)
	if e := cmp.Or(t.created, t.cancel, t.ended, first(t.retries)); len(a.Next) == 0 && e != nil {
		a.next("drives the session, if no process does", "belay sessions resume %s", e.IDs.Session)
	}
	return a
}

// whyRun explains an attempt: by its turn.
func (s *story) whyRun(x *attempt) Answer {
	p, _ := payload(x.started).(event.TaskAttemptStarted)
	a := Answer{}
	if t := s.turnBy[p.Turn]; t != nil {
		a = s.whyTurn(t)
	} else {
		a.head("Attempt %s was given to its thread, which hasn't taken it up.", short(string(x.id)))
		if e := cmp.Or(x.started, x.ended); e != nil {
			a.next("drives the session, if no process does", "belay sessions resume %s", e.IDs.Session)
		}
	}
	a.Kind, a.ID = "run", string(x.id)
	a.stands(x.started, x.ended)
	return a
}

// payload is what a fact says; nil when there is no fact.
func payload(e *event.Envelope) event.Payload {
	if e == nil {
		return nil
	}
	return e.Data
}

func orText(s, or string) string {
	if s == "" {
		return or
	}
	return s
}
