package builtin

import (
	"context"

	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/effect/history"
	"github.com/belay-run/belay/internal/workspace/git"
)

// gitKeeper keeps workspaces by hidden commits of their repositories.
type gitKeeper struct{ git git.Shadow }

func (k gitKeeper) Take(ctx context.Context, workspace string, e core.TakeSnapshot) (id, name string, err error) {
	name = git.Ref(string(e.IDs.Session), string(e.IDs.Turn), e.When)
	id, err = k.git.Take(ctx, workspace, name)
	return id, name, err
}

func (k gitKeeper) Diff(ctx context.Context, workspace, from, to string) ([]history.KeptChange, error) {
	changes, err := k.git.Diff(ctx, workspace, from, to)
	out := make([]history.KeptChange, len(changes))
	for i, c := range changes {
		out[i] = history.KeptChange{Path: c.Path, From: keptFile(c.From), To: keptFile(c.To)}
	}
	return out, err
}

func (k gitKeeper) Read(ctx context.Context, workspace string, f *history.KeptFile) ([]byte, error) {
	return k.git.Read(ctx, workspace, &git.Entry{ID: f.ID})
}

func keptFile(e *git.Entry) *history.KeptFile {
	if e == nil {
		return nil
	}
	return &history.KeptFile{Kind: e.Kind, Mode: e.Mode, ID: e.ID}
}
