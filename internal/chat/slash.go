package chat

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/block"
	"github.com/belay-run/belay/internal/screen"
)

// command is a line of the table of slash commands.
type command struct {
	name string
	args string // what it takes, for people
	doc  string
	run  func(c *Chat, args string)
}

// commands is the table. Those that only show something, or that the command line has,
// are performed by it.
func commands() []command {
	return []command{
		{"help", "", "list keys and commands", func(c *Chat, _ string) { c.help() }},
		{"model", "[NAME]", "the model of this session", (*Chat).setModel},
		{"mode", "[NAME]", "how far it may go without asking", (*Chat).setMode},
		{"effort", "low|medium|high", "how much the model reasons", func(c *Chat, how string) { c.set(map[string]any{"effort": how}) }},
		{"new", "", "begin a new conversation", func(c *Chat, _ string) { c.fresh(); c.print("a new conversation begins with your next message") }},
		{"resume", "[ID]", "continue another session", (*Chat).resumes},
		{"sessions", "", "list the sessions of this workspace", shown("sessions", "list")},
		{"rename", "TITLE", "give this session another title", (*Chat).rename},
		{"fork", "[TURN]", "continue in a copy of this session", func(c *Chat, turn string) { c.fork(turn, nil) }},
		{"undo", "[N]", "take back what the last turns did to files", (*Chat).undo},
		{"rewind", "", "go back before a message: conversation, files or both", func(c *Chat, _ string) { c.pickTurn() }},
		{"compact", "[WHAT TO KEEP]", "shorten what the model is shown", (*Chat).compact},
		{"pin", "TEXT", "keep a text in the conversation", (*Chat).pin},
		{"context", "", "what fills the model's context", aboutThis("context")},
		{"cost", "", "what this session used and cost", aboutThis("sessions", "show")},
		{"budget", "[AMOUNT]", "what this session may spend, such as +5usd", (*Chat).budget},
		{"tools", "", "list the tools", shown("tool", "list")},
		{"actions", "", "list the questions that wait", func(c *Chat, _ string) { c.listActions() }},
		{"grants", "", "list what was allowed beyond single calls", aboutThis("grants", "list")},
		{"queue", "", "list the messages that wait", aboutThis("queue", "list")},
		{"out", "[N]", "show the whole output of a command", (*Chat).out},
		{"diff", "", "show what was changed in files", func(c *Chat, _ string) { c.diff() }},
		{"why", "[ID]", "say from the facts why something happened", (*Chat).why},
		{"export", "[FILE]", "write this session into a file", (*Chat).export},
		{"config", "", "show the settings and where they come from", shown("config", "show")},
		{"login", "[VENDOR]", "keep the key of a vendor", func(c *Chat, vendor string) { c.onTerminal(append([]string{"login"}, strings.Fields(vendor)...)...) }},
		{"copy", "", "copy the last answer", func(c *Chat, _ string) { c.copies() }},
		{"quit", "", "park the turn and leave", func(c *Chat, _ string) { c.leaving = true }},
	}
}

// commandsLike are the commands whose names begin with a text, for completion.
func commandsLike(text string) (all []screen.Candidate) {
	for _, cmd := range commands() {
		if strings.HasPrefix(cmd.name, text) {
			all = append(all, screen.Candidate{Text: cmd.name, Detail: strings.TrimSpace(cmd.args + "  " + cmd.doc)})
		}
	}
	return all
}

// slash performs a message that is a command; false: it is none. A path isn't one.
func (c *Chat) slash(text string) bool {
	name, args, _ := strings.Cut(strings.TrimPrefix(text, "/"), " ")
	if !strings.HasPrefix(text, "/") || name == "" || strings.ContainsAny(name, "/\n") {
		return false
	}
	all := commands()
	i := slices.IndexFunc(all, func(cmd command) bool { return cmd.name == name })
	if i < 0 {
		c.print(block.Line("there is no command /" + name + "; /help lists them"))
		c.comp.Set(text)
		return true
	}
	all[i].run(c, strings.TrimSpace(args))
	return true
}

