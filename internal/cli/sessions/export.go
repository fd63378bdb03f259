package sessions

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app/transfer"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/store"
)

// ExportCmd is the command "belay export".
type ExportCmd struct {
	ID     string `arg:"" optional:"" help:"The session; the last one of this workspace."`
	Last   bool   `short:"l" help:"The last session of this workspace."`
	Format string `enum:"bundle,transcript,events,snapshot" default:"bundle" help:"bundle: everything, for belay import. transcript: its messages. events, snapshot: the standard's."`
	Output string `short:"o" placeholder:"FILE" help:"Where to write; - is standard output. A bundle goes to ID.belay by default, the rest to standard output."`
	Chunk  int    `name:"chunk-tokens" placeholder:"N" help:"Cut a transcript between messages into files of at most so many tokens, by cl100k_base, in a folder that -o names."`
	Force  bool   `help:"Replace an existing file."`
}

// exported is what was written, as JSON.
type exported struct {
	Session belay.SessionID `json:"session"`
	Format  string          `json:"format"`
	File    string          `json:"file"`
	Size    int64           `json:"size"`
	Files   int             `json:"files,omitempty"` // of a transcript in parts
	*transfer.Export
}

// Run implements command.Command.
func (c *ExportCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	if c.ID != "" && c.Last {
		return 0, belay.Errorf(belay.CodeUsage, "an id names one session, --last another").At("--last").WithHint("leave one of them out")
	}
	st, err := a.Open(ctx, false)
	if err != nil {
		return 0, err
	}
	defer st.Close()
	id, err := a.SessionID(ctx, st, c.ID)
	if err != nil {
		return 0, err
	}
	if c.Chunk != 0 {
		return belay.ExitOK, c.parts(ctx, a, st, id)
	}
	x, err := transfer.Prepare(ctx, st, id, c.Format)
	if err != nil {
		return 0, err
	}
	if c.Output == "" && c.Format == "bundle" {
		c.Output = string(id) + transfer.Extension
	}
	switch {
	case c.Output != "" && c.Output != "-":
		return belay.ExitOK, c.write(ctx, a, id, x)
	case c.Format == transfer.Bundle && a.IsTerminal(a.Out):
		return 0, belay.Errorf(belay.CodeUsage, "a bundle is no text for a terminal").At("--output").WithHint("-o FILE")
	}
	return belay.ExitOK, x.Write(ctx, a.Out)
}

// write puts an export into a file.
func (c *ExportCmd) write(ctx context.Context, a *command.Program, id belay.SessionID, x *transfer.Export) error {
	path := a.Environment().Abs(c.Output)
	if _, err := os.Lstat(path); !c.Force && !errors.Is(err, fs.ErrNotExist) {
		return belay.Errorf(belay.CodeExists, "the file is there already").At(c.Output).WithHint("--force replaces it, -o FILE names another")
	}
	n := &counter{point: a.Point}
	err := files.WriteWhole(files.System{}, path, func(out io.Writer) error { return x.Write(ctx, io.MultiWriter(out, n)) })
	if err != nil {
		return err
	}
	printExported(&a.Env, exported{Session: id, Format: c.Format, File: path, Size: n.n, Export: x})
	return nil
}

// partName is the name of a part of a transcript.
const partName = "transcript_%03d.jsonl"

// parts puts a transcript into several files of a folder.
func (c *ExportCmd) parts(ctx context.Context, a *command.Program, st store.Store, id belay.SessionID) error {
	switch {
	case c.Format != transfer.Transcript || c.Chunk < 0:
		return belay.Errorf(belay.CodeUsage, "only a transcript is cut, and a part has at least one token").At("--chunk-tokens").WithHint("belay export %s --format transcript --chunk-tokens 18000 -o DIR", id)
	case c.Output == "" || c.Output == "-":
		return belay.Errorf(belay.CodeUsage, "parts are files of a folder").At("--chunk-tokens").WithHint("-o DIR")
	}
	dir := a.Environment().Abs(c.Output)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return belay.Errorf(belay.CodeUsage, "the folder can't be made: %s", files.Reason(err)).At(c.Output).WithHint("-o DIR")
	}
	old, err := oldParts(dir)
	switch {
	case err != nil:
		return belay.Errorf(belay.CodeUsage, "the folder can't be read: %s", files.Reason(err)).At(c.Output).WithHint("-o DIR")
	case len(old) > 0 && !c.Force:
		return belay.Errorf(belay.CodeExists, "the folder has parts of a transcript already").At(c.Output).WithHint("--force replaces them, -o DIR names another")
	}
	x := exported{Session: id, Format: c.Format, File: dir, Export: &transfer.Export{}}
	written := map[string]bool{}
	x.Files, err = transfer.Parts(ctx, st, id, c.Chunk, func(number int, part []byte) error {
		path := filepath.Join(dir, fmt.Sprintf(partName, number))
		written[path] = true
		x.Size += int64(len(part))
		return files.WriteWhole(files.System{}, path, func(w io.Writer) error { _, err := w.Write(part); return err })
	})
	if err != nil {
		return err
	}
	for _, path := range old { // of a longer one
		if !written[path] {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	printExported(&a.Env, x)
	return nil
}

// oldParts are the parts of a transcript that a folder has.
func oldParts(dir string) (all []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		var n int
		if _, err := fmt.Sscanf(e.Name(), partName, &n); err == nil && e.Name() == fmt.Sprintf(partName, n) {
			all = append(all, filepath.Join(dir, e.Name()))
		}
	}
	return all, err
}

func printExported(e *term.Env, x exported) {
	e.Show(x, func() {
		fmt.Fprintf(e.Out, "%s\n", term.Line(x.File))
		fmt.Fprintf(e.Err, "%s of %s, %s bytes", x.Format, x.Session, term.Count(x.Size))
		if x.Files > 0 {
			fmt.Fprintf(e.Err, " in %s", term.Plural(x.Files, "file"))
		}
		if x.Format == "bundle" {
			fmt.Fprintf(e.Err, ": %s, %s of content", term.Plural(int(x.Facts), "fact"), term.Plural(x.Content, "piece"))
		}
		fmt.Fprintln(e.Err)
		term.Some(e.Err, int(x.Waiting), "command", "not handled yet, and in it")
		term.Some(e.Err, x.Expired, "output", "expired: not in it")
		term.Some(e.Err, x.Missing, "content", "named by facts and kept no more: not in it")
	})
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
