package story

import (
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// Why answers why something happened. The id is that of an event, call, action,
// step, turn, run, task, thread or session, or the beginning of one, or its last six
// characters or more, if it is the only one; what follows an id's prefix will do. Empty asks
// about the last thing that ended, asked or was denied.
func Why(events []event.Envelope, id string) (Answer, error) {
	if len(events) == 0 {
		return Answer{}, belay.Errorf(belay.CodeNotFound, "there are no facts to answer from").WithHint("belay sessions list --all")
	}
	s := tell(events)
	if id == "" {
		return s.rounded(s.whyLast()), nil
	}
	x, err := s.find(id)
	if err != nil {
		return Answer{}, err
	}
	return s.rounded(x.why()), nil
}

// rounded makes sure of a fact and a command, also when the log is a window
// that lacks those an answer is about.
func (s *story) rounded(a Answer) Answer {
	for i := len(s.events) - 1; i >= 0 && len(a.Facts) == 0; i-- {
		e := &s.events[i]
		if a.ID == string(e.IDs.Call) || a.ID == string(e.IDs.Turn) || a.ID == string(e.IDs.Action) || a.ID == string(e.IDs.Step) {
			a.stands(e)
		}
	}
	switch {
	case len(a.Next) > 0:
	case len(s.sessions.list) > 0:
		a.next("shows the session it belongs to", "belay sessions show %s", s.sessions.list[0].id)
	default:
		a.next("lists all sessions", "belay sessions list --all")
	}
	return a
}

// subject is something that can be asked about.
type subject struct {
	kind, id string
	why      func() Answer
}

// shown is how many ids an ambiguous beginning is answered with.
const shown = 4

// leastTail is the length of an id's end that names it, as lists show it.
const leastTail = 6

// find resolves an id. A whole id wins over beginnings; of one id that names
// several things the narrowest counts.
func (s *story) find(id string) (subject, error) {
	var begins []subject
	for _, x := range s.subjects() {
		if x.id == id {
			return x, nil
		}
		_, rest, _ := strings.Cut(x.id, "_")
		if !strings.HasPrefix(x.id, id) && (rest == "" || !strings.HasPrefix(rest, id)) && (len(id) < leastTail || !strings.HasSuffix(rest, id)) {
			continue
		}
		if len(begins) <= shown && !slices.ContainsFunc(begins, func(o subject) bool { return o.id == x.id }) {
			begins = append(begins, x)
		}
	}
	switch {
	case len(begins) == 1:
		return begins[0], nil
	case len(begins) == 0:
		return subject{}, belay.Errorf(belay.CodeNotFound, "no fact is about %s", Clean(cut(id, 140))).
			WithHint("belay why without an id explains what happened last; belay events lists ids")
	}
	var names []string
	for _, x := range begins[:min(shown, len(begins))] {
		names = append(names, x.kind+" "+x.id)
	}
	if len(begins) > shown {
		names = append(names, "…")
	}
	return subject{}, belay.Errorf(belay.CodeUsage, "more than one id begins or ends with %s", Clean(cut(id, 140))).
		WithHint("write more of it: %s", Clean(strings.Join(names, ", ")))
}

// subjects are everything that can be asked about, narrow things first.
func (s *story) subjects() (all []subject) {
	add := func(kind, id string, why func() Answer) { all = append(all, subject{kind, id, why}) }
	for _, t := range s.turns.list {
		for _, a := range t.asks.list {
			add("action", string(a.id), a.why)
		}
		for _, st := range t.steps.list {
			for _, c := range st.calls {
				add("call", string(c.id), c.why)
			}
			add("step", string(st.id), st.why)
		}
	}
	newest := map[belay.ThreadID]*turn{}
	for _, t := range s.turns.list {
		add("turn", string(t.ids.Turn), func() Answer { return s.whyTurn(t) })
		newest[t.ids.Thread] = t
	}
	for _, t := range s.tasks.list {
		for _, a := range t.attempts.list {
			add("run", string(a.id), func() Answer { return s.whyRun(a) })
		}
		add("task", string(t.id), func() Answer { return s.whyTask(t) })
	}
	for _, t := range s.turns.list {
		add("thread", string(t.ids.Thread), func() Answer { return s.whyTurn(newest[t.ids.Thread]) })
	}
	for _, x := range s.sessions.list {
		add("session", string(x.id), func() Answer { return s.whySession(x) })
	}
	for i := range s.events {
		e := &s.events[i]
		add("event", string(e.ID()), func() Answer { return s.whyEvent(e) })
	}
	return all
}

// whyLast explains the last thing that ended, asked or was denied; while
// nothing has, it explains what the newest fact is about.
func (s *story) whyLast() Answer {
	for i := len(s.events) - 1; i >= 0; i-- {
		e := &s.events[i]
		switch p := e.Data.(type) {
		case event.ActionRequired:
			if t := s.turns.by[e.IDs.Turn]; t != nil && len(t.opens()) > 1 {
				return s.whyTurn(t) // it names all of them
			}
			return s.whyEvent(e)
		case event.TurnCompleted, event.TurnFailed:
			return s.whyEvent(e)
		case event.PermissionEvaluated:
			if p.Decision == "deny" {
				return s.whyEvent(e)
			}
		case event.ChannelMessage:
			if p.Kind == "audit" {
				return s.whyEvent(e)
			}
		}
	}
	return s.whyEvent(&s.events[len(s.events)-1])
}

// whyEvent explains a fact by what it is about.
func (s *story) whyEvent(e *event.Envelope) Answer {
	a := s.behind(e)
	a.stands(e)
	return a
}

func (s *story) behind(e *event.Envelope) Answer {
	t := s.turns.by[e.IDs.Turn]
	if p, ok := e.Data.(event.ChannelMessage); ok {
		return s.whyRefused(e, p)
	}
	if t != nil && e.Stream.Kind() == belay.KindThread {
		return s.inTurn(e, t)
	}
	if x := s.tasks.by[e.IDs.Task]; x != nil && e.Stream.Kind() == belay.KindTask {
		return s.whyTask(x)
	}
	a := Answer{Kind: "event", ID: string(e.ID())}
	a.head("%s: %s", e.Type(), join("  ", about(*e), says(*e)))
	if e.IDs.Session != "" {
		a.next("shows what it belongs to", "belay sessions show %s", e.IDs.Session)
	}
	return a
}

func (s *story) inTurn(e *event.Envelope, t *turn) Answer {
	switch e.Data.(type) {
	case event.ActionRequired, event.ActionResolved, event.PermissionRequested, event.PermissionResolved, event.RunStatus:
		if a := t.asks.by[e.IDs.Action]; a != nil {
			return a.why()
		}
	case event.ModelRequested, event.ModelDelta, event.ModelCompleted, event.ModelFailed:
		if st := t.steps.by[e.IDs.Step]; st != nil {
			return st.why()
		}
	}
	_, status := e.Data.(event.RunStatus)
	if c := t.called.by[e.IDs.Call]; c != nil && !status {
		return c.why()
	}
	return s.whyTurn(t)
}

// whyRefused explains a command that was refused.
func (s *story) whyRefused(e *event.Envelope, p event.ChannelMessage) Answer {
	a := Answer{Kind: "command", ID: string(e.IDs.Request)}
	a.head("The command %s of %s was refused (%s): %s", p.Command, p.Principal, p.Code, p.Message)
	a.stands(e)
	if p.Hint != "" {
		a.say("The sender got the answer: %s", p.Hint)
	}
	a.next("shows what waits and what runs", "belay sessions show %s", e.IDs.Session)
	return a
}

// whySession explains where a session stands: the turn that waits or runs, else
// the newest.
func (s *story) whySession(x *session) Answer {
	var best *turn
	for _, t := range s.turns.list {
		if t.ids.Session == x.id && (best == nil || best.ended != nil || t.ended == nil && t.open() != nil && best.open() == nil) {
			best = t
		}
	}
	a := Answer{Kind: "session", ID: string(x.id)}
	if best == nil {
		a.head("Session %s has no turn yet.", x.id)
		a.stands(x.created, x.last)
		a.next("gives it something to do", "belay run --session %s TEXT", x.id)
		return a
	}
	b := s.whyTurn(best)
	b.Kind, b.ID = a.Kind, a.ID
	b.Costs = nil
	n := 0
	for _, t := range s.turns.list {
		if t.ids.Session == x.id {
			b.cost(t)
			n++
		}
	}
	if n > 1 {
		b.say("The session has %s; the cost below is that of all.", plural(n, "turn"))
	}
	b.stands(x.created)
	b.Tree = s.tree(x.id, "")
	return b
}
