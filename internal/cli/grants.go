package cli

import (
	"context"
	"strconv"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/core/session"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/store"
)

type grantsCmd struct {
	List   grantsListCmd   `cmd:"" default:"withargs" help:"List what people allowed in sessions and that counts yet."`
	Revoke grantsRevokeCmd `cmd:"" help:"Take back what was allowed; it counts from the next call that is judged."`
}

// grantRow is a grant, as JSON.
type grantRow struct {
	Grant    belay.EventID   `json:"grant"`
	Session  belay.SessionID `json:"session"`
	Thread   belay.ThreadID  `json:"thread,omitempty"`
	Tool     string          `json:"tool"`
	Scope    string          `json:"scope"`
	Prefix   string          `json:"prefix,omitempty"`
	Bound    belay.Digest    `json:"bound,omitempty"`
	Boundary string          `json:"boundary,omitempty"`
	Left     int             `json:"left,omitempty"`
	Until    time.Time       `json:"until,omitzero"`
	By       string          `json:"by,omitempty"`

	to belay.StreamID
}

type grantsListCmd struct {
	ID string `arg:"" optional:"" help:"Only of this session."`
}

func (c *grantsListCmd) read(ctx context.Context, a *app, st store.Store) (int, error) {
	all, err := grantsIn(ctx, st, c.ID, a.Now())
	if err != nil {
		return 0, err
	}
	return term.PrintRows(&a.Env, all, "nothing is allowed besides what rules allow", "GRANT\tSESSION\tTOOL\tCOVERS\tBY", func(g grantRow) []any {
		return []any{g.Grant, g.Session, term.Line(g.Tool), term.Line(g.covers()), term.Line(g.By)}
	})
}

// covers describes what a grant covers.
func (g grantRow) covers() string {
	s := "every call"
	switch {
	case g.Prefix != "":
		s = "what begins with " + g.Prefix
	case g.Bound != "":
		s = "exactly the call " + g.Bound.Short()
	case g.Boundary != "":
		s = "boundary " + g.Boundary + " for one call"
	}
	if g.Left > 0 {
		s += ", " + strconv.Itoa(g.Left) + " times more"
	}
	if !g.Until.IsZero() {
		s += ", until " + g.Until.Local().Format("2 Jan 15:04")
	}
	return s
}

// grantsIn are what people allowed in all sessions, or in one.
func grantsIn(ctx context.Context, st store.Store, only string, now time.Time) (all []grantRow, err error) {
	sessions, err := allOr(ctx, st, only)
	if err != nil {
		return nil, err
	}
	for _, s := range sessions {
		d, _, _, err := engine.Load(ctx, st, s.ID.Stream())
		if err != nil {
			return nil, err
		}
		for _, g := range d.(*session.Decider).State().Grants {
			all = append(all, grantRow{Grant: g.ID, Session: s.ID, Tool: g.Tool, Scope: g.Scope, By: g.By, to: s.ID.Stream()})
		}
		for _, th := range s.Threads {
			state, err := threadState(ctx, st, th.ID)
			if err != nil {
				return nil, err
			}
			all = append(all, grantsOf(state, now)...)
		}
	}
	return all, nil
}

func grantsOf(th *thread.State, now time.Time) (all []grantRow) {
	for _, g := range th.Grants {
		if g.Until.IsZero() || now.Before(g.Until) {
			all = append(all, grantRow{g.ID, th.Session, th.Thread, g.Tool, g.Scope, g.Prefix, g.Bound, "", g.Left, g.Until, g.By, th.Stream})
		}
	}
	for _, g := range th.Wider {
		all = append(all, grantRow{Grant: g.ID, Session: th.Session, Thread: th.Thread, Tool: g.Tool, Scope: "session", Boundary: g.Bound.Name, By: g.By, to: th.Stream})
	}
	return all
}

type grantsRevokeCmd struct {
	ID      string `arg:"" help:"The grant."`
	Message string `short:"m" placeholder:"TEXT" help:"Why."`
}

func (c *grantsRevokeCmd) order(ctx context.Context, a *app, r *runtime) (int, error) {
	all, err := grantsIn(ctx, r.Store, "", a.Now())
	if err != nil {
		return 0, err
	}
	for _, g := range all {
		if string(g.Grant) != c.ID {
			continue
		}
		return a.bring(ctx, r, g.Session, g.to, belay.RevokeGrant{Grant: c.ID, Reason: c.Message}, "revoked")
	}
	return 0, belay.Errorf(belay.CodeNotFound, "no such grant counts").At(term.Line(c.ID)).WithHint("belay grants list")
}
