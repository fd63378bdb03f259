package config

import (
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config/manifest"
	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/lib/match"
	"github.com/belay-run/belay/internal/lib/netdial"
)

// UserFile is the person's configuration file, which need not exist.
func (e Env) UserFile() (string, error) {
	dir := e.ConfigDir()
	if dir == "" {
		return "", belay.Errorf(belay.CodeUsage, "there is no home directory to keep settings in").At("HOME").WithHint("XDG_CONFIG_HOME names the folder of settings")
	}
	return filepath.Join(dir, configName), nil
}

// inFiles is the row of a setting that files may have.
func inFiles(name string) (*Setting, error) {
	var names []string
	for i := range settings {
		switch s := &settings[i]; {
		case s.Name == name && s.Once:
			return nil, belay.Errorf(belay.CodeUsage, "%s belongs to one call and isn't kept in a file", name).WithHint("--%s", name)
		case s.Name == name:
			return s, nil
		case !s.Once:
			names = append(names, s.Name)
		}
	}
	e := belay.Errorf(belay.CodeUsage, "there is no setting %q", name)
	switch field, _, _ := strings.Cut(name, "."); {
	case manifest.HoldsSecret(name):
		return nil, e.WithHint("belay login VENDOR keeps a key, encrypted")
	case field == "providers" || field == "quotas" || field == "redact":
		return nil, e.WithHint("belay config edit changes what isn't one value")
	}
	return nil, e.WithHint("%s", match.Hint(name, names, "belay config show lists them"))
}

