package engine

import (
	"context"

	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
)

// Snapshots keeps whole states of a workspace and compares them.
type Snapshots interface {
	// Take keeps the workspace as it is under a name; the same files are the same id.
	Take(ctx context.Context, workspace string, e core.TakeSnapshot) (id, name string, err error)
	// Diff lists the files that differ between two of them.
	Diff(ctx context.Context, workspace, from, to string) ([]KeptChange, error)
	// Read is the content of a kept file.
	Read(ctx context.Context, workspace string, f *KeptFile) ([]byte, error)
}

// KeptFile is a file of a snapshot. Kind is file; others can't be restored.
type KeptFile struct{ Kind, Mode, ID string }

// KeptChange is a file that differs between two snapshots; nil is nothing there.
type KeptChange struct {
	Path     string
	From, To *KeptFile
}

// takeSnapshot keeps the workspace and records under which id, or why not.
func (v *drive) takeSnapshot(ctx context.Context, eff core.TakeSnapshot) []core.Fact {
	p := event.ArtifactChanged{Kind: "snapshot", Op: "taken", Name: eff.When, Scope: eff.How}
	var err error
	if v.e.c.Keeper == nil || eff.How != "git" {
		p.Op, p.Note = "failed", "this build can't keep a workspace by "+eff.How
		return []core.Fact{{IDs: eff.IDs, Data: p}}
	}
	p.Version, p.Path, err = v.e.c.Keeper.Take(ctx, eff.Dir, eff)
	if ctx.Err() != nil {
		return nil // the next drive takes it
	}
	if err != nil {
		p.Op, p.Note = "failed", event.CutText(err.Error(), 500)
	}
	return []core.Fact{{IDs: eff.IDs, Data: p}}
}
