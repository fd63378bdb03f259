package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/config/manifest"
	"github.com/belay-run/belay/internal/config/trust"
	"github.com/belay-run/belay/internal/core/session"
	"github.com/belay-run/belay/internal/lib/readfile"
	"github.com/belay-run/belay/internal/tool"
	commands "github.com/belay-run/belay/internal/tool/command"
	"github.com/belay-run/belay/internal/tool/file"
)

// workspaceTools is what there is to work with in one workspace: the built-in tools
// and those that the person and the workspace declare.
type workspaceTools struct {
	set      *tool.Set
	declared []manifest.Command
	ignored  []untrustedFile
}

// untrustedFile is an untrusted file of a workspace.
type untrustedFile struct {
	path     string
	standing trust.Standing
}

// manifestDir is the folder of tools, below a person's folder of settings and
// below .belay in a workspace.
const manifestDir = "tools"

// maxManifest bounds one file.
const maxManifest = 256 << 10

// enter makes a workspace's tools and providers those of this process, and names
// once which tools are ignored.
func (a *app) enter(ctx context.Context, ws string) error {
	w, err := a.loadWorkspaceTools(ctx, ws)
	if err != nil {
		return err
	}
	a.describe(ctx, ws)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.here == nil {
		for _, s := range w.ignored {
			a.sayIgnored(s)
		}
	}
	a.here = w
	return nil
}

func (a *app) sayIgnored(s untrustedFile) {
	if !a.JSON {
		fmt.Fprintf(a.Err, "%s is ignored: %s; belay trust %s%s\n", term.Line(s.path), why(s.standing), term.Quoted(s.path), a.storeFlag())
	}
}

func why(s trust.Standing) string {
	if s == trust.Changed {
		return "it has changed since it was trusted"
	}
	return "it isn't trusted"
}

// loadWorkspaceTools collects the tools of a workspace, once per process.
func (a *app) loadWorkspaceTools(ctx context.Context, ws string) (*workspaceTools, error) {
	a.mu.Lock()
	w := a.shops[ws]
	a.mu.Unlock()
	if w != nil {
		return w, nil
	}
	w = &workspaceTools{}
	if err := a.ofPerson(w); err != nil {
		return nil, err
	}
	if err := a.ofWorkspace(ctx, w, ws); err != nil {
		return nil, err
	}
	builtin := a.builtin()
	if err := w.names(builtin); err != nil {
		return nil, err
	}
	var err error
	if w.set, err = tool.NewSet(slices.Concat(builtin, commands.Tools(w.declared, a.Environ))...); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.shops == nil {
		a.shops = map[string]*workspaceTools{}
	}
	a.shops[ws] = w
	return w, nil
}

// trustAsOrigin records that a workspace is a worktree of another: what is trusted
// there is trusted here, as long as its content is the same.
func (a *app) trustAsOrigin(worktree, ws string) {
	if a.origin == nil {
		a.origin = map[string]string{}
	}
	a.origin[worktree] = ws
}

// inRepository is trustAsOrigin for a session that exists.
func (a *app) inRepository(s *session.State) {
	if t := s.Worktree; t != nil {
		if inside, err := filepath.Rel(t.Path, s.Workspace); err == nil {
			a.trustAsOrigin(s.Workspace, filepath.Join(t.Repository, inside))
		}
	}
}

// trustOf returns how far a file of a workspace is trusted, there or in the
// workspace that it was copied from.
func (a *app) trustOf(book *trust.Book, ws, rel string, content []byte) trust.Standing {
	s := book.Check(filepath.Join(ws, filepath.FromSlash(rel)), content)
	if from := a.origin[ws]; s != trust.Trusted && from != "" {
		return book.Check(filepath.Join(from, filepath.FromSlash(rel)), content)
	}
	return s
}

// toolsIn is the engine's look at the workspaces that were entered.
func (a *app) toolsIn(ws string) *tool.Set {
	a.mu.Lock()
	defer a.mu.Unlock()
	if w := a.shops[ws]; w != nil {
		return w.set
	}
	return nil
}

// ofPerson reads the manifests in the person's folder: they always count.
func (a *app) ofPerson(w *workspaceTools) error {
	dir := a.configDir()
	if dir == "" {
		return nil
	}
	dir = filepath.Join(dir, manifestDir)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return belay.Errorf(belay.CodeBadManifest, "the folder can't be read: %s", readfile.Reason(err)).At(dir).WithHint("repair the folder or move it away")
	}
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); ext != ".yaml" && ext != ".yml" || e.IsDir() {
			continue
		}
		path := filepath.Join(dir, e.Name())
		b, err := readfile.UpTo(path, maxManifest)
		if err != nil {
			return belay.Errorf(belay.CodeBadManifest, "it can't be read: %s", readfile.Reason(err)).At(path).WithHint("repair the file or move it away")
		}
		if err := w.add(path, b); err != nil {
			return err
		}
	}
	return nil
}

// ofWorkspace reads the manifests of a trusted workspace.
func (a *app) ofWorkspace(ctx context.Context, w *workspaceTools, ws string) error {
	root, err := os.OpenRoot(ws)
	if err != nil {
		return nil // the run says it better
	}
	defer root.Close()
	for _, rel := range trust.Governed(root.FS()) {
		if !strings.HasPrefix(rel, ".belay/"+manifestDir+"/") {
			continue // its reader looks at it
		}
		path := filepath.Join(ws, filepath.FromSlash(rel))
		content, err := file.Content(ctx, root, rel, maxManifest)
		if err != nil {
			return belay.Errorf(belay.CodeBadManifest, "it can't be read: %v", err).At(path).WithHint("repair the file or move it away")
		}
		book, err := a.book(ctx)
		if err != nil {
			return err
		}
		if s := a.trustOf(book, ws, rel, content); s != trust.Trusted {
			w.ignored = append(w.ignored, untrustedFile{path, s})
			continue
		}
		if err := w.add(path, content); err != nil {
			return err
		}
	}
	return nil
}

func (w *workspaceTools) add(path string, content []byte) error {
	some, err := manifest.Parse(path, content)
	if err != nil {
		return err
	}
	w.declared = append(w.declared, some...)
	return nil
}

// names refuses a declared tool whose name is taken.
func (w *workspaceTools) names(builtin []tool.Tool) error {
	taken := map[string]string{}
	for _, t := range builtin {
		taken[t.Spec().Name] = "the program itself"
	}
	for _, c := range w.declared {
		if by := taken[c.Spec.Name]; by != "" {
			return belay.Errorf(belay.CodeBadManifest, "the name %s is taken: %s has a tool of this name", c.Spec.Name, by).At(c.Where).WithHint("rename the tool")
		}
		taken[c.Spec.Name] = c.Where
	}
	return nil
}

// book is what is trusted in the store, read once per process; nothing, if there
// is no store yet.
func (a *app) book(ctx context.Context) (*trust.Book, error) {
	a.bookMu.Lock()
	defer a.bookMu.Unlock()
	if a.trusted != nil {
		return a.trusted, nil
	}
	st := a.opened
	if st == nil {
		dir, err := a.storeDir()
		if err != nil || !hasStore(dir) {
			return nil, err
		}
		if st, err = a.open(ctx, false); err != nil {
			return nil, err
		}
		a.opened = nil
		defer st.Close()
	}
	var err error
	a.trusted, err = trust.Read(ctx, st)
	return a.trusted, err
}
