package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/config/rulefile"
	"github.com/belay-run/belay/internal/config/trust"
	"github.com/belay-run/belay/internal/hook"
	"github.com/belay-run/belay/internal/lib/netdial"
	"github.com/belay-run/belay/internal/lib/readfile"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/file"
)

// systemPolicy are the rules of a machine's administrator.
const systemPolicy = "/etc/belay/policy.yaml"

// policyName is the file's name in the folders of a person and a workspace, and
// policyDir the folder beside a person's with more of them.
const (
	policyName = "policy.yaml"
	policyDir  = "policy.d"
)

// ruleLayers are the rules that count in a workspace, as the files were when
// they were read.
type ruleLayers struct {
	set     *policy.Set
	raw     []byte // the stored set; nil: there are no rules
	strange bool   // the workspace's files are untrusted
}

// ref names the set as content.
func (g *ruleLayers) ref() belay.Ref {
	return belay.Ref{Digest: g.set.Digest(), Size: int64(len(g.raw)), Media: "application/json"}
}

// permits refuses a mode that needs a permission which wasn't given.
func (g *ruleLayers) permits(m belay.Mode) error {
	if m != belay.ModeBypass || g.set.Permits(m) {
		return nil
	}
	return belay.Errorf(belay.CodeRefusedMode, "bypass runs everything without asking: it needs an administrator's rule that permits it").
		At("--mode").WithHint("--mode accept_edits, and --allow TOOL for what it may do besides; %s can hold such a rule", systemPolicy)
}

// governs reads the rules of a workspace: of the machine, of the person and of
// the workspace itself. It reads them each time, so that a turn begins under what
// the files say then.
func (a *app) governs(ctx context.Context, ws string, specs []belay.ToolSpec) (*ruleLayers, error) {
	l, err := a.layers(ctx, ws, ruleFiles{})
	if err != nil {
		return nil, err
	}
	g := &ruleLayers{set: policy.Builtin(), strange: !a.trustsFolder(l.Trusted(), ws)}
	a.sayRulesIgnored(l.Ignored())
	if l.Empty() {
		return g, nil
	}
	if g.set, err = l.Set(groupsOf(specs)); err != nil {
		return nil, err
	}
	g.raw, err = g.set.Encode()
	return g, err
}

// layers reads the files that count in a workspace, those of one tier perhaps
// replaced by others.
func (a *app) layers(ctx context.Context, ws string, instead ruleFiles) (*rulefile.Layers, error) {
	l := newLayers()
	for _, of := range []struct {
		tier policy.Tier
		read func() error
	}{
		{policy.TierAdmin, func() error { return addRules(l, systemPolicy, policy.TierAdmin) }},
		{policy.TierUser, func() error { return a.rulesOfPerson(l) }},
		{policy.TierWorkspace, func() error { return a.rulesOfWorkspace(ctx, l, ws) }},
	} {
		read := of.read
		if len(instead.Rules) > 0 && instead.As == of.tier {
			read = func() error { return a.addNamed(l, instead) }
		}
		if err := read(); err != nil {
			return nil, err
		}
	}
	return l, nil
}

func newLayers() *rulefile.Layers {
	return &rulefile.Layers{Read: func(path string) ([]byte, error) { return readfile.UpTo(path, rulefile.MaxBytes) }}
}

// addRules takes a file of rules, if there is one.
func addRules(l *rulefile.Layers, path string, tier policy.Tier) error {
	b, err := readfile.UpTo(path, rulefile.MaxBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return belay.Errorf(belay.CodeBadPolicy, "it can't be read: %s", readfile.Reason(err)).At(path).WithHint("repair the file or move it away; nothing runs without the rules")
	}
	return l.Add(path, b, tier, true)
}

