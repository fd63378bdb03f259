package policy

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/policy/shell"
	"github.com/belay-run/belay/internal/workspace/protected"
)

// Link is a path that leads elsewhere than its text says, because of a link in
// the file system. The gate doesn't read the file system: the caller has looked.
type Link struct {
	Path string `json:"path"`           // one that Lookups named
	Real string `json:"real,omitempty"` // absolute and without links, in the workspace's own spelling; empty: unknown
}

// Folder is where the commands of a call begin, as it is spelled: absolute, not
// cleaned.
func Folder(t belay.ToolSpec, args json.RawMessage, at Place) string {
	if t.Command != nil {
		given := &arguments{raw: args}
		if dir, ok := given.text(t.Command.Dir); ok && dir != "" {
			return spelled(at.Workspace, dir)
		}
	}
	return at.Workspace
}

// spelled is an absolute path, not cleaned.
func spelled(workspace, p string) string {
	if path.IsAbs(p) {
		return p
	}
	return workspace + "/" + p
}

// Swept ends a path that stands for every file below a folder. It leads to those
// that usually hold a secret.
const Swept = "/**"

// GitSettings ends the path of a folder in which git reads settings. It leads to the one
// that may make git run something.
const GitSettings = "/.git/*settings*"

// GitFolders are the folders in which a call runs git to read, where nothing holds git
// to that: the caller looks at what the repository sets, and passes a Link for each
// that isn't harmless.
func GitFolders(t belay.ToolSpec, args json.RawMessage, at Place) (out []string) {
	if !at.Loose {
		return nil
	}
	at.Links = nil
	folder := Folder(t, args, at)
	for _, c := range CommandsOf(t, args, at) {
		if c.Name == "git" && c.Class == ReadOnly {
			for _, dir := range at.gitDirs(&c, folder) {
				if !slices.Contains(out, dir) {
					out = append(out, dir)
				}
			}
		}
	}
	return out
}

func (at *Place) gitDirs(c *Command, folder string) []string {
	if len(c.Dirs) > 0 {
		return c.Dirs
	}
	return []string{path.Clean(folder)}
}

// Lookups are the paths that a call names, absolute and as they are spelled,
// each once: the caller looks at the file system and passes a Link for each that
// leads elsewhere. A path of a command may be a pattern. Where nothing hides
// secrets, folders are named too that a command goes through.
func Lookups(t belay.ToolSpec, args json.RawMessage, paths []string, at Place) (out []string) {
	seen := map[string]bool{}
	add := func(p string) {
		if p != "" && !seen[p] && !harmlessDevice(p) {
			seen[p] = true
			out = append(out, p)
		}
	}
	if t.Handled != "" {
		return nil
	}
	for _, p := range paths {
		add(spelled(at.Workspace, p))
	}
	for _, c := range CommandsOf(t, args, at) {
		for _, list := range [][]string{c.Reads, c.Writes, c.Dirs, c.Through} {
			for _, p := range list {
				add(p)
			}
		}
		for _, p := range at.swept(&c, Folder(t, args, at)) {
			add(p)
		}
	}
	return out
}

// swept are the folders that a command may show any file of, each with Swept.
func (at *Place) swept(c *Command, folder string) (out []string) {
	if !at.Bare {
		return nil
	}
	folders, here := c.Sweeps()
	switch {
	case here && len(c.Dirs) == 0:
		folders = append(slices.Clip(folders), folder)
	case here:
		folders = slices.Concat(folders, c.Dirs)
	}
	for _, p := range folders {
		if !strings.ContainsAny(p, "*?[") {
			out = append(out, path.Clean(p)+Swept)
		}
	}
	return out
}

// harmlessDevice reports whether a path means the same wherever one looks.
func harmlessDevice(p string) bool {
	return sink(p) || p == "-" || strings.HasPrefix(p, "/dev/") || strings.HasPrefix(p, "/proc/")
}

