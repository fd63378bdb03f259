package policies

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/config/rulefile"
	"github.com/belay-run/belay/internal/core/simulate"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view"
)

// Gates are the rules that count now, some perhaps replaced, by workspace.
type Gates struct {
	c       *app.Call
	instead rulefile.Instead
	made    map[string]*policy.Set
}

// NewGates are the rules that count now, with files in place of those of a tier.
func NewGates(c *app.Call, instead rulefile.Instead) *Gates {
	return &Gates{c, instead, map[string]*policy.Set{}}
}

// Of are the rules of a workspace, made once. A workspace that is gone has no rules of
// its own.
func (g *Gates) Of(ctx context.Context, workspace string) (*policy.Set, error) {
	if set := g.made[workspace]; set != nil {
		return set, nil
	}
	ground, err := g.c.Workspaces.Ground(ctx, workspace)
	if err != nil {
		return nil, err
	}
	set, err := ground.Rules(ctx, g.instead)
	if err == nil {
		g.made[workspace] = set
	}
	return set, err
}

// Decisions hands on recorded decisions, session by session, in the order of the log.
type Decisions func(ctx context.Context, take func(*simulate.Case) error) error

// Range is which decisions are meant: those of a session, or of all sessions of a
// workspace, or of all without either.
type Range struct {
	Session   belay.SessionID
	Workspace string
	Last      int            // only the newest so many; 0: all
	UpTo      store.Position // 0: to the end of the log
}

// DecisionsOf are those of a range, the oldest session first.
func DecisionsOf(ctx context.Context, c *app.Call, in Range) (Decisions, error) {
	end, err := c.Store.End(ctx)
	if err != nil {
		return nil, err
	}
	if in.UpTo > 0 {
		end = min(end, in.UpTo)
	}
	ids := []belay.SessionID{in.Session}
	if in.Session == "" {
		if ids, err = sessionsIn(ctx, c, in.Workspace); err != nil {
			return nil, err
		}
	}
	takes := func(belay.EventID) bool { return true }
	if in.Last > 0 {
		newest, err := newestIn(ctx, c, ids, in.Last, end)
		if err != nil {
			return nil, err
		}
		ids = slices.DeleteFunc(ids, func(id belay.SessionID) bool { return len(newest[id]) == 0 })
		takes = func(id belay.EventID) bool {
			return slices.ContainsFunc(ids, func(s belay.SessionID) bool { return newest[s][id] })
		}
	}
	return func(ctx context.Context, take func(*simulate.Case) error) error {
		get := func(d belay.Digest) ([]byte, error) { return c.Store.Get(ctx, d) }
		for _, id := range ids {
			err := DecisionsIn(c.Store.Runtime(), id, c.Store.Stored(ctx, id, end), get)(ctx, func(k *simulate.Case) error {
				if !takes(k.Event) {
					return nil
				}
				return take(k)
			})
			if err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// sessionsIn are the sessions of a workspace, or all, the oldest first.
func sessionsIn(ctx context.Context, c *app.Call, workspace string) (ids []belay.SessionID, err error) {
	if err := c.Reads.Views.Catchup(ctx); err != nil {
		return nil, err
	}
	all, err := view.Sessions(ctx, c.Store, view.Filter{Workspace: workspace})
	for _, s := range slices.Backward(all) {
		ids = append(ids, s.ID)
	}
	return ids, err
}

// newestIn are the newest decisions of sessions up to a position, by session.
func newestIn(ctx context.Context, c *app.Call, ids []belay.SessionID, n int, end store.Position) (map[belay.SessionID]map[belay.EventID]bool, error) {
	if err := c.Reads.Sums.Catchup(ctx); err != nil {
		return nil, err
	}
	out := map[belay.SessionID]map[belay.EventID]bool{}
	for _, id := range ids {
		out[id] = map[belay.EventID]bool{}
	}
	takes := func(v *view.Verdict) bool { return out[v.Session] != nil }
	for before := end + 1; n > 0; {
		all, next, err := view.Verdicts(ctx, c.Store, before, takes, n)
		if err != nil {
			return nil, err
		}
		for _, v := range all {
			out[v.Session][v.Event] = true
		}
		if n, before = n-len(all), next; next == 0 {
			break
		}
	}
	return out, nil
}

// DecisionsIn are those in the facts of a session, which a store or a bundle has. get
// reads content; what is gone is store.ErrNotFound.
func DecisionsIn(runtime belay.RuntimeID, id belay.SessionID, facts iter.Seq2[store.Stored, error], get simulate.Content) Decisions {
	return func(_ context.Context, take func(*simulate.Case) error) error {
		reader := newReader(get)
		for f, err := range facts {
			if err != nil {
				return err
			}
			if !strings.HasPrefix(string(f.Stream), "thread/") || !simulate.Needed(f.Row.Type) {
				continue
			}
			e, err := f.Row.Unpack(runtime, id, f.Stream)
			if err != nil {
				return err
			}
			k, err := reader.Apply(e)
			if err != nil {
				return err
			}
			if k == nil {
				continue
			}
			if err := take(k); err != nil {
				return err
			}
		}
		return nil
	}
}

func newReader(get simulate.Content) *simulate.Reader {
	return simulate.NewReader(func(d belay.Digest) ([]byte, error) {
		b, err := get(d)
		if errors.Is(err, store.ErrNotFound) {
			return nil, simulate.ErrGone
		}
		return b, err
	})
}

// FindDecision finds the newest decision that an id is about: of a call, or of the
// decision, or the beginning of one. More than one call is an error that names some.
func FindDecision(ctx context.Context, c *app.Call, id string) (*simulate.Case, error) {
	found, err := decisionOf(ctx, c, id)
	if err != nil {
		return nil, err
	}
	reader := newReader(func(d belay.Digest) ([]byte, error) { return c.Store.Get(ctx, d) })
	for e, err := range c.Store.Read(ctx, found.Stream, 0) {
		if err != nil {
			return nil, err
		}
		k, err := reader.Apply(e)
		if err != nil {
			return nil, err
		}
		if e.Seq == found.Seq && k != nil {
			return k, nil
		}
	}
	return nil, belay.Errorf(belay.CodeNotFound, "the decision is gone").At(string(found.ID())).WithHint("belay events %s", found.IDs.Session)
}

func decisionOf(ctx context.Context, c *app.Call, id string) (event.Envelope, error) {
	var found event.Envelope
	calls := map[belay.CallID]bool{}
	for r, err := range c.Store.Scan(ctx, 0) {
		if err != nil {
			return found, err
		}
		e := r.Event
		if e.Type() != "permission.evaluated" || !app.Names(e, id) {
			continue
		}
		if string(e.ID()) == id || string(e.IDs.Call) == id {
			found, calls = e, map[belay.CallID]bool{e.IDs.Call: true}
			if string(e.ID()) == id {
				break
			}
			continue
		}
		if string(found.IDs.Call) == id { // a whole id wins over beginnings
			continue
		}
		if found = e; len(calls) <= 4 {
			calls[e.IDs.Call] = true
		}
	}
	switch len(calls) {
	case 0:
		return found, belay.Errorf(belay.CodeNotFound, "no decision in this store is about it").At(input.Shown(id)).WithHint("belay events shows the ids of calls; belay why explains other things")
	case 1:
		return found, nil
	}
	var ids []string
	for c := range calls {
		ids = append(ids, string(c))
	}
	slices.Sort(ids)
	return found, belay.Errorf(belay.CodeUsage, "more than one call is meant").At(input.Shown(id)).WithHint("name one of them: %s", strings.Join(ids[:min(4, len(ids))], ", "))
}
