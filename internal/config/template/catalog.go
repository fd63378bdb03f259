package template

import (
	"cmp"
	"embed"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/lib/strictyaml"
)

//go:embed builtin/*.yaml
var builtin embed.FS

// Origins of templates, in the order in which a name is looked up.
const (
	User      = "user"
	Workspace = "workspace"
	Builtin   = "builtin"
)

// Catalog is the templates of a place.
type Catalog struct {
	All []*Template // by domain, kind, name
	Bad []error     // files that can't be read as templates; the others still can
}

// Open reads the program's templates and those of two folders; an empty name is
// no folder, and one that doesn't exist has none.
func Open(userDir, workspaceDir string) (*Catalog, error) {
	c := &Catalog{}
	sub, err := fs.Sub(builtin, "builtin")
	if err != nil {
		return nil, err
	}
	c.folder(sub, Builtin, "")
	for _, place := range []struct{ dir, origin string }{{userDir, User}, {workspaceDir, Workspace}} {
		if place.dir == "" {
			continue
		}
		root, err := files.OpenRoot(place.dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, belay.Errorf(belay.CodeBadTemplate, "the folder of templates can't be read").At(place.dir).Wrap(err)
		}
		c.folder(files.Tree(root), place.origin, place.dir)
		root.Close() //nolint:errcheck // it was read
	}
	slices.SortStableFunc(c.All, func(a, b *Template) int {
		return cmp.Or(cmp.Compare(a.Domain, b.Domain), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Origin, b.Origin))
	})
	return c, nil
}

func (c *Catalog) folder(dir fs.FS, origin, where string) {
	entries, err := fs.ReadDir(dir, ".")
	if err != nil {
		c.Bad = append(c.Bad, belay.Errorf(belay.CodeBadTemplate, "the folder of templates can't be read").At(where).Wrap(err))
		return
	}
	for _, e := range entries {
		if ext := path.Ext(e.Name()); e.IsDir() || ext != ".yaml" && ext != ".yml" {
			continue
		}
		t, err := read(dir, e.Name(), path.Join(where, e.Name()))
		if err != nil {
			c.Bad = append(c.Bad, err)
			continue
		}
		t.Origin = origin
		if origin != Builtin {
			t.Path = path.Join(where, e.Name())
		}
		if other := c.find(t.Name, origin); other != nil {
			c.Bad = append(c.Bad, belay.Errorf(belay.CodeBadTemplate, "%s has the template %s already", path.Base(other.Path), t.Name).At(t.Path).WithHint("give it another name"))
			continue
		}
		c.All = append(c.All, t)
	}
}

func read(dir fs.FS, name, shown string) (*Template, error) {
	f, err := dir.Open(name)
	if err != nil {
		return nil, belay.Errorf(belay.CodeBadTemplate, "the template can't be read").At(shown).Wrap(err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, belay.Errorf(belay.CodeBadTemplate, "the template is no file").At(shown)
	}
	data, err := io.ReadAll(io.LimitReader(f, strictyaml.MaxBytes+1))
	if err != nil {
		return nil, belay.Errorf(belay.CodeBadTemplate, "the template can't be read").At(shown).Wrap(err)
	}
	return Parse(shown, data)
}

func (c *Catalog) find(name, origin string) *Template {
	for _, t := range c.All {
		if t.Name == name && t.Origin == origin {
			return t
		}
	}
	return nil
}

// Find returns a template by NAME, ORIGIN:NAME or DOMAIN/KIND, each with
// @VERSION behind it if only that version will do. A person's own template goes
// before the program's of the same name; a workspace's never takes the place of
// another: it must be named with its origin then.
func (c *Catalog) Find(want string) (*Template, error) {
	name, version, versioned := strings.Cut(want, "@")
	found, err := c.named(name)
	if err != nil {
		return nil, err
	}
	if versioned && found.Version != version {
		return nil, belay.Errorf(belay.CodeNotFound, "the template %s has version %s", found.Name, found.Version).At(want).WithHint("belay templates show %s", found.Name)
	}
	return found, nil
}

func (c *Catalog) named(name string) (*Template, error) {
	if origin, rest, ok := strings.Cut(name, ":"); ok {
		if t := c.find(rest, origin); t != nil {
			return t, nil
		}
		return nil, c.missing(name)
	}
	if domain, kind, ok := strings.Cut(name, "/"); ok {
		return c.only(name, func(t *Template) bool { return t.Domain == domain && t.Kind == kind })
	}
	own, theirs := cmp.Or(c.find(name, User), c.find(name, Builtin)), c.find(name, Workspace)
	switch {
	case own != nil && theirs != nil:
		return nil, belay.Errorf(belay.CodeUsage, "the workspace has a template of this name too").At(name).
			WithHint("%s:%s or %s:%s", own.Origin, name, Workspace, name)
	case own == nil && theirs == nil:
		return nil, c.missing(name)
	}
	return cmp.Or(own, theirs), nil
}

// only is the one template that fits.
func (c *Catalog) only(name string, fits func(*Template) bool) (*Template, error) {
	var found []*Template
	var names []string
	for _, t := range c.All {
		if fits(t) {
			found = append(found, t)
			names = append(names, t.Origin+":"+t.Name)
		}
	}
	switch len(found) {
	case 0:
		return nil, c.missing(name)
	case 1:
		return found[0], nil
	}
	return nil, belay.Errorf(belay.CodeUsage, "%d templates fit", len(found)).At(name).WithHint("name one: %s", strings.Join(names, ", "))
}

func (c *Catalog) missing(name string) error {
	return belay.Errorf(belay.CodeNotFound, "there is no such template").At(name).WithHint("belay templates list")
}
