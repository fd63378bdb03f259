package command

import (
	"context"
	"errors"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/client"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/host"
	"github.com/belay-run/belay/internal/app/read"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/chat"
	"github.com/belay-run/belay/internal/chat/local"
	"github.com/belay-run/belay/internal/chat/remote"
	"github.com/belay-run/belay/internal/view/feed"
)

// LocalChat opens the runtime of conversations that this process drives; new sessions
// work in a workspace, which was entered. The caller closes it.
func (a *Program) LocalChat(ctx context.Context, ws string) (*local.Runtime, error) {
	st, err := a.Open(ctx, true)
	if err != nil {
		return nil, err
	}
	reads := a.Reader(st).Reads
	hub, err := feed.New(ctx, st, feed.Options{Ring: 256 << 10, Snapshot: read.Snapshot(st, reads.Views)})
	if err != nil {
		return nil, errors.Join(err, st.Close())
	}
	r, err := a.Runtime(st, hub.Show)
	if err != nil {
		return nil, errors.Join(err, st.Close())
	}
	r.Reads = reads
	r.Workspaces.(*host.Workspaces).WorkIn(ws, []string{ws})
	return local.New(ctx, local.Config{Runtime: r, Hub: hub, Commands: a.Build.Commands, Reads: a.Build.Reads}), nil
}

// OrderingHere is Ordering with a store that is made if need be; new sessions work in
// this workspace.
func (a *Program) OrderingHere(ctx context.Context, f func(r *app.Runtime, ws string) (int, error)) (int, error) {
	ws, _, err := a.EnterChecked(ctx)
	if err != nil {
		return 0, err
	}
	st, err := a.Open(ctx, true)
	if err != nil {
		return 0, err
	}
	r, err := a.Runtime(st, nil)
	if err != nil {
		return 0, errors.Join(err, st.Close())
	}
	defer r.Close() //nolint:errcheck // what was accepted is durable
	r.Workspaces.(*host.Workspaces).WorkIn(ws, []string{ws})
	return f(r, ws)
}

// RemoteChat opens the runtime of conversations that a server drives. A token is made
// for the server of this store, and taken back when the runtime is closed; another
// server's is in BELAY_TOKEN.
func (a *Program) RemoteChat(url string) (chat.Runtime, error) {
	token, done := a.Getenv("BELAY_TOKEN"), func() error { return nil }
	if token == "" {
		if url != a.ServerURL() {
			return nil, belay.Errorf(belay.CodeUsage, "a server elsewhere needs a token").At("--server").WithHint("BELAY_TOKEN=… belay --server %s", url)
		}
		var err error
		if token, done, err = a.PassingToken("belay", auth.Owner); err != nil {
			return nil, err
		}
	}
	c, err := client.New(url, client.Options{Token: token})
	if err != nil {
		return nil, errors.Join(err, done())
	}
	return remote.New(url, c, a.Build.Reads, done), nil
}
