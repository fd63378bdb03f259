package access

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/tool/file"
)

// ListTrust is what list_trust takes.
type ListTrust struct {
	Workspace string `json:"workspace,omitempty" jsonschema:"whose files that need trust are listed too; the server's own when it is left out"`
	app.AsOf
}

// TrustShown is what is trusted, and what could be.
type TrustShown struct {
	app.Fresh
	Trusted []TrustedFile  `json:"trusted"` // by path
	Files   []GovernedFile `json:"files"`   // of the workspace, that count only when they are trusted
}

// TrustedFile is a trusted file and its current state.
type TrustedFile struct {
	config.TrustedFile
	Now string `json:"now"` // trusted, changed, gone
}

// GovernedFile is a file that counts only when it is trusted, as it is.
type GovernedFile struct {
	Path     string          `json:"path"` // in the workspace
	Digest   belay.Digest    `json:"digest,omitempty"`
	Standing config.Standing `json:"standing,omitempty"` // trusted, unknown, changed
	Brings   []Entry         `json:"brings,omitempty"`   // what counts when it is trusted
	Problem  string          `json:"problem,omitempty"`  // why it can't be trusted
}

// Entry is something that a file says.
type Entry struct {
	Name string `json:"name"` // its kind and its name
	Text string `json:"text"`
}

// listTrust lists what is trusted, and what there is to trust in a workspace.
func listTrust(ctx context.Context, c *app.Call, f app.Fresh, in *ListTrust) (*TrustShown, error) {
	ws, err := c.Workspaces.Workspace(ctx, in.Workspace)
	if err != nil {
		return nil, input.At("workspace", err)
	}
	book, err := config.ReadTrust(ctx, c.Store)
	if err != nil {
		return nil, err
	}
	return &TrustShown{Fresh: f, Trusted: Trusted(book), Files: Files(ctx, c, book, ws)}, nil
}

// Files lists what there is to trust in a workspace, as a book has it.
func Files(ctx context.Context, c *app.Call, book *config.TrustBook, ws string) []GovernedFile {
	out := []GovernedFile{}
	for _, rel := range config.Governed(ws) {
		g := GovernedFile{Path: rel}
		if seen, err := look(ctx, c, ws, rel); err != nil {
			g.Problem = c.Clean(err.Error())
		} else {
			g.Digest, g.Standing, g.Brings = belay.DigestOf(seen.content), book.Check(join(ws, rel), seen.content), seen.brings
		}
		out = append(out, g)
	}
	return out
}

// Trusted lists what a book says, and what became of it.
func Trusted(book *config.TrustBook) []TrustedFile {
	out := []TrustedFile{}
	for _, f := range book.Files() {
		now := "gone"
		if b, err := files.ReadUpTo(f.Path, config.MaxManifest); err == nil {
			now = string(book.Check(f.Path, b))
		}
		out = append(out, TrustedFile{f, now})
	}
	return out
}

// TrustFile is what trust_file takes.
type TrustFile struct {
	Workspace string       `json:"workspace,omitempty" jsonschema:"the folder; the server's own when it is left out"`
	Path      string       `json:"path" jsonschema:"the file, relative to the workspace"`
	Digest    belay.Digest `json:"digest" jsonschema:"of the content that was seen"`
}

// FileTrusted is a file that is trusted now.
type FileTrusted struct {
	config.TrustedFile
	Brings []Entry `json:"brings,omitempty"` // what counts therefore
}

// Subject is the file as records of commands name it.
func (f *FileTrusted) Subject() string {
	return fmt.Sprintf("%s with the content %s", f.Path, f.Content.Digest)
}

func trustFile(ctx context.Context, c *app.Call, in *TrustFile) (*FileTrusted, error) {
	ws, err := c.Workspaces.Workspace(ctx, in.Workspace)
	if err != nil {
		return nil, input.At("workspace", err)
	}
	return Trust(ctx, c, &TrustFile{Workspace: ws, Path: in.Path, Digest: in.Digest})
}

// Trust records that the content of a file is trusted, if it is the one that was seen.
func Trust(ctx context.Context, c *app.Call, in *TrustFile) (*FileTrusted, error) {
	if !config.Governs(in.Path) {
		err := belay.Errorf(belay.CodeNotGoverned, "trust means nothing to this file").At(input.Shown(in.Path)).
			WithHint("files that count only when trusted are .belay/belay.yaml, .belay/policy.yaml, .belay/tools/*.yaml and .mcp.json of a workspace")
		return nil, input.At("path", err)
	}
	path := join(in.Workspace, in.Path)
	seen, err := look(ctx, c, in.Workspace, in.Path)
	if err != nil {
		return nil, input.At("path", err)
	}
	if now := belay.DigestOf(seen.content); now != in.Digest {
		return nil, input.At("digest", belay.Errorf(belay.CodeConflict, "the file has another content than the one that was seen: %s", now).At(path).WithHint("look at it again, and trust that if it is right"))
	}
	w := config.TrustWriter{Store: c.Store, Owner: store.ThisProcess(), By: c.By.String()}
	f, err := w.Trust(ctx, path, seen.content)
	if err != nil {
		return nil, err
	}
	return &FileTrusted{f, seen.brings}, nil
}

// content is a file that could be trusted.
type content struct {
	content []byte
	brings  []Entry
}

// look reads a file that could be trusted, and what it would bring.
func look(ctx context.Context, c *app.Call, ws, rel string) (out content, err error) {
	path := join(ws, rel)
	if out.content, err = Content(ctx, ws, rel); err != nil {
		return out, err
	}
	if text := string(out.content); c.Clean(text) != text {
		return out, belay.Errorf(belay.CodeUsage, "it holds a secret of this machine").At(path).WithHint("take the secret out; a tool gets it by env: {pass: [NAME]}")
	}
	all, err := config.Describe(path, out.content)
	for _, e := range all {
		out.brings = append(out.brings, Entry(e))
	}
	return out, err
}

// Content is what is in a file of a workspace now.
func Content(ctx context.Context, ws, rel string) ([]byte, error) {
	root, err := files.OpenRoot(ws)
	if err != nil {
		return nil, belay.Errorf(belay.CodeWorkspace, "the workspace can't be opened: %s", files.Reason(err)).At(ws).WithHint("belay trust PATH, a file of a workspace")
	}
	defer root.Close()
	b, err := file.Content(ctx, root, rel, config.MaxManifest)
	if err != nil {
		err = belay.Errorf(belay.CodeUsage, "it can't be trusted: %v", err).At(join(ws, rel)).WithHint("belay trust PATH, a file of a workspace")
	}
	return b, err
}

func join(ws, rel string) string { return filepath.Join(ws, filepath.FromSlash(rel)) }

// RevokeTrust is what revoke_trust takes.
type RevokeTrust struct {
	Path string `json:"path" jsonschema:"the file, as list_trust has it"`
}

// TrustRevoked is a file that isn't trusted any more.
type TrustRevoked struct {
	Path    string `json:"path"`
	Revoked bool   `json:"revoked"` // it was trusted
}

// Subject is the file as records of commands name it.
func (r *TrustRevoked) Subject() string { return r.Path }

// Distrust takes trust in a file back. The file may be gone.
func Distrust(ctx context.Context, c *app.Call, in *RevokeTrust) (*TrustRevoked, error) {
	w := config.TrustWriter{Store: c.Store, Owner: store.ThisProcess(), By: c.By.String()}
	had, err := w.Revoke(ctx, in.Path)
	if err != nil {
		return nil, err
	}
	return &TrustRevoked{in.Path, had}, nil
}
