//go:build unix

// Package symlinks looks up where the paths of a call lead. It promises that every
// path that leads elsewhere than its text says is named, whatever links are on
// the way and whether the end exists or not; that it reads no file; and that a
// path which would take too long to look up is reported as unknown. Changes
// after the look aren't seen.
package symlinks

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/policy"
)

// Bounds of one look.
const (
	maxLinks   = 40      // on the way of one path, as the system has it
	maxEntries = 20_000  // of folders that patterns are held against
	maxLooks   = 50_000  // names that are asked about
	maxSwept   = 100_000 // files below a folder that are looked at
	maxSecrets = 3       // of those that are named
)

// Of are the links of a call: on the paths that it names, and on where its
// commands begin. paths are the files that its tool says it names.
func Of(t belay.ToolSpec, args json.RawMessage, paths []string, at policy.Place) []policy.Link {
	if t.Command == nil && len(paths) == 0 || at.Workspace == "" {
		return nil
	}
	at.Links = nil
	if dir := policy.Folder(t, args, at); dir != at.Workspace {
		at.Links = Look(at.Workspace, []string{dir}, false, false)
	}
	return append(at.Links, Look(at.Workspace, policy.Lookups(t, args, paths, at), t.Command != nil, at.Bare)...)
}

// Look returns where absolute paths lead, as far as that isn't what their text says,
// in the order of the paths. What lies in the workspace is given as a path below
// it, as the workspace is spelled. Where patterns count, a path may be one, and
// the links are those of the names that fit it; bare, files that usually hold a
// secret are named too, whether they are links or not.
func Look(workspace string, paths []string, patterns, bare bool) (out []policy.Link) {
	l := looker{seen: map[string]string{}}
	home, err := l.real(workspace)
	if err != nil {
		home = workspace
	}
	for _, p := range paths {
		var ends []end
		folder, swept := strings.CutSuffix(p, policy.Swept)
		switch {
		case swept && bare:
			ends = l.secrets(folder)
		case patterns && strings.ContainsAny(p, "*?["):
			ends = append(l.matches(p), end{path: p})
		default:
			ends = []end{{path: p}}
		}
		for _, e := range ends {
			text, real := path.Clean(e.path), ""
			if !e.unknown {
				if real, err = l.real(e.path); err == nil {
					real = respelled(real, home, workspace)
				}
			}
			link := policy.Link{Path: p, Real: real}
			secret := bare && text != p && real != "" && policy.Secret(real)
			if (e.unknown || secret || real != text && respelled(text, home, workspace) != real) && !slices.Contains(out, link) {
				out = append(out, link)
			}
		}
	}
	return out
}

// respelled is a path of the workspace as the workspace is spelled.
func respelled(p, home, workspace string) string {
	if p == home {
		return workspace
	}
	if rest, ok := strings.CutPrefix(p, strings.TrimSuffix(home, "/")+"/"); ok {
		return path.Join(workspace, rest)
	}
	return p
}

// end is a path that fits a pattern; unknown: not all of them were looked at.
type end struct {
	path    string
	unknown bool
}

// looker remembers what it has seen.
type looker struct {
	seen    map[string]string // path without links → where the link there leads; empty: it is none
	entries int
}

var (
	errLinks = errors.New("too many links, or links in a circle")
	errLooks = errors.New("too many names")
)

// real is where a path leads, without links. What isn't there, or can't be seen,
// is no link.
func (l *looker) real(p string) (string, error) {
	at, todo, links := "/", strings.Split(p, "/"), 0
	for len(todo) > 0 {
		part := todo[0]
		todo = todo[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			at = path.Dir(at)
			continue
		}
		next := path.Join(at, part)
		if next == "/proc" || next == "/dev" { // means something else to each process
			return path.Join(append([]string{next}, todo...)...), nil
		}
		target, err := l.link(next)
		if err != nil {
			return "", err
		}
		if target == "" {
			at = next
			continue
		}
		if links++; links > maxLinks {
			return "", errLinks
		}
		if strings.HasPrefix(target, "/") {
			at = "/"
		}
		todo = append(strings.Split(target, "/"), todo...)
	}
	return at, nil
}

// link is where the link at a path leads; empty when there is none.
func (l *looker) link(p string) (string, error) {
	if target, ok := l.seen[p]; ok {
		return target, nil
	}
	if len(l.seen) >= maxLooks {
		return "", errLooks
	}
	target, err := os.Readlink(p)
	switch {
	case err == nil:
	case errors.Is(err, syscall.EINVAL), errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENAMETOOLONG):
		target = ""
	default:
		return "", err
	}
	l.seen[p] = target
	return target, nil
}

// matches are the names that fit a pattern and are links, or lie behind one. Names
// that begin with a dot fit only what does.
func (l *looker) matches(pattern string) (out []end) {
	at, parts := []string{"/"}, strings.Split(path.Clean(pattern), "/")
	for _, part := range parts {
		if part == "" {
			continue
		}
		var next []string
		for _, dir := range at {
			if !strings.ContainsAny(part, "*?[") {
				next = append(next, path.Join(dir, part))
				continue
			}
			names, err := l.list(dir)
			if err != nil {
				return append(out, end{unknown: true})
			}
			for _, name := range names {
				if fits(part, name) {
					next = append(next, path.Join(dir, name))
				}
			}
		}
		at = next
	}
	for _, p := range at {
		out = append(out, end{path: p})
	}
	return out
}

// secrets are the files below a folder that usually hold a secret, the first few.
// What version control and package managers keep there isn't looked through.
func (l *looker) secrets(folder string) (out []end) {
	if policy.Secret(folder) {
		return []end{{path: folder}}
	}
	names := 0
	err := filepath.WalkDir(folder, func(p string, d fs.DirEntry, err error) error {
		names++
		switch {
		case err != nil:
			return nil //nolint:nilerr // a program can't read it either
		case names > maxSwept:
			return errLooks
		case d.IsDir() && p != folder && (d.Name() == ".git" || d.Name() == "node_modules"):
			return fs.SkipDir
		case !d.IsDir() && policy.Secret(p):
			if out = append(out, end{path: p}); len(out) == maxSecrets {
				return fs.SkipAll
			}
		}
		return nil
	})
	if err != nil {
		out = append(out, end{unknown: true})
	}
	return out
}

// list are the names in a folder, whatever links lead there.
func (l *looker) list(dir string) ([]string, error) {
	f, err := files.OpenDir(dir)
	if err != nil {
		return nil, nil // nothing is there that fits
	}
	defer f.Close()
	names, err := f.Readdirnames(maxEntries - l.entries + 1)
	if l.entries += len(names); l.entries > maxEntries || err != nil && !errors.Is(err, io.EOF) {
		return nil, errLooks // not all of them were looked at
	}
	slices.Sort(names)
	return names, nil
}

// fits holds a name against a part of a pattern. What is in brackets fits anything.
func fits(part, name string) bool {
	if strings.HasPrefix(name, ".") && !strings.HasPrefix(part, ".") {
		return false
	}
	if strings.Contains(part, "[") || strings.Contains(part, `\`) {
		return true
	}
	ok, err := path.Match(part, name)
	return ok || err != nil
}
