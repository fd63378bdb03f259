package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/config/trust"
	"github.com/belay-run/belay/internal/core/session"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/tool"
	commands "github.com/belay-run/belay/internal/tool/command"
	"github.com/belay-run/belay/internal/tool/exec"
)

// place is a workspace as this process works in it: what counts there, and the
// tools that are made of it.
type place struct {
	*config.Workspace
	set *tool.Set
}

// environment is what this process was started with.
func (a *app) environment() config.Env { return config.Env{Vars: a.Environ, Dir: a.Dir} }

// input is what a workspace is read with.
func (a *app) input(ws string) config.Input {
	specs := make([]belay.ToolSpec, len(a.builtin()))
	for i, t := range a.builtin() {
		specs[i] = t.Spec()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return config.Input{
		Env: a.environment(), Workspace: ws, Origin: a.origin[ws], Tools: specs, Secrets: a.secrets(), Hosts: &a.hosts, Now: a.Now, Trust: a.book,
		Usable: func(w *config.Workspace, s belay.Settings) error {
			_, err := a.provider(w, s)
			return err
		},
		Interactive: a.Interactive(), Shell: exec.OfSession(), Flags: !a.serves,
	}
}

// furnish makes the tools of a workspace.
func (a *app) furnish(w *config.Workspace) (*place, error) {
	declared, err := w.Commands()
	if err != nil {
		return nil, err
	}
	set, err := tool.NewSet(slices.Concat(a.builtin(), commands.Tools(declared, a.Environ))...)
	return &place{w, set}, err
}

// place reads a workspace, once per process: a run is decided by what was there.
func (a *app) place(ctx context.Context, ws string) (*place, error) {
	a.mu.Lock()
	p := a.places[ws]
	a.mu.Unlock()
	if p != nil {
		return p, nil
	}
	p, err := a.furnish(config.Resolve(ctx, a.input(ws)))
	if err == nil {
		a.keep(ws, p)
	}
	return p, err
}

func (a *app) keep(ws string, p *place) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.places == nil {
		a.places = map[string]*place{}
	}
	a.places[ws] = p
}

// again reads a workspace's settings and rules again, and what is trusted. Its
// tools and providers stay what they were.
func (a *app) again(ctx context.Context, ws string) (*place, error) {
	a.forgetTrust()
	a.mu.Lock()
	p := a.places[ws]
	a.mu.Unlock()
	if p == nil {
		return a.place(ctx, ws)
	}
	p = &place{p.Again(ctx, a.input(ws)), p.set}
	a.keep(ws, p)
	return p, nil
}

// enter makes a workspace the one that this process works in, and says which files
// of tools are ignored.
func (a *app) enter(ctx context.Context, ws string) (*place, error) {
	p, err := a.place(ctx, ws)
	if err != nil {
		return nil, err
	}
	a.sayIgnored(p.IgnoredTools())
	a.settle(p)
	return p, nil
}

func (a *app) settle(p *place) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.here = p
}

// current is the workspace that was entered last; nil: none was.
func (a *app) current() *place {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.here
}

// enterHere enters the workspace of this command, or none where there is none: a
// command that needs one reports it.
func (a *app) enterHere(ctx context.Context) (*place, error) {
	ws, err := a.workspace()
	if err != nil {
		ws = ""
	}
	return a.enter(ctx, ws)
}

// sayIgnored says, once per process, what doesn't count in files of a workspace.
func (a *app) sayIgnored(all []config.Ignored) {
	for _, i := range all {
		text := fmt.Sprintf("%s: %s is ignored: %s", term.Line(i.Where), term.Line(i.What), i.Why)
		if i.What == "" {
			text = fmt.Sprintf("%s is ignored: %s; belay trust %s%s", term.Line(i.Where), i.Why, term.Quoted(i.Where), a.StoreFlag)
		}
		if a.JSON || slices.Contains(a.said, text) {
			continue
		}
		a.said = append(a.said, text)
		fmt.Fprintln(a.Err, text)
	}
}

