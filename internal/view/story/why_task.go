package story

import (
	"cmp"
	"strings"

	"github.com/belay-run/belay"
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
	planned := t.created != nil && as[event.TaskCreated](t.created).Planned
	switch {
	case t.ended != nil && !t.begun && planned && t.queued != nil && event.TaskStatus(payload(t.ended).(event.TaskOver)) == "blocked":
		a.head("Task %s can't start: %s.", short(string(t.id)), as[event.TaskBlocked](t.ended).Reason)
	case t.ended != nil:
		a.head("Task %s is over: %s", short(string(t.id)), says(*t.ended))
	case t.cancel != nil:
		a.head("Task %s is being cancelled: %s", short(string(t.id)), says(*t.cancel))
	case planned && !t.begun && t.queued != nil:
		a.head("Task %s waits to be started: %s.", short(string(t.id)), as[event.TaskQueued](t.queued).Reason)
	case planned && !t.begun:
		a.head("Task %s is planned, and nobody has started it.", short(string(t.id)))
		a.next("starts it", "belay tasks start --session %s %s", t.created.IDs.Session, t.id)
	default:
		a.head("Task %s runs.", short(string(t.id)))
	}
	if t.created != nil && as[event.TaskCreated](t.created).Kind == event.TaskGoal {
		a.say("It is a goal: turns follow one another until one completes, at most 10, or until two in a row change nothing.")
	}
	for _, e := range t.edges {
		p := as[event.TaskDependencyUpdated](e)
		if p.Relation == belay.RelationBlockedBy && p.Op == event.EdgeAdded {
			a.say("It starts after %s.", s.taskStands(p.Target))
		}
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
		p := as[event.TaskRetrying](r)
		a.say("It was tried again%s: %s.", when(p.Agent, ", by agent %s"), cmp.Or(p.Reason, "no reason was given"))
	}
	a.report(t)
	if last != "" {
		a.say("%s", last)
	}
	a.stands(t.created, t.queued, t.cancel, t.ended)
	a.stands(t.edges...)
	a.stands(t.retries...)
	if e := cmp.Or(t.created, t.cancel, t.ended, first(t.retries)); len(a.Next) == 0 && e != nil {
		a.next("drives the session, if no process does", "belay sessions resume %s", e.IDs.Session)
	}
	return a
}

// report tells what is left of a task that agents tried in vain.
func (a *Answer) report(t *task) {
	if t.ended == nil {
		return
	}
	r := payload(t.ended).(event.TaskOver).End().Report
	if r == nil {
		return
	}
	a.say("Agents tried it in vain (%s, %s): %s.", r.Class, r.Code, strings.TrimSuffix(r.Reason, "."))
	for _, x := range r.Tried {
		a.say("  %s ended %s%s.", x.Agent, x.Outcome, when(x.Code, " (%s)"))
	}
	a.say("What to do: %s.", r.Next)
}

// taskStands names a task and how it stands.
func (s *story) taskStands(id belay.TaskID) string {
	t := s.tasks.by[id]
	how := "which isn't started"
	switch {
	case t == nil:
		return "task " + short(string(id))
	case t.ended != nil:
		how = "which is " + event.TaskStatus(payload(t.ended).(event.TaskOver))
	case t.begun:
		how = "which runs"
	case t.queued != nil:
		how = "which waits"
	}
	title := ""
	if t.created != nil {
		title = as[event.TaskCreated](t.created).Title
	}
	return "task " + short(string(id)) + when(title, ` "%s"`) + ", " + how
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
