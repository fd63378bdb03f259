package block

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// Lines of a program's output that its call is shown with.
const (
	tailLines   = 5
	tailFailed  = 15
	maxTail     = 8 << 10 // bytes of them
	maxTailLine = 400     // bytes of one
)

// apart are tools whose success is a block of its own: a plan, a question, the end of
// the turn.
var apart = map[string]bool{"todo": true, "ask_user": true, "complete_task": true}

// what is a call as a person recognises it. Of a program it is its command.
func what(c event.ModelCall) string {
	var in struct {
		Command  string   `json:"command"`
		Argv     []string `json:"argv"`
		Path     string   `json:"path"`
		Question string   `json:"question"`
		Pattern  string   `json:"pattern"`
		Query    string   `json:"query"`
		URL      string   `json:"url"`
	}
	arg := c.Path
	if len(c.Paths) > 0 {
		arg = strings.Join(c.Paths, ", ")
	}
	if json.Unmarshal(c.Args, &in) == nil {
		switch {
		case in.Command != "":
			return Line(in.Command)
		case len(in.Argv) > 0:
			return Line(strings.Join(in.Argv, " "))
		case arg == "":
			arg = in.Path
		}
		if more := strings.TrimSpace(in.Pattern + in.Query + in.URL + in.Question); more != "" {
			arg = strings.TrimSpace(more + " " + arg)
		}
	}
	return strings.TrimSpace(Line(c.Name) + " " + Line(arg))
}

// Written is what a person wrote of a turn with this text: "!" and the command, of one that
// they ran themselves.
func Written(p event.TurnSubmitted, text string) string {
	if p.Kind != belay.TurnSystem {
		return text
	}
	var direct struct{ Tool, Args string }
	var in struct{ Command string }
	if json.Unmarshal([]byte(text), &direct) != nil {
		return text
	}
	if json.Unmarshal([]byte(direct.Args), &in) == nil && in.Command != "" {
		return "!" + in.Command
	}
	return what(event.ModelCall{Name: direct.Tool, Args: json.RawMessage(direct.Args)})
}

// of returns the live block of the call that a fact is about, or begins one: its answer
// may be behind what is followed.
func (f *Fold) of(ev event.Envelope, name string) *Block {
	b := f.find(KindCall, string(ev.IDs.Call))
	if b == nil {
		b = f.begin(ev, KindCall, string(ev.IDs.Call))
		b.Call = &Call{ID: ev.IDs.Call, Tool: name, What: Line(name), State: Wanted}
	}
	return b
}

// call takes what happens to a call.
func (f *Fold) call(ev event.Envelope) {
	if ev.IDs.Call == "" {
		return
	}
	switch p := ev.Data.(type) {
	case event.PermissionEvaluated:
		c, judged := f.of(ev, p.Tool).Call, Allowed{Rule: p.Rule, Mode: p.Mode}
		if c.Allowed != nil { // it is judged again with the answer
			judged.By, judged.Scope = c.Allowed.By, c.Allowed.Scope
		}
		c.Allowed = &judged
	case event.ToolArgs:
		c := f.of(ev, p.Name).Call
		c.Args, c.Edited = p.Args, p.By
		c.What = what(event.ModelCall{Name: p.Name, Args: p.Args, ArgsRef: p.ArgsRef, Path: p.Path, Paths: p.Paths})
	case event.ToolStarted:
		c := f.of(ev, p.Name).Call
		c.State, c.Began, c.Again, c.Problem = Running, ev.Time, time.Time{}, event.Problem{}
	case event.ToolProgress:
		f.of(ev, "").Call.Told = Line(p.String())
	case event.ProcessStarted:
		c := f.of(ev, "").Call
		if c.Program = true; p.Server == "" {
			if f.programs == nil {
				f.programs = map[belay.ProcessID]program{}
			}
			f.programs[ev.IDs.Process] = program{c.ID, c.What}
		}
	case event.ProcessOutput:
		if b := f.find(KindCall, string(ev.IDs.Call)); b != nil && !b.Call.flows {
			b.Call.prints(p.Text)
		}
	case event.ProcessCompleted:
		f.exited(ev, p.Lines, fmt.Sprintf("exit %d", p.Exit))
	case event.ProcessTerminated:
		f.exited(ev, p.Lines, p.Reason)
	case event.ProcessFailed:
		f.exited(ev, 0, p.Reason)
	case event.ToolResult:
		f.result(f.of(ev, p.Name), p)
		f.together(ev.IDs)
	case event.ToolFailed:
		f.failed(f.of(ev, p.Name), p)
		f.together(ev.IDs)
	}
}

// exited takes the end of a program. Its call tells of it; where that has ended before, it
// is a line of its own.
func (f *Fold) exited(ev event.Envelope, lines int64, how string) {
	was, ran := f.programs[ev.IDs.Process]
	delete(f.programs, ev.IDs.Process)
	if b := f.find(KindCall, string(ev.IDs.Call)); b != nil {
		b.Call.Lines = lines
	} else if ran {
		f.notice(ev, false, "ended in the background: "+was.what+" ("+how+")")
	}
}

