package effect

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/tool"
)

// maxForm is how many bytes the schema or the address of a question may have.
const maxForm = 6 << 10

// asks is the fact of an attempt that ended with a question to a person.
func (v *performer) asks(ctx context.Context, eff core.RunTool, q *tool.NeedsInput) (p event.ToolFailed, err error) {
	if len(q.Schema) > maxForm || len(q.URL) > maxForm {
		return p, tool.Failf(tool.Internal, "BAD_QUESTION", "%s asks a question with %d bytes; %d are the most", eff.Name, max(len(q.Schema), len(q.URL)), maxForm)
	}
	in := &event.InputAsked{FormAsked: q.FormAsked, Held: q.State == nil}
	if in.Prompt, err = v.e.content(ctx, v.e.c.Secrets.String(q.Text), "text/plain"); err != nil {
		return p, err
	}
	if q.Request != nil {
		if err := v.wanted(ctx, in, q.Request); err != nil {
			return p, err
		}
	}
	if q.State != nil {
		if v.e.c.Secrets.Holds(q.State) {
			return p, tool.Failf(tool.Internal, "BAD_QUESTION", "%s asks a question that holds a secret of this machine; it isn't kept", eff.Name)
		}
		ref, err := v.e.c.Store.Put(ctx, q.State, "application/json")
		if err != nil {
			return p, err
		}
		in.State = &ref
	}
	return event.ToolFailed{Name: eff.Name, Attempt: eff.Attempt, Input: in,
		Problem: event.Problem{Class: "waiting", Code: thread.CodeInput, Message: "a person has to answer what " + q.Server + " asks"}}, nil
}

// input is the answer that an attempt goes on with.
func (v *performer) input(ctx context.Context, in *core.Input) (*tool.Input, error) {
	if in == nil {
		return nil, nil
	}
	out := &tool.Input{Action: in.Action}
	if in.Content != "" {
		out.Content = json.RawMessage(in.Content)
	}
	if in.Answer != nil {
		b, err := v.e.c.Store.Get(ctx, in.Answer.Digest)
		if err == nil {
			err = json.Unmarshal(b, &out.Answer)
		}
		if err != nil {
			return nil, err
		}
	}
	if in.State != nil {
		var err error
		if out.State, err = v.e.c.Store.Get(ctx, in.State.Digest); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// holdCall waits with a call whose server waits for an answer. When the server doesn't
// any more, the question is taken back and the call ends.
func (v *performer) holdCall(ctx context.Context, run *engine.Run, eff core.HoldCall) []core.Fact {
	shared, err := v.rules(ctx, eff.Rules)
	if err != nil {
		return nil
	}
	spec, _ := shared.Rules.Tool(eff.Name)
	err = tool.Failf(tool.Lost, "LOST", "the runtime ended while the server of %s waited for an answer; nobody knows whether it did its work", eff.Name).
		WithHint("look at what is there before you decide to run it again")
	if t, ok := v.tools(ctx, eff.IDs.Turn, shared.Rules).Get(eff.Name); ok {
		if h, ok := t.(tool.Holder); ok {
			err = h.Hold(ctx, tool.Call{ID: eff.IDs.Call, Session: eff.IDs.Session})
		}
	}
	if err == nil || ctx.Err() != nil {
		return nil
	}
	asked, ids := eff.IDs, eff.IDs
	ids.Action = ""
	p, _, _ := v.failure(ctx, run, core.RunTool{IDs: ids, Attempt: eff.Attempt, Name: eff.Name}, spec, err)
	if asked.Action == "" { // it was answered: a model is asked
		return []core.Fact{{IDs: ids, Data: p}}
	}
	return []core.Fact{{IDs: asked, Data: event.ActionResolved{Decision: "cancelled", By: "server", Message: belay.Content{Text: "the server doesn't wait any more"}}}, {IDs: ids, Data: p}}
}

// answerTo holds an answer against the form that was asked for, and fills in its
// defaults. What is wrong with it is an error of code bad_arguments. Of a form with one
// field the text may be the field's value alone.
func (v *performer) answerTo(form *event.InputAsked, text string) (string, error) {
	if form.URL != "" || len(form.Schema) == 0 {
		return "{}", nil
	}
	if err := engine.RefuseSecrets(v.e.c.Secrets, []byte(text)); err != nil {
		return "", err
	}
	s, err := tool.ReadSchema(form.Schema)
	if err != nil {
		return "", belay.Errorf(belay.CodeBadArguments, "the form can't be read: %v", err).WithHint("belay deny answers it, too")
	}
	var value map[string]any
	if json.Unmarshal([]byte(text), &value) != nil {
		if value = s.One(text); value == nil {
			return "", belay.Errorf(belay.CodeBadArguments, "the answer must be a JSON object").WithHint(`such as '{"name": "…"}'`)
		}
	}
	err = s.Fill(value)
	said := s.Complaints(value)
	if err != nil && len(said) == 0 {
		said = []string{err.Error()}
	}
	if len(said) > 0 {
		return "", belay.Errorf(belay.CodeBadArguments, "%s", strings.Join(said, "; ")).WithHint("the question shows its fields: belay actions")
	}
	b, err := json.Marshal(value)
	return string(b), err
}
