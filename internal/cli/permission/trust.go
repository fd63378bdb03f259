package permission

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/access"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/store"
)

// TrustCmd is the command "belay trust".
type TrustCmd struct {
	List   bool     `short:"l" help:"List trusted files, and whether they changed since."`
	Revoke bool     `help:"Revoke trust."`
	Paths  []string `arg:"" optional:"" help:"Files of a workspace. Without one, those of this workspace are listed and asked about; with --revoke, they are all meant."`
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
	if len(c.Paths) == 0 && !c.Revoke {
		return choose(ctx, a, st, paths[0].ws)
	}
	for _, p := range paths {
		if c.Revoke {
			err = revoke(ctx, &a.Env, a.Reader(st).Call("revoke_trust"), p)
		} else {
			err = trustAsIs(ctx, &a.Env, a.Reader(st).Call("trust_file"), p)
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

// choose lists the files of a workspace that count only when they are trusted, with what
// they bring, and asks about each that isn't. The answer is for what was shown.
func choose(ctx context.Context, a *command.Program, st store.Store, ws string) (int, error) {
	book, err := config.ReadTrust(ctx, st)
	if err != nil {
		return 0, err
	}
	all := access.Files(ctx, a.Reader(st).Call("list_trust"), book, ws)
	in, left := bufio.NewScanner(a.In), 0
	for _, g := range all {
		trusted := g.Standing == config.Trusted
		if a.JSON {
			a.PrintJSON(g)
		} else {
			fmt.Fprintf(a.Err, "%-8s %s\n", cmp.Or(string(g.Standing), "unusable"), term.Line(g.Path))
			sayBrings(a.Err, g.Brings)
		}
		switch {
		case g.Problem != "":
			fmt.Fprintf(a.Err, "  it can't be trusted: %s\n", term.Line(g.Problem))
			left++
			continue
		case trusted:
			continue
		case !a.Interactive():
			left++
			continue
		}
		fmt.Fprint(a.Err, "trust it as it is? [y]es, [n]o: ")
		if !in.Scan() {
			fmt.Fprintln(a.Err)
			return belay.ExitCancelled, in.Err()
		}
		if word := strings.ToLower(strings.TrimSpace(in.Text())); word != "y" && word != "yes" {
			continue
		}
		if err := trustNow(ctx, &a.Env, a.Reader(st).Call("trust_file"), governedFile{ws, g.Path}, g.Digest); err != nil {
			return 0, err
		}
	}
	if left > 0 && !a.Interactive() {
		return 0, belay.Errorf(belay.CodeUsage, "whether to trust %s is for a person to say, and there is no terminal", term.Plural(left, "file")).At(ws).WithHint("look at a file, then: belay trust PATH")
	}
	return belay.ExitOK, nil
}

// trustAsIs trusts a file with the content that it has.
func trustAsIs(ctx context.Context, e *term.Env, c *app.Call, f governedFile) error {
	content, err := access.Content(ctx, f.ws, f.rel)
	if err != nil {
		return err
	}
	return trustNow(ctx, e, c, f, belay.DigestOf(content))
}

// trustNow trusts a content of a file, and prints what that allows.
func trustNow(ctx context.Context, e *term.Env, c *app.Call, f governedFile, seen belay.Digest) error {
	t, err := access.Trust(ctx, c, &access.TrustFile{Workspace: f.ws, Path: f.rel, Digest: seen})
	if err != nil {
		return err
	}
	_, err = e.Show(t.TrustedFile, func() {
		fmt.Fprintf(e.Out, "trusted %s (%s)\n", term.Line(t.Path), t.Content.Digest.Short())
		sayBrings(e.Out, t.Brings)
	})
	return err
}

func sayBrings(w io.Writer, all []access.Entry) {
	for _, b := range all {
		fmt.Fprintf(w, "  %s: %s\n", b.Name, term.Short(b.Text, 200))
	}
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
