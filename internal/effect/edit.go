package effect

import (
	"bytes"
	"context"
	"github.com/belay-run/belay/internal/engine"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/model"
)

// MaxEdit is how many bytes the arguments may have that a person gives a call.
const MaxEdit = 1 << 20

// Arguments reads an answer that changes its call as the model's call was read:
// its arguments are checked and kept, its paths looked up.
func (v *performer) Arguments(d core.Decider, c belay.RespondAction) (read func(context.Context) (belay.Command, error)) {
	t, ok := d.(*thread.Decider)
	if !ok {
		return nil
	}
	call, rules := t.State().OpenAsk(c.Action).Call, t.Rules()
	if call != nil && call.Input != nil && c.Decision == "answer" {
		form := call.Input
		return func(context.Context) (_ belay.Command, err error) {
			c.Message, err = v.answerTo(form, c.Message)
			return c, err
		}
	}
	if len(c.Args) == 0 || call == nil || rules == nil { // the thread reports the error
		return nil
	}
	name := call.Name
	return func(ctx context.Context) (belay.Command, error) {
		read, err := v.editOf(ctx, rules, name, c.Args)
		if err != nil {
			return nil, err
		}
		return thread.Edited{RespondAction: c, Call: read, Stands: v.e.stands(ctx, rules, name, c.Args)}, nil
	}
}

// editOf reads the arguments that a person gives a call. What is wrong with them
// is an error of code bad_arguments.
func (v *performer) editOf(ctx context.Context, rules *thread.Rules, name string, args []byte) (event.ModelCall, error) {
	if err := v.e.checkEdit(ctx, rules, name, args); err != nil {
		return event.ModelCall{}, err
	}
	budget := inlineCalls
	a := &answer{v: v, rules: rules}
	c, err := a.call(ctx, model.Call{Name: name, Args: string(args)}, &budget)
	if err == nil && c.Problem != nil {
		err = badArguments(c.Problem)
	}
	return c, err
}

// checkEdit holds the arguments that a person gives a call of a turn against the
// tool's schema. What is wrong with them is an error of code bad_arguments, which
// names each argument at fault; a secret among them is wrong, for it would be
// recorded.
func (e *Performers) checkEdit(ctx context.Context, rules *thread.Rules, name string, args []byte) error {
	switch {
	case len(args) > MaxEdit:
		return belay.Errorf(belay.CodeBadArguments, "the arguments have %d bytes; at most %d are taken", len(args), MaxEdit)
	case len(bytes.TrimSpace(args)) == 0:
		return belay.Errorf(belay.CodeBadArguments, "the arguments of %s must be a JSON object", name)
	}
	if err := engine.RefuseSecrets(e.c.Secrets, args); err != nil {
		return err
	}
	if _, _, problem := e.tools(ctx, rules).Check(name, string(args)); problem != nil {
		return badArguments(problem)
	}
	return nil
}

func badArguments(p *event.Problem) error {
	err := belay.Errorf(belay.CodeBadArguments, "%s", p.Message)
	if p.Hint != "" {
		return err.WithHint("%s", p.Hint)
	}
	return err
}
