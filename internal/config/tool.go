package config

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config/manifest"
	"github.com/belay-run/belay/internal/lib/files"
)

// manifestDir is the folder of tools, below a person's folder of settings and
// below .belay in a workspace.
const manifestDir = "tools"

// MaxManifest bounds a file of a workspace that counts when it is trusted.
const MaxManifest = 256 << 10

// Commands are the tools that the person and the workspace declare.
func (w *Workspace) Commands() ([]manifest.Command, error) { return w.commands, w.toolsErr }

// IgnoredTools are the files of tools that don't count.
func (w *Workspace) IgnoredTools() []Ignored { return w.ignoredTools }

// Specs are all tools, by name: those of the program, those that are declared and those
// of MCP servers.
func (w *Workspace) Specs() []belay.ToolSpec {
	specs := slices.Concat(w.in.Tools, w.served)
	for _, c := range w.commands {
		specs = append(specs, c.Spec)
	}
	slices.SortFunc(specs, func(x, y belay.ToolSpec) int { return strings.Compare(x.Name, y.Name) })
	return specs
}

// readTools reads the manifests of the person and the workspace.
func (in Input) readTools(ctx context.Context) ([]manifest.Command, []Ignored, error) {
	all, err := in.toolsOfPerson()
	if err != nil {
		return nil, nil, err
	}
	more, ignored, err := in.toolsOfWorkspace(ctx)
	if err != nil {
		return nil, nil, err
	}
	all = append(all, more...)
	taken := map[string]string{}
	for _, s := range in.Tools {
		taken[s.Name] = "the program itself"
	}
	for _, c := range all {
		if by := taken[c.Spec.Name]; by != "" {
			return nil, nil, belay.Errorf(belay.CodeBadManifest, "the name %s is taken: %s has a tool of this name", c.Spec.Name, by).At(c.Where).WithHint("rename the tool")
		}
		taken[c.Spec.Name] = c.Where
	}
	return all, ignored, nil
}

// toolsOfPerson reads the manifests in the person's folder: they always count.
func (in Input) toolsOfPerson() (all []manifest.Command, err error) {
	dir := in.ConfigDir()
	if dir == "" {
		return nil, nil
	}
	paths, err := yamlIn(filepath.Join(dir, manifestDir), belay.CodeBadManifest)
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		b, err := files.ReadUpTo(path, MaxManifest)
		if err != nil {
			return nil, unreadable(belay.CodeBadManifest, path, err)
		}
		some, err := manifest.Parse(path, b)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// toolsOfWorkspace reads the manifests of the workspace that are trusted.
func (in Input) toolsOfWorkspace(ctx context.Context) (all []manifest.Command, ignored []Ignored, err error) {
	root, err := files.OpenRoot(in.Workspace)
	if err != nil {
		return nil, nil, nil //nolint:nilerr // the run says it better
	}
	defer root.Close()
	for _, rel := range governedIn(files.Tree(root)) {
		if !strings.HasPrefix(rel, ".belay/"+manifestDir+"/") {
			continue // its reader looks at it
		}
		path, content, standing, err := in.judged(ctx, root, rel, belay.CodeBadManifest)
		if err != nil {
			return nil, nil, err
		}
		if standing != Trusted {
			ignored = append(ignored, Ignored{Where: path, Why: whyIgnored(standing)})
			continue
		}
		some, err := manifest.Parse(path, content)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, some...)
	}
	return all, ignored, nil
}

func whyIgnored(s Standing) string {
	if s == Changed {
		return "it has changed since it was trusted"
	}
	return "it isn't trusted"
}

// standing is how far a file of the workspace is trusted, there or in the
// workspace that it was copied from.
func (in Input) standing(ctx context.Context, rel string, content []byte) (Standing, error) {
	book, err := in.Trust(ctx)
	if err != nil {
		return Unknown, err
	}
	s := book.Check(filepath.Join(in.Workspace, filepath.FromSlash(rel)), content)
	if s != Trusted && in.Origin != "" {
		s = book.Check(filepath.Join(in.Origin, filepath.FromSlash(rel)), content)
	}
	return s, nil
}