// help lists keys and commands.
func (c *Chat) help() {
	l, _ := c.drawn()
	for _, k := range [][2]string{
		{"Enter", "send; while it works: steer it"}, {"Alt+Enter, Ctrl+J", "new line"}, {"Tab", "while it works: send for afterwards"},
		{"Up, Ctrl+R", "older messages; takes back one that waits"}, {"Esc", "stop the turn; twice: go back to an earlier message"},
		{"Shift+Tab", "mode: default, accept edits, plan"}, {"Ctrl+V", "send the clipboard's image along"}, {"Ctrl+G", "edit the message in your editor"}, {"Ctrl+O", "the last output in your pager"},
		{"Ctrl+C", "clear, stop, leave"}, {"Ctrl+D", "park and leave"}, {"Ctrl+Z, Ctrl+L", "suspend, redraw"}, {"@NAME, !COMMAND", "send a file along, run a command in this session"},
	} {
		c.print(fmt.Sprintf("  %s %s", l.key(fmt.Sprintf("%-28s", k[0])), k[1]))
	}
	for _, cmd := range commands() {
		c.print(fmt.Sprintf("  %s %s", l.key(fmt.Sprintf("%-28s", "/"+cmd.name+" "+cmd.args)), cmd.doc))
	}
}

// begun reports whether there is a session; a note says that there is none.
func (c *Chat) begun() bool {
	if c.conv.session == "" {
		c.note = "the session begins with your first message"
	}
	return c.conv.session != ""
}

// shown makes a command that prints what another command of this program prints.
func shown(args ...string) func(*Chat, string) {
	return func(c *Chat, more string) { c.prints(slices.Concat(args, strings.Fields(more))...) }
}

// aboutThis is shown, about this session.
func aboutThis(args ...string) func(*Chat, string) {
	return func(c *Chat, _ string) {
		if c.begun() {
			c.prints(append(slices.Clone(args), string(c.conv.session))...)
		}
	}
}

// prints prints what another command of this program prints.
func (c *Chat) prints(args ...string) {
	if !c.isHere(args) {
		return
	}
	c.jobs.start(func(ctx context.Context) func() {
		out, err := c.Desk.BelayText(ctx, args...)
		return func() {
			c.failed(err)
			for line := range strings.Lines(block.Text(string(out))) {
				c.print("  " + strings.TrimRight(line, "\n"))
			}
		}
	})
}

// onTerminal runs another command of this program, which has the terminal meanwhile.
func (c *Chat) onTerminal(args ...string) {
	if c.isHere(args) {
		c.failed(c.Terminal.Release(func() error { return c.Desk.Belay(c.jobs.ctx, args...) }))
	}
}

// isHere reports whether commands of this machine are about the session: a server's
// are at the server.
func (c *Chat) isHere(args []string) bool {
	if c.Runtime.Server() == "" {
		return true
	}
	c.print(block.Line("the session is at " + c.Runtime.Server() + "; there: belay " + strings.Join(args, " ")))
	return false
}

func (c *Chat) setModel(name string) {
	if name == "" {
		c.prints("models", "list")
		return
	}
	if provider, model, ok := strings.Cut(name, "/"); ok {
		c.set(map[string]any{"provider": provider, "model": model})
		return
	}
	c.set(map[string]any{"model": name})
}

func (c *Chat) setMode(name string) {
	if name != "" {
		c.set(map[string]any{"mode": belay.Mode(strings.ReplaceAll(name, " ", "_"))})
		return
	}
	p := &picker{title: "mode"}
	for _, m := range belay.Modes {
		p.rows = append(p.rows, row{modeName(m), func() { c.set(map[string]any{"mode": m}) }})
	}
	c.pick = p
}

func (c *Chat) resumes(id string) {
	if id == "" {
		c.pickSession()
		return
	}
	c.jobs.start(func(ctx context.Context) func() {
		named, err := Named(ctx, c.Runtime, c.Workspace, id)
		return func() {
			if c.failed(err); err == nil {
				c.resume(named)
			}
		}
	})
}

// continues goes on with a session's unfinished turn, if it has one.
func (c *Chat) continues(id belay.SessionID) {
	c.jobs.start(func(ctx context.Context) func() {
		err := c.Runtime.Do(ctx, "resume_thread", map[string]any{"sessionId": id}, nil)
		if code := belay.CodeOf(err); err == nil || code == belay.CodeBadState || code == belay.CodeNotFound {
			return nil // it has nothing to go on with
		}
		return func() { c.fail(err) }
	})
}

func (c *Chat) rename(title string) {
	if c.begun() && title != "" {
		c.do("label_session", map[string]any{"sessionId": c.conv.session, "title": title}, func() { c.note = "renamed" })
	}
}

