package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/lib/atomicfile"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/transfer/bundle"
	"github.com/belay-run/belay/internal/view/snapshot"
)

type exportCmd struct {
	ID     string `arg:"" optional:"" help:"The session, or the beginning of its id."`
	Last   bool   `short:"l" help:"The last session of this workspace."`
	Format string `enum:"bundle,transcript,events,snapshot" default:"bundle" help:"bundle: everything, for belay import. transcript: its messages. events, snapshot: the standard's."`
	Output string `short:"o" placeholder:"FILE" help:"Where to write; - is standard output. A bundle goes to ID.belay by default, the rest to standard output."`
	Force  bool   `help:"Replace a file that is there."`
}

// exported is what was written, as JSON.
type exported struct {
	Session belay.SessionID `json:"session"`
	Format  string          `json:"format"`
	File    string          `json:"file"`
	Size    int64           `json:"size"`
	Facts   int64           `json:"facts,omitempty"`
	Content int             `json:"content,omitempty"` // pieces
	Waiting int64           `json:"waiting,omitempty"` // commands that no fact answers yet
	Missing int             `json:"missing,omitempty"` // content that is kept no more
	Expired int             `json:"expired,omitempty"` // outputs that expired, according to facts
}

// writing is an export that knows everything it needs.
type writing struct {
	to   func(context.Context, io.Writer) error
	what exported
}

func (c *exportCmd) run(ctx context.Context, a *app) (int, error) {
	if (c.ID == "") != c.Last {
		return 0, belay.Errorf(belay.CodeUsage, "one session must be named").WithHint("belay export ID, or --last")
	}
	st, err := a.open(ctx, false)
	if err != nil {
		return 0, err
	}
	defer st.Close()
	id, err := a.sessionID(ctx, st, c.ID, c.Last)
	if err != nil {
		return 0, err
	}
	w, err := c.prepare(ctx, a, st, id)
	if err != nil {
		return 0, err
	}
	w.what.Session, w.what.Format = id, c.Format
	if c.Output == "" && c.Format == "bundle" {
		c.Output = string(id) + bundle.Extension
	}
	if c.Output == "" || c.Output == "-" {
		return belay.ExitOK, exportHere(ctx, &a.Env, w)
	}
	return belay.ExitOK, a.exportTo(ctx, w, c.Output, c.Force)
}

func (c *exportCmd) prepare(ctx context.Context, a *app, st store.Store, id belay.SessionID) (*writing, error) {
	switch c.Format {
	case "transcript":
		return &writing{to: func(ctx context.Context, w io.Writer) error { return a.writeTranscript(ctx, st, id, w) }}, nil
	case "events":
		return &writing{to: func(ctx context.Context, w io.Writer) error { return writeEvents(ctx, st, id, w) }}, nil
	case "snapshot":
		return snapshotOf(ctx, st, id)
	}
	p, err := bundle.Take(ctx, st, id)
	if err != nil {
		return nil, err
	}
	m := p.Manifest
	return &writing{to: p.Write, what: exported{Facts: m.Facts.Count, Content: len(m.Content), Waiting: m.Inbox.Count, Missing: len(m.Missing), Expired: len(m.Expired)}}, nil
}

// exportHere writes to standard output, but no archive to a terminal.
func exportHere(ctx context.Context, e *term.Env, w *writing) error {
	if w.what.Format == "bundle" && e.IsTerminal(e.Out) {
		return belay.Errorf(belay.CodeUsage, "a bundle is no text for a terminal").At("--output").WithHint("-o FILE")
	}
	return w.to(ctx, e.Out)
}

func (a *app) exportTo(ctx context.Context, w *writing, file string, force bool) error {
	path := a.environment().Abs(file)
	if _, err := os.Lstat(path); !force && !errors.Is(err, fs.ErrNotExist) {
		return belay.Errorf(belay.CodeExists, "the file is there already").At(file).WithHint("--force replaces it, -o FILE names another")
	}
	n := &counter{point: a.Point}
	err := atomicfile.WriteWhole(atomicfile.System{}, path, func(out io.Writer) error { return w.to(ctx, io.MultiWriter(out, n)) })
	if err != nil {
		return err
	}
	w.what.File, w.what.Size = path, n.n
	printExported(&a.Env, w.what)
	return nil
}

func printExported(e *term.Env, x exported) {
	if e.JSON {
		e.PrintJSON(x)
		return
	}
	fmt.Fprintf(e.Out, "%s\n", term.Line(x.File))
	fmt.Fprintf(e.Err, "%s of %s, %s bytes", x.Format, x.Session, term.Count(x.Size))
	if x.Format == "bundle" {
		fmt.Fprintf(e.Err, ": %s, %s of content", term.Plural(int(x.Facts), "fact"), term.Plural(x.Content, "piece"))
	}
	fmt.Fprintln(e.Err)
	if x.Waiting > 0 {
		fmt.Fprintf(e.Err, "%s not handled yet, and in it\n", term.Plural(int(x.Waiting), "command"))
	}
	if x.Expired > 0 {
		fmt.Fprintf(e.Err, "%s expired: not in it\n", term.Plural(x.Expired, "output"))
	}
	if x.Missing > 0 {
		fmt.Fprintf(e.Err, "%s named by facts and kept no more: not in it\n", term.Plural(x.Missing, "content"))
	}
}

// counter counts what passes and reports it, for crash tests.
type counter struct {
	n     int64
	point func(string)
}

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	if c.point != nil {
		c.point("export/write")
	}
	return len(p), nil
}

// writeEvents writes a session's facts as the standard's events, a line each,
// in the order of the log.
func writeEvents(ctx context.Context, st store.Store, id belay.SessionID, w io.Writer) error {
	end, err := st.End(ctx)
	if err != nil {
		return err
	}
	n := 0
	for f, err := range st.Stored(ctx, id, end) {
		if err != nil {
			return err
		}
		e, err := f.Row.Unpack(st.Runtime(), id, f.Stream)
		if err != nil {
			return err
		}
		raw, err := json.Marshal(e)
		if err != nil {
			return err
		}
		if _, err := w.Write(append(bytes.TrimSpace(raw), '\n')); err != nil {
			return err
		}
		n++
	}
	if n == 0 {
		return belay.Errorf(belay.CodeNotFound, "nothing of it has happened yet").At(string(id)).WithHint("belay sessions resume %s", id)
	}
	return nil
}

// snapshotOf is the standard's snapshot of a session as it is now.
func snapshotOf(ctx context.Context, st store.Store, id belay.SessionID) (*writing, error) {
	end, err := st.End(ctx)
	if err != nil {
		return nil, err
	}
	f := snapshot.New(st.Runtime(), id)
	for s, err := range st.Stored(ctx, id, end) {
		if err != nil {
			return nil, err
		}
		e, err := s.Row.Unpack(st.Runtime(), id, s.Stream)
		if err != nil {
			return nil, err
		}
		f.Apply(e)
	}
	owner, err := st.OwnerOf(ctx, id)
	if err != nil {
		return nil, err
	}
	snap := f.Done(owner != nil)
	if len(snap.Threads) == 0 { // the standard wants one
		return nil, belay.Errorf(belay.CodeBadState, "it has no thread yet, so there is nothing to show").At(string(id)).WithHint("belay sessions resume %s", id)
	}
	return &writing{to: func(_ context.Context, w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(snap)
	}}, nil
}