// Change writes settings into the person's file, and takes out those without a value;
// comments stay. A value that is wrong is refused before the file is touched. With
// another provider, the model and the address that the file has for the one before go,
// too: left names what was taken out so.
func (w *Workspace) Change(ctx context.Context, g Given) (left []string, err error) {
	if g, err = w.check(ctx, g); err != nil {
		return nil, err
	}
	err = w.in.editUserFile(ctx, func(path string, old []byte) ([]byte, error) {
		f, err := parseFile(path, old)
		if err != nil {
			return nil, err
		}
		want := withChange(f.Settings, g)
		left = left[:0]
		text := old
		for _, s := range f.Settings { // in the order of the file
			i := slices.IndexFunc(want, func(o manifest.Setting) bool { return o.Name == s.Name })
			if _, given := g[s.Name]; i < 0 && !given {
				left = append(left, s.Name)
			}
			if i < 0 {
				if text, err = manifest.SetSetting(path, text, s.Name, nil); err != nil {
					return nil, err
				}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(g)) {
			if len(g[name]) == 0 {
				continue
			}
			var value any = g.Get(name)
			if setting(name).List {
				value = g[name]
			}
			if text, err = manifest.SetSetting(path, text, name, value); err != nil {
				return nil, err
			}
		}
		return text, sameSettings(path, text, want)
	})
	return left, err
}

// withChange are the settings of a file after a change.
func withChange(have []manifest.Setting, g Given) (want []manifest.Setting) {
	moved := slices.ContainsFunc(have, func(s manifest.Setting) bool {
		return s.Name == "provider" && g.Get("provider") != "" && s.Value != g.Get("provider")
	})
	for _, s := range have {
		if _, given := g[s.Name]; !given && !(moved && (s.Name == "model" || s.Name == "base-url")) {
			want = append(want, s)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(g)) {
		switch {
		case len(g[name]) == 0:
		case setting(name).List:
			want = append(want, manifest.Setting{Name: name, List: g[name]})
		default:
			want = append(want, manifest.Setting{Name: name, Value: g.Get(name)})
		}
	}
	return want
}

// sameSettings refuses a text that says something else than is wanted.
func sameSettings(path string, text []byte, want []manifest.Setting) error {
	f, err := parseFile(path, text)
	if err != nil {
		return err
	}
	by := func(a, b manifest.Setting) int { return strings.Compare(a.Name, b.Name) }
	equal := func(a, b manifest.Setting) bool {
		return a.Name == b.Name && a.Value == b.Value && slices.Equal(a.List, b.List)
	}
	if !slices.EqualFunc(slices.SortedFunc(slices.Values(f.Settings), by), slices.SortedFunc(slices.Values(want), by), equal) {
		return belay.Errorf(belay.CodeBadConfig, "it can't be changed in place without changing something else").At(path).WithHint("belay config edit")
	}
	return nil
}

// check finds the first mistake in the values of settings, and returns them as a file has
// them: a run that takes them from there must find none.
func (w *Workspace) check(ctx context.Context, g Given) (Given, error) {
	g = maps.Clone(g)
	for _, name := range slices.Sorted(maps.Keys(g)) {
		s, err := inFiles(name)
		if err != nil {
			return nil, err
		}
		if g[name], err = s.inFile(g[name]); err != nil {
			return nil, err
		}
	}
	in := w.in
	in.Flags = false
	l := &Layers{w: w, set: map[string]given{}}
	l.given(g)
	p := parser{w: w, in: in, set: l.set, out: Settings{Settings: in.Defaults()}}
	p.all()
	p.fallback()
	if v := g.Get("provider"); v != "" && p.err == nil && !strings.HasPrefix(v, ScriptedPrefix) {
		p.row = setting("provider")
		if _, err := w.Service(v); err != nil {
			p.fail(err)
		}
	}
	if v := g.Get("base-url"); v != "" && p.err == nil {
		p.row = setting("base-url")
		if _, err := netdial.ParseBase(v); err != nil {
			p.fail(err)
		}
	}
	if p.err == nil {
		p.err = w.there(ctx, p.out.Settings)
	}
	if e, ok := errors.AsType[*SettingError](p.err); ok {
		i := slices.IndexFunc(settings, func(s Setting) bool { return s.field() == e.Setting })
		return nil, e.Err.At(settings[i].Name)
	}
	return g, p.err
}

// there reports what settings name that there isn't: a mode that nobody permits, a
// boundary, an agent.
func (w *Workspace) there(ctx context.Context, s belay.Settings) error {
	if s.Mode == belay.ModeBypass || s.Boundary != "" {
		r, err := w.Rules()
		if err == nil {
			err = r.Permit(s, "boundary")
		}
		if err != nil {
			return err
		}
	}
	if s.Agent == "" {
		return nil
	}
	all, err := w.Agents(ctx)
	if err == nil {
		_, err = all.Find(s.Agent)
	}
	return err
}

// inFile are the values of a setting as a file has them: a list separated by commas is one.
func (s *Setting) inFile(values []string) ([]string, error) {
	empty := func(v string) bool { return strings.TrimSpace(v) == "" }
	switch {
	case slices.ContainsFunc(values, empty):
		return nil, belay.Errorf(belay.CodeUsage, "it has no empty value").At(s.Name).WithHint("belay config unset %s takes it out", s.Name)
	case s.List || len(values) < 2:
		return values, nil
	case s.Value == "LIST":
		return []string{strings.Join(values, ",")}, nil
	}
	return nil, belay.Errorf(belay.CodeUsage, "it has one value, and %d were given: %s", len(values), strings.Join(values, ", ")).At(s.Name).
		WithHint("belay config set %s %s", s.Name, values[0])
}

// EditUserFile lets a function change the text of the person's configuration file. What
// it returns is refused, and the file stays, when it has a mistake.
func (e Env) EditUserFile(ctx context.Context, edit func(path string, old []byte) ([]byte, error)) error {
	return e.editUserFile(ctx, func(path string, old []byte) ([]byte, error) {
		text, err := edit(path, old)
		if err == nil {
			_, err = parseFile(path, text)
		}
		return text, err
	})
}

// editUserFile is EditUserFile for one whose result was checked. A file that is a link
// stays one.
func (e Env) editUserFile(ctx context.Context, edit func(path string, old []byte) ([]byte, error)) error {
	path, err := e.UserFile()
	if err != nil {
		return err
	}
	old, err := contentOf(path, maxConfig, belay.CodeBadConfig)
	if err != nil {
		return err
	}
	text, err := edit(path, old)
	if err != nil || string(text) == string(old) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return belay.Errorf(belay.CodeNotWritten, "the folder of settings can't be made: %s", files.Reason(err)).At(filepath.Dir(path)).WithHint("XDG_CONFIG_HOME names another one")
	}
	unlock, err := files.Lock(ctx, filepath.Join(filepath.Dir(path), lockName))
	if err != nil {
		return err
	}
	defer unlock()
	if now, err := contentOf(path, maxConfig, belay.CodeBadConfig); err != nil || string(now) != string(old) {
		return errors.Join(err, belay.Errorf(belay.CodeConflict, "it was changed meanwhile").At(path).WithHint("repeat the command"))
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return files.WriteWhole(files.System{}, path, func(w io.Writer) error { _, err := w.Write(text); return err })
}

// AddServer writes an MCP server into the person's file; comments stay. What is wrong
// with it, or can't be written so that it is read again, is refused before the file is
// touched.
func (e Env) AddServer(ctx context.Context, s Server) error {
	for _, values := range []map[string]string{s.Env, s.Headers} {
		for name, text := range values {
			_, refers := manifest.ParseReference(text[strings.LastIndexByte(text, ' ')+1:])
			if holdsSecret(name) && !refers && !variable.MatchString(text) {
				return belay.Errorf(belay.CodeUsage, "%s would be there for anyone who reads the file", name).WithHint("belay secret set NAME keeps the value; %s=secret:NAME refers to it", name)
			}
		}
	}
	return e.editUserFile(ctx, func(path string, old []byte) ([]byte, error) {
		before, err := parseFile(path, old)
		if err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(before.Servers, func(o manifest.Server) bool { return o.Name == s.Name }); i >= 0 {
			return nil, belay.Errorf(belay.CodeConflict, "there is an MCP server %s already", s.Name).At(before.Servers[i].Where).WithHint("belay mcp remove %s takes it out", s.Name)
		}
		return withServer(path, old, before, s.Name, &s.Server)
	})
}

// RemoveServer takes an MCP server out of the person's file; comments stay.
func (e Env) RemoveServer(ctx context.Context, name string) error {
	return e.editUserFile(ctx, func(path string, old []byte) ([]byte, error) {
		before, err := parseFile(path, old)
		if err != nil {
			return nil, err
		}
		var names []string
		for _, s := range before.Servers {
			names = append(names, s.Name)
		}
		if !slices.Contains(names, name) {
			return nil, belay.Errorf(belay.CodeNotFound, "there is no MCP server %q in the file", name).At(path).WithHint("%s", match.Hint(name, names, "belay mcp show says which file describes a server"))
		}
		return withServer(path, old, before, name, nil)
	})
}

// withServer is a file with an MCP server of a name, or without it. A text that says
// something else than is wanted is refused.
func withServer(path string, old []byte, before manifest.File, name string, s *manifest.Server) ([]byte, error) {
	text, err := manifest.SetServer(path, old, name, s)
	if err != nil {
		return nil, err
	}
	if err := sameSettings(path, text, before.Settings); err != nil {
		return nil, err
	}
	after, err := parseFile(path, text)
	if err != nil {
		return nil, err
	}
	said := func(all []manifest.Server) (lines []string) {
		for _, o := range all {
			if s == nil || o.Name != name {
				lines = append(lines, o.Name+" "+o.String())
			}
		}
		return lines
	}
	want := slices.DeleteFunc(said(before.Servers), func(l string) bool { return strings.HasPrefix(l, name+" ") })
	i := slices.IndexFunc(after.Servers, func(o manifest.Server) bool { return o.Name == name })
	if !slices.Equal(want, said(after.Servers)) || s != nil && (i < 0 || !s.Same(&after.Servers[i])) {
		return nil, belay.Errorf(belay.CodeBadConfig, "it can't be changed in place without changing something else").At(path).WithHint("belay config edit")
	}
	return text, nil
}
