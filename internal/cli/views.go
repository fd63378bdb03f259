package cli

import (
	"context"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/read"
	"github.com/belay-run/belay/internal/search"
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

func (c *viewsRebuildCmd) run(ctx context.Context, a *app) (int, error) {
	st, err := a.open(ctx, false)
	if err != nil {
		return 0, err
	}
	defer st.Close()
	if err := view.Rebuild(ctx, st); err != nil {
		return 0, err
	}
	if err := search.Rebuild(ctx, st); err != nil {
		return 0, err
	}
	if err := read.Forget(ctx, st); err != nil {
		return 0, err
	}
	at, err := view.At(ctx, st)
	if err != nil {
		return 0, err
	}
	if a.JSON {
		a.printJSON(rebuilt{[]string{"sessions", "words"}, int64(at)})
		return belay.ExitOK, nil
	}
	fmt.Fprintf(a.Stdout, "sessions and words, folded from the log up to %d\n", at)
	return belay.ExitOK, nil
}
