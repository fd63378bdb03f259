package effect

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/model/tokens"
	"github.com/belay-run/belay/internal/secret"
	"github.com/belay-run/belay/internal/tool"
)

// result is the fact of a call that ended well: what the model is shown, and
// where the rest is.
func (v *performer) result(ctx context.Context, eff core.RunTool, spec belay.ToolSpec, r tool.Result) (event.ToolResult, secret.Taken, error) {
	p := event.ToolResult{Name: eff.Name, Attempt: eff.Attempt, Files: r.Files, Whole: r.Output, Exit: r.Exit}
	if err := promised(spec, r); err != nil {
		return p, secret.Taken{}, err
	}
	if r.Text == "" {
		r.Text = string(r.Data)
	}
	text, taken := v.e.c.Secrets.Text(strings.ToValidUTF8(r.Text, "\uFFFD"))
	p.Digest = belay.DigestOf([]byte(text))
	shown, cut, err := v.e.shown(ctx, spec, text)
	if err != nil {
		return p, taken, err
	}
	if cut != nil && p.Whole == nil {
		p.Whole = cut
	}
	if err := v.keepData(ctx, &p, r.Data); err != nil {
		return p, taken, err
	}
	p.Output, err = v.e.content(ctx, shown, "text/plain")
	for _, a := range r.Attached {
		a.Name = event.CutText(v.e.c.Secrets.String(a.Name), maxNamed)
		p.Output.Attached = append(p.Output.Attached, a)
	}
	if err != nil || len(r.Attached) == 0 {
		return p, taken, err
	}
	counts := tokens.Profile{}
	if shared, err := v.rules(ctx, eff.Rules); err == nil && v.e.c.Counts != nil {
		counts = v.e.c.Counts(shared.Rules.Settings)
	}
	for _, a := range r.Attached {
		content, _ := v.e.c.Store.Get(ctx, a.Ref.Digest) // it is counted by its size then
		p.Output.Tokens += counts.Attached(a.Ref, content)
	}
	return p, taken, nil
}

// promised holds a result against what its tool says of its results.
func promised(spec belay.ToolSpec, r tool.Result) error {
	said := ""
	switch {
	case len(r.Attached) > tool.MaxAttached:
		said = fmt.Sprintf("it has %d pictures and documents; %d are the most", len(r.Attached), tool.MaxAttached)
	case len(r.Data) > tool.MaxData:
		said = fmt.Sprintf("its data has %d bytes; %d are the most", len(r.Data), tool.MaxData)
	case len(r.Data) == 0 && r.Exit != 0: // its program failed, as its text says
	case len(r.Data) == 0 && len(spec.Output) > 0:
		said = "it has no data, which its output schema asks for"
	case len(r.Data) > 0 && !json.Valid(r.Data):
		said = "its data is not JSON"
	case len(spec.Output) > 0:
		var err error
		if said, err = tool.Misfit(spec.Output, r.Data); err != nil {
			said = err.Error()
		}
	}
	if said == "" {
		return nil
	}
	e := tool.Failf(tool.Internal, tool.CodeBadResult, "%s did its work, but its result is not what it promised: %s", spec.Name, said).
		WithHint("its text follows; don't call it again for the same work")
	e.Text, e.Output, e.Files = r.Text, r.Output, r.Files
	return e
}

// keepData puts the data of a result into its fact, or beside it when it is long.
func (v *performer) keepData(ctx context.Context, p *event.ToolResult, data json.RawMessage) error {
	if len(data) == 0 {
		return nil
	}
	data = v.e.c.Secrets.JSON(data)
	if len(data) <= inlineArgs {
		p.Data = data
		return nil
	}
	ref, err := v.e.c.Store.Put(ctx, data, "application/json")
	p.DataRef = &ref
	return err
}