// follow adds to commands what links make of the paths that they name. It makes
// none of them weaker.
func (at *Place) follow(folder string, commands []Command) {
	if len(at.Links) == 0 {
		return
	}
	f := following{at: at, folder: folder, real: map[string][]string{}}
	for _, l := range at.Links {
		f.real[l.Path] = append(f.real[l.Path], l.Real)
	}
	for i := range commands {
		f.command(&commands[i])
	}
}

// following is links at hand.
type following struct {
	at     *Place
	folder string // where the commands begin
	real   map[string][]string
}

func (f *following) command(c *Command) {
	reads, writes := f.describe(c.Reads), f.describe(c.Writes)
	dirs, through := f.describe(c.Dirs), f.describe(c.Through)
	if len(c.Dirs) == 0 {
		dirs = f.describe([]string{f.folder})
	}
	if c.Name == "git" {
		for _, dir := range f.at.gitDirs(c, f.folder) {
			if l := f.describe([]string{dir + GitSettings}); len(l) > 0 && c.Class == ReadOnly {
				c.Class, c.Reason = Destructive, "nothing confines it, and "+l[0].String()
			}
		}
	}
	changes := c.Class.Rank() >= WriteWorkspace.Rank()
	bare := *f.at
	bare.Bare = true // what was looked up counts
	for _, l := range slices.Concat(reads, dirs, through, f.describe(bare.swept(c, f.folder))) {
		if c.OnlyNames() && strings.ContainsAny(l.Path, "*?[") && l.Real != "" && Inside(accessTo(f.at.Workspace, l.Real, false).path) {
			continue // names that fit a pattern
		}
		if l.Real != "" {
			c.Reads = append(slices.Clip(c.Reads), l.Real)
		}
		if why := shell.Secret(l.Real); why != "" || l.Real == "" {
			raise(c, l, why)
		}
	}
	for _, l := range writes {
		if l.Real != "" && !sink(l.Real) {
			c.Writes = append(slices.Clip(c.Writes), l.Real)
		}
		f.written(c, l)
	}
	if changes { // it may change what it is shown only by a folder, or by a path that goes up
		for _, l := range slices.Concat(dirs, through) {
			f.written(c, l)
		}
	}
}

func (f *following) describe(paths []string) (out []Link) {
	for _, p := range paths {
		for _, real := range f.real[p] {
			out = append(out, Link{p, real})
		}
	}
	return out
}

// written judges a link that a command writes through.
func (f *following) written(c *Command, l Link) {
	a := accessTo(f.at.Workspace, l.Real, true)
	e, guarded := protected.Of(a.path)
	switch {
	case l.Real != "" && sink(l.Real):
	case l.Real == "" || !a.inside:
		raise(c, l, "which is outside the workspace")
	case guarded:
		raise(c, l, "which is protected: "+e.Why)
	}
}

// raise makes a command an attempt to escape because of where a link leads.
func raise(c *Command, l Link, why string) {
	if c.Class.Rank() < EscapeAttempt.Rank() {
		c.Class, c.Reason = EscapeAttempt, l.String()
		if l.Real != "" {
			c.Reason += ", " + why
		}
	}
}

// String says where the link leads.
func (l Link) String() string {
	if l.Real == "" {
		return short(l.Path) + " leads where nobody can tell"
	}
	if strings.HasSuffix(l.Path, GitSettings) {
		return short(l.Real) + " may make git run something"
	}
	return short(l.Path) + " leads to " + short(l.Real)
}

// maxLinksSaid is how many links a reason names.
const maxLinksSaid = 3

// describeLinks describes where the links of a call lead, for a reason text.
func describeLinks(links []Link) string {
	var out strings.Builder
	for i, l := range links {
		if i == maxLinksSaid {
			out.WriteString("; and more links")
			break
		}
		out.WriteString("; " + l.String())
	}
	return out.String()
}
