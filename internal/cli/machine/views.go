package machine

import (
	"context"

	"github.com/belay-run/belay/internal/app/storage"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/store"
)

// ViewsCmd is the command "belay views".
type ViewsCmd struct {
	Rebuild viewsRebuildCmd `cmd:"" help:"Rebuild the views from the log."`
}

type viewsRebuildCmd struct{}

// rebuilt is up to where the views are folded, as JSON.
type rebuilt struct {
	Views    []string `json:"views"`
	Position int64    `json:"position"`
}

func (c *viewsRebuildCmd) Read(ctx context.Context, a *command.Program, st store.Store) (int, error) {
	at, err := storage.RebuildViews(ctx, st)
	if err != nil {
		return 0, err
	}
	return a.Say(rebuilt{[]string{"sessions", "words"}, int64(at)}, "sessions and words, folded from the log up to %d", at)
}
