package config

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/files"
)

// CheckWorkspace resolves a directory that can be worked on.
func CheckWorkspace(dir string) (string, error) {
	bad := func(format string, args ...any) error {
		return belay.Errorf(belay.CodeWorkspace, format, args...).At(dir).WithHint("--workspace DIR, a directory that you can read")
	}
	ws, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", bad("the workspace can't be used: %s", files.Reason(err))
	}
	f, err := files.OpenDir(ws) // a folder that can be opened can be listed, and listing a large one takes its time
	if errors.Is(err, syscall.ENOTDIR) {
		return "", bad("the workspace is a file")
	}
	if err != nil {
		return "", bad("the workspace can't be read: %s", files.Reason(err))
	}
	defer f.Close()
	return ws, nil
}

// RepositoryOf is the root of the git repository that dir is in, else dir. An
// empty folder .git makes no repository, for git neither.
func RepositoryOf(dir string) string {
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
	dir, err := files.OpenDir(path)
	if err != nil {
		return true // it can't be read: taken for one
	}
	defer dir.Close()
	_, err = dir.Readdirnames(1)
	return err != io.EOF
}

// Apart refuses a store and a workspace one of which contains the other: an
// agent could then change what is recorded of it.
func Apart(ws, store string) error {
	store = RealAncestor(store)
	switch {
	case Within(store, ws):
		return belay.Errorf(belay.CodeWorkspace, "the workspace is inside the store %s", store).At(ws).WithHint("--workspace DIR outside the store, or --store DIR elsewhere")
	case Within(ws, store):
		return belay.Errorf(belay.CodeWorkspace, "an agent that works here could change its own record: the store %s is inside", store).At(ws).
			WithHint("cd to a project, or --workspace DIR; --store DIR keeps the store elsewhere")
	}
	return nil
}

// Within reports whether dir is parent or lies below it.
func Within(parent, dir string) bool {
	rel, err := filepath.Rel(parent, dir)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// RealAncestor resolves the links of a path of which only a part may exist.
func RealAncestor(p string) string {
	if real, err := filepath.EvalSymlinks(p); err == nil || p == filepath.Dir(p) {
		if err != nil {
			return p
		}
		return real
	}
	return filepath.Join(RealAncestor(filepath.Dir(p)), filepath.Base(p))
}
