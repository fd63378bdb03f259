package chat

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/block"
	"github.com/belay-run/belay/internal/screen"
)

// slash performs what a person wants by the name of a command.
type slash struct{ *Chat }

// command is a line of the table of slash commands.
type command struct {
	name string
	args string // what it takes, for people
	doc  string
	run  func(c slash, args string)
}

// commands is the table. Those that only show something, or that the command line has,
// are performed by it.
func commands() []command {
	return []command{
		{"help", "", "list keys and commands", func(c slash, _ string) { c.help() }},
		{"model", "[NAME]", "the model of this session", slash.setModel},
		{"mode", "[NAME]", "how far it may go without asking", slash.setMode},
		{"agent", "[NAME]", "the agent that works from the next message on; none for the usual one", slash.setAgent},
		{"effort", "low|medium|high", "how much the model reasons", slash.setEffort},
		{"new", "", "begin a new conversation", func(c slash, _ string) { c.fresh(); c.print("a new conversation begins with your next message") }},
		{"resume", "[ID]", "continue another session", slash.resumes},
		{"sessions", "", "list the sessions of this workspace", shown("sessions", "list")},
		{"rename", "TITLE", "give this session another title", slash.rename},
		{"fork", "[TURN]", "continue in a copy of this session", func(c slash, turn string) { c.fork(turn, nil) }},
		{"undo", "[N]", "take back what the last turns did to files", slash.undo},
		{"rewind", "", "go back before a message: conversation, files or both", func(c slash, _ string) { picking(c).pickTurn() }},
		{"compact", "[WHAT TO KEEP]", "shorten what the model is shown", slash.compact},
		{"pin", "TEXT", "keep a text in the conversation", slash.pin},
		{"context", "", "what fills the model's context", aboutThis("context")},
		{"cost", "", "what this session used and cost", func(c slash, _ string) { c.cost() }},
		{"budget", "[AMOUNT]", "what this session may spend, such as +5usd", slash.budget},
		{"tools", "", "list the tools", func(c slash, _ string) { c.tools() }},
		{"mcp", "", "list the MCP servers", shown("mcp", "list")},
		{"agents", "", "list the agents that this session's agents started", aboutThis("agents", "ps")},
		{"tasks", "", "list the tasks of this session", aboutThis("tasks", "list")},
		{"programs", "[end ID]", "list what runs in the background; end one", slash.programs},
		{"goal", "[TEXT]", "set a goal that turns work on until it is met; show it", slash.goal},
		{"actions", "", "list the questions that wait", func(c slash, _ string) { c.listActions() }},
		{"grants", "", "list what was allowed beyond single calls", aboutThis("grants", "list")},
		{"queue", "[TEXT]", "send a message for when the turn has ended; list those that wait", slash.queue},
		{"edit", "", "compose a message in your editor", slash.compose},
		{"out", "[N]", "show the whole output of a command", slash.out},
		{"diff", "", "show what was changed in files", func(c slash, _ string) { c.diff() }},
		{"why", "[ID]", "say from the facts why something happened", slash.why},
		{"export", "[FILE]", "write this session into a file", slash.export},
		{"config", "", "show the settings that were made and where", func(c slash, _ string) { c.config() }},
		{"login", "[VENDOR]", "keep the key of a vendor", func(c slash, vendor string) { c.onTerminal(append([]string{"login"}, strings.Fields(vendor)...)...) }},
		{"copy", "", "copy the last answer", func(c slash, _ string) { c.copies() }},
		{"quit", "", "park the turn and leave", func(c slash, _ string) { c.leaving = true }},
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

// performs performs a message that is a command; false: it is none. A path isn't one.
func (c slash) performs(text string) bool {
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
	if l, _ := c.drawn(); c.By == Drawn && name != "quit" {
		c.print("")
		c.print(l.Hanging(l.pick("› ", "> "), block.Line(text))...)
	}
	all[i].run(c, strings.TrimSpace(args))
	return true
}

// help lists keys and commands.
func (c slash) help() {
	l, _ := c.drawn()
	keys := [][2]string{
		{"Enter", "send; while it works: steer it"}, {"Alt+Enter, Ctrl+J", "new line"}, {"Tab", "while it works: send for afterwards"},
		{"Up, Ctrl+R", "older messages; takes back one that waits"}, {"Esc", "stop the turn; twice: go back to an earlier message"},
		{"Shift+Tab", "mode: default, accept edits, plan"}, {"Ctrl+V", "send the clipboard's image along"}, {"Ctrl+G", "edit the message in your editor"}, {"Ctrl+O", "the last output in your pager"},
		{"Ctrl+C", "clear, stop, leave"}, {"Ctrl+D", "park and leave"}, {"Ctrl+Z, Ctrl+L", "suspend, redraw"}, {"@NAME, !COMMAND", "send a file along, run a command in this session"},
	}
	if c.By != Drawn {
		keys = [][2]string{
			{"Enter", "send; while it works: steer it"}, {"\\ before Enter", "new line"}, {"Ctrl+C", "stop the turn, leave"}, {"Ctrl+D", "park and leave"},
			{"@NAME, !COMMAND", "send a file along, run a command in this session"},
		}
	}
	for _, k := range keys {
		c.printRow(l.key(fmt.Sprintf("%-28s", k[0]))+" ", k[1])
	}
	for _, cmd := range commands() {
		c.printRow(l.key(fmt.Sprintf("%-28s", "/"+cmd.name+" "+cmd.args))+" ", cmd.doc)
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
func shown(args ...string) func(slash, string) {
	return func(c slash, more string) { c.prints(slices.Concat(args, strings.Fields(more))...) }
}

// aboutThis is shown, about this session.
func aboutThis(args ...string) func(slash, string) {
	return func(c slash, _ string) {
		if c.begun() {
			c.prints(append(slices.Clone(args), string(c.conv.session))...)
		}
	}
}

// prints prints what another command of this program prints, or what the server answers
// in its place.
func (c slash) prints(args ...string) {
	if c.Runtime.Server() != "" && c.printsFar(args) || !c.isHere(args) {
		return
	}
	c.jobs.start(func(ctx context.Context) func() {
		out, err := c.Desk.BelayText(ctx, args...)
		return func() {
			if c.failed(err); err == nil && len(out) == 0 {
				c.note = "there is nothing to show"
			}
			c.printText(string(out))
		}
	})
}

// printText prints a text that is an answer to a command.
func (c *Chat) printText(text string) {
	for line := range strings.Lines(block.Text(text)) {
		line = strings.TrimRight(line, "\n")
		words := strings.TrimLeft(line, " ")
		c.printRow(line[:len(line)-len(words)], words)
	}
}

// printRow prints a row of an answer to a command: its text goes on behind its head.
func (c *Chat) printRow(head, text string) {
	l, _ := c.drawn()
	c.print(l.Hanging("  "+head, block.Line(text))...)
}

// onTerminal runs another command of this program, which has the terminal meanwhile.
func (c slash) onTerminal(args ...string) {
	if c.isHere(args) {
		c.failed(c.Terminal.Release(func() error { return c.Desk.Belay(c.jobs.ctx, args...) }))
	}
}

// programs lists what runs in the background, or ends one of that.
func (c slash) programs(args string) {
	id, end := strings.CutPrefix(args, "end ")
	switch id = strings.TrimSpace(id); {
	case args == "":
		aboutThis("process", "list")(c, "")
	case !end || id == "":
		c.note = "/programs lists what runs, /programs end ID ends it"
	case c.begun():
		c.do("terminate_process", map[string]any{"sessionId": c.conv.session, "processId": id}, nil)
	}
}

// isHere reports whether commands of this machine are about the session: a server's
// are at the server.
func (c slash) isHere(args []string) bool {
	if c.Runtime.Server() == "" {
		return true
	}
	c.print(block.Line("the session is at " + c.Runtime.Server() + "; there: belay " + strings.Join(args, " ")))
	return false
}

func (c slash) setModel(name string) {
	if name == "" {
		c.pickModel()
		return
	}
	if provider, model, ok := strings.Cut(name, "/"); ok {
		c.set(map[string]any{"provider": provider, "model": model})
		return
	}
	c.set(map[string]any{"model": name})
}

func (c slash) setMode(name string) {
	if name != "" {
		c.set(map[string]any{"mode": belay.Mode(strings.ReplaceAll(name, " ", "_"))})
		return
	}
	p := &picker{title: "mode"}
	for _, m := range belay.Modes {
		p.rows = append(p.rows, row{modeName(m), func() { c.set(map[string]any{"mode": m}) }})
	}
	c.choose(p)
}

func (c slash) setEffort(how string) {
	if how != "" {
		c.set(map[string]any{"effort": how})
		return
	}
	p := &picker{title: "effort"}
	for _, how := range []string{"low", "medium", "high"} {
		p.rows = append(p.rows, row{how, func() { c.set(map[string]any{"effort": how}) }})
	}
	c.choose(p)
}

// setAgent has another agent that is kept as a file work from the next message on.
func (c slash) setAgent(name string) {
	if c.conv.turn != "" {
		c.note = "a turn runs, and keeps its agent: /agent when it has ended"
		return
	}
	set := func(name string) { c.set(map[string]any{"agent": name}) }
	if name == "none" {
		set(name)
		return
	}
	q := url.Values{"workspace": {c.conv.workspace}}
	if name != "" {
		q.Set("agent", name)
	}
	c.jobs.start(func(ctx context.Context) func() {
		var out struct {
			Agents []struct {
				Name        string `json:"name"`
				Description string `json:"description"`
				InForce     bool   `json:"inForce"`
			} `json:"agents"`
		}
		err := c.Runtime.Read(ctx, "listAgents", Query{Values: q}, &out)
		return func() {
			if c.failed(err); err != nil {
				return
			}
			if name != "" {
				set(name)
				return
			}
			p := &picker{title: "agent", rows: []row{{"none", func() { set("none") }}}}
			for _, a := range out.Agents {
				if a.InForce {
					p.rows = append(p.rows, row{a.Name + "  " + a.Description, func() { set(a.Name) }})
				}
			}
			c.choose(p)
		}
	})
}

func (c slash) resumes(id string) {
	if id == "" {
		picking(c).pickSession()
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
func (c slash) continues(id belay.SessionID) {
	c.jobs.start(func(ctx context.Context) func() {
		err := c.Runtime.Do(ctx, "resume_thread", map[string]any{"sessionId": id}, nil)
		if code := belay.CodeOf(err); err == nil || code == belay.CodeBadState || code == belay.CodeNotFound {
			return nil // it has nothing to go on with
		}
		return func() { c.fail(err) }
	})
}

func (c slash) rename(title string) {
	if title == "" {
		c.note = "/rename takes a title"
	} else if c.begun() {
		c.do("label_session", map[string]any{"sessionId": c.conv.session, "title": title}, func() { c.note = "renamed" })
	}
}

// fork continues in a copy of the session, up to a turn.
func (c slash) fork(turn string, then func()) {
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

func (c slash) undo(n string) {
	turns := 1
	if n != "" {
		var err error
		if turns, err = strconv.Atoi(n); err != nil || turns < 1 {
			c.note = "/undo takes the number of turns"
			return
		}
	}
	if c.begun() {
		picking(c).takesBack("undo_turns", map[string]any{"turns": turns}, nil)
	}
}

func (c slash) queue(text string) {
	if text != "" {
		c.send(text, belay.QueueEnqueue)
		return
	}
	aboutThis("queue", "list")(c, "")
}

// compose opens the editor; line by line, what it gives is sent.
func (c slash) compose(string) {
	if c.edit(); c.By != Drawn {
		typing(c).submit("")
	}
}

func (c slash) compact(focus string) {
	if c.begun() {
		c.do("compact_thread", map[string]any{"sessionId": c.conv.session, "focus": focus}, nil)
	}
}

func (c slash) goal(text string) {
	switch {
	case !c.begun():
	case text == "":
		c.prints("goal", "show", string(c.conv.session))
	default:
		c.do("set_goal", map[string]any{"sessionId": c.conv.session, "text": text}, func() { c.note = "the goal is set; /goal shows it" })
	}
}

func (c slash) pin(text string) {
	if text == "" {
		c.note = "/pin takes a text"
	} else if c.begun() {
		c.do("pin_context", map[string]any{"sessionId": c.conv.session, "text": text}, func() { c.note = "pinned; /context lists pins" })
	}
}

func (c slash) budget(amount string) {
	switch {
	case !c.begun():
	case amount == "":
		c.prints("budget", "show", string(c.conv.session))
	default:
		c.do("set_budget", map[string]any{"sessionId": c.conv.session, "budget": amount}, func() { c.note = "the budget was changed" })
	}
}

func (c slash) out(n string) {
	number := len(c.conv.outputs)
	if n != "" {
		number, _ = strconv.Atoi(n) // 0 has no output
	}
	c.output(number)
}

// listActions lists the questions that wait, of all sessions.
func (c slash) listActions() {
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
func (c slash) diff() {
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

func (c slash) why(id string) {
	if id != "" {
		c.prints("why", id)
	} else if c.begun() {
		c.prints("why", string(c.conv.session))
	}
}

// copies puts the last turn's answers into the clipboard, by the terminal. They are read
// from the facts: the conversation doesn't keep what it has printed.
func (c slash) copies() {
	at, load := c.conv.answered, c.content(c.conv.session)
	if at.upTo == "" {
		c.note = "there is no answer yet"
		return
	}
	if c.By != Drawn {
		c.note = "nothing is copied here; /export writes the session into a file"
		return
	}
	session := c.conv.session
	c.jobs.start(func(ctx context.Context) func() {
		fold := block.Fold{Load: load}
		var text strings.Builder
		for item, err := range Followed(ctx, c.Runtime, session, at.from) {
			if err != nil {
				return func() { c.fail(err) }
			}
			if item.Fact == nil {
				continue
			}
			fold.Apply(*item.Fact)
			for _, b := range slices.Concat(fold.Take(), fold.Live()) {
				if b.Kind == block.KindAnswer && b.Turn == at.turn && (b.Done || item.Fact.ID() == at.upTo) {
					text.WriteString(b.Text)
				}
			}
			if item.Fact.ID() == at.upTo {
				break
			}
		}
		return func() {
			c.Terminal.Send(screen.Copy(text.String()))
			c.note = "the last answer was copied, if the terminal allows it"
		}
	})
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
