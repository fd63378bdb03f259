package cli

import (
	"context"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view/explain"
)

// request is a question that waits, as who answers it must see it: whole, with
// the version that an answer is for.
type request struct {
	thread.Open
	version string
	tool    string
	args    []byte // of the call, all of them; nil of a question about no call
	what    string // the call, clean, on one line; empty of a question about no call
}

// requestOf reads a question of a thread as it stands now; nil if it doesn't wait.
func requestOf(ctx context.Context, st store.Store, stream belay.StreamID, id belay.ActionID) (*request, error) {
	d, _, _, err := engine.Load(ctx, st, stream)
	if err != nil {
		return nil, err
	}
	th, ok := d.(*thread.Decider)
	if !ok {
		return nil, nil
	}
	o := th.State().OpenAsk(id)
	if o.Ask == nil {
		return nil, nil
	}
	r := &request{Open: o, version: o.Version()}
	if o.Kind != "permission" || o.Call == nil {
		return r, nil
	}
	r.tool, r.args = o.Call.Name, o.Call.Args
	if o.Call.ArgsRef != nil {
		if r.args, err = st.Get(ctx, o.Call.ArgsRef.Digest); err != nil {
			return nil, err
		}
	}
	r.what = explain.Call(r.tool, r.args)
	return r, nil
}

// asks is what it asks, on one line: the call, whole, or the text of a question.
func (r *request) asks(text string) string {
	if r.what != "" {
		return r.what
	}
	return term.Line(text)
}

// gives lists what an approval gives the call, and why it is asked for once
// more.
func (r *request) gives() (said []string) {
	if r.Again != nil {
		said = append(said, term.Line("asked once more: "+r.Again.Reason+" ("+r.Again.Code+")"))
	}
	if r.Call != nil && r.Call.Stands != nil {
		for _, p := range r.Call.Stands.Programs {
			if p.Path != "" && p.Path != p.Name {
				said = append(said, explain.Exactly(p.Name+" is "+p.Path))
			}
		}
	}
	switch {
	case r.Boundary == "":
	case r.Wider == nil || r.Call == nil || r.Call.Stopped == nil:
		said = append(said, "in boundary "+term.Line(r.Boundary))
	case r.Call.Stopped.Op == policy.OpObeyed:
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

// howToAnswer are the commands that answer it as it was shown.
func (r *request) howToAnswer() []string {
	all := howToAnswer(r.Action, r.Kind)
	if r.Kind == "permission" {
		all[0] += " --version " + r.version
	}
	return all
}

// show prints a call that a person allows, before they do: nothing of it is left out.
func (r *request) show(a *app) {
	if a.JSON || r.what == "" {
		return
	}
	fmt.Fprintf(a.Err, "it wants to run: %s\n", r.what)
	for _, s := range r.gives() {
		fmt.Fprintf(a.Err, "  %s\n", s)
	}
	fmt.Fprintf(a.Err, "  version %s\n", r.version)
}
