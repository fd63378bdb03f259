package cli

import (
	"context"

	"github.com/belay-run/belay/internal/cli/demo"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/store"
)

type demoCmd struct {
	Keep bool `help:"Keep the project and the store, and say where they are."`
}

func (c *demoCmd) run(ctx context.Context, a *program) (exit int, err error) {
	return demo.Run(ctx, &a.Env, demo.Program{
		Open: func(ctx context.Context, dir string, create bool) (store.Store, error) {
			return (&program{Sys: a.Sys, Place: Place{Store: dir}}).newHost().Open(ctx, create)
		},
		Run: func(ctx context.Context, e term.Env, dir string, args ...string) int {
			return perform(ctx, &program{Sys: Sys{Env: e, Dir: dir}}, args)
		},
	}, c.Keep)
}
