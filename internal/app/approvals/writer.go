package approvals

import (
	"context"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/store"
)

// otherWriter is the session that writes in the workspace which a waiting call of
// a thread would change, or nil. A session gives its workspace back while it waits
// for a person, so another one may have become the writer since the question: as
// long as it writes, the gate denies the call, whatever the person says.
func otherWriter(ctx context.Context, r *app.Call, stream belay.StreamID, action belay.ActionID) (*app.OtherWriter, error) {
	asks, _, _, err := engine.Load(ctx, r.Store, stream)
	if err != nil {
		return nil, err
	}
	d, ok := asks.(*thread.Decider)
	if !ok {
		return nil, nil
	}
	if changes, err := changesFor(ctx, r.Store, d, action); !changes || err != nil {
		return nil, err
	}
	s, err := r.Session(ctx, d.State().Session)
	if err != nil || s.Settings.Share {
		return nil, err
	}
	writers, err := r.Store.Writers(ctx, r.Workspaces.Root(s.Workspace))
	if err != nil || slices.ContainsFunc(writers, func(w store.Writer) bool { return w.Session == s.Session }) || len(writers) == 0 {
		return nil, err
	}
	w := writers[0]
	return &app.OtherWriter{Session: w.Session, Path: w.Path, Next: "the call is denied with OTHER_WRITER, and the session only reads, unless " + string(w.Session) +
		" has ended by the time it continues; submit_turn then makes it the writer"}, nil
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
