package agentfile

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/match"
)

// Origins of agents, the strongest first.
const (
	Given     = "given" // a folder that a person named
	Workspace = "workspace"
	User      = "user"
	System    = "system"
)

// Bounds of a place.
const (
	MaxFiles = 1000
	MaxBytes = 1 << 20
)

// Place is a folder of agents: one below another that is entered without following links,
// or that other itself.
type Place struct {
	Dir    string
	Below  string // relative to Dir
	Origin string
	Trusts func(rel string, content []byte) bool // reports whether a file, relative to Dir, counts in full; nil: each does
}

// Catalog is the agents of some places, the strongest place first.
type Catalog struct {
	All []*Agent // by place, path
}

// Open reads the agents of places, the strongest first. A folder that doesn't exist has
// none, and what can't be read is an agent that can't run.
func Open(places []Place) *Catalog {
	c := &Catalog{}
	for i, p := range places {
		from := len(c.All)
		c.folder(p)
		for _, a := range c.All[from:] {
			a.place = i
		}
	}
	c.ambiguous()
	c.depend()
	return c
}

// Parse reads a file.
func Parse(path string, data []byte) *Agent {
	a := &Agent{Path: path, Digest: belay.DigestOf(data)}
	switch {
	case len(data) > MaxBytes:
		a.unread(CodeTooMany, "the file has more than %d MiB", MaxBytes>>20)
	case !utf8.Valid(data) || strings.ContainsRune(string(data), 0):
		a.unread(CodeBadFile, "the file is no UTF-8 text")
	case strings.TrimSpace(string(data)) == "":
		a.unread(CodeNoAgent, "the file is empty")
	case strings.EqualFold(filepath.Ext(path), ".md"):
		a.readMarkdown(data)
	default:
		a.readYAML(data)
	}
	slices.SortStableFunc(a.Findings, func(x, y Finding) int { return cmp.Compare(levelOrder(x.Level), levelOrder(y.Level)) })
	return a
}

func levelOrder(l string) int { return slices.Index([]string{Error, Warning, Note}, l) }

func (a *Agent) unread(code, format string, args ...any) {
	a.Name = baseName(a.Path)
	a.find(Error, code, a.Path, reference, format, args...)
}

func baseName(p string) string {
	b := filepath.Base(p)
	return strings.TrimSuffix(b, filepath.Ext(b))
}

// Names reports whether a file's name is one of an agent.
func Names(name string) bool {
	ext := strings.ToLower(path.Ext(name))
	return (ext == ".md" || ext == ".yaml" || ext == ".yml") && name[0] != '.' && name[0] != '_'
}

func (c *Catalog) folder(p Place) {
	root, err := p.open()
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	dir := filepath.Join(p.Dir, filepath.FromSlash(p.Below))
	bad := func(where, code, format string, args ...any) {
		a := &Agent{Path: where, Origin: p.Origin}
		a.unread(code, format, args...)
		c.All = append(c.All, a)
	}
	if err != nil {
		bad(dir, CodeUnreadable, "the folder can't be read: %v", cause(err))
		return
	}
	defer root.Close()
	n := 0
	fs.WalkDir(root.FS(), ".", func(rel string, d fs.DirEntry, err error) error { //nolint:errcheck // the function returns none but to stop
		name := filepath.Join(dir, filepath.FromSlash(rel))
		switch {
		case err != nil:
			bad(name, CodeUnreadable, "it can't be read: %v", cause(err))
			return skip(d)
		case rel == ".":
			return nil
		case d.Name()[0] == '.' || d.Name()[0] == '_':
			return skip(d)
		case d.IsDir() || !d.Type().IsRegular() || !Names(d.Name()):
			return nil
		}
		if n++; n > MaxFiles {
			bad(dir, CodeTooMany, "there are more than %d files; the others aren't read", MaxFiles)
			return fs.SkipAll
		}
		data, err := read(root, rel)
		if err != nil {
			bad(name, CodeUnreadable, "it can't be read: %v", cause(err))
			return nil
		}
		a := Parse(name, data)
		a.Origin, a.Trusted = p.Origin, p.Trusts == nil || p.Trusts(path.Join(p.Below, rel), data)
		c.All = append(c.All, a)
		return nil
	})
}

// open opens the place's folder. A link on the way to it from Dir is no folder.
func (p Place) open() (*os.Root, error) {
	root, err := os.OpenRoot(p.Dir)
	if err != nil || p.Below == "" {
		return root, err
	}
	defer root.Close()
	for i := 0; i <= len(p.Below); i++ {
		if i < len(p.Below) && p.Below[i] != '/' {
			continue
		}
		if info, err := root.Lstat(filepath.FromSlash(p.Below[:i])); err != nil || !info.IsDir() {
			return nil, fs.ErrNotExist
		}
	}
	return root.OpenRoot(filepath.FromSlash(p.Below))
}

