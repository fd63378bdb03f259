package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/sandbox/boxinit"
)

// maxSeen is how many entries of a writable folder are looked at for protected
// names, nearest to its root first.
const maxSeen = 4096

// rootNames are the protected names that are closed at a workspace's root by a
// sandbox that speaks of names, macOS's. Earlier versions had folders stand in their
// place on Linux while programs ran.
var rootNames = []string{
	".belay", ".git", ".git/hooks", ".vscode", ".idea", ".zed", ".cursor", ".cursorrules", ".claude", ".claude.json", ".codex", ".gemini", ".mcp.json", ".windsurf",
	".continue", ".clinerules", ".agents", ".openclaw", ".opencode", ".husky", ".devcontainer", "AGENTS.md", "CLAUDE.md", "CLAUDE.local.md", "GEMINI.md",
	".envrc", ".bashrc", ".profile", ".zshrc", ".exrc", ".vimrc", ".nvimrc", ".gitlab-ci.yml", ".github/workflows", "sitecustomize.py", "usercustomize.py",
}

// protectedIn lists the protected names in a folder and below, breadth first.
// It follows no links and doesn't look into what is protected already, nor
// into installed packages. What is left to the program isn't listed.
func protectedIn(root string, protected, left func(string) bool) ([]string, error) {
	var found []string
	seen := 0
	for level := []string{root}; len(level) > 0; {
		var next []string
		for _, dir := range level {
			entries, err := os.ReadDir(dir)
			if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
			for _, e := range entries {
				path := filepath.Join(dir, e.Name())
				switch {
				case e.Type()&fs.ModeSymlink != 0:
				case protected(path[len(root):]) && !left(path) && !(e.IsDir() && isRepository(path)):
					found = append(found, path)
				case e.IsDir() && e.Name() != "node_modules" && !strings.Contains(path, "/.git/"): // of git's own folder only the first level has names that count
					next = append(next, path)
				}
			}
			if seen += len(entries); seen > maxSeen {
				return found, nil
			}
		}
		level = next
	}
	return found, nil
}

// leftBy tells of a path whether a boundary leaves it to the program, or something
// in it.
func leftBy(b belay.Boundary) func(path string) bool {
	return func(path string) bool {
		return slices.ContainsFunc(b.Leave, func(l string) bool { return boxinit.Within(path, l) || boxinit.Within(l, path) })
	}
}

// isRepository reports whether a folder .git is a repository, which git must be able
// to write but for what it obeys.
func isRepository(path string) bool {
	return filepath.Base(path) == ".git" && exists(filepath.Join(path, "HEAD"))
}

// topmost drops what lies in another one.
func topmost(paths []string) []string {
	slices.Sort(paths)
	var all []string
	for _, p := range paths {
		if !slices.ContainsFunc(all, func(a string) bool { return boxinit.Within(p, a) }) {
			all = append(all, p)
		}
	}
	return all
}

// pins are the folders between guarded names and the writable folder they are
// in, the outer ones first.
func pins(guarded, writable []string) []string {
	var all []string
	for _, g := range guarded {
		for dir := filepath.Dir(g); ; dir = filepath.Dir(dir) {
			if !slices.ContainsFunc(writable, func(w string) bool { return boxinit.Within(dir, w) && dir != w }) {
				break
			}
			all = append(all, dir)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