func (a *app) rulesOfPerson(l *rulefile.Layers) error {
	dir := a.configDir()
	if dir == "" {
		return nil
	}
	if err := addRules(l, filepath.Join(dir, policyName), policy.TierUser); err != nil {
		return err
	}
	more, err := os.ReadDir(filepath.Join(dir, policyDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return belay.Errorf(belay.CodeBadPolicy, "the folder can't be read: %s", readfile.Reason(err)).At(filepath.Join(dir, policyDir)).WithHint("repair the folder or move it away")
	}
	for _, e := range more {
		if ext := filepath.Ext(e.Name()); ext != ".yaml" && ext != ".yml" || e.IsDir() {
			continue
		}
		if err := addRules(l, filepath.Join(dir, policyDir, e.Name()), policy.TierUser); err != nil {
			return err
		}
	}
	return nil
}

// rulesOfWorkspace reads the workspace's own file: rules that narrow count at
// once, the rest only if the file is trusted at its current content.
func (a *app) rulesOfWorkspace(ctx context.Context, l *rulefile.Layers, ws string) error {
	root, err := os.OpenRoot(ws)
	if err != nil {
		return nil // the run says it better
	}
	defer root.Close()
	rel := ".belay/" + policyName
	path := filepath.Join(ws, filepath.FromSlash(rel))
	if _, err := root.Lstat(rel); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	content, err := file.Content(ctx, root, rel, maxManifest)
	if err != nil {
		return belay.Errorf(belay.CodeBadPolicy, "it can't be read: %v", err).At(path).WithHint("repair the file or move it away; nothing runs without the rules")
	}
	book, err := a.book(ctx)
	if err != nil {
		return err
	}
	return l.Add(path, content, policy.TierWorkspace, a.trustOf(book, ws, rel, content) == trust.Trusted)
}

// sayRulesIgnored names, once per process, what doesn't count.
func (a *app) sayRulesIgnored(ignored []rulefile.Ignored) {
	if a.JSON {
		return
	}
	for _, i := range ignored {
		text := fmt.Sprintf("%s: %s is ignored: it would widen permissions, and the file isn't trusted (belay trust)", term.Line(i.Where), term.Line(i.What))
		if slices.Contains(a.told, text) {
			continue
		}
		a.told = append(a.told, text)
		fmt.Fprintln(a.Err, text)
	}
}

// trustsFolder reports whether a person trusts the files of a folder, or of one
// above it. A worktree is trusted like the workspace that it was made from.
func (a *app) trustsFolder(globs []string, ws string) bool {
	for _, g := range globs {
		if rest, ok := strings.CutPrefix(g, "~/"); ok {
			g = filepath.Join(a.Getenv("HOME"), rest)
		}
		for _, dir := range []string{ws, a.origin[ws]} {
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

// checkers asks what judges calls besides the rules. Who wrote a checker into the
// rules may name a server of this machine.
func (a *app) checkers() *hook.Runner {
	env := []string{}
	for _, name := range []string{"HOME", "LANG", "TMPDIR"} {
		if v := a.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return &hook.Runner{Env: env, Client: netdial.Client(netdial.Rules{Loopback: true, Private: true})}
}

// lookedFor is what shadowed said of a workspace, and when.
type lookedFor struct {
	mu       sync.Mutex
	path, ws string
	at       time.Time
	shadowed bool
}

// shadowed is shadowed of the process's own PATH, as it was a second ago at most:
// a crowd of turns looks at its folders once.
func (a *app) shadowed(ws string) bool {
	path, now := a.Getenv("PATH"), a.Now()
	was := &a.looked
	was.mu.Lock()
	defer was.mu.Unlock()
	if was.path != path || was.ws != ws || now.Sub(was.at).Abs() > time.Second {
		was.path, was.ws, was.at, was.shadowed = path, ws, now, shadowed(path, ws)
	}
	return was.shadowed
}

// shadowed reports whether programs are looked for in a folder that is the
// workspace's own, or is another one wherever a program runs.
func shadowed(path, ws string) bool {
	return slices.ContainsFunc(filepath.SplitList(path), func(dir string) bool {
		if !filepath.IsAbs(dir) {
			return true
		}
		rel, err := filepath.Rel(ws, realAncestor(dir))
		return err == nil && filepath.IsLocal(rel)
	})
}
