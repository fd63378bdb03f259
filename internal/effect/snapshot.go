package effect

import (
	"context"

	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/workspace/git"
)

// takeSnapshot keeps the workspace and records under which id, or why not.
func (v *performer) takeSnapshot(ctx context.Context, eff core.TakeSnapshot) []core.Fact {
	p := event.ArtifactChanged{Kind: "snapshot", Op: "taken", Name: eff.When, Scope: eff.How}
	var err error
	if v.e.c.Keeper == nil || eff.How != "git" {
		p.Op, p.Note = "failed", "this build can't keep a workspace by "+eff.How
		return []core.Fact{{IDs: eff.IDs, Data: p}}
	}
	p.Path = git.Ref(string(eff.IDs.Session), string(eff.IDs.Turn), eff.When)
	if err = v.e.ready(ctx, eff.Dir); err == nil {
		p.Version, err = v.e.c.Keeper.Take(ctx, eff.Dir, p.Path)
	}
	if ctx.Err() != nil {
		return nil // the next drive takes it
	}
	if err != nil {
		p.Op, p.Note = "failed", event.CutText(err.Error(), 500)
	}
	return []core.Fact{{IDs: eff.IDs, Data: p}}
}
