package effect

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/lib/expr"
	"github.com/belay-run/belay/internal/tool"
)

// bindInput makes the input of a planned task, and holds it against the schema of the
// agent that does it. What can't be made fails the task before it begins. Of a task of
// parts it makes the output.
func (v *performer) bindInput(ctx context.Context, eff core.BindInput) []core.Fact {
	p, code := event.PlannedTask{Task: eff.IDs.Task, Status: "queued"}, "BAD_INPUT: "
	if eff.Whole {
		p.Status, code = "accepted", "BAD_OUTPUT: "
	}
	text, err := v.bound(ctx, eff)
	if ctx.Err() != nil {
		return nil // the next drive makes it
	}
	if err != nil {
		p.Status, p.Reason = event.PlanUnbound, event.CutText(code+v.e.c.Secrets.String(err.Error()), 500)
	} else {
		p.Text = &text
	}
	return []core.Fact{{IDs: belay.IDs{Session: eff.IDs.Session}, Data: event.SessionUpdated{Planned: &p}}}
}

func (v *performer) bound(ctx context.Context, eff core.BindInput) (text belay.Content, err error) {
	raw, err := v.e.c.Store.Get(ctx, eff.Input.Digest)
	if err != nil {
		return text, err
	}
	var b belay.Binding
	if err := json.Unmarshal(raw, &b); err != nil {
		return text, err
	}
	members := map[string]any{}
	for name, task := range b.Members {
		if members[name], err = v.endOf(ctx, task); err != nil {
			return text, err
		}
	}
	values := map[string]any{"members": members, "input": nil}
	if len(b.Team) > 0 {
		var team any
		if err := json.Unmarshal(b.Team, &team); err != nil {
			return text, err
		}
		values["input"] = team
	}
	in := map[string]json.RawMessage{}
	for _, field := range slices.Sorted(maps.Keys(b.Values)) {
		e, err := expr.Compile(b.Values[field], expr.TeamVariables...)
		if err == nil {
			in[field], err = e.Eval(values)
		}
		if err != nil {
			return text, fmt.Errorf("%s.%s (%s): %w", map[bool]string{false: "input", true: "result"}[eff.Whole], field, b.Values[field], err)
		}
	}
	input, err := json.Marshal(in)
	if err != nil {
		return text, err
	}
	if eff.Whole {
		return v.outputOf(ctx, input, b.Output)
	}
	rules, err := v.rules(ctx, b.Rules)
	if err != nil {
		return text, err
	}
	if problem := checkInput(rules.Agent, rules.Input, input); problem != nil {
		return text, fmt.Errorf("%s", problem.Message)
	}
	return v.e.content(ctx, v.e.c.Secrets.String(tool.SpawnArgs{Task: b.Text, Input: input}.Objective()), "text/plain")
}

// outputOf is an object as the output of a task, if it fits a schema.
func (v *performer) outputOf(ctx context.Context, object, schema json.RawMessage) (text belay.Content, err error) {
	if len(schema) > 0 {
		said, err := tool.Misfit(schema, object)
		if err != nil {
			return text, err
		}
		if said != "" {
			return text, fmt.Errorf("it doesn't fit its schema: %s", said)
		}
	}
	said := v.e.c.Secrets.String(string(object))
	if len(said) > maxOutput { // as what a completion was given
		said = `{"output":` + said + `}`
	}
	return v.e.content(ctx, said, "application/json")
}

// maxOutput is how much of an output facts have themselves, in bytes.
const maxOutput = 4 << 10

// endOf is how a task ended, as expressions see it.
func (v *performer) endOf(ctx context.Context, id belay.TaskID) (map[string]any, error) {
	end := map[string]any{"status": "open", "summary": "", "output": nil}
	for ev, err := range v.e.c.Store.Read(ctx, id.Stream(), 0) {
		if err != nil {
			return nil, err
		}
		p, over := ev.Data.(event.TaskOver)
		if !over {
			continue
		}
		e := p.End()
		end["status"], end["summary"], end["output"] = event.TaskStatus(p), e.Summary.Text, nil
		if e.Output == nil {
			continue
		}
		text := []byte(e.Output.Text)
		if e.Output.Ref != nil { // what the completion was given
			whole, err := v.e.c.Store.Get(ctx, e.Output.Ref.Digest)
			if err != nil {
				return nil, err
			}
			var said struct{ Output json.RawMessage }
			if json.Unmarshal(whole, &said) == nil && len(said.Output) > 0 {
				text = said.Output
			}
		}
		var output any
		if json.Unmarshal(text, &output) == nil {
			end["output"] = output
		}
	}
	return end, nil
}