// toolsIn is the engine's look at the workspaces that were read.
func (a *app) toolsIn(ws string) *tool.Set {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p := a.places[ws]; p != nil {
		return p.set
	}
	return nil
}

// trustAsOrigin records that a workspace is a worktree of another: what is trusted
// there is trusted here, as long as its content is the same.
func (a *app) trustAsOrigin(worktree, ws string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.origin == nil {
		a.origin = map[string]string{}
	}
	a.origin[worktree] = ws
}

// inRepository is trustAsOrigin for a session that exists.
func (a *app) inRepository(s *session.State) {
	if t := s.Worktree; t != nil {
		if inside, err := filepath.Rel(t.Path, s.Workspace); err == nil {
			a.trustAsOrigin(s.Workspace, filepath.Join(t.Repository, inside))
		}
	}
}

// book is what is trusted in the store, read once per process; nothing, if there
// is no store yet.
func (a *app) book(ctx context.Context) (*trust.Book, error) {
	a.bookMu.Lock()
	defer a.bookMu.Unlock()
	if a.trusted != nil {
		return a.trusted, nil
	}
	st := a.opened
	if st == nil {
		dir, err := a.storeDir()
		if err != nil || !hasStore(dir) {
			return nil, err
		}
		if st, err = a.open(ctx, false); err != nil {
			return nil, err
		}
		a.opened = nil
		defer st.Close()
	}
	var err error
	a.trusted, err = trust.Read(ctx, st)
	return a.trusted, err
}

func (a *app) forgetTrust() {
	a.bookMu.Lock()
	defer a.bookMu.Unlock()
	a.trusted = nil
}

// layers lays the settings of a new session over each other, and says what of
// files doesn't count.
func (a *app) layers(p *place, g config.Given) (*config.Layers, error) {
	l, err := p.Layers(g)
	if err == nil {
		a.sayIgnored(l.Ignored())
	}
	return l, err
}

// fresh are the settings of a new session.
func (a *app) fresh(p *place, g config.Given) (config.Settings, error) {
	l, err := a.layers(p, g)
	if err != nil {
		return config.Settings{}, err
	}
	s, err := l.Settings()
	if s.Mode == belay.ModeBypass || s.Boundary != "" {
		a.sayIgnored(p.IgnoredRules())
	}
	return s, err
}

// rulesOf are the rules that count in a workspace; it says which don't.
func (a *app) rulesOf(w *config.Workspace) (*config.Rules, error) {
	a.sayIgnored(w.IgnoredRules())
	return w.Rules()
}

// instruct puts a workspace's instructions into rules and records which they are
// and which were left out.
func (r *runtime) instruct(ctx context.Context, p *place, rules *thread.Rules) error {
	all, omitted := p.Instructions()
	for _, o := range omitted {
		rules.LeftOut = append(rules.LeftOut, event.ContextOmission{Kind: "instruction", Name: o.Name, Reason: o.Reason})
	}
	var text strings.Builder
	for _, i := range all {
		clean := r.scrub([]byte(i.Text))
		ref, err := r.Store.Put(ctx, clean, "text/markdown")
		if err != nil {
			return err
		}
		i.Text = string(clean)
		text.WriteString(i.String())
		rules.Context = append(rules.Context, event.ContextItem{Kind: "instruction", Name: i.Name, Ref: &ref, Scope: i.Scope})
	}
	if text.Len() > 0 {
		rules.System = strings.TrimRight(rules.System, "\n") + "\n\n# Instructions of this place\n" + text.String()
	}
	return nil
}

// settingError names the part of a request that an error about a setting is about.
func settingError(err error) error {
	if e, ok := errors.AsType[*config.SettingError](err); ok {
		return input.At("settings."+e.Setting, e.Err)
	}
	return err
}
