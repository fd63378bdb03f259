package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/lib/match"
)

// apiCmd performs a row of the table of use cases on this store, without a server:
// what HTTP has, the terminal has too.
type apiCmd struct {
	Name string   `arg:"" optional:"" help:"The command or read; all are listed without one."`
	With []string `arg:"" optional:"" help:"Of a command its body, a JSON object or - for standard input; of a read NAME=VALUE, and id=ID for what its route names."`
	Key  string   `placeholder:"KEY" help:"Repeated under one key, a command is done once."`

	build command.Build
}

// Help lists the rows.
func (c *apiCmd) Help() string {
	var b strings.Builder
	b.WriteString("Each line is a command or read of the HTTP interface, as docs/api.md and GET /v1/openapi.json describe it.\n")
	for _, row := range c.rows() {
		fmt.Fprintf(&b, "\n  %-32s %s", row.Name, row.Doc)
	}
	return b.String()
}

// apiRow is a row of the table as the list has it.
type apiRow struct {
	Name  string `json:"name"`
	Kind  string `json:"kind"` // command, read
	Scope string `json:"scope"`
	Doc   string `json:"doc"`
}

// rows are what this build has, commands first.
func (c *apiCmd) rows() (rows []apiRow) {
	for _, r := range c.build.Commands {
		if r.Later == "" {
			rows = append(rows, apiRow{r.Name, "command", string(r.Scope), r.Doc})
		}
	}
	for _, r := range c.build.Reads {
		if r.Later == "" {
			rows = append(rows, apiRow{r.Name, "read", "read", r.Doc})
		}
	}
	slices.SortStableFunc(rows, func(x, y apiRow) int { return strings.Compare(x.Name, y.Name) })
	return rows
}

func (c *apiCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	rows := c.rows()
	if c.Name == "" {
		return term.PrintRows(&a.Env, rows, "", "NAME\tKIND\tSCOPE\tWHAT IT DOES", func(r apiRow) []any { return []any{r.Name, r.Kind, r.Scope, r.Doc} })
	}
	cmd, read := app.Find(c.build.Commands, c.Name), slices.IndexFunc(c.build.Reads, func(r app.Read) bool { return r.Name == c.Name })
	if cmd == nil && read < 0 {
		names := make([]string, len(rows))
		for i, r := range rows {
			names[i] = r.Name
		}
		return 0, belay.Errorf(belay.CodeNotFound, "there is no command or read %q", term.Line(c.Name)).WithHint("%s", match.Hint(c.Name, names, "belay api lists them"))
	}
	if cmd != nil && cmd.Runs {
		if err := notBelow(a); err != nil {
			return 0, err
		}
	}
	return a.Ordering(ctx, func(r *app.Runtime) (int, error) {
		r.Doctor = a.Doctor
		var out any
		var err error
		if cmd != nil {
			out, err = c.perform(ctx, a, r, cmd)
		} else {
			out, err = c.look(ctx, r, &c.build.Reads[read])
		}
		if d, ok := out.(*app.Document); ok && err == nil {
			return belay.ExitOK, d.Write(ctx, a.Out)
		}
		if err == nil {
			a.PrintJSON(out)
		}
		return belay.ExitOK, err
	})
}

// perform does a command with the body that was given.
func (c *apiCmd) perform(ctx context.Context, a *command.Program, r *app.Runtime, cmd *app.Command) (any, error) {
	body := []byte("{}")
	switch {
	case len(c.With) > 1:
		return nil, belay.Errorf(belay.CodeUsage, "a command takes one body").At(c.With[1]).WithHint(`belay api %s '{"sessionId": "ID"}'`, c.Name)
	case len(c.With) == 1 && c.With[0] == "-":
		b, err := io.ReadAll(io.LimitReader(a.In, cmd.BodyLimit()))
		if err != nil {
			return nil, err
		}
		body = b
	case len(c.With) == 1:
		body = []byte(c.With[0])
	}
	call := r.Call(c.Name)
	call.Key = c.Key
	return cmd.Do(ctx, call, json.RawMessage(body))
}

// look answers a read for the parameters that were given.
func (c *apiCmd) look(ctx context.Context, r *app.Runtime, row *app.Read) (any, error) {
	q := app.Query{Values: url.Values{}}
	for _, kv := range c.With {
		name, value, ok := strings.Cut(kv, "=")
		switch {
		case !ok:
			return nil, belay.Errorf(belay.CodeUsage, "a parameter is NAME=VALUE").At(kv).WithHint("belay api %s id=ID", c.Name)
		case name == "id":
			q.ID = value
		default:
			q.Values.Add(name, value)
		}
	}
	return row.Do(ctx, r.Call(c.Name), q)
}
