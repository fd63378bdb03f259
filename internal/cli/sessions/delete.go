package sessions

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/sessions"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/view"
)

// DeleteCmd is the command "belay sessions delete".
type DeleteCmd struct {
	ID  []string `arg:"" help:"The sessions, or the beginnings of their ids."`
	Yes bool     `short:"y" help:"Don't ask."`
}

// deleted is what a deletion did, as JSON.
type deleted struct {
	Session  belay.SessionID `json:"session"`
	Result   string          `json:"result"`
	Time     time.Time       `json:"time"`
	By       string          `json:"by"`
	Facts    int64           `json:"facts"`
	Contents int             `json:"contents"`
	Left     int             `json:"left,omitempty"` // contents that are collected later
}

// Order implements command.Orderer.
func (c *DeleteCmd) Order(ctx context.Context, a *command.Program, r *app.Runtime) (int, error) {
	var all []view.Session
	for _, name := range c.ID {
		s, _, err := sessions.FindDeletable(ctx, r.Store, name)
		if err != nil {
			return 0, err
		}
		all = append(all, s)
	}
	if !c.Yes {
		yes, err := confirmDelete(a, all)
		if err != nil || !yes {
			return belay.ExitCancelled, err
		}
	}
	for _, s := range all {
		d, err := sessions.Delete(ctx, r.Call("delete_session"), &sessions.DeleteSession{Session: s.ID})
		if err != nil {
			return 0, err
		}
		printDeleted(a, d)
	}
	return belay.ExitOK, nil
}

// confirmDelete asks the person at the terminal; without one it is an error.
func confirmDelete(a *command.Program, all []view.Session) (bool, error) {
	if !a.Interactive() {
		return false, belay.Errorf(belay.CodeUsage, "deleting %s needs a confirmation, and there is no terminal", term.Plural(len(all), "session")).
			WithHint("belay sessions delete --yes %s", all[0].ID)
	}
	for _, s := range all {
		fmt.Fprintf(a.Err, "%s  %s  %s\n", s.ID, term.Plural(s.Counts.Events, "fact"), term.Short(s.Title, 60))
	}
	fmt.Fprintf(a.Err, "delete %s for good? [y]es, [n]o: ", term.Plural(len(all), "session"))
	in := bufio.NewScanner(a.In)
	if !in.Scan() {
		fmt.Fprintln(a.Err)
		return false, in.Err()
	}
	word := strings.ToLower(strings.TrimSpace(in.Text()))
	return word == "y" || word == "yes", nil
}

func printDeleted(a *command.Program, d *sessions.SessionDeleted) {
	a.Show(deleted{d.Session, "deleted", d.Time, d.By, d.Facts, d.Contents, d.Left}, func() {
		fmt.Fprintf(a.Out, "deleted %s: %s, %s\n", d.Session, term.Plural(int(d.Facts), "fact"), term.Plural(d.Contents, "content"))
		term.Some(a.Err, d.Left, "content", "may be about to be named by what runs now; belay store compact removes it a day from now")
	})
}
