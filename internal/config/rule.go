package config

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config/rulefile"
	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/tool"
)

// systemDir has the files of a machine's administrator.
const systemDir = "/etc/belay"

// policyName is the file's name in the folders of the machine, a person and a
// workspace, and policyDir the folder beside a person's with more of them.
const (
	policyName = "policy.yaml"
	policyDir  = "policy.d"
)

// lockName is the file in the folder of a person's settings that one who changes them holds.
const lockName = "belay.lock"

// Rules are the rules that count in a workspace, ready to judge.
type Rules struct {
	*policy.Set
	Raw       []byte // the set as it is stored; nil: there are none but the built-in ones
	Untrusted bool   // the workspace's own files are
	in        Input
}

// Ref names the set as content.
func (r *Rules) Ref() belay.Ref {
	return belay.Ref{Digest: r.Digest(), Size: int64(len(r.Raw)), Media: "application/json"}
}

// Permit refuses a mode that needs a permission which wasn't given, and the name of
// a boundary that there isn't; from is where that is named.
func (r *Rules) Permit(s belay.Settings, from string) error {
	if s.Mode == belay.ModeBypass && !r.Permits(s.Mode) {
		f := r.in.flag
		return r.in.about(setting("mode"), "", belay.Errorf(belay.CodeRefusedMode, "bypass runs everything without asking: it needs an administrator's rule that permits it").
			WithHint("%s accept_edits, and %s TOOL for what it may do besides; %s can hold such a rule", f("mode"), f("allow"), filepath.Join(systemDir, policyName)))
	}
	if _, ok := r.Bound(s.Boundary); ok || s.Boundary == "" {
		return nil
	}
	return r.in.about(setting("boundary"), from, belay.Errorf(belay.CodeUsage, "there is no boundary %q", s.Boundary).
		WithHint("the boundaries are %s; boundaries: of a policy.yaml declares more", strings.Join(r.Boundaries(), ", ")))
}

// RuleFiles are the files of rules that count in the workspace.
func (w *Workspace) RuleFiles() (*rulefile.Layers, error) { return w.layers, w.rulesErr }

// IgnoredRules are what files of rules say that doesn't count.
func (w *Workspace) IgnoredRules() []Ignored { return ignoredIn(w.layers) }

// ignoredIn is what doesn't count in some files of rules, which may be none.
func ignoredIn(l *rulefile.Layers) (out []Ignored) {
	if l == nil {
		return nil
	}
	for _, i := range l.Ignored() {
		out = append(out, Ignored{Where: i.Where, What: i.What, Why: "it would widen permissions, and the file isn't trusted (belay trust)"})
	}
	return out
}

// Rules are the rules that count in the workspace. They are compiled once.
func (w *Workspace) Rules() (*Rules, error) { return w.compiled() }

func (w *Workspace) compileOnce() func() (*Rules, error) {
	return sync.OnceValues(func() (*Rules, error) {
		if w.rulesErr != nil {
			return nil, w.rulesErr
		}
		set, err := w.compile(w.layers)
		if err != nil {
			return nil, err
		}
		r := &Rules{Set: set, Untrusted: !w.in.trustsFolder(w.layers.Trusted()), in: w.in}
		if !w.layers.Empty() {
			r.Raw, err = r.Encode()
		}
		return r, err
	})
}

// compile makes rules of files; without files they are the built-in ones.
func (w *Workspace) compile(l *rulefile.Layers) (*policy.Set, error) {
	if l.Empty() {
		return policy.Builtin(), nil
	}
	return l.Set(w.Groups())
}

// RulesWith returns what reads and compiles the rules that count in the workspace, the
// files of one tier perhaps replaced. It says which don't count.
func (w *Workspace) RulesWith(say func([]Ignored)) func(context.Context, rulefile.Instead) (*policy.Set, error) {
	return func(ctx context.Context, instead rulefile.Instead) (*policy.Set, error) {
		l, err := w.in.readRules(ctx, instead)
		if err != nil {
			return nil, err
		}
		say(ignoredIn(l))
		return w.compile(l)
	}
}

// NamedRules reads the files of rules that a person named; each must exist.
func (e Env) NamedRules(names []string, tier policy.Tier) (rulefile.Instead, error) {
	all := rulefile.Instead{Tier: tier, Read: readRuleFile}
	for _, name := range names {
		path := e.Abs(name)
		b, err := readRuleFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return all, belay.Errorf(belay.CodeNotFound, "there is no such file").At(name).WithHint("name a file of rules; docs/policy.md describes the form")
		}
		if err != nil {
			return all, belay.Errorf(belay.CodeBadPolicy, "it can't be read: %s", files.Reason(err)).At(name).WithHint("name a file of rules; docs/policy.md describes the form")
		}
		all.Files = append(all.Files, rulefile.File{Path: path, Content: b})
	}
	return all, nil
}

// readRules reads the files of rules of the machine, the person and the workspace.
func (in Input) readRules(ctx context.Context, instead rulefile.Instead) (*rulefile.Layers, error) {
	l := &rulefile.Layers{Read: readRuleFile}
	for _, of := range []struct {
		tier policy.Tier
		read func() error
	}{
		{policy.TierAdmin, func() error { return addRules(l, filepath.Join(systemDir, policyName), policy.TierAdmin) }},
		{policy.TierUser, func() error { return in.rulesOfPerson(l) }},
		{policy.TierWorkspace, func() error { return in.rulesOfWorkspace(ctx, l) }},
	} {
		placed := len(instead.Files) > 0 && instead.Tier == of.tier
		if !placed || instead.Beside {
			if err := of.read(); err != nil {
				return nil, err
			}
		}
		if placed {
			if err := l.Place(instead); err != nil {
				return nil, err
			}
		}
	}
	return l, nil
}