// result ends a call that gave a result.
func (f *Fold) result(b *Block, p event.ToolResult) {
	c := b.Call
	c.State, c.Exit, c.Took, c.Whole = Succeeded, p.Exit, time.Duration(p.Millis)*time.Millisecond, p.Whole
	if p.Exit != 0 {
		c.State = Failed
	}
	if apart[p.Name] {
		f.drop(b)
		return
	}
	f.finish(b, p.Output)
}

// failed ends an attempt of a call that gave none.
func (f *Fold) failed(b *Block, p event.ToolFailed) {
	c := b.Call
	if p.Input != nil { // the question tells it
		c.State = Asking
		return
	}
	c.Problem, c.Took, c.Whole, c.Again = p.Problem, time.Duration(p.Millis)*time.Millisecond, p.Whole, p.RetryAt
	switch p.Problem.Class {
	case "denied":
		c.State = Denied
	case "lost":
		c.State = Lost
	case "cancelled", "skipped":
		c.State = Cancelled
	default:
		c.State = Failed
	}
	if !p.Final {
		c.State = Retrying
		again := *c
		done := *b
		done.ID, done.Call, done.Done = b.ID+"/"+strconv.Itoa(p.Attempt), &again, true
		f.out = append(f.out, done)
		c.Tail, c.Lines, c.Program, c.flows, c.printed = nil, 0, false, false, 0
		return
	}
	f.finish(b, p.Output)
}

// read is the tool whose calls of one answer are told on one line.
const read = "read"

// quiet reports whether there is nothing to say of a call but that it gave a result.
func (c *Call) quiet() bool {
	return c.Tool == read && c.State == Succeeded && c.Edited == "" && (c.Allowed == nil || c.Allowed.By == "")
}

// together makes one block of the reads of an answer, when the last of them has ended.
func (f *Fold) together(ids belay.IDs) {
	var all []*Block
	for _, b := range f.live {
		if b.Kind != KindCall || b.Thread != ids.Thread || b.step != ids.Step || b.Call.Tool != read || b.Call.State == Asking {
			continue
		}
		if !b.Call.quiet() {
			return
		}
		all = append(all, b)
	}
	if len(all) == 0 {
		return
	}
	for _, b := range all[1:] {
		all[0].Call.What += "," + strings.TrimPrefix(b.Call.What, read)
		all[0].Call.Took = max(all[0].Call.Took, b.Call.Took)
		f.drop(b)
	}
	f.done(all[0])
}

// finish is the end of a call, with the last lines that its program printed. A read waits
// for the others of its answer.
func (f *Fold) finish(b *Block, output belay.Content) {
	c := b.Call
	c.Tail = nil
	if c.quiet() {
		return
	}
	if c.Program {
		f.outputs++
		c.Output = f.outputs
		text := f.text(output)
		if i := strings.LastIndex(strings.TrimSuffix(text, "\n"), "\n") + 1; strings.HasPrefix(text[i:], "exit ") {
			text = text[:i] // it says how the program ended, which isn't of the program
		}
		c.prints(text)
		if c.Lines == 0 { // what a model is shown of it may say that something is left out
			c.Lines = int64(strings.Count(closedLine(text), "\n"))
		}
	}
	f.done(b)
}

// printed takes what a running program printed.
func (f *Fold) printed(d event.Delta) {
	if b := f.find(KindCall, string(d.IDs.Call)); b != nil {
		c := b.Call
		if !c.flows { // what is recorded of it comes later
			c.flows, c.Tail = true, nil
		}
		switch have := c.printed - d.Offset; {
		case have >= int64(len(d.Text)) && have > 0:
			return
		case have > 0:
			d.Text = d.Text[have:]
		case have < 0 && len(c.Tail) > 0: // pieces are missing
			c.Tail = append(c.Tail, "")
		}
		c.printed = max(c.printed, d.Offset) + int64(len(d.Text))
		c.prints(d.Text)
	}
}

// prints adds to the last lines of a call's output, and keeps as many as are shown.
// Where a line goes back to its beginning, what comes after that is its text.
func (c *Call) prints(text string) {
	if len(text) > maxTail {
		text = lastBytes(text, maxTail)
	}
	open := ""
	if n := len(c.Tail); n > 0 {
		open = c.Tail[n-1]
		c.Tail = c.Tail[:n-1]
	}
	lines := append(append([]string(nil), c.Tail...), strings.Split(open+strings.ReplaceAll(text, "\r\n", "\n"), "\n")...)
	for i, l := range lines {
		l = strings.TrimRight(l, "\r")
		lines[i] = lastBytes(l[strings.LastIndexByte(l, '\r')+1:], maxTailLine)
	}
	c.Tail = lines[max(0, len(lines)-tailFailed-1):] // the last one may be open
}

// Last is the last line that a running program printed, without what it does to a
// terminal.
func (c *Call) Last() string {
	for i := len(c.Tail) - 1; i >= 0; i-- {
		if l := tailLine(c.Tail[i]); trimmed(l) != "" {
			return trimmed(l)
		}
	}
	return ""
}

// tail is the last lines that are shown.
func (c *Call) tail() []string {
	lines := c.Tail
	if n := len(lines); n > 0 && lines[n-1] == "" {
		lines = lines[:n-1]
	}
	most := tailLines
	if c.State == Failed || c.State == Lost {
		most = tailFailed
	}
	return lines[max(0, len(lines)-most):]
}

// lastBytes is the end of a text, at most n bytes of it and whole characters.
func lastBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[len(s)-n:], "")
}
