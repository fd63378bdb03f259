package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/belay-run/belay"
	usecase "github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/sessions"
	"github.com/belay-run/belay/internal/app/turns"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/effect/history"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view"
)

type sessionsCmd struct {
	List      listCmd      `cmd:"" default:"withargs" help:"List the sessions of this workspace."`
	Show      showCmd      `cmd:"" help:"Show one session."`
	Resume    resumeCmd    `cmd:"" help:"Go on with a session: its unfinished turn, or another attempt."`
	Artifacts artifactsCmd `cmd:"" help:"List what a session published, or print one of them."`
	Interrupt interruptCmd `cmd:"" help:"End the running turn; its partial text is kept."`
	Rename    renameCmd    `cmd:"" help:"Give a session another title."`
	Tag       tagCmd       `cmd:"" help:"Put tags on a session."`
	Untag     untagCmd     `cmd:"" help:"Take tags off a session."`
	Archive   archiveCmd   `cmd:"" help:"Leave sessions out of lists; nothing is removed."`
	Delete    deleteCmd    `cmd:"" help:"Delete sessions with all their facts and content, for good."`
	Unarchive unarchiveCmd `cmd:"" help:"Show archived sessions in lists again."`
}

type listCmd struct {
	All      bool     `short:"a" help:"The sessions of all workspaces."`
	Tag      []string `placeholder:"TAG" help:"Only sessions with this tag; repeated, with all of them."`
	Archived bool     `help:"The archived sessions."`
}