func readRuleFile(path string) ([]byte, error) { return files.ReadUpTo(path, rulefile.MaxBytes) }

// KeepRules keeps rules in a file of their own beside a person's other ones, if ready
// says nothing against it, and returns its path. A file that is there stays; had reports
// that it has this content. One after another is kept: ready sees those before.
func (e Env) KeepRules(ctx context.Context, name string, content []byte, ready func() error) (path string, had bool, err error) {
	dir := e.ConfigDir()
	if dir == "" {
		return "", false, belay.Errorf(belay.CodeUsage, "there is no home directory to keep rules in").At("HOME").WithHint("XDG_CONFIG_HOME names the folder of settings")
	}
	path = filepath.Join(dir, policyDir, name+".yaml")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", false, belay.Errorf(belay.CodeUsage, "the folder of rules can't be made: %s", files.Reason(err)).At(filepath.Dir(path)).WithHint("make it, for the server to write in")
	}
	unlock, err := files.Lock(ctx, filepath.Join(dir, lockName))
	if err != nil {
		return "", false, err
	}
	defer unlock()
	switch have, err := readRuleFile(path); {
	case err == nil && bytes.Equal(have, content):
		return path, true, nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", false, belay.Errorf(belay.CodeConflict, "there are rules already").At(path).WithHint("give the rule another id, or change that file by hand")
	}
	if err := ready(); err != nil {
		return "", false, err
	}
	return path, false, files.WriteWhole(files.System{}, path, func(w io.Writer) error { _, err := w.Write(content); return err })
}

// addRules takes a file of rules, if there is one.
func addRules(l *rulefile.Layers, path string, tier policy.Tier) error {
	b, err := contentOf(path, rulefile.MaxBytes, belay.CodeBadPolicy)
	if b == nil || err != nil {
		return err
	}
	return l.Add(path, b, tier, true)
}

func (in Input) rulesOfPerson(l *rulefile.Layers) error {
	dir := in.ConfigDir()
	if dir == "" {
		return nil
	}
	more, err := yamlIn(filepath.Join(dir, policyDir), belay.CodeBadPolicy)
	if err != nil {
		return err
	}
	for _, path := range append([]string{filepath.Join(dir, policyName)}, more...) {
		if err := addRules(l, path, policy.TierUser); err != nil {
			return err
		}
	}
	return nil
}

// rulesOfWorkspace reads the workspace's own file: rules that narrow count at
// once, the rest only if the file is trusted at its current content.
func (in Input) rulesOfWorkspace(ctx context.Context, l *rulefile.Layers) error {
	root, err := files.OpenRoot(in.Workspace)
	if err != nil {
		return nil //nolint:nilerr // the run says it better
	}
	defer root.Close()
	rel := ".belay/" + policyName
	if _, err := root.Lstat(rel); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	path, content, standing, err := in.judged(ctx, root, rel, belay.CodeBadPolicy)
	if err != nil {
		return err
	}
	return l.Add(path, content, policy.TierWorkspace, standing == Trusted)
}

// trustsFolder reports whether a person trusts the files of the workspace's folder,
// or of one above it. A worktree is trusted like the workspace that it was made from.
func (in Input) trustsFolder(globs []string) bool {
	for _, g := range globs {
		if rest, ok := strings.CutPrefix(g, "~/"); ok {
			g = filepath.Join(in.Get("HOME"), rest)
		}
		for _, dir := range []string{in.Workspace, in.Origin} {
			for dir != "" && dir != "." {
				if policy.Glob(g, filepath.ToSlash(dir)) {
					return true
				}
				if up := filepath.Dir(dir); up != dir {
					dir = up
					continue
				}
				break
			}
		}
	}
	return false
}

// groupsOf are the groups of tools as rules may name them.
func groupsOf(specs []belay.ToolSpec) []policy.Group {
	var out []policy.Group
	for _, g := range tool.Groups() {
		out = append(out, policy.Group{Name: g.Name, Tools: tool.Expand("group:"+g.Name, specs)})
	}
	for _, s := range specs {
		if s.Group != "" && !slices.ContainsFunc(out, func(g policy.Group) bool { return g.Name == s.Group }) {
			out = append(out, policy.Group{Name: s.Group, Tools: tool.Expand("group:"+s.Group, specs)})
		}
	}
	return out
}

// shadowedFor is how long it counts whether programs are shadowed: a crowd of
// turns looks at its folders once.
const shadowedFor = time.Second

// shadowed reports whether programs are looked for in a folder that is the
// workspace's own, or is another one wherever a program runs.
func shadowed(path, ws string) bool {
	return slices.ContainsFunc(filepath.SplitList(path), func(dir string) bool {
		if !filepath.IsAbs(dir) {
			return true
		}
		rel, err := filepath.Rel(ws, RealAncestor(dir))
		return err == nil && filepath.IsLocal(rel)
	})
}
