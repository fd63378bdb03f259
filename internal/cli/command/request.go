package command

import (
	"context"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view/story"
)

// RequestOf reads a question of a thread as it stands now; nil if it doesn't wait.
func RequestOf(ctx context.Context, st store.Store, stream belay.StreamID, id belay.ActionID) (*term.Question, error) {
	th, err := app.LoadThread(ctx, st, stream)
	if th == nil || err != nil {
		return nil, err
	}
	o := th.OpenAsk(id)
	if o.Ask == nil {
		return nil, nil
	}
	q := &term.Question{ID: o.Action, Kind: o.Kind, Version: o.Version(), Gives: gives(o), Wider: o.Wider != nil}
	if o.Kind != "permission" || o.Call == nil {
		return q, nil
	}
	q.Tool, q.Args = o.Call.Name, o.Call.Args
	if o.Call.ArgsRef != nil {
		if q.Args, err = st.Get(ctx, o.Call.ArgsRef.Digest); err != nil {
			return nil, err
		}
	}
	q.Call = story.Call(q.Tool, q.Args)
	return q, nil
}

// gives lists what an approval gives the call, and why it is asked for once
// more.
func gives(r app.OpenQuestion) (said []string) {
	if r.Again != nil {
		said = append(said, term.Line("asked once more: "+r.Again.Reason+" ("+r.Again.Code+")"))
	}
	if r.Call != nil && r.Call.Stands != nil {
		for _, p := range r.Call.Stands.Programs {
			if p.Path != "" && p.Path != p.Name {
				said = append(said, story.Exactly(p.Name+" is "+p.Path))
			}
		}
	}
	switch {
	case r.Boundary == "":
	case r.Wider == nil || r.Call == nil || r.Call.Stopped == nil:
		said = append(said, "in boundary "+term.Line(r.Boundary))
	case r.Call.Stopped.Op == app.OpObeyed:
		said = append(said, term.Line("it left "+r.Call.Stopped.Target+", which another program runs or obeys, and that was moved aside; a yes runs it again and lets it leave that"))
	default:
		stopped := r.Call.Stopped
		what := "it"
		if stopped.Op != "" {
			what += ": " + stopped.Op + " " + stopped.Target
		}
		said = append(said, term.Line("boundary "+stopped.Boundary+" stopped "+what+"; a yes runs it again in boundary "+r.Boundary))
	}
	return said
}