func skip(d fs.DirEntry) error {
	if d != nil && d.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// cause is an error without the path that it is about.
func cause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

func read(root *os.Root, rel string) ([]byte, error) {
	f, err := root.Open(filepath.FromSlash(rel))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.New("it is no file")
	}
	return io.ReadAll(io.LimitReader(f, MaxBytes+1))
}

// ambiguous finds files of one place with one name and version, and other content.
func (c *Catalog) ambiguous() {
	type key struct {
		place         int
		name, version string
	}
	first := map[key]*Agent{}
	for _, a := range c.All {
		if !a.Usable() {
			continue
		}
		k := key{a.place, a.Name, a.Version}
		b := first[k]
		switch {
		case b == nil:
			first[k] = a
		case b.Digest != a.Digest:
			for x, y := range map[*Agent]*Agent{a: b, b: a} { // each names the other
				if !x.Is(CodeAmbiguous) {
					x.find(Error, CodeAmbiguous, x.Path, "give one of them another name or version", "%s has this name and version too", y.Path)
				}
			}
		}
	}
}

// Is reports whether the agent has a finding with a code.
func (a *Agent) Is(code string) bool {
	return slices.ContainsFunc(a.Findings, func(f Finding) bool { return f.Code == code })
}

// Find returns the agent that a person or a model means: NAME, NAME@RANGE or ORIGIN:NAME.
// The strongest place that has the name counts, and of its versions the highest that fits.
// An agent of a workspace that isn't trusted never takes another's name.
func (c *Catalog) Find(want string) (*Agent, error) {
	name, versions, _ := strings.Cut(want, "@")
	if _, err := rangeOf(versions); err != nil {
		return nil, belay.Errorf(belay.CodeUsage, "%q is no range of versions", short(versions, 40)).At(want).WithHint("such as ^1.2 or >=1.0 <3")
	}
	origin := ""
	if o, rest, ok := strings.Cut(name, ":"); ok && slices.Contains([]string{Given, Workspace, User, System}, o) {
		origin, name = o, rest
	}
	var named []*Agent
	for _, a := range c.All {
		if a.Name == name && (origin == "" || a.Origin == origin) {
			named = append(named, a)
		}
	}
	if len(named) == 0 {
		return nil, belay.Errorf(belay.CodeNotFound, "there is no agent %s", short(name, 80)).WithHint("%s", match.Hint(name, c.Names(), "belay agents list shows them"))
	}
	var best *Agent
	for _, trusted := range []bool{true, false} {
		for _, a := range named {
			if !a.Usable() || a.Trusted != trusted || !a.Fits(versions) {
				continue
			}
			if best == nil || a.place == best.place && a.semver().GreaterThan(best.semver()) {
				best = a
			}
		}
		if best != nil {
			return best, nil
		}
	}
	for _, a := range named {
		for _, f := range a.Findings {
			if f.Level == Error {
				return nil, belay.Errorf(belay.CodeBadManifest, "agent %s can't be used: %s: %s", name, f.Code, f.Message).At(f.Where).WithHint("belay agents check")
			}
		}
	}
	return nil, belay.Errorf(belay.CodeNotFound, "no version of agent %s fits %s; there are %s", name, versions, strings.Join(versionsOf(named), ", ")).WithHint("belay agents list")
}

func versionsOf(all []*Agent) (out []string) {
	for _, a := range all {
		out = append(out, cmp.Or(a.Version, "0.0.0"))
	}
	return out
}

// Names are the names of all agents, each once.
func (c *Catalog) Names() []string {
	names := map[string]bool{}
	for _, a := range c.All {
		names[a.Name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// InForce are the agents that bare names mean, by name.
func (c *Catalog) InForce() (out []*Agent) {
	for _, name := range c.Names() {
		if a, err := c.Find(name); err == nil {
			out = append(out, a)
		}
	}
	return out
}

// About lists the agents that have a word as a capability, a tool or their domain.
func (c *Catalog) About(capability, tool, domain string) (out []*Agent) {
	for _, a := range c.All {
		if (capability == "" || slices.Contains(a.Abilities, capability) || slices.Contains(a.Can, capability)) &&
			(tool == "" || slices.Contains(a.Tools, tool)) && (domain == "" || a.Domain == domain) {
			out = append(out, a)
		}
	}
	return out
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
