// Package work has the commands that give agents work and see it through: run, resume,
// the queue, rollbacks, single calls, templates and many sessions at once. It promises
// that work is accepted before anything of it is driven.
package work

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/agents"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/config"
)

// RunCmd is the command "belay run".
type RunCmd struct {
	command.SettingFlags
	command.CheckFlags
	Sources
	Session   string   `placeholder:"ID" help:"Give it to a session that exists."`
	Continue  bool     `short:"c" help:"Give it to the last session of this workspace."`
	NewThread bool     `help:"With a session: work on it in a thread of its own, also while another one runs."`
	Worktree  bool     `help:"Work in a git worktree of its own, on a new branch."`
	Input     string   `placeholder:"JSON" help:"Data that the agent is started with."`
	Condition []string `placeholder:"NAME" help:"Of the agent's file, do the tasks of this condition too; may be repeated."`
	Title     string   `placeholder:"TEXT" help:"The session's title; the first line of the task."`
	Text      []string `arg:"" optional:"" help:"What to do; - or nothing reads it from standard input."`
}

// Run implements command.Command.
func (c *RunCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	if c.Session != "" && c.Continue {
		return 0, belay.Errorf(belay.CodeUsage, "--session names one session, --continue another").At("--continue").WithHint("leave one of them out")
	}
	if c.Worktree && (c.Session != "" || c.Continue) {
		return 0, belay.Errorf(belay.CodeUsage, "a session that exists keeps its workspace").At("--worktree").WithHint("leave --worktree out, or begin a new session")
	}
	if len(c.Condition) > 0 && (c.Session != "" || c.Continue || len(c.Text) > 0 || c.Template != "") {
		return 0, belay.Errorf(belay.CodeUsage, "a condition adds to the tasks of an agent's file, which a new session does").At("--condition").WithHint("leave the text, --template and --session out")
	}
	if c.Session != "" || c.Continue {
		return c.again(ctx, a)
	}
	if c.NewThread {
		return 0, belay.Errorf(belay.CodeUsage, "a new session has one thread").At("--new-thread").WithHint("--session ID or --continue names the session")
	}
	ws, p, err := a.EnterChecked(ctx)
	if err != nil {
		return 0, err
	}
	choices, err := a.WithModel(ctx, p, c.Given())
	if err != nil {
		return 0, err
	}
	settings, err := a.Fresh(p, choices)
	if err != nil {
		return 0, err
	}
	if err := a.Keepable(ctx, ws, settings); err != nil {
		return 0, err
	}
	if does, err := c.ofFile(ctx, p, settings.Agent); does || err != nil {
		if err != nil {
			return 0, err
		}
		return (&AgentsRunCmd{SettingFlags: c.SettingFlags, Input: c.Input, Condition: c.Condition, Text: strings.Join(c.Text, " "), Names: []string{settings.Agent}}).Run(ctx, a)
	}
	task, err := given(ctx, a, c, p, settings)
	if err != nil {
		return 0, err
	}
	w, err := newWork(ctx, a, true)
	if err != nil {
		return 0, err
	}
	defer w.close()
	w.strict = c.FailOnDenied
	if err := w.begin(ctx, ws, c.title(a, task.Text), settings, task, c.Worktree); err != nil {
		return 0, err
	}
	return w.see(ctx)
}

// ofFile reports whether the work is that of the agent's file: a team's, or, without a
// text, its tasks one after the other.
func (c *RunCmd) ofFile(ctx context.Context, p *app.Place, name string) (bool, error) {
	if len(c.Condition) > 0 && name == "" {
		return false, belay.Errorf(belay.CodeUsage, "a condition adds tasks of an agent's file").At("--condition").WithHint("--agent NAME names the agent")
	}
	if name == "" || c.Worktree {
		return false, nil
	}
	cat, err := p.Agents(ctx)
	if err != nil {
		return false, err
	}
	a, err := cat.Find(name)
	if err != nil { // who makes the rules of the turn meets it
		return false, nil
	}
	return len(a.Members) > 0 || len(a.Tasks)+len(c.Condition) > 0 && len(c.Text) == 0 && c.Template == "" && len(c.Attach) == 0, nil
}

