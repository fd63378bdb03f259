package story

import (
	"cmp"

	"github.com/belay-run/belay/event"
)

// whyTask explains how a task stands: by its attempts.
func (s *story) whyTask(t *task) Answer {
	var a Answer
	if n := len(t.attempts.list); n > 0 {
		a = s.whyRun(t.attempts.list[n-1])
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
	for i, x := range t.attempts.list {
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
		a.say("It was tried again: %s.", cmp.Or(as[event.TaskRetrying](r).Reason, "no reason was given"))
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
	a := Answer{}
	if t := s.turns.by[as[event.TaskAttemptStarted](x.started).Turn]; t != nil {
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

// as is what a fact of a type says; nothing when there is no such fact.
func as[P event.Payload](e *event.Envelope) P {
	p, _ := payload(e).(P)
	return p
}
