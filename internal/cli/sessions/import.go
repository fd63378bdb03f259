package sessions

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app/transfer"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/store"
)

// ImportCmd is the command "belay import".
type ImportCmd struct {
	Format string   `enum:"auto,bundle,transcript,claude-code,openclaw" default:"auto" help:"What the files are; auto looks into them. openclaw is pi's format too."`
	Trust  bool     `help:"Accept a bundle whose session can act without a question: with unfinished work, or with tools that run without asking."`
	Files  []string `arg:"" help:"Files that belay export wrote, or transcripts of other agents; - is standard input."`
}

// imported is the outcome of a file, as JSON.
type imported struct {
	File      string          `json:"file"`
	Format    string          `json:"format"`
	Session   belay.SessionID `json:"session"`
	Result    string          `json:"result"`              // imported, or here already
	Workspace string          `json:"workspace,omitempty"` // of a bundle's session
	Facts     int64           `json:"facts,omitempty"`
	Waiting   int             `json:"waiting,omitempty"`
	Missing   int             `json:"missing,omitempty"`
	Expired   int             `json:"expired,omitempty"`  // outputs that expired before, according to facts
	Repaired  int             `json:"repaired,omitempty"` // content that the store lacked
	Resume    string          `json:"resume,omitempty"`   // how its work continues

	Messages int             `json:"messages,omitempty"` // of a transcript
	Turns    int             `json:"turns,omitempty"`
	Left     []transfer.Loss `json:"left,omitempty"` // what could not be carried over
}

// Run implements command.Command.
func (c *ImportCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	for _, name := range c.Files {
		f, err := command.OpenFile(a, name)
		if err != nil {
			return 0, err
		}
		err = c.one(ctx, a, f)
		if err = errors.Join(err, f.Close()); err != nil {
			return 0, err
		}
	}
	return belay.ExitOK, nil
}

// one brings in one file.
func (c *ImportCmd) one(ctx context.Context, a *command.Program, f *command.File) error {
	in, err := transfer.Open(ctx, transfer.Source{Name: f.Label, File: f.File, Size: f.Size}, c.Format, a.Secrets())
	var done *transfer.SessionImported
	switch {
	case err != nil:
	case in.Format == transfer.Bundle:
		done, err = restore(ctx, a, in, c.Trust)
	default:
		done, err = begin(ctx, a, in)
	}
	if err != nil {
		if e, ok := errors.AsType[*belay.Error](err); ok && !strings.HasPrefix(e.Where, f.Label) {
			e.Where = strings.TrimSuffix(f.Label+": "+e.Where, ": ")
		}
		return err
	}
	out := imported{f.Label, done.Format, done.Session, done.Outcome, done.Workspace, done.Facts, done.Waiting, done.Missing, done.Expired, done.Repaired, "", done.Messages, done.Turns, done.Left}
	switch {
	case done.Format != transfer.Bundle:
		out.Resume = "belay run --session " + string(done.Session) + a.StoreFlag + " TEXT"
	case done.Open:
		out.Resume = "belay sessions resume " + string(done.Session) + a.StoreFlag
	}
	printImported(a, out)
	return nil
}

// restore brings a bundle's session into the store.
func restore(ctx context.Context, a *command.Program, in *transfer.Incoming, trust bool) (*transfer.SessionImported, error) {
	st, err := a.Open(ctx, true)
	if err != nil {
		return nil, err
	}
	defer st.Close()
	return in.Restore(ctx, a.Reader(restoring{st, a.Point}).Call("import_session"), trust)
}

// begin makes a session of this workspace that begins with a transcript.
func begin(ctx context.Context, a *command.Program, in *transfer.Incoming) (*transfer.SessionImported, error) {
	ws, err := a.CheckedWorkspace()
	if err != nil {
		return nil, err
	}
	st, err := a.Open(ctx, true)
	if err != nil {
		return nil, err
	}
	r, err := a.Runtime(st, nil)
	if err != nil {
		return nil, err
	}
	defer r.Close() //nolint:errcheck // what was accepted is durable
	return in.Begin(ctx, r.Call("import_session"), ws, a.Input(ws).Defaults())
}

// restoring is a store that reports its steps, for crash tests.
type restoring struct {
	store.Store
	point func(string)
}

func (r restoring) at(kind string) {
	if r.point != nil {
		r.point(kind)
	}
}

// Writer keeps content.
func (r restoring) Writer(ctx context.Context, media string) (store.BlobWriter, error) {
	r.at("import/content")
	return r.Store.Writer(ctx, media)
}

// Restore makes a session.
func (r restoring) Restore(ctx context.Context, s store.Restoration) error {
	keep := s.Keep
	s.Keep = func(ctx context.Context) error {
		err := keep(ctx)
		r.at("import/kept")
		return err
	}
	r.at("import/before")
	err := r.Store.Restore(ctx, s)
	r.at("import/after")
	return err
}

func printImported(a *command.Program, i imported) {
	a.Show(i, func() {
		fmt.Fprintf(a.Out, "%s: %s\n", i.Session, i.Result)
		if i.Result == "imported" && i.Facts > 0 {
			fmt.Fprintf(a.Err, "%s, every hash follows from the one before; its workspace is %s\n", term.Plural(int(i.Facts), "fact"), term.Line(i.Workspace))
		}
		term.Some(a.Err, i.Waiting, "command", "not handled yet")
		term.Some(a.Err, i.Repaired, "content", "that the store lacked came back")
		term.Some(a.Err, i.Expired, "output", "had expired and was not in the bundle")
		term.Some(a.Err, i.Missing, "content", "named by facts was not in the bundle")
		if i.Format != "bundle" {
			fmt.Fprintf(a.Err, "%s, %s, from %s\n", term.Plural(i.Turns, "turn"), term.Plural(i.Messages, "message"), i.Format)
			printLeft(a, i.Left)
			fmt.Fprintf(a.Err, "give it something to do: %s\n", i.Resume)
			return
		}
		if i.Resume != "" {
			fmt.Fprintf(a.Err, "its work hasn't ended; continue with: %s\n", i.Resume)
		}
	})
}

// printLeft lists what a transcript has and the session doesn't.
func printLeft(a *command.Program, left []transfer.Loss) {
	if len(left) == 0 {
		return
	}
	fmt.Fprintln(a.Err, "not carried over:")
	for _, l := range left {
		fmt.Fprintf(a.Err, "  %s\n", term.Line(l.String()))
	}
}
