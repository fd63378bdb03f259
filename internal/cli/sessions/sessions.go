// Package sessions has the commands that show sessions and their programs, move them
// between stores, label, fork and delete them.
package sessions

import (
	"cmp"
	"context"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/approvals"
	"github.com/belay-run/belay/internal/app/turns"
	"github.com/belay-run/belay/internal/block"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view"
)

// ListCmd is the command "belay sessions list".
type ListCmd struct {
	All      bool     `short:"a" help:"The sessions of all workspaces."`
	Tag      []string `placeholder:"TAG" help:"Only sessions with this tag; repeated, with all of them."`
	Archived bool     `help:"The archived sessions."`
	Limit    int      `default:"50" placeholder:"N" help:"List so many at most, those that changed last; 0 lists all (default 50)."`
}

// Run implements command.Command.
func (c *ListCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	if c.Limit < 0 {
		return 0, belay.Errorf(belay.CodeUsage, "%d is no number of sessions", c.Limit).At("--limit").WithHint("--limit 50, or --limit 0 for all")
	}
	f := view.Filter{Tags: c.Tag, Archived: &c.Archived}
	if c.Limit > 0 {
		f.Limit = c.Limit + 1
	}
	if !c.All {
		ws, err := a.WorkspaceDir()
		if err != nil {
			return 0, err
		}
		f.Workspace = ws
	}
	dir, err := a.StoreDir()
	if err != nil {
		return 0, err
	}
	if !a.Build.HasStore(dir) {
		return noSessions(&a.Env, c.All)
	}
	st, err := a.Open(ctx, false)
	if err != nil {
		return 0, err
	}
	defer st.Close()
	all, err := app.ListSessions(ctx, st, f)
	if err != nil {
		return 0, err
	}
	if len(all) == 0 {
		return noSessions(&a.Env, c.All)
	}
	if c.Limit > 0 && len(all) > c.Limit {
		all = all[:c.Limit]
		defer fmt.Fprintf(a.Err, "these are the %d that changed last; --limit N lists more, --limit 0 all\n", c.Limit)
	}
	heads := "SESSION\tSTATUS\tCHANGED\tSPENT\tTITLE"
	if c.All {
		heads += "\tWORKSPACE"
	}
	tails, next := view.Tails(all), 0
	return term.PrintRows(&a.Env, all, "", heads, func(s view.Session) []any {
		next++
		cells := []any{tails[next-1], term.StatusOf(s), term.Ago(a.Now().Sub(s.Updated)) + " ago", term.SpentText(s), term.Short(s.Title, 60) + term.TagsOf(s)}
		if c.All {
			cells = append(cells, term.Line(s.Workspace))
		}
		return cells
	})
}

func noSessions(e *term.Env, all bool) (int, error) {
	if !e.JSON {
		where := "in this workspace (--all lists every workspace)"
		if all {
			where = "in this store"
		}
		fmt.Fprintf(e.Err, "no sessions %s; belay run TEXT starts one\n", where)
	}
	return belay.ExitOK, nil
}

// ShowCmd is the command "belay sessions show".
type ShowCmd struct {
	ID    string `arg:"" optional:"" help:"The session, by its id, a beginning of it, or its last six digits or more; the last one of this workspace."`
	Turns bool   `short:"t" help:"Its turns, numbered."`
}

// shown is a session and its driver, as JSON.
type shown struct {
	view.Session
	Owner *store.Owner   `json:"owner,omitempty"`
	Turns []app.PastTurn `json:"turns,omitempty"` // asked for with --turns
}

// Read implements command.Reader.
func (c *ShowCmd) Read(ctx context.Context, a *command.Program, st store.Store) (int, error) {
	id, err := a.SessionID(ctx, st, c.ID)
	if err != nil {
		return 0, err
	}
	s, err := app.FindSession(ctx, st, string(id))
	if err != nil {
		return 0, err
	}
	owner, err := st.OwnerOf(ctx, s.ID)
	if err != nil {
		return 0, err
	}
	var turns []app.PastTurn
	if main := s.Main(); c.Turns && main != nil {
		if turns, err = app.LoadPast(ctx, st, main.ID); err != nil {
			return 0, err
		}
	}
	if a.JSON {
		a.PrintJSON(shown{s, owner, turns})
		return belay.ExitOK, nil
	}
	waits := make([]*block.Preview, len(s.Actions))
	for i, o := range s.Actions {
		if waits[i], err = approvals.Preview(ctx, app.Local(st, a.Principal(), a.Now), o.Thread, o.ID); err != nil {
			return 0, err
		}
	}
	state, err := app.StateOf(ctx, st, s.ID)
	if err != nil {
		return 0, err
	}
	tree, err := agentTree(ctx, a, st, s.ID)
	if err != nil {
		return 0, err
	}
	term.PrintSession(&a.Env, s, cmp.Or(state.Settings.Shell, &belay.Shell{Path: "/bin/sh"}), owner, waits, a.ServerURL())
	for i, line := range tree {
		a.Row(map[bool]string{true: "agents"}[i == 0], "%s", line)
	}
	return belay.ExitOK, showTurns(&a.Env, turns)
}

// showTurns lists the turns that are in force.
func showTurns(e *term.Env, turns []app.PastTurn) error {
	if len(turns) == 0 {
		return nil
	}
	fmt.Fprintln(e.Out)
	return term.WriteTable(e.Out, turns, "TURN\tEND\tASKED\tID", func(p app.PastTurn) []any {
		end := string(p.Outcome)
		switch {
		case p.Copied:
			end = "copied"
		case !p.Ended:
			end = "not ended"
		}
		return []any{p.Number, end, term.Short(p.Text, 60), p.ID}
	})
}

// InterruptCmd is the command "belay sessions interrupt".
type InterruptCmd struct {
	ID     string `arg:"" optional:"" help:"The session; the last one of this workspace."`
	Last   bool   `short:"l" help:"The last session of this workspace."`
	Reason string `short:"m" placeholder:"TEXT" help:"Why."`
}

// Order implements command.Orderer.
func (c *InterruptCmd) Order(ctx context.Context, a *command.Program, r *app.Runtime) (int, error) {
	if c.ID != "" && c.Last {
		return 0, belay.Errorf(belay.CodeUsage, "an id names one session, --last another").At("--last").WithHint("leave one of them out")
	}
	id, err := a.SessionID(ctx, r.Store, c.ID)
	if err != nil {
		return 0, err
	}
	s, err := app.StateOf(ctx, r.Store, id)
	if err != nil {
		return 0, err
	}
	if len(s.Threads) == 0 {
		return 0, belay.Errorf(belay.CodeBadState, "no turn is running").At(string(id)).WithHint("belay sessions show %s", id)
	}
	res, err := turns.Interrupt(ctx, r.Call("interrupt_turn"), &turns.InterruptTurn{Session: id, Reason: c.Reason})
	if err != nil {
		return 0, err
	}
	return a.Tell(ctx, r, res, "interrupted")
}
