package engine

import (
	"context"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/core/session"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/store"
)

// OtherWriter is the session that writes in the workspace which a waiting call of
// a thread would change, or nil. A session gives its workspace back while it waits
// for a person, so another one may have become the writer since the question: as
// long as it writes, the gate denies the call, whatever the person says. root is
// where a workspace is claimed.
func OtherWriter(ctx context.Context, st store.Run, stream belay.StreamID, action belay.ActionID, root func(workspace string) string) (*store.Writer, error) {
	asks, err := load(ctx, st, stream)
	if err != nil {
		return nil, err
	}
	d, ok := asks.d.(*thread.Decider)
	if !ok {
		return nil, nil
	}
	if changes, err := changesFor(ctx, st, d, action); !changes || err != nil {
		return nil, err
	}
	id := d.State().Session
	own, err := load(ctx, st, id.Stream())
	if err != nil {
		return nil, err
	}
	s := own.d.(*session.Decider).State()
	if s.Settings.Share {
		return nil, nil
	}
	writers, err := st.Writers(ctx, root(s.Workspace))
	if err != nil || slices.ContainsFunc(writers, func(w store.Writer) bool { return w.Session == id }) || len(writers) == 0 {
		return nil, err
	}
	return &writers[0], nil
}

// changesFor reports whether an open question is about a call that may change
// something.
func changesFor(ctx context.Context, st store.Run, d *thread.Decider, action belay.ActionID) (bool, error) {
	opens := d.State().Opens()
	i := slices.IndexFunc(opens, func(o thread.Open) bool { return o.Action == action })
	if i < 0 || opens[i].Call == nil {
		return false, nil
	}
	rules := d.State().Turn.Rules
	raw, err := st.Get(ctx, rules.Digest)
	if err == nil {
		err = d.Supply(rules, raw)
	}
	return d.Rules().Changes(opens[i].Call.Name), err
}
