package trust

import (
	"io/fs"
	"path"
	"slices"
)

// governed are the files of a workspace that count only when they are trusted,
// relative to it.
var governed = []string{".belay/belay.yaml", ".belay/policy.yaml", ".belay/tools/*.yaml", ".belay/tools/*.yml"}

// Governs reports whether a path of a workspace is such a file's.
func Governs(rel string) bool {
	return slices.ContainsFunc(governed, func(p string) bool { ok, err := path.Match(p, rel); return ok && err == nil })
}

// Governed lists those a workspace has, in order.
func Governed(workspace fs.FS) []string {
	var out []string
	for _, p := range governed {
		found, err := fs.Glob(workspace, p)
		if err != nil {
			continue // a pattern of ours is never bad
		}
		out = append(out, found...)
	}
	slices.Sort(out)
	return out
}
