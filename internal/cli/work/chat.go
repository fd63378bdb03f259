package work

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/block"
	"github.com/belay-run/belay/internal/chat"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/screen"
	"github.com/belay-run/belay/internal/store"
)

// ChatCmd is belay on a terminal without another command: a conversation.
type ChatCmd struct {
	command.SettingFlags
	Continue bool     `short:"c" help:"Continue the last session of this workspace."`
	Resume   *string  `short:"r" placeholder:"ID" help:"Continue a session: its id, a beginning or the last digits of it; without an id, one of a list."`
	Server   string   `placeholder:"URL" help:"Use a server for everything; BELAY_TOKEN has its token."`
	Text     []string `arg:"" optional:"" help:"A message that is sent at once."`
}

// Run implements command.Command.
func (c *ChatCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	if c.Continue && c.Resume != nil {
		return 0, belay.Errorf(belay.CodeUsage, "--resume names one session, --continue another").At("--continue").WithHint("leave one of them out")
	}
	o := chat.Options{Workspace: a.Workspace, First: strings.Join(c.Text, " "), Desk: desk{a}, Now: a.Now, Explain: a.Explained, Look: a.Look(a.Out)}
	o.Look.Me, o.By = a.Principal(), held(a)
	var err error
	if c.Server == "" {
		err = c.here(ctx, a, &o)
	} else {
		err = c.there(a, &o)
	}
	switch {
	case errors.Is(err, term.ErrInterrupted):
		return belay.ExitCancelled, nil
	case errors.Is(err, errShown):
		return belay.ExitOK, nil
	}
	if err != nil {
		return 0, err
	}
	if err := notifies(ctx, a, &o); err != nil {
		return 0, errors.Join(err, o.Runtime.Close())
	}
	defer func() { o.Runtime.Close() }() //nolint:errcheck // everything that was accepted is durable
	o.Pick = c.Resume != nil && *c.Resume == ""
	if c.Continue || c.Resume != nil && !o.Pick {
		var name string
		if c.Resume != nil {
			name = *c.Resume
		}
		if o.Session, err = chat.Named(ctx, o.Runtime, o.Workspace, name); err != nil {
			return 0, err
		}
		if err := through(ctx, a, &o); err != nil {
			return 0, err
		}
	}
	if o.Terminal, err = terminal(a, o.By); err != nil {
		return 0, err
	}
	defer o.Terminal.Close()
	left, err := chat.Run(ctx, o)
	o.Terminal.Close()
	if left.Session != "" {
		fmt.Fprintf(a.Err, "resume: belay -r %s%s\n", chat.Tail(left.Session), a.StoreFlag)
	}
	switch {
	case err != nil || o.By != chat.Piped:
		return belay.ExitOK, err
	case left.Session == "":
		return 0, belay.Errorf(belay.CodeUsage, "there is nothing to say: standard input has no line").WithHint("belay -p TEXT, or belay chat <FILE")
	case left.Waits:
		return belay.ExitBlocked, nil
	case left.Outcome == "":
		return belay.ExitOK, nil
	}
	return left.Outcome.ExitCode(), nil
}

// held is how a conversation can be held here.
func held(a *command.Program) chat.ByLine {
	switch {
	case a.In == nil || !a.IsTerminal(a.In) || !a.IsTerminal(a.Out):
		return chat.Piped
	case a.Plain || a.ScreenReader || a.Getenv("TERM") == "dumb":
		return chat.Typed
	}
	return chat.Drawn
}

// terminal is where a conversation is shown and typed.
func terminal(a *command.Program, by chat.ByLine) (chat.Terminal, error) {
	in, _ := a.In.(*os.File)
	out, _ := a.Out.(*os.File)
	if by == chat.Drawn {
		return screen.Open(in, out)
	}
	if by == chat.Typed {
		return screen.OpenLines(in, a.Out, true, func() (int, int) { return screen.Size(out) })
	}
	lines := a.In
	if lines == nil {
		lines = strings.NewReader("")
	}
	return screen.OpenLines(lines, a.Out, false, func() (width, height int) { return 0, 0 })
}

// here opens the runtime of this process, with the settings of a new session.
func (c *ChatCmd) here(ctx context.Context, a *command.Program, o *chat.Options) error {
	pick := pickModel(a)
	g := c.Given()
	if err := addressed(a, g, c.Continue || c.Resume != nil); err != nil {
		return err
	}
	if o.By == chat.Piped {
		if pick = nil; g.Get("approvals") == "" {
			g["approvals"] = []string{string(belay.ApprovalsDeny)} // nobody is there to be asked
		}
	}
	b, err := beginTalk(ctx, a, g, pick)
	if err != nil {
		return err
	}
	if b.note != "" {
		o.Notes = append(o.Notes, block.Line(b.note))
	}
	o.Workspace, o.Begin, o.Settings = b.workspace, b.settings.Settings, b.given
	if o.Changes, err = settingsOf(g); err != nil {
		return err
	}
	if o.Changes["approvals"] == nil && b.settings.Approvals != belay.ApprovalsDeny { // it may have been begun where nobody was asked
		o.Changes["approvals"] = belay.ApprovalsWait
	}
	if c.Given().Get("script") != "" {
		o.Changes["provider"] = b.settings.Provider
	}
	o.Runtime, err = a.LocalChat(ctx, b.workspace)
	return err
}

// there opens the runtime of a server; what isn't said here is as the server has it.
func (c *ChatCmd) there(a *command.Program, o *chat.Options) (err error) {
	if o.Workspace, err = a.WorkspaceDir(); err != nil {
		return err
	}
	if o.Changes, err = settingsOf(c.Given()); err != nil {
		return err
	}
	o.Settings = settingsThere(o.Changes)
	o.Runtime, err = a.RemoteChat(c.Server)
	return err
}

// notifies says how the conversation tells that it waits or has ended, as the person's
// own file has it.
func notifies(ctx context.Context, a *command.Program, o *chat.Options) error {
	how, err := config.Resolve(ctx, a.Input(o.Workspace)).Notify()
	o.Bell, o.Notifies = how != config.NotifyOff, how == config.NotifyAuto
	return err
}

// through has a session that the server of this store drives go on through that server:
// what flows between facts comes from there.
func through(ctx context.Context, a *command.Program, o *chat.Options) error {
	here, ok := o.Runtime.(interface {
		Owner(context.Context, belay.SessionID) (*store.Owner, error)
	})
	if !ok {
		return nil
	}
	dir, err := a.StoreDir()
	if err != nil {
		return err
	}
	server := command.ServerOf(dir)
	if server == nil {
		return nil
	}
	owner, err := here.Owner(ctx, o.Session)
	if err != nil || owner == nil || owner.PID != server.Owner.PID || owner.Host != server.Owner.Host {
		return err
	}
	far, err := a.RemoteChat(server.URL)
	if err != nil {
		return err
	}
	o.Runtime.Close() //nolint:errcheck // nothing was done with it
	o.Runtime, o.Settings = far, settingsThere(o.Changes)
	o.Notes = append(o.Notes, block.Line("the server at "+server.URL+" drives the session; this goes through it"))
	return nil
}

// settingsThere are those of a new session on a server, with what was said here.
func settingsThere(said map[string]any) map[string]any {
	all := maps.Clone(said)
	if all == nil {
		all = map[string]any{}
	}
	if all["completion"] == nil {
		all["completion"] = belay.CompletionConversational
	}
	return all
}
