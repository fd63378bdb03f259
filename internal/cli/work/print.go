package work

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/policies"
	"github.com/belay-run/belay/internal/app/turns"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/store"
)

// PrintCmd is "belay -p": one turn of a conversation that asks nobody, and whose answer
// alone is printed. Flags that Claude Code has too mean what they mean there, or less.
type PrintCmd struct {
	command.SettingFlags
	Print        bool   `short:"p" help:"Print the answer and end."`
	OutputFormat string `enum:"text,json,stream-json" default:"text" placeholder:"FORMAT" help:"text, json (one object at the end) or stream-json (a line for each message)."`
	Resume       string `short:"r" placeholder:"ID" help:"Continue this session."`
	Continue     bool   `short:"c" help:"Continue the last session of this workspace."`

	AllowedTools    string `name:"allowedTools" aliases:"allowed-tools" placeholder:"LIST" help:"Only these tools; it allows none of their calls."`
	DisallowedTools string `name:"disallowedTools" aliases:"disallowed-tools" placeholder:"LIST" help:"None of these tools."`
	PermissionMode  string `placeholder:"MODE" help:"default, plan, acceptEdits or dontAsk."`
	SkipPermissions bool   `name:"dangerously-skip-permissions" hidden:""`
	MaxTurns        int    `placeholder:"N" help:"Steps of the turn, as --max-steps."`

	Attach []string `placeholder:"FILE" sep:"none" help:"Send a text file, an image or a PDF along; may be repeated. @FILE in the message does so for files of the workspace."`

	Text []string `arg:"" optional:"" help:"The message; standard input is added to it."`
}

// Run implements command.Command.
func (c *PrintCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	g, err := c.checked()
	if err != nil {
		return 0, err
	}
	if err := addressed(a, g, c.Resume != "" || c.Continue); err != nil {
		return 0, err
	}
	text, err := c.message(&a.Env)
	if err != nil {
		return 0, err
	}
	t, err := beginTalk(ctx, a, g, nil)
	if err != nil {
		return 0, err
	}
	with, err := c.attached(a, t.workspace)
	if err != nil {
		return 0, err
	}
	have, id := t.settings.Settings, belay.SessionID("")
	if c.Resume != "" || c.Continue {
		if _, err = a.Reading(ctx, func(st store.Store) (int, error) {
			if id, err = a.SessionID(ctx, st, c.Resume); err != nil {
				return 0, err
			}
			s, err := app.StateOf(ctx, st, id)
			if err == nil {
				have = s.Settings
			}
			return 0, err
		}); err != nil {
			return 0, err
		}
		t.given["approvals"], t.given["completion"] = "deny", string(belay.CompletionConversational)
	}
	if err := c.narrow(t, have); err != nil {
		return 0, err
	}
	r, err := a.LocalChat(ctx, t.workspace)
	if err != nil {
		return 0, err
	}
	p := &printing{a: a, c: c, runtime: r, session: id, mode: string(have.Mode), model: have.Model, workspace: t.workspace}
	exit, err := p.see(ctx, t.given, text, with)
	return exit, errors.Join(err, r.Close())
}

// checked are the settings that were given, without those that ask or widen.
func (c *PrintCmd) checked() (config.Given, error) {
	g := c.Given()
	widens := func(flag, instead string) error {
		return belay.Errorf(belay.CodeUsage, "it would run calls without permission").At(flag).WithHint("%s", instead)
	}
	if c.Resume != "" && c.Continue {
		return nil, belay.Errorf(belay.CodeUsage, "--resume names one session, --continue another").At("--continue").WithHint("leave one of them out")
	}
	if c.SkipPermissions {
		return nil, widens("--dangerously-skip-permissions", "allow what is needed: --allow TOOL, --mode accept_edits, or rules in policy.yaml (docs/policy.md)")
	}
	switch c.PermissionMode {
	case "", "dontAsk": // nobody is asked anyway
	case "default", "plan", "acceptEdits":
		if g.Get("mode") != "" {
			return nil, belay.Errorf(belay.CodeUsage, "--mode says it too").At("--permission-mode").WithHint("leave one of them out")
		}
		g["mode"] = []string{policies.ClaudeMode(c.PermissionMode)}
	case "bypassPermissions", "auto":
		return nil, widens("--permission-mode "+c.PermissionMode, "--permission-mode default, plan or acceptEdits")
	default:
		return nil, belay.Errorf(belay.CodeUsage, "%q is no mode", c.PermissionMode).At("--permission-mode").WithHint("default, plan, acceptEdits or dontAsk")
	}
	if how := g.Get("approvals"); how != "" && how != string(belay.ApprovalsDeny) {
		return nil, belay.Errorf(belay.CodeUsage, "-p asks no questions").At("--approvals").WithHint("belay run --approvals %s TEXT", how)
	}
	g["approvals"] = []string{string(belay.ApprovalsDeny)}
	if c.MaxTurns < 0 {
		return nil, belay.Errorf(belay.CodeUsage, "%d is no number of steps", c.MaxTurns).At("--max-turns").WithHint("--max-turns 20")
	}
	if c.MaxTurns > 0 {
		g["max-steps"] = []string{strconv.Itoa(c.MaxTurns)}
	}
	return g, nil
}

