package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/config/trust"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/tool/exec"
)

// environment is what this process was started with.
func (a *app) environment() config.Env { return config.Env{Vars: a.Environ, Dir: a.Dir} }

// input is what a workspace is read with.
func (a *app) input(ws string) config.Input {
	specs := make([]belay.ToolSpec, len(a.workspaces().builtin))
	for i, t := range a.workspaces().builtin {
		specs[i] = t.Spec()
	}
	return config.Input{
		Env: a.environment(), Workspace: ws, Origin: a.workspaces().originOf(ws), Tools: specs, Secrets: a.secrets(), Hosts: &a.hosts, Now: a.Now, Trust: a.workspaces().trust,
		Usable: func(w *config.Workspace, s belay.Settings) error {
			_, err := a.providers().provider(w, s)
			return err
		},
		Interactive: a.Interactive(), Shell: exec.OfSession(), Flags: !a.serves,
	}
}

// workspaces are those that this process has read.
func (a *app) workspaces() *places {
	a.making.Do(a.assemble)
	return &a.read
}

// providers finds providers of models.
func (a *app) providers() *models {
	a.making.Do(a.assemble)
	return &a.models
}

// assemble gives the parts of the app what they need of each other.
func (a *app) assemble() {
	a.read.input, a.read.builtin, a.read.book = a.input, a.builtin(), a.book
	a.models.env, a.models.secrets, a.models.now, a.models.here = a.environment(), a.secrets(), a.Now, a.read.current
}

// enter makes a workspace the one that this process works in, and says which files
// of tools are ignored.
func (a *app) enter(ctx context.Context, ws string) (*place, error) {
	p, err := a.workspaces().get(ctx, ws)
	if err != nil {
		return nil, err
	}
	a.sayIgnored(p.IgnoredTools())
	a.workspaces().settle(p)
	return p, nil
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

// book is what is trusted in the store; nothing, if there is no store yet.
func (a *app) book(ctx context.Context) (*trust.Book, error) {
	if a.opened != nil {
		return trust.Read(ctx, a.opened)
	}
	dir, err := a.storeDir()
	if err != nil || !hasStore(dir) {
		return nil, err
	}
	st, err := a.open(ctx, false)
	if err != nil {
		return nil, err
	}
	a.opened = nil
	defer st.Close()
	return trust.Read(ctx, st)
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