// given is the task, if the model can take it.
func given(ctx context.Context, a *command.Program, c *RunCmd, p *app.Place, settings config.Settings) (Task, error) {
	words := c.Text
	if len(words) == 0 && c.Input != "" && settings.Agent != "" && c.Template == "" {
		words = []string{agents.OwnPart}
	}
	t, err := task(ctx, a, words, c.Sources, p.Path())
	if piped := len(c.Text) == 0 || slices.Equal(c.Text, []string{"-"}); err == nil && t.Template == nil && !piped { // a text from a pipe names nothing
		err = a.Mentioned(ctx, p.Path(), &t.Given)
	}
	if err != nil {
		return t, err
	}
	if c.Input != "" || settings.Agent != "" {
		cat, err := p.Agents(ctx)
		if starts := c.Session == "" && !c.Continue; err == nil {
			if starts && t.Template == nil {
				t.Text = cat.Worded(settings.Agent, t.Text)
			}
			t.Text, err = cat.Told(settings.Agent, t.Text, json.RawMessage(c.Input), starts)
		}
		if e, ok := errors.AsType[*belay.Error](err); ok && e.Where == "" {
			err = e.At("--input")
		}
		if err != nil {
			return t, err
		}
	}
	if t.Acceptance, err = c.Checks(a); err != nil {
		return t, err
	}
	return t, t.CheckTaken(a.Models().Routes(p.Workspace, settings.Settings))
}

// title is what lists call the session. Secrets go before it is cut: half of one
// is one too.
func (c *RunCmd) title(a *command.Program, task string) string {
	title := c.Title
	if title == "" {
		title, _, _ = strings.Cut(task, "\n")
	}
	return term.Short(strings.TrimSpace(a.Secrets().String(title)), 80)
}

// again gives a session that exists something more to do. A mode for the queue is
// the task's own, and lets it be given to a session that is busy.
func (c *RunCmd) again(ctx context.Context, a *command.Program) (int, error) {
	g := c.SettingFlags.Given()
	queue := g.Get("queue")
	if delete(g, "queue"); queue != "" && c.NewThread {
		return 0, belay.Errorf(belay.CodeUsage, "on a thread of its own nothing comes before it").At("--queue").WithHint("leave --queue or --new-thread out")
	}
	own, err := config.Queueing(belay.Queueing{}, config.Given{"queue": {queue}}, nil)
	if err != nil {
		return 0, err
	}
	mode := own.Mode // empty: its session mustn't be busy
	w, s, p, err := openSession(ctx, a, c.Session, c.NewThread || mode != "")
	if err != nil {
		return 0, err
	}
	defer w.close()
	w.strict = c.FailOnDenied
	settings, err := a.Over(p, s.Settings, g)
	if err != nil {
		return 0, err
	}
	if err := a.Keepable(ctx, w.workspace, settings); err != nil {
		return 0, err
	}
	task, err := given(ctx, a, c, p, settings)
	if err != nil {
		return 0, err
	}
	switch {
	case c.NewThread:
		err = w.submitOnNewThread(ctx, s, settings, task)
	case mode != "":
		err = w.behind(ctx, s, settings, task, mode)
	default:
		err = w.after(ctx, s, settings, task)
	}
	if err != nil {
		return 0, err
	}
	return w.see(ctx)
}

// after gives a session work whose turns have all ended.
func (w *turnRun) after(ctx context.Context, s *app.SessionState, c config.Settings, t Task) error {
	if err := w.Engine.Settle(ctx, w.session); err != nil {
		return err
	}
	if w.unfinished(ctx) {
		return belay.Errorf(belay.CodeBadState, "its last turn hasn't ended").At(string(s.Session)).
			WithHint("belay sessions resume %s, or belay run --session %s --queue MODE TEXT", s.Session, s.Session)
	}
	if err := w.reclaim(ctx, s, c); err != nil {
		return err
	}
	if err := w.update(ctx, s, c); err != nil {
		return err
	}
	return w.submit(ctx, c, t)
}

// Sources are what is sent along with a text.
type Sources struct {
	Filled
	Attach []string `placeholder:"FILE" sep:"none" help:"Send a text file, an image (PNG, JPEG, GIF, WebP) or a PDF along; may be repeated. @FILE in the text does so for files of the workspace."`
}

// task reads what to do: a filled template, or what was given.
func task(ctx context.Context, a *command.Program, words []string, src Sources, ws string) (Task, error) {
	var t Task
	var err error
	switch {
	case src.Template != "" && len(words) > 0:
		return t, belay.Errorf(belay.CodeUsage, "the template makes the text").At("--template").WithHint("leave the text out, or give it as a value: --var NAME=TEXT")
	case src.Template == "" && len(src.Var) > 0:
		return t, belay.Errorf(belay.CodeUsage, "there is no template to fill").At("--var").WithHint("--template NAME; belay templates lists them")
	case src.Template != "":
		t.Given, t.Template, err = fill(ctx, a, src.Filled, ws)
	default:
		t, err = Read(&a.Env, a.Dir, words, ws)
	}
	if err != nil {
		return t, err
	}
	if t.Text == "" {
		return t, belay.Errorf(belay.CodeUsage, "there is nothing to do: the text is empty").WithHint("belay run TEXT, or belay run - <FILE")
	}
	return t, t.Attach(a.Dir, src.Attach)
}