// narrow takes away the tools that weren't named, or were named to be taken away.
func (c *PrintCmd) narrow(t *talk, have belay.Settings) error {
	if c.AllowedTools == "" && c.DisallowedTools == "" {
		return nil
	}
	named := func(list string, deny bool) (names []string) {
		for _, rule := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' }) {
			tools, known := policies.ClaudeTools(rule, deny)
			if !known {
				tools = []string{strings.TrimSpace(rule)}
			}
			names = append(names, tools...)
		}
		return names
	}
	only, without := named(c.AllowedTools, false), named(c.DisallowedTools, true)
	var names []string
	for _, s := range t.place.Tools.Choose(have.Tools) {
		if (c.AllowedTools == "" || slices.Contains(only, s.Name)) && !slices.Contains(without, s.Name) {
			names = append(names, s.Name)
		}
	}
	if len(names) == 0 {
		return belay.Errorf(belay.CodeUsage, "none of these tools is left").At("--allowedTools " + c.AllowedTools).WithHint("belay tool list shows them")
	}
	t.given["tools"] = strings.Join(names, ",")
	return nil
}

// attached are the files that are sent along, as commands take them.
func (c *PrintCmd) attached(a *command.Program, ws string) (all []turns.AttachedFile, err error) {
	t := Task{Given: app.Given{Text: strings.Join(c.Text, " ")}}
	if err := t.mention(a.Dir, ws, tellMissed(&a.Env)); err != nil {
		return nil, err
	}
	if err := t.Attach(a.Dir, c.Attach); err != nil {
		return nil, err
	}
	for _, f := range t.Attached {
		all = append(all, turns.AttachedFile{Name: f.Name, Content: f.Content})
	}
	return all, nil
}

// message is what is said: the arguments, and behind them standard input.
func (c *PrintCmd) message(e *term.Env) (string, error) {
	text := strings.TrimSpace(strings.Join(c.Text, " "))
	if e.In == nil || e.IsTerminal(e.In) {
		if text == "" {
			return "", belay.Errorf(belay.CodeUsage, "there is nothing to say: no text was given").WithHint("belay -p TEXT, or belay -p <FILE")
		}
		return text, nil
	}
	more, err := io.ReadAll(io.LimitReader(e.In, app.MaxText+1))
	bad := func(c belay.Code, why string) error {
		return belay.Errorf(c, "%s", why).At("standard input").WithHint("put it into a file of the workspace and name the file")
	}
	switch {
	case err != nil:
		return "", bad(belay.CodeUsage, "it can't be read: "+err.Error())
	case len(more) > app.MaxText:
		return "", bad(belay.CodeTooLarge, fmt.Sprintf("it is larger than %d MiB", app.MaxText>>20))
	case !utf8.Valid(more) || strings.ContainsRune(string(more), 0):
		return "", bad(belay.CodeUsage, "it is not UTF-8 text without NUL")
	}
	if text = strings.TrimSpace(text + "\n\n" + strings.TrimSpace(string(more))); text == "" {
		return "", belay.Errorf(belay.CodeUsage, "there is nothing to say: the text is empty").WithHint("belay -p TEXT, or belay -p <FILE")
	}
	return text, nil
}
