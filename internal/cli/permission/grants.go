package permission

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/approvals"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view"
)

// GrantsCmd is the command "belay grants".
type GrantsCmd struct {
	List   grantsListCmd   `cmd:"" use:"list_grants" default:"withargs" help:"List what people allowed in sessions and that counts yet."`
	Revoke grantsRevokeCmd `cmd:"" use:"revoke_grant" help:"Take back what was allowed; it counts from the next call that is judged."`
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
	Taint    []string        `json:"taint,omitempty"`
	Left     int             `json:"left,omitempty"`
	Until    time.Time       `json:"until,omitzero"`
	By       string          `json:"by,omitempty"`
}

type grantsListCmd struct {
	ID string `arg:"" optional:"" help:"Only of this session."`
}

func (c *grantsListCmd) Read(ctx context.Context, a *command.Program, st store.Store) (int, error) {
	all, err := grantsIn(ctx, a.Reader(st).Call("list_grants"), c.ID)
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
	case g.Prefix != "" && g.Scope == "session":
		s = "calls to " + g.Prefix
	case g.Prefix != "":
		s = "what begins with " + g.Prefix
	case g.Boundary != "":
		s = "boundary " + g.Boundary + " for one call"
	case g.Bound != "":
		s = "exactly the call " + g.Bound.Short()
	}
	if len(g.Taint) > 0 {
		s += ", with content of " + strings.Join(g.Taint, ", ")
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
func grantsIn(ctx context.Context, c *app.Call, only string) (all []grantRow, err error) {
	var in []view.Session
	if only != "" {
		s, err := app.FindSession(ctx, c.Store, only)
		if err != nil {
			return nil, err
		}
		in = append(in, s)
	} else if err := view.Catchup(ctx, c.Store); err != nil {
		return nil, err
	} else if in, err = view.In(ctx, c.Store, view.GrantsList, 0); err != nil {
		return nil, err
	}
	for _, s := range in {
		given, err := approvals.Grants(ctx, c, s.ID)
		if err != nil {
			return nil, err
		}
		for _, g := range given {
			all = append(all, grantRow{g.ID, s.ID, g.Thread, g.Tool, g.Scope, g.Prefix, g.Bound, g.Boundary, g.Taint, g.Left, g.Until, g.By})
		}
	}
	return all, nil
}

type grantsRevokeCmd struct {
	ID      string `arg:"" help:"The grant."`
	Message string `short:"m" placeholder:"TEXT" help:"Why."`
}

func (c *grantsRevokeCmd) Order(ctx context.Context, a *command.Program, r *app.Runtime) (int, error) {
	all, err := grantsIn(ctx, r.Call("list_grants"), "")
	if err != nil {
		return 0, err
	}
	for _, g := range all {
		if string(g.Grant) != c.ID {
			continue
		}
		res, err := approvals.Revoke(ctx, r.Call("revoke_grant"), &approvals.RevokeGrant{Session: g.Session, Grant: g.Grant, Reason: c.Message})
		if err != nil {
			return 0, err
		}
		return a.Tell(ctx, r, res, "revoked")
	}
	return 0, belay.Errorf(belay.CodeNotFound, "no such grant counts").At(term.Line(c.ID)).WithHint("belay grants list")
}
