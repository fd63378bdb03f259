package work

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/config/manifest"
	"github.com/belay-run/belay/internal/model/scripted"
	"github.com/belay-run/belay/internal/tool"
)

// ToolCmd is the command "belay tool".
type ToolCmd struct {
	List toolListCmd `cmd:"" use:"get_tool_inventory" default:"withargs" help:"List the tools of this workspace."`
	Show toolShowCmd `cmd:"" help:"Show one tool: its text, its arguments, how it is governed."`
	Call toolCallCmd `cmd:"" help:"Run one call without a model, decided and recorded like any other."`
}

type toolListCmd struct {
	Tools string `placeholder:"LIST" help:"Only what these sets, groups and names choose (default all)."`
}

// described is a tool and where it comes from, as JSON.
type described struct {
	belay.ToolSpec
	Groups []string `json:"groups,omitempty"`
	Where  string   `json:"where,omitempty"` // of the manifest
	Argv   string   `json:"argv,omitempty"`
}

func (c *toolListCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	w, err := a.PlaceHere(ctx)
	if err != nil {
		return 0, err
	}
	specs := w.Tools.Specs()
	if c.Tools != "" {
		terms := strings.Split(c.Tools, ",")
		if err := tool.CheckTerms(terms, specs); err != nil {
			return 0, err
		}
		specs = tool.Choose(terms, specs)
	}
	rows := make([]described, len(specs))
	for i, s := range specs {
		rows[i] = describeTool(w, s)
	}
	return term.PrintRows(&a.Env, rows, "", "TOOL\tGROUPS\tEFFECT\tDOES\tFROM", func(d described) []any {
		return []any{d.Name, strings.Join(d.Groups, " "), EffectOf(d.ToolSpec), Does(d.ToolSpec), term.Line(cmp.Or(d.Where, "built in"))}
	})
}

func describeTool(p *app.Place, s belay.ToolSpec) described {
	d := described{ToolSpec: s, Groups: tool.GroupsOf(s)}
	declared, _ := p.Commands() // there are tools, so they could be read
	if i := slices.IndexFunc(declared, func(c manifest.Command) bool { return c.Spec.Name == s.Name }); i >= 0 {
		d.Where, d.Argv = declared[i].Where, declared[i].Argv.String()
	}
	return d
}

// EffectOf returns the effect class of a tool, the strictest if it names none.
func EffectOf(s belay.ToolSpec) string { return string(cmp.Or(s.Effect, belay.AtMostOnce)) }

// Does is what the gate and the scheduler know of a tool, in a few words.
func Does(s belay.ToolSpec) string {
	words := []string{"changes things"}
	if s.ReadOnly {
		words[0] = "reads"
	}
	if s.Handled != "" {
		words[0] = "steers the turn"
	}
	words = append(words, s.Capabilities...)
	if s.Exclusive {
		words = append(words, "alone")
	}
	if s.Untrusted {
		words = append(words, "untrusted")
	}
	return strings.Join(words, ", ")
}

type toolShowCmd struct {
	Name string `arg:"" help:"The tool."`
}

func (c *toolShowCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	w, err := a.PlaceHere(ctx)
	if err != nil {
		return 0, err
	}
	s, err := tool.Find(w.Tools.Specs(), c.Name)
	if err != nil {
		return 0, err
	}
	d := describeTool(w, s)
	return a.Show(d, func() {
		showTool(&a.Env, d)
	})
}

func showTool(e *term.Env, d described) {
	row := func(name, text string) {
		if text != "" {
			fmt.Fprintf(e.Out, "%-10s %s\n", name, term.Line(text))
		}
	}
	row("tool", d.Name)
	for l := range strings.Lines(d.Doc) {
		row("", strings.TrimRight(l, "\n"))
	}
	row("groups", strings.Join(d.Groups, ", "))
	row("effect", EffectOf(d.ToolSpec))
	row("does", Does(d.ToolSpec))
	row("file", d.PathArg)
	row("time", cmp.Or(d.Timeout, belay.Duration(tool.DefaultTimeout)).String())
	row("from", d.Where)
	row("runs", d.Argv)
	var b bytes.Buffer
	if json.Indent(&b, d.Input, "", "  ") == nil {
		fmt.Fprintf(e.Out, "arguments\n%s\n", term.Text(b.String()))
	}
}

type toolCallCmd struct {
	command.SettingFlags
	Name string `arg:"" help:"The tool."`
	Args string `arg:"" optional:"" help:"Its arguments as a JSON object; - reads them from standard input."`
}

// maxCallArgs bounds the arguments of one call.
const maxCallArgs = 1 << 20

