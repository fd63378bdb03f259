package cli

import (
	"context"

	"github.com/belay-run/belay/internal/app/read"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view"
)

type viewsCmd struct {
	Rebuild viewsRebuildCmd `cmd:"" help:"Drop what was folded from the log and fold it again."`
}

type viewsRebuildCmd struct{}

// rebuilt is up to where the views are folded, as JSON.
type rebuilt struct {
	Views    []string `json:"views"`
	Position int64    `json:"position"`
}

func (c *viewsRebuildCmd) read(ctx context.Context, a *program, st store.Store) (int, error) {
	if err := view.Rebuild(ctx, st); err != nil {
		return 0, err
	}
	if err := read.Forget(ctx, st); err != nil {
		return 0, err
	}
	at, err := view.At(ctx, st)
	if err != nil {
		return 0, err
	}
	return a.Say(rebuilt{[]string{"sessions", "words"}, int64(at)}, "sessions and words, folded from the log up to %d", at)
}
