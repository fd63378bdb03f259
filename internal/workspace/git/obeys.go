//go:build unix

package git

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"time"
)

// Quiet are the settings by which a git that only reads runs no hook, pager, monitor nor
// external difference, whatever a repository says, as variables.
func Quiet() []string {
	return []string{
		"GIT_CONFIG_COUNT=4", "GIT_CONFIG_KEY_0=core.hooksPath", "GIT_CONFIG_VALUE_0=/dev/null", "GIT_CONFIG_KEY_1=core.fsmonitor", "GIT_CONFIG_VALUE_1=false",
		"GIT_CONFIG_KEY_2=core.pager", "GIT_CONFIG_VALUE_2=cat", "GIT_CONFIG_KEY_3=diff.external", "GIT_CONFIG_VALUE_3=", "GIT_PAGER=cat", "GIT_NO_LAZY_FETCH=1",
	}
}

// obeysTime is how long a look at a repository's settings may take.
const obeysTime = 5 * time.Second

// Obeys is a file by which a folder's repository may make git run or load something, or
// the folder if nobody can tell; empty: there is none. Quiet silences what it sets
// besides.
func (g Git) Obeys(dir string) string {
	ctx, cancel := context.WithTimeout(context.Background(), obeysTime)
	defer cancel()
	top, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return dir
	}
	r, err := g.Open(ctx, top)
	if err == ErrNone { //nolint:errorlint // as Open returns it
		return bareAbove(top)
	}
	if err != nil {
		return filepath.Join(top, ".git")
	}
	if r.obeyed {
		return filepath.Join(r.Common, "config")
	}
	for _, name := range []string{"modules", "objects/info/alternates"} {
		if there(filepath.Join(r.Common, name)) {
			return filepath.Join(r.Common, name)
		}
	}
	if out, err := r.Run(ctx, "ls-files", "--stage"); err != nil || bytes.HasPrefix(out, []byte("160000 ")) || bytes.Contains(out, []byte("\n160000 ")) {
		return filepath.Join(r.Dir, "index") // other repositories are in it, with settings of their own
	}
	return ""
}

// obeyed reports whether a setting makes git run or load something that Quiet doesn't
// decide, or sends it to other repositories or another work tree. What a file includes is
// read as well.
func obeyed(s setting) bool {
	section, _, name := s.parts()
	switch key := section + "." + name; {
	case key == "include.path", key == "includeif.path":
		return false
	case slices.Contains([]string{"core.hookspath", "core.fsmonitor", "core.pager", "diff.external"}, key):
		return false // Quiet's
	case slices.Contains([]string{"diff.submodule", "status.submodulesummary", "extensions.partialclone", "remote.promisor", "submodule.recurse"}, key):
		return true
	}
	return !harmless(s, func(string) bool { return false })
}

// bareAbove is a folder at or above a place that git would take for a repository without a
// work tree; empty: there is none.
func bareAbove(dir string) string {
	for ; ; dir = filepath.Dir(dir) {
		if isGitFolder(dir) {
			return dir
		}
		if dir == "/" {
			return ""
		}
	}
}
