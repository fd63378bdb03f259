package engine

import (
	"bytes"
	"context"
	"errors"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/model"
)

// MaxEdit is how many bytes the arguments may have that a person gives a call.
const MaxEdit = 1 << 20

// respond lets the thread handle an answer. One that changes the call is read as
// the model's call was: checked, kept, its paths looked up. Only an error of the
// store is returned.
func (v *drive) respond(ctx context.Context, b *batch, o belay.Order, c belay.RespondAction) error {
	d, isThread := v.d.(*thread.Decider)
	if !isThread || len(c.Args) == 0 {
		v.handle(b, o)
		return nil
	}
	call := d.State().OpenAsk(c.Action).Call
	rules := d.Rules()
	if call == nil || rules == nil { // the thread reports the error
		v.handle(b, o)
		return nil
	}
	read, err := v.editOf(ctx, rules, call.Name, c.Args)
	if refused, ok := errors.AsType[*belay.Error](err); ok && refused.Code == belay.CodeBadArguments {
		v.refuse(b, o, err)
		return nil
	}
	if err != nil {
		return err
	}
	v.handleAs(b, o, thread.Edited{RespondAction: c, Call: read, Stands: v.e.stands(ctx, rules, call.Name, c.Args)})
	return nil
}

// editOf reads the arguments that a person gives a call. What is wrong with them
// is an error of code bad_arguments.
func (v *drive) editOf(ctx context.Context, rules *thread.Rules, name string, args []byte) (event.ModelCall, error) {
	if err := v.e.CheckEdit(rules, name, args); err != nil {
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

// CheckEdit holds the arguments that a person gives a call of a turn against the
// tool's schema. What is wrong with them is an error of code bad_arguments, which
// names each argument at fault; a secret among them is wrong, for it would be
// recorded.
func (e *Engine) CheckEdit(rules *thread.Rules, name string, args []byte) error {
	switch {
	case len(args) > MaxEdit:
		return belay.Errorf(belay.CodeBadArguments, "the arguments have %d bytes; at most %d are taken", len(args), MaxEdit)
	case len(bytes.TrimSpace(args)) == 0:
		return belay.Errorf(belay.CodeBadArguments, "the arguments of %s must be a JSON object", name)
	case e.holdsSecret(args):
		return errSecretArgs()
	}
	if _, _, problem := e.tools(rules).Check(name, string(args)); problem != nil {
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

// holdsSecret reports whether a registered secret is among what a person gives a
// call. It would be redacted, and the call would run with the placeholder.
func (e *Engine) holdsSecret(args []byte) bool { return !bytes.Equal(e.c.Secrets.JSON(args), args) }

func errSecretArgs() error {
	return belay.Errorf(belay.CodeBadArguments, "the arguments hold a registered secret, which would be recorded").WithHint("let the tool read it from its environment or from a file")
}
