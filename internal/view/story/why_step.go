package story

import (
	"fmt"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// why explains a step: why the model was called, how often, and what came of it.
func (st *step) why() Answer {
	a := Answer{Kind: "step", ID: string(st.id)}
	p, first := st.request()
	t := st.turn
	a.head("Step %d of turn %s called the model %s", st.n, short(string(t.ids.Turn)), st.because(p))
	a.stands(first)
	if before := st.before(); before != nil && p.Kind != "" {
		a.stands(before.answer)
		for _, c := range before.calls {
			a.stands(c.over)
		}
	}
	if p.Note != "" {
		a.say("The runtime told it: %s", quote(p.Note))
	}
	st.sayRoute(&a)
	st.sayAttempts(&a)
	switch {
	case st.answer != nil:
		for _, s := range as[event.ModelCompleted](st.answer).Searches {
			a.say("Its vendor %s. That was allowed by %s.", s, p.Search)
		}
		a.say("It answered: %s", answerText(st))
		a.stands(st.answer)
	case t.ended != nil:
		a.say("It gave no answer before the turn ended.")
		a.stands(t.ended)
	default:
		st.sayAt(&a)
	}
	for _, c := range st.calls {
		a.say("%s %s → %s", c.name, cut(c.args, 80), result(c))
	}
	st.addCost(&a)
	st.advise(&a, p)
	return a
}

// before is the step before this one, or nil.
func (st *step) before() *step {
	if st.n < 2 {
		return nil
	}
	return st.turn.steps.list[st.n-2]
}

// because is why the step was taken.
func (st *step) because(p event.ModelRequested) string {
	switch p.Kind {
	case "nudge":
		return "because it had stopped without calling the completion tool: this is the nudge, one in a turn."
	case "grace":
		return "because it had stopped a second time without calling the completion tool: this is its last step, and it takes that tool only."
	case "final":
		return fmt.Sprintf("a last time because a limit was reached (%s): the step takes the completion tool only.", p.Limit)
	}
	switch b := st.before(); {
	case p.Kind == "":
		return "before the first of these facts."
	case b == nil:
		return "because the turn had begun."
	case len(b.calls) > 0:
		return "to give it the results of " + plural(len(b.calls), "call") + "."
	}
	return "because the turn went on."
}

// sayRoute says why the request went to that model: the choice in force when the
// step began, and what took its place while it ran.
func (st *step) sayRoute(a *Answer) {
	_, first := st.request()
	if first == nil {
		return
	}
	var chosen *event.Envelope
	for _, e := range st.turn.routing {
		if e.Seq < first.Seq {
			chosen = e
		}
	}
	for _, e := range st.turn.routing {
		if e != chosen && (e.Seq < first.Seq || e.Seq > last(st.requests).Seq) {
			continue
		}
		switch p := e.Data.(type) {
		case event.RoutingSingleCandidate:
			continue // there was nothing to choose
		case event.RoutingDecided:
			a.say("It went to %s%s: %s.", routeName(p.Route), when(p.Address, " at %s"), p.Reason)
		case event.RoutingFallbackApplied:
			a.say("It went to %s%s in place of %s: %s.", routeName(p.To), when(p.Address, " at %s"), routeName(p.From), p.Reason)
		}
		a.stands(e)
	}
}

// sayAttempts says why a request left more than once.
func (st *step) sayAttempts(a *Answer) {
	for i := 1; i < len(st.requests); i++ {
		from, to := st.requests[i-1], st.requests[i]
		why := "the attempt before has no end in the log"
		for _, e := range st.turn.takeovers {
			if e.Seq > from.Seq && e.Seq < to.Seq {
				why = "the process that waited for the answer was gone"
				a.stands(e)
			}
		}
		for _, e := range st.failures {
			if e.Seq > from.Seq && e.Seq < to.Seq {
				p := as[event.ModelFailed](e).Problem
				why = fmt.Sprintf("the attempt before failed (%s)", problem(p))
				if p.Class == "cancelled" {
					why = "the attempt before was stopped with its process"
				}
				a.stands(e)
			}
		}
		a.say("Attempt %d was made because %s.", i+1, why)
		a.stands(to)
	}
}

func (st *step) addCost(a *Answer) {
	all := Answer{}
	all.cost(st.turn)
	a.Costs = slices.DeleteFunc(all.Costs, func(c Cost) bool { return c.Step != st.id })
}

func (st *step) advise(a *Answer, p event.ModelRequested) {
	t := st.turn
	switch {
	case p.Kind == "final" && slices.Contains([]string{"steps", "calls", "time"}, p.Limit):
		raise(a, t, p.Limit)
	case (p.Kind == "nudge" || p.Kind == "grace") && t.ended != nil:
		resume(a, t, "takes a plain answer as the end", "completion", belay.CompletionConversational)
	case t.ended == nil:
		resume(a, t, "continues it, if no process drives the session", "")
	default:
		a.next("explains the turn it belongs to", "belay why %s", t.ids.Turn)
	}
}