func (c *listCmd) run(ctx context.Context, a *app) (int, error) {
	f := view.Filter{Tags: c.Tag, Archived: &c.Archived}
	if !c.All {
		ws, err := a.workspace()
		if err != nil {
			return 0, err
		}
		f.Workspace = ws
	}
	dir, err := a.storeDir()
	if err != nil {
		return 0, err
	}
	if !hasStore(dir) {
		return noSessions(&a.Env, c.All)
	}
	st, err := a.open(ctx, false)
	if err != nil {
		return 0, err
	}
	defer st.Close()
	all, err := sessions.List(ctx, st, f)
	if err != nil {
		return 0, err
	}
	if len(all) == 0 {
		return noSessions(&a.Env, c.All)
	}
	heads := "SESSION\tSTATUS\tCHANGED\tTITLE"
	if c.All {
		heads += "\tWORKSPACE"
	}
	return term.PrintRows(&a.Env, all, "", heads, func(s view.Session) []any {
		cells := []any{s.ID, statusOf(s), term.Ago(a.Now().Sub(s.Updated)) + " ago", term.Short(s.Title, 60) + tagsOf(s)}
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

// tagsOf are a session's tags behind its title.
func tagsOf(s view.Session) string {
	text := ""
	for _, t := range s.Tags {
		text += " #" + term.Line(t)
	}
	return text
}

// statusOf is a session in a word: how its turn ended, or where it stands.
func statusOf(s view.Session) string {
	switch t := s.Turn(); {
	case t == nil:
		return "new"
	case t.Back:
		return "taken back"
	case t.Status == view.Ended:
		return string(t.Outcome)
	default:
		return t.Status
	}
}

type showCmd struct {
	ID    string `arg:"" help:"The session, or the beginning of its id."`
	Turns bool   `short:"t" help:"Its turns, numbered."`
}

// shown is a session and its driver, as JSON.
type shown struct {
	view.Session
	Owner *store.Owner       `json:"owner,omitempty"`
	Turns []history.PastTurn `json:"turns,omitempty"` // asked for with --turns
}

func (c *showCmd) read(ctx context.Context, a *app, st store.Store) (int, error) {
	s, err := sessions.Find(ctx, st, c.ID)
	if err != nil {
		return 0, err
	}
	owner, err := st.OwnerOf(ctx, s.ID)
	if err != nil {
		return 0, err
	}
	var turns []history.PastTurn
	if c.Turns && len(s.Threads) > 0 {
		past, err := history.ReadPast(ctx, st, s.Threads[len(s.Threads)-1].ID)
		if err != nil {
			return 0, err
		}
		turns = past.Turns
	}
	if a.JSON {
		a.PrintJSON(shown{s, owner, turns})
		return belay.ExitOK, nil
	}
	waits := make([]*term.Question, len(s.Actions))
	for i, o := range s.Actions {
		if waits[i], err = requestOf(ctx, st, o.Stream, o.ID); err != nil {
			return 0, err
		}
	}
	state, err := usecase.StateOf(ctx, st, s.ID)
	if err != nil {
		return 0, err
	}
	show(&a.Env, s, cmp.Or(state.Settings.Shell, &belay.Shell{Path: "/bin/sh"}), owner, waits, a.serverURL())
	return belay.ExitOK, showTurns(&a.Env, turns)
}

// showTurns lists the turns that are in force.
func showTurns(e *term.Env, turns []history.PastTurn) error {
	if len(turns) == 0 {
		return nil
	}
	fmt.Fprintln(e.Out)
	return term.WriteTable(e.Out, turns, "TURN\tEND\tASKED\tID", func(p history.PastTurn) []any {
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

// show prints a session. Of a call that waits for an answer nothing is left out. The
// server is the one that continues what no process drives; empty: there is none.
func show(e *term.Env, s view.Session, shell *belay.Shell, owner *store.Owner, waits []*term.Question, server string) {
	e.Row("session", "%s", s.ID)
	e.Row("title", "%s", s.Title)
	if len(s.Tags) > 0 {
		e.Row("tags", "%s", strings.Join(s.Tags, " "))
	}
	if s.Archived {
		e.Row("archived", "lists leave it out")
	}
	if f := s.Forked; f != nil {
		e.Row("forked", "from %s after %s", f.Session, cmp.Or(string(f.Turn), "nothing"))
	}
	if i := s.Imported; i != nil {
		e.Row("imported", "from %s %s", i.Format, i.Name)
	}
	e.Row("workspace", "%s", s.Workspace)
	e.Row("shell", "%s", shell.Path)
	e.Row("model", "%s %s, mode %s", s.Provider, s.Model, s.Mode)
	e.Row("status", "%s", statusOf(s))
	if t := s.Turn(); t != nil {
		if t.Reason != "" {
			e.Row("reason", "%s (%s)", t.Reason, t.Code)
		}
		if t.Summary != "" {
			e.Row("summary", "%s", t.Summary)
		}
	}
	showWork(e, s)
	if owner != nil {
		e.Row("driven by", "process %d on %s, since %s", owner.PID, owner.Host, term.Ago(e.Now().Sub(owner.Since)))
	}
	for i, o := range s.Actions {
		showWaiting(e, o, waits[i])
	}
	if t := s.Turn(); owner == nil && t != nil && t.Outcome != belay.Completed {
		if server != "" {
			e.Row("served", "%s continues it by itself", server)
		} else {
			e.Row("try", "belay sessions resume %s", s.ID)
		}
	}
}

// showWork prints what a session took and what came of it.
func showWork(e *term.Env, s view.Session) {
	used := "tokens unknown: no provider reported any"
	if s.Usage.Reported {
		used = fmt.Sprintf("%s tokens read, %s written", term.Count(s.Usage.Input), term.Count(s.Usage.Output))
	}
	e.Row("used", "%s, %s, %s of active time, %s", term.Plural(s.Counts.Steps, "step"), term.Plural(s.Counts.Calls, "call"), s.Active.String(), used)
	if p := s.Programs; p.Ended > 0 {
		e.Row("programs", "%s", took(p))
	}
	for _, th := range s.Threads {
		if l := ofLimit(th.Programs); l != "" {
			e.Row("", "%s: %s", th.ID, l)
		}
	}
	for _, f := range s.Files {
		e.Row("file", "%s %s", f.Op, f.Path)
	}
	for _, f := range s.Artifacts {
		e.Row("artifact", "%s version %s, %d bytes, %s", f.Name, f.Version, f.Content.Size, f.Content.Media)
	}
	for _, th := range s.Threads {
		for item := range strings.Lines(term.PlanText(th.Plan)) {
			e.Row("plan", "%s", item)
		}
	}
}

// showWaiting prints a question and how it is answered.
func showWaiting(e *term.Env, o view.Action, r *term.Question) {
	how := term.AnswerCommands(o.ID, o.Kind)
	if r == nil || r.Call == "" {
		e.Row("waits", "%s", o.Prompt)
	} else {
		e.Row("waits", "%s", r.Call)
		for _, said := range r.Gives {
			e.Row("", "%s", said)
		}
		how = r.Commands()
	}
	e.Row("", "until %s", o.Until.Local().Format("2 Jan 15:04"))
	for _, cmd := range how {
		e.Row("", "%s", cmd)
	}
}

type interruptCmd struct {
	ID     string `arg:"" optional:"" help:"The session, or the beginning of its id."`
	Last   bool   `short:"l" help:"The last session of this workspace."`
	Reason string `short:"m" placeholder:"TEXT" help:"Why."`
}

func (c *interruptCmd) order(ctx context.Context, a *app, r *runtime) (int, error) {
	if (c.ID == "") != c.Last {
		return 0, belay.Errorf(belay.CodeUsage, "one session must be named").WithHint("belay sessions interrupt ID, or --last")
	}
	id, err := a.sessionID(ctx, r.Store, c.ID, c.Last)
	if err != nil {
		return 0, err
	}
	s, err := usecase.StateOf(ctx, r.Store, id)
	if err != nil {
		return 0, err
	}
	if len(s.Threads) == 0 {
		return 0, belay.Errorf(belay.CodeBadState, "no turn is running").At(string(id)).WithHint("belay sessions show %s", id)
	}
	res, err := turns.Interrupt(ctx, r.call("interrupt_turn"), &turns.InterruptTurn{Session: id, Reason: c.Reason})
	if err != nil {
		return 0, err
	}
	return a.tell(ctx, r, res, "interrupted")
}

// serverURL is the address of the store's server; empty when none runs. The
// server continues sessions that no process drives.
func (a *app) serverURL() string {
	dir, err := a.storeDir()
	if err != nil {
		return ""
	}
	if r := serverOf(dir); r != nil {
		return r.URL
	}
	return ""
}
