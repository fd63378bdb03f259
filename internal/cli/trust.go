package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/config/trust"
	"github.com/belay-run/belay/internal/lib/readfile"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/tool/file"
)

type trustCmd struct {
	List   bool     `short:"l" help:"List trusted files, and whether they changed since."`
	Revoke bool     `help:"Take trust back."`
	Paths  []string `arg:"" optional:"" help:"Files of a workspace; all of this workspace that count only when trusted."`
}

func (c *trustCmd) run(ctx context.Context, a *app) (int, error) {
	if c.List && (c.Revoke || len(c.Paths) > 0) {
		return 0, belay.Errorf(belay.CodeUsage, "it stands alone").At("--list").WithHint("belay trust --list")
	}
	if c.List {
		return c.list(ctx, a)
	}
	paths, err := c.paths(a)
	if err != nil {
		return 0, err
	}
	st, err := a.open(ctx, true)
	if err != nil {
		return 0, err
	}
	defer st.Close()
	w := trust.Writer{Store: st, Owner: store.ThisProcess(), By: a.principal()}
	for _, p := range paths {
		if c.Revoke {
			err = revoke(ctx, &a.Env, w, p)
		} else {
			err = a.trust(ctx, w, p)
		}
		if err != nil {
			return 0, err
		}
	}
	return belay.ExitOK, nil
}

// governedFile is a file of a workspace.
type governedFile struct {
	ws, rel string
}

func (f governedFile) path() string { return filepath.Join(f.ws, filepath.FromSlash(f.rel)) }

// paths are the files to trust: those given, or all of this workspace.
func (c *trustCmd) paths(a *app) (out []governedFile, err error) {
	for _, p := range c.Paths {
		f, err := locate(a.environment().Abs(p))
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	if len(c.Paths) > 0 {
		return out, nil
	}
	ws, err := a.workspace()
	if err != nil {
		return nil, err
	}
	for _, rel := range trust.Governed(os.DirFS(ws)) {
		out = append(out, governedFile{ws, rel})
	}
	if len(out) == 0 {
		return nil, belay.Errorf(belay.CodeNotFound, "this workspace has no file that counts only when it is trusted").At(ws).
			WithHint("such files are .belay/belay.yaml, .belay/policy.yaml and .belay/tools/*.yaml")
	}
	return out, nil
}

// locate finds the workspace that a file belongs to, by where it lies. The file
// itself may be gone: trust in it can still be taken back.
func locate(path string) (governedFile, error) {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		rel, err := filepath.Rel(dir, path)
		if err == nil && trust.Governs(filepath.ToSlash(rel)) {
			return governedFile{config.RealAncestor(dir), filepath.ToSlash(rel)}, nil
		}
		if dir == filepath.Dir(dir) {
			return governedFile{}, belay.Errorf(belay.CodeNotGoverned, "trust means nothing to this file").At(path).
				WithHint("files that count only when trusted are .belay/belay.yaml, .belay/policy.yaml and .belay/tools/*.yaml of a workspace")
		}
	}
}

// trust records the current content of a file, and prints what that allows.
func (a *app) trust(ctx context.Context, w trust.Writer, f governedFile) error {
	root, err := os.OpenRoot(f.ws)
	if err != nil {
		return belay.Errorf(belay.CodeWorkspace, "the workspace can't be opened: %s", readfile.Reason(err)).At(f.ws).WithHint("belay trust PATH, a file of a workspace")
	}
	defer root.Close()
	content, err := file.Content(ctx, root, f.rel, config.MaxManifest)
	if err != nil {
		return belay.Errorf(belay.CodeUsage, "it can't be trusted: %v", err).At(f.path()).WithHint("belay trust PATH, a file of a workspace")
	}
	if clean := a.secrets().Bytes(content); len(content) > 0 && &clean[0] != &content[0] {
		return belay.Errorf(belay.CodeUsage, "it holds a secret of this machine").At(f.path()).WithHint("take the secret out; a tool gets it by env: {pass: [NAME]}")
	}
	brings, err := config.Describe(f.path(), content)
	if err != nil {
		return err
	}
	t, err := w.Trust(ctx, f.path(), content)
	if err != nil {
		return err
	}
	if a.JSON {
		a.PrintJSON(t)
		return nil
	}
	fmt.Fprintf(a.Out, "trusted %s (%s)\n", term.Line(t.Path), t.Content.Digest.Short())
	for _, b := range brings {
		fmt.Fprintf(a.Out, "  %s: %s\n", b.Name, term.Short(b.Text, 200))
	}
	return nil
}

func revoke(ctx context.Context, e *term.Env, w trust.Writer, f governedFile) error {
	had, err := w.Revoke(ctx, f.path())
	if err != nil {
		return err
	}
	switch {
	case e.JSON:
		e.PrintJSON(struct {
			Path    string `json:"path"`
			Revoked bool   `json:"revoked"`
		}{f.path(), had})
	case had:
		fmt.Fprintf(e.Out, "no longer trusted: %s\n", term.Line(f.path()))
	default:
		fmt.Fprintf(e.Out, "was not trusted: %s\n", term.Line(f.path()))
	}
	return nil
}

// trustedFile is a trusted file and its current state, as JSON.
type trustedFile struct {
	trust.File
	Now string `json:"now"` // trusted, changed, gone
}

func (c *trustCmd) list(ctx context.Context, a *app) (int, error) {
	book, err := a.workspaces().trust(ctx)
	if err != nil {
		return 0, err
	}
	if book == nil {
		book = &trust.Book{}
	}
	files := book.Files()
	if len(files) == 0 && !a.JSON {
		fmt.Fprintln(a.Err, "nothing is trusted; belay trust PATH trusts a file as it is")
		return belay.ExitOK, nil
	}
	var rows []trustedFile
	for _, f := range files {
		now := "gone"
		if b, err := readfile.UpTo(f.Path, config.MaxManifest); err == nil {
			now = string(book.Check(f.Path, b))
		}
		rows = append(rows, trustedFile{f, now})
	}
	return term.PrintRows(&a.Env, rows, "", "", func(f trustedFile) []any {
		return []any{f.Now, f.Content.Digest.Short(), f.At.Local().Format("2 Jan 2006 15:04"), "by " + term.Line(f.By), term.Line(f.Path)}
	})
}
