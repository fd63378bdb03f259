package approvals

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/block"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/file"
	"github.com/belay-run/belay/internal/view"
)

// PreviewShown is an open question, whole.
type PreviewShown struct {
	app.Fresh
	block.Preview
}

func previewAction(ctx context.Context, c *app.Call, f app.Fresh, q app.Query) (*PreviewShown, error) {
	at, err := view.ActionByID(ctx, c.Store, q.ID)
	if err == nil && string(at.ID) != q.ID || belay.CodeOf(err) == belay.CodeNotFound {
		err = belay.Errorf(belay.CodeUnknownAction, "nothing waits, or waited, under this id").WithHint("GET /v1/actions lists what waits")
	}
	if err != nil {
		return nil, input.At("path id", err)
	}
	p, err := Preview(ctx, c.Runtime, at.Thread, at.ID)
	if err == nil && p == nil {
		err = input.At("path id", belay.Errorf(belay.CodeAlreadyAnswered, "it doesn't wait any more").WithHint("GET /v1/actions lists what waits"))
	}
	if err != nil {
		return nil, err
	}
	return &PreviewShown{f, *p}, nil
}

// Preview is a question of a thread as whoever answers it must see it, against the
// files as they are now; nil if it doesn't wait.
func Preview(ctx context.Context, r *app.Runtime, id belay.ThreadID, action belay.ActionID) (*block.Preview, error) {
	th, err := r.Thread(ctx, id)
	if err != nil {
		return nil, err
	}
	o := th.OpenAsk(action)
	if o.Ask == nil {
		return nil, nil
	}
	p := &block.Preview{ID: o.Action, Version: o.Version(), Kind: o.Kind, Shows: block.PreviewText, Until: o.Until, Wider: o.Wider != nil, Notes: notes(o), Like: th.Alike(o), Lineage: th.Lineage}
	if o.Call == nil || o.Kind != "permission" {
		if o.Kind == "budget" {
			p.Confirm = "more may be spent"
		}
		if o.Call != nil && o.Kind == "question" {
			choices(o.Call.Args, p)
		}
		return p, asked(ctx, r, id, p)
	}
	p.Call, p.Tool, p.Args = o.Call.ID, o.Call.Name, o.Call.Args
	if o.Call.ArgsRef != nil {
		if p.Args, err = r.Store.Get(ctx, o.Call.ArgsRef.Digest); err != nil {
			return nil, err
		}
	}
	p.What = p.Tool
	if err := asked(ctx, r, id, p); err != nil {
		return nil, err
	}
	rules, err := r.RulesOf(ctx, th.Turn.Rules)
	if err != nil {
		return nil, err
	}
	if err := offers(ctx, r, rules, th, o, p); err != nil {
		return nil, err
	}
	spec, err := tool.Find(rules.Tools, p.Tool)
	if err != nil { // a tool that this build doesn't have: its arguments are all there is
		p.Text, p.Confirm = block.Words(p.Args), "nobody knows here what "+p.Tool+" does"
		return p, nil
	}
	return p, shows(ctx, r, rules, spec, o, p)
}

// offers puts what an answer can allow beyond the call, and what of its result a yes
// accepts with that.
func offers(ctx context.Context, r *app.Runtime, rules *thread.Rules, th *thread.State, o app.OpenQuestion, p *block.Preview) error {
	if rules.Gate() == nil {
		raw, err := r.Store.Get(ctx, rules.Policy.Digest)
		if err != nil {
			return err
		}
		set, err := policy.Decode(raw)
		if err != nil {
			return err
		}
		rules.Govern(*rules.Policy, set)
	}
	for _, offer := range th.Offers(rules, o.Action, p.Args, r.Now()) {
		p.Offers = append(p.Offers, block.Offer(offer))
	}
	if s := p.Offer("prefix"); s != nil {
		p.Prefix = s.Prefix
	}
	if s := p.Offer("session"); s != nil && len(s.Taint) > 0 {
		p.Notes = append(p.Notes, "its result is content from outside ("+strings.Join(s.Taint, ", ")+"); a yes for this session accepts that of it, and no other")
	}
	return nil
}

// choices puts what an agent's question can be answered with.
func choices(args []byte, p *block.Preview) {
	var in struct {
		Options []string `json:"options"`
	}
	if json.Unmarshal(args, &in) == nil {
		p.Options = in.Options
	}
}