func (c *toolCallCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	ws, p, err := a.EnterChecked(ctx)
	if err != nil {
		return 0, err
	}
	if _, err := tool.Find(p.Tools.Specs(), c.Name); err != nil && !config.OfServer(c.Name) { // a server's tools come with the turn
		return 0, err
	}
	settings, err := c.settings(a, p)
	if err != nil {
		return 0, err
	}
	text, err := c.text(a)
	if err != nil {
		return 0, err
	}
	w, err := newWork(ctx, a, true)
	if err != nil {
		return 0, err
	}
	defer w.close()
	w.single = true
	if err := w.beginCall(ctx, ws, term.Short("tool call "+c.Name, 80), settings, Task{Given: app.Given{Text: text}}); err != nil {
		return 0, err
	}
	return w.see(ctx)
}

// settings are those of a new session, but for who answers and what ends it.
func (c *toolCallCmd) settings(a *command.Program, p *app.Place) (config.Settings, error) {
	g := c.Given()
	if g.Get("script") != "" || g.Get("provider") != "" || g.Get("completion") != "" {
		return config.Settings{}, belay.Errorf(belay.CodeUsage, "a tool call takes no --script, --provider or --completion").At("belay tool call").WithHint("leave them out")
	}
	l, err := a.Layers(p, g)
	if err != nil {
		return config.Settings{}, err
	}
	for name, value := range map[string]string{"script": "", "provider": config.Direct, "model": "", "completion": string(belay.CompletionConversational), "instructions": "none", "budget": "", "max-cost": "", "max-tokens": ""} {
		l.Set(name, value)
	}
	s, err := l.Checked()
	if err == nil && s.Tools == nil {
		s.Tools = []string{"full"}
	}
	return s, err
}

func (c *toolCallCmd) text(a *command.Program) (string, error) {
	args := c.Args
	if args == "-" {
		if a.In == nil {
			return "", belay.Errorf(belay.CodeUsage, "there is nothing to read").At("standard input").WithHint("belay tool call %s '{}'", c.Name)
		}
		b, err := io.ReadAll(io.LimitReader(a.In, maxCallArgs+1))
		if err != nil || len(b) > maxCallArgs {
			return "", belay.Errorf(belay.CodeTooLarge, "the arguments can't be read, or are larger than %d MiB", maxCallArgs>>20).At("standard input").WithHint("belay tool call %s '{}'", c.Name)
		}
		args = string(b)
	}
	return scripted.DirectCall{Tool: c.Name, Args: strings.ToValidUTF8(args, "\uFFFD")}.Text()
}

// beginCall makes a session whose thread has one turn, of the system: it belongs
// to no task.
func (w *turnRun) beginCall(ctx context.Context, ws, title string, c config.Settings, t Task) error {
	w.session = belay.SessionID(belay.NewID(belay.PrefixSession))
	w.thread = belay.ThreadID(belay.NewID(belay.PrefixThread))
	w.turn = belay.TurnID(belay.NewID(belay.PrefixTurn))
	w.workspace, w.approvals = ws, c.Approvals
	var err error
	if w.from, err = w.Store.End(ctx); err != nil {
		return err
	}
	use, _, err := w.claim(ctx, c, nil)
	if err != nil {
		return err
	}
	create := belay.CreateSession{Workspace: ws, Title: title, Settings: c.Settings, Thread: w.thread}
	err = w.Store.Enqueue(ctx, w.a.Order(w.session, w.session.Stream(), create), w.a.Order(w.session, w.session.Stream(), belay.UseWorkspace{Use: &use}))
	if err != nil {
		return err
	}
	if err := w.Engine.Settle(ctx, w.session); err != nil { // the thread is open, and knows the use, before its turn
		return err
	}
	rules, err := w.rules(ctx, c, nil)
	if err != nil {
		return err
	}
	content, err := w.content(ctx, c, t)
	if err != nil {
		return err
	}
	return w.Store.Enqueue(ctx, w.a.Order(w.session, w.thread.Stream(), belay.SubmitTurn{Turn: w.turn, Kind: belay.TurnSystem, Text: content, Rules: rules}))
}

// exitOf is the program's exit code for a call.
func exitOf(c *term.Called) int {
	if c == nil || c.OK {
		return belay.ExitOK
	}
	switch c.Class {
	case tool.Denied:
		return belay.ExitDenied
	case tool.Timeout:
		return belay.ExitTimedOut
	case tool.Lost:
		return belay.ExitLost
	case "cancelled":
		return belay.ExitCancelled
	}
	return belay.ExitFailed
}