// fork continues in a copy of the session, up to a turn.
func (c *Chat) fork(turn string, then func()) {
	if !c.begun() {
		return
	}
	in := map[string]any{"sessionId": c.conv.session}
	if turn != "" {
		in["turn"] = turn
	}
	c.jobs.start(func(ctx context.Context) func() {
		var out struct {
			Session belay.SessionID `json:"sessionId"`
		}
		err := c.Runtime.Do(ctx, "fork_session", in, &out)
		return func() {
			if c.failed(err); err == nil {
				c.print("this goes on in session " + Tail(out.Session))
				c.follow(out.Session)
				if then != nil {
					then()
				}
			}
		}
	})
}

func (c *Chat) undo(n string) {
	turns := 1
	if n != "" {
		var err error
		if turns, err = strconv.Atoi(n); err != nil || turns < 1 {
			c.note = "/undo takes the number of turns"
			return
		}
	}
	if c.begun() {
		c.takesBack("undo_turns", map[string]any{"turns": turns}, nil)
	}
}

func (c *Chat) compact(focus string) {
	if c.begun() {
		c.do("compact_thread", map[string]any{"sessionId": c.conv.session, "focus": focus}, nil)
	}
}

func (c *Chat) pin(text string) {
	if c.begun() && text != "" {
		c.do("pin_context", map[string]any{"sessionId": c.conv.session, "text": text}, func() { c.note = "pinned; /context lists pins" })
	}
}

func (c *Chat) budget(amount string) {
	switch {
	case !c.begun():
	case amount == "":
		c.prints("budget", "show", string(c.conv.session))
	default:
		c.do("set_budget", map[string]any{"sessionId": c.conv.session, "budget": amount}, func() { c.note = "the budget was changed" })
	}
}

func (c *Chat) out(n string) {
	number := len(c.conv.outputs)
	if n != "" {
		number, _ = strconv.Atoi(n) // 0 has no output
	}
	c.output(number)
}

// listActions lists the questions that wait, of all sessions.
func (c *Chat) listActions() {
	c.jobs.start(func(ctx context.Context) func() {
		var all struct {
			Actions []struct {
				Session belay.SessionID `json:"sessionId"`
				Shown   string          `json:"shown"`
				Prompt  string          `json:"prompt"`
			} `json:"actions"`
		}
		err := c.Runtime.Read(ctx, "listActions", Query{}, &all)
		return func() {
			c.failed(err)
			for _, a := range all.Actions {
				c.print(block.Line("  " + Tail(a.Session) + "  " + cmp.Or(a.Shown, a.Prompt)))
			}
			if err == nil && len(all.Actions) == 0 {
				c.note = "nothing waits"
			}
		}
	})
}

// diff shows what calls of this session changed in files.
func (c *Chat) diff() {
	l, _ := c.drawn()
	p := block.Preview{Shows: block.PreviewDiff, Files: c.conv.files}
	if len(p.Files) == 1 {
		p.What = p.Files[0].Path
	}
	if len(p.Files) == 0 {
		c.note = "no file was changed"
	}
	c.print(p.Lines(l.Options)...)
}

func (c *Chat) why(id string) {
	if id != "" {
		c.prints("why", id)
	} else if c.begun() {
		c.prints("why", string(c.conv.session))
	}
}

func (c *Chat) export(file string) {
	if !c.begun() {
		return
	}
	args := []string{"export", string(c.conv.session)}
	if file != "" {
		args = append(args, "--out", file)
	}
	c.prints(args...)
}

// copies puts the last answer into the clipboard, by the terminal.
func (c *Chat) copies() {
	if len(c.conv.answer) == 0 {
		c.note = "there is no answer yet"
		return
	}
	c.Terminal.Send(screen.Copy(string(c.conv.answer)))
	c.note = "the last answer was copied, if the terminal allows it"
}

// tell tells the person that the session waits or has ended, if they look elsewhere. at
// is when that happened: what was there before the conversation began isn't told.
func (c *Chat) tell(at time.Time, what string) {
	if c.away && !at.Before(c.began) {
		if c.Bell {
			c.Terminal.Send(screen.Bell)
		}
		if c.Notifies {
			c.Terminal.Send(screen.Notification("belay: " + block.Short(c.conv.title, 60) + " " + what))
		}
	}
}