// shows puts what the call would do.
func shows(ctx context.Context, r *app.Runtime, rules *thread.Rules, spec belay.ToolSpec, o app.OpenQuestion, p *block.Preview) error {
	if spec.Command != nil {
		commandShown(rules, spec, o, p)
		return nil
	}
	if spec.Destructive {
		p.Confirm = spec.Name + " can destroy something"
	}
	if names := cmp.Or(o.Call.Path, strings.Join(o.Call.Paths, ", ")); names != "" {
		p.What += " " + names
	}
	if r.Workspaces == nil { // what files have can't be cleaned of secrets
		p.Text = block.Words(p.Args)
		return nil
	}
	root, err := files.OpenRoot(rules.Workspace)
	if err != nil {
		p.Text, p.Problem = block.Words(p.Args), "the workspace can't be opened"
		return nil
	}
	defer root.Close() //nolint:errcheck // nothing was written
	planned, err := file.Plan(ctx, root, p.Tool, p.Args, r.Clean)
	problem, known := file.Failed(err)
	switch {
	case known:
		p.Text, p.Problem = block.Words(p.Args), r.Clean(problem)
		return nil
	case err != nil:
		return err
	case planned == nil:
		p.Text = block.Words(p.Args)
		return nil
	}
	p.Shows = block.PreviewDiff
	for _, f := range planned {
		if f.Op == "removed" {
			p.Confirm = "it removes " + f.Path
		}
		c := block.Compare(f.Path, f.Op, f.Before, f.After)
		if c.Unknown != "" { // it can't be compared: all of it is shown
			p.Shows, p.Text = block.PreviewText, block.Words(p.Args)
		}
		p.Files = append(p.Files, c)
	}
	return nil
}

// commandShown puts what a command line runs, where, and what it may reach.
func commandShown(rules *thread.Rules, spec belay.ToolSpec, o app.OpenQuestion, p *block.Preview) {
	p.Shows, p.Folder, p.Boundary = block.PreviewCommand, policy.Folder(spec, p.Args, rules.Place()), o.Boundary
	if s := o.Call.Stands; s != nil {
		p.Programs = s.Programs
		p.Folder = cmp.Or(s.Folder, p.Folder)
	}
	bound := cmp.Or(o.Wider, o.Call.Bound)
	if bound != nil {
		p.Network, p.Hosts = cmp.Or(bound.Is.Network, belay.NetworkNone), bound.Is.Hosts
	}
	simple := policy.CommandsOf(spec, p.Args, rules.Place())
	for _, c := range simple {
		if p.Confirm == "" && c.Class.Rank() >= policy.Destructive.Rank() {
			p.Confirm = c.Name + ": " + cmp.Or(c.Reason, "it can destroy something")
		}
		if !strings.HasPrefix(c.Name, "(") {
			p.Commands = append(p.Commands, strings.Join(append([]string{c.Name}, c.Args...), " "))
		}
	}
	var args map[string]json.RawMessage
	if json.Unmarshal(p.Args, &args) == nil && spec.Command.Line != "" && json.Unmarshal(args[spec.Command.Line], &p.Line) == nil && p.Line != "" {
		p.What = p.Line
		return
	}
	p.Line = strings.TrimSuffix(block.Words(p.Args), "\n")
}

// asked puts what the facts say: the question, and the rule that asks.
func asked(ctx context.Context, r *app.Runtime, id belay.ThreadID, p *block.Preview) error {
	for rec, err := range r.Store.Window(ctx, store.Window{Stream: id.Stream(), Newest: true}) {
		if err != nil {
			return err
		}
		switch f := rec.Event.Data.(type) {
		case event.ActionRequired:
			if rec.Event.IDs.Action == p.ID && p.Call == "" {
				p.Text = f.Prompt.Text
				if f.Prompt.Ref != nil {
					b, err := r.Store.Get(ctx, f.Prompt.Ref.Digest)
					if err != nil && !errors.Is(err, store.ErrNotFound) {
						return err
					}
					p.Text = cmp.Or(string(b), p.Text)
				}
				return nil
			}
		case event.PermissionEvaluated:
			if p.Call != "" && rec.Event.IDs.Call == p.Call {
				p.Rule, p.Mode = f.Rule, f.Mode
				if slices.Contains(f.Tags, policy.TagTaint) {
					p.Taint, p.Notes = f.Taint, append(p.Notes, f.Reason)
					if f.Hint != "" {
						p.Notes = append(p.Notes, f.Hint)
					}
				}
				return nil
			}
		}
	}
	return nil
}

// notes say why a call is asked about once more.
func notes(o app.OpenQuestion) (said []string) {
	if o.Again != nil {
		said = append(said, "asked once more: "+o.Again.Reason+" ("+o.Again.Code+")")
	}
	if o.Wider == nil || o.Call == nil || o.Call.Stopped == nil {
		return said
	}
	stopped := o.Call.Stopped
	if stopped.Op == app.OpObeyed {
		return append(said, "it left "+stopped.Target+", which another program runs or obeys, and that was moved aside; a yes runs it again and lets it leave that")
	}
	what := "it"
	if stopped.Op != "" {
		what += ": " + stopped.Op + " " + stopped.Target
	}
	return append(said, "boundary "+stopped.Boundary+" stopped "+what+"; a yes runs it again in boundary "+o.Boundary)
}
