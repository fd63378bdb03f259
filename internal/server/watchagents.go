package server

import (
	"context"
	"time"
)

// watchEvery is how often a tenant looks for agents that were added, changed or removed.
const watchEvery = 2 * time.Second

// watchAgents records what changes of the agents that are kept as files, until ctx ends.
func (t *tenant) watchAgents(ctx context.Context) {
	next := time.NewTicker(watchEvery)
	defer next.Stop()
	said := ""
	for {
		select {
		case <-next.C:
		case <-ctx.Done():
			return
		}
		err := t.Workspaces.WatchAgents(ctx)
		switch {
		case ctx.Err() != nil:
		case err == nil:
			said = ""
		case err.Error() != said: // once
			said = err.Error()
			t.log.Warn("agents", "error", said)
		}
	}
}
