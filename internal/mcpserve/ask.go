package mcpserve

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/view/story"
)

// question has the client ask its person, if it can and the person may answer. Else the
// turn waits: stop says so.
func (f *following) question(ctx context.Context, stop context.CancelCauseFunc, id belay.ActionID) error {
	all, err := f.open(ctx, f.ran.Session)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(a app.Action) bool { return a.ID == id })
	if i < 0 {
		return nil // it was answered already
	}
	if !f.asksForms() || !f.mayAnswer(all[i]) {
		return errWaits
	}
	if f.request.Session.InitializeParams().ProtocolVersion >= withoutSessions {
		return f.handBack(all[i])
	}
	asking, done := context.WithCancel(ctx)
	f.asks[id] = done
	f.wg.Go(func() {
		defer done()
		res, err := f.request.Session.Elicit(asking, form(all[i]))
		switch {
		case asking.Err() != nil: // it was answered elsewhere, or the call ended
		case err != nil || !f.decided(ctx, id, question{all[i].Kind, all[i].Version}, res):
			stop(errWaits)
		}
	})
	return nil
}

// asksForms reports whether the client can ask its person to fill a form.
func (f *following) asksForms() bool {
	p := f.request.Session.InitializeParams()
	if p == nil || p.Capabilities == nil || p.Capabilities.Elicitation == nil {
		return false
	}
	e := p.Capabilities.Elicitation
	return e.Form != nil || e.URL == nil
}

// mayAnswer reports whether the client's role is one that answers a question.
func (f *following) mayAnswer(a app.Action) bool {
	need, _ := app.Answers(a)
	return f.May(need)
}

// handBack ends the call with a question, which the client answers by calling again.
func (f *following) handBack(a app.Action) error {
	st, err := json.Marshal(state{f.ran.Session, f.ran.Turn, map[belay.ActionID]question{a.ID: {a.Kind, a.Version}}})
	if err != nil {
		return err
	}
	f.ask = &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{string(a.ID): form(a)}, RequestState: string(st)}
	return nil
}

// given takes the answers that a client brought.
func (f *following) given(ctx context.Context, seen map[belay.ActionID]question, answers sdk.InputResponseMap) {
	for id, q := range seen {
		if res, ok := answers[string(id)].(*sdk.ElicitResult); ok {
			f.decided(ctx, id, q, res)
		}
	}
}

// wording is a question as a person reads it.
func wording(a app.Action) string {
	if a.Shown == "" {
		return story.CleanLines(a.Prompt)
	}
	var b strings.Builder
	b.WriteString("May the agent do this? " + a.Shown)
	if a.Boundary != "" {
		b.WriteString("\nboundary: " + a.Boundary)
	}
	if len(a.Tags) > 0 {
		b.WriteString("\nrisks: " + strings.Join(a.Tags, ", "))
	}
	if len(a.Taint) > 0 {
		b.WriteString("\ncontent from outside: " + story.Clean(strings.Join(a.Taint, ", ")))
	}
	return b.String()
}

// form is what a client shows its person.
func form(a app.Action) *sdk.ElicitParams {
	field, about := "decision", map[string]any{"type": "string", "title": "Decision", "enum": []string{"allow", "deny"}}
	if a.Kind == "question" || a.Kind == "form" {
		field, about = "answer", map[string]any{"type": "string", "title": "Answer", "minLength": 1}
	}
	if a.Form != nil && len(a.Form.Schema) > 0 {
		return &sdk.ElicitParams{Mode: "form", Message: wording(a), RequestedSchema: a.Form.Schema}
	}
	return &sdk.ElicitParams{Mode: "form", Message: wording(a),
		RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{field: about}, "required": []string{field}}}
}

// decided brings a person's answer to the agent and reports whether there was one.
func (f *following) decided(ctx context.Context, id belay.ActionID, q question, res *sdk.ElicitResult) bool {
	in := map[string]any{"actionId": id, "version": q.Version, "decision": "deny"}
	switch res.Action {
	case "accept":
		text, _ := res.Content["answer"].(string)
		if q.Kind == "form" {
			content, err := json.Marshal(res.Content)
			if err != nil {
				return false
			}
			in["decision"], in["message"] = "answer", string(content)
		} else if q.Kind == "question" {
			in["decision"], in["message"] = "answer", text
		} else if res.Content["decision"] == "allow" {
			in["decision"] = "allow"
		}
	case "decline":
	default:
		return false
	}
	err := f.Runtime.Do(ctx, "respond_action", in, nil)
	return err == nil || belay.CodeOf(err) == belay.CodeAlreadyAnswered
}
