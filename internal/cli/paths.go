package cli

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/readfile"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

func (a *app) placeFromEnv() {
	if a.Store == "" {
		a.Store = a.Getenv("BELAY_STORE")
	}
	if a.Workspace == "" {
		a.Workspace = a.Getenv("BELAY_WORKSPACE")
	}
}

// storeDir is the store's directory, which need not exist. All commands choose
// it the same way.
func (a *app) storeDir() (string, error) {
	if a.Store != "" {
		return a.abs(a.Store), nil
	}
	if dir := a.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "belay"), nil
	}
	if home := a.Getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "belay"), nil
	}
	return "", belay.Errorf(belay.CodeUsage, "there is no home directory to keep sessions in").At("HOME").WithHint("--store DIR")
}

// hasStore reports whether the folder holds a store. A folder that can't be read
// counts as one: opening it reports the error.
func hasStore(dir string) bool {
	_, err := os.Stat(layout.Path(dir))
	return !errors.Is(err, fs.ErrNotExist)
}

// workspace is the real path of what to work on.
func (a *app) workspace() (string, error) {
	dir, where := a.Workspace, "--workspace"
	if dir == "" {
		dir, where = a.Dir, "the current directory"
	}
	if dir == "" {
		return "", belay.Errorf(belay.CodeWorkspace, "it does not exist").At(where).WithHint("cd to a directory that does")
	}
	ws, err := checkWorkspace(a.abs(dir))
	if err != nil || a.Workspace != "" {
		return ws, err
	}
	return repositoryOf(ws), nil
}

// checkWorkspace resolves a directory that can be worked on.
func checkWorkspace(dir string) (string, error) {
	bad := func(format string, args ...any) error {
		return belay.Errorf(belay.CodeWorkspace, format, args...).At(dir).WithHint("--workspace DIR, a directory that you can read")
	}
	ws, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", bad("the workspace can't be used: %s", readfile.Reason(err))
	}
	f, err := os.Open(ws) // a folder that can be opened can be listed, and listing a large one takes its time
	if err != nil {
		return "", bad("the workspace can't be read: %s", readfile.Reason(err))
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.IsDir() {
		return "", bad("the workspace is a file")
	}
	return ws, nil
}

// repositoryOf is the root of the git repository that dir is in, else dir. An
// empty folder .git makes no repository: a sandbox may have put it there while
// programs run.
func repositoryOf(dir string) string {
	for at := dir; ; at = filepath.Dir(at) {
		if isGit(filepath.Join(at, ".git")) {
			return at
		}
		if at == filepath.Dir(at) {
			return dir
		}
	}
}

// isGit reports whether there is a file, or a folder with something in it.
func isGit(path string) bool {
	if info, err := os.Lstat(path); err != nil || !info.IsDir() {
		return err == nil
	}
	dir, err := os.Open(path)
	if err != nil {
		return true // it can't be read: taken for one
	}
	defer dir.Close()
	_, err = dir.Readdirnames(1)
	return err != io.EOF
}

// apart refuses a store and a workspace one of which contains the other: an
// agent could then change what is recorded of it.
func apart(ws, store string) error {
	store = realAncestor(store)
	switch {
	case within(store, ws):
		return belay.Errorf(belay.CodeWorkspace, "the workspace is inside the store %s", store).At(ws).WithHint("--workspace DIR outside the store, or --store DIR elsewhere")
	case within(ws, store):
		return belay.Errorf(belay.CodeWorkspace, "the workspace contains the store %s", store).At(ws).WithHint("cd to a project, or --store DIR outside of it")
	}
	return nil
}

// within reports whether dir is parent or lies below it.
func within(parent, dir string) bool {
	rel, err := filepath.Rel(parent, dir)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// realAncestor resolves the links of a path of which only a part may exist.
func realAncestor(p string) string {
	if real, err := filepath.EvalSymlinks(p); err == nil || p == filepath.Dir(p) {
		if err != nil {
			return p
		}
		return real
	}
	return filepath.Join(realAncestor(filepath.Dir(p)), filepath.Base(p))
}
