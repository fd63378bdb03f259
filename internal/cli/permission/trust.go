package permission

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/access"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/config"
)

// TrustCmd is the command "belay trust".
type TrustCmd struct {
	List   bool     `short:"l" help:"List trusted files, and whether they changed since."`
	Revoke bool     `help:"Revoke trust."`
	Paths  []string `arg:"" optional:"" help:"Files of a workspace; all of this workspace that count only when trusted."`
}

// Run implements command.Command.
func (c *TrustCmd) Run(ctx context.Context, a *command.Program) (int, error) {
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
	st, err := a.Open(ctx, true)
	if err != nil {
		return 0, err
	}
	defer st.Close()
	for _, p := range paths {
		if c.Revoke {
			err = revoke(ctx, &a.Env, a.Reader(st).Call("revoke_trust"), p)
		} else {
			err = trustNow(ctx, &a.Env, a.Reader(st).Call("trust_file"), p)
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
func (c *TrustCmd) paths(a *command.Program) (out []governedFile, err error) {
	for _, p := range c.Paths {
		f, err := locate(a.Environment().Abs(p))
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	if len(c.Paths) > 0 {
		return out, nil
	}
	ws, err := a.WorkspaceDir()
	if err != nil {
		return nil, err
	}
	for _, rel := range config.Governed(ws) {
		out = append(out, governedFile{ws, rel})
	}
	if len(out) == 0 {
		return nil, belay.Errorf(belay.CodeNotFound, "this workspace has no file that counts only when it is trusted").At(ws).
			WithHint("such files are .belay/belay.yaml, .belay/policy.yaml, .belay/tools/*.yaml, .mcp.json and files of agents")
	}
	return out, nil
}

// locate finds the workspace that a file belongs to, by where it lies. The file
// itself may be gone: trust in it can still be taken back.
func locate(path string) (governedFile, error) {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		rel, err := filepath.Rel(dir, path)
		if err == nil && config.Governs(filepath.ToSlash(rel)) {
			return governedFile{config.RealAncestor(dir), filepath.ToSlash(rel)}, nil
		}
		if dir == filepath.Dir(dir) {
			return governedFile{}, belay.Errorf(belay.CodeNotGoverned, "trust means nothing to this file").At(path).
				WithHint("files that count only when trusted are .belay/belay.yaml, .belay/policy.yaml, .belay/tools/*.yaml, .mcp.json and the agents of a workspace")
		}
	}
}

// trustNow trusts a file as it is, and prints what that allows.
func trustNow(ctx context.Context, e *term.Env, c *app.Call, f governedFile) error {
	content, err := access.Content(ctx, f.ws, f.rel)
	if err != nil {
		return err
	}
	t, err := access.Trust(ctx, c, &access.TrustFile{Workspace: f.ws, Path: f.rel, Digest: belay.DigestOf(content)})
	if err != nil {
		return err
	}
	_, err = e.Show(t.TrustedFile, func() {
		fmt.Fprintf(e.Out, "trusted %s (%s)\n", term.Line(t.Path), t.Content.Digest.Short())
		for _, b := range t.Brings {
			fmt.Fprintf(e.Out, "  %s: %s\n", b.Name, term.Short(b.Text, 200))
		}
	})
	return err
}

func revoke(ctx context.Context, e *term.Env, c *app.Call, f governedFile) error {
	r, err := access.Distrust(ctx, c, &access.RevokeTrust{Path: f.path()})
	if err != nil {
		return err
	}
	said := "was not trusted"
	if r.Revoked {
		said = "no longer trusted"
	}
	_, err = e.Say(r, "%s: %s", said, term.Line(f.path()))
	return err
}

func (c *TrustCmd) list(ctx context.Context, a *command.Program) (int, error) {
	book, err := a.Input("").Trust(ctx)
	if err != nil {
		return 0, err
	}
	if book == nil {
		book = &config.TrustBook{}
	}
	files := access.Trusted(book)
	if len(files) == 0 && !a.JSON {
		fmt.Fprintln(a.Err, "nothing is trusted; belay trust PATH trusts a file as it is")
		return belay.ExitOK, nil
	}
	return term.PrintRows(&a.Env, files, "", "", func(f access.TrustedFile) []any {
		return []any{f.Now, f.Content.Digest.Short(), f.At.Local().Format("2 Jan 2006 15:04"), "by " + term.Line(f.By), term.Line(f.Path)}
	})
}
