package term

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/block"
	"github.com/belay-run/belay/internal/view/story"
)

// ErrNobody ends what is followed: the input has ended, and a question waits.
var ErrNobody = errors.New("no one is left to answer")

// prompt is a question that waits for the person at this terminal.
type prompt struct {
	thread  belay.ThreadID  // that asks
	seen    *block.Preview  // as it is shown: the answer is for that
	args    json.RawMessage // what the person made of the call's arguments; nil: they are as they were
	denying bool            // no was said; the reason is asked for
	shown   bool
}

// Asked notes a question, and prints how to answer it when it isn't asked here.
func (u *Follower) Asked(ctx context.Context, thread belay.ThreadID, id belay.ActionID) {
	here := u.w.Approvals == belay.ApprovalsAsk && u.env.Interactive()
	if !here && (u.env.JSON || u.w.Approvals != belay.ApprovalsWait) {
		return
	}
	seen, err := u.w.Questions.Question(ctx, thread, id)
	if err != nil { // a question that can't be shown must not be answered
		u.live.println("a question can't be shown, and stays open: " + Line(err.Error()))
		return
	}
	if seen == nil { // it was answered meanwhile
		return
	}
	u.fold.Show(*seen)
	u.asked[id] = true
	if here {
		u.next = append(u.next, prompt{thread: thread, seen: seen})
		return
	}
	u.live.println(seen.Lines(u.live.look)...)
	u.live.println("  waits for an answer until " + seen.Until.Local().Format("2 Jan 15:04"))
	for _, l := range AnswerCommands(seen.ID, seen.Kind, seen.Version) {
		u.live.println("  " + l + u.env.StoreFlag)
	}
}

// resolved drops a question that was answered, here or elsewhere.
func (u *Follower) resolved(id belay.ActionID) {
	if u.ask != nil && u.ask.seen.ID == id {
		u.ask = nil
		u.live.ask("")
	}
	for i := range u.next {
		if u.next[i].seen.ID == id {
			u.next = append(u.next[:i], u.next[i+1:]...)
			return
		}
	}
}

// prompt shows the question whose turn it is.
func (u *Follower) prompt() {
	if u.ask == nil && len(u.next) > 0 {
		u.ask, u.next = &u.next[0], u.next[1:]
	}
	if u.ask == nil || u.ask.shown {
		return
	}
	u.ask.shown = true
	u.read()
	if u.ask.denying {
		u.live.ask("reason for the model (enter for none): ")
		return
	}
	switch u.ask.seen.Kind {
	case "question":
		u.live.println(u.ask.seen.Lines(u.live.look)...)
		u.live.ask("answer (ctrl-d leaves it open): ")
	case "form":
		u.live.println(u.ask.seen.Lines(u.live.look)...)
		u.live.ask(`fields as {"name": "value"}, or n to decline (ctrl-d leaves it open): `)
	case "continue":
		u.live.println(u.ask.seen.Lines(u.live.look)...)
		u.live.ask("go on? [y]es, [n]o: ")
	case "acceptance":
		u.live.println(u.ask.seen.Lines(u.live.look)...)
		u.live.ask("is it so? [y]es, [n]o: ")
	case "budget":
		u.live.println(u.ask.seen.Lines(u.live.look)...)
		u.live.ask("raise it? [y]es, [n]o, or by another amount, such as +5usd: ")
	default:
		u.offer()
	}
}

// offer shows a call, whole, and asks whether it may run.
func (u *Follower) offer() {
	if u.ask.args != nil {
		u.live.println("changed to: " + story.Call(u.ask.seen.Tool, u.ask.args))
		u.live.ask("allow it so? [y]es, [e]dit again, [n]o: ")
		return
	}
	u.live.println(u.ask.seen.Lines(u.live.look)...)
	more := ""
	if n := u.alike(); n > 0 {
		more = fmt.Sprintf("[a]ll %d alike, ", n+1)
	}
	seen := u.ask.seen
	switch s := seen.Offer("session"); {
	case s == nil:
	case s.Covers == "tool":
		more += "[s] for this session, "
	default:
		more += "[s] " + s.What(seen.Tool, seen.Shows == block.PreviewCommand) + " for this session, "
	}
	if len(seen.Taint) > 0 {
		more += "[t]rust what was read and allow it once, "
	}
	if seen.Wider {
		u.live.ask("run it again? [y] once, " + more + "[n]o: ")
		return
	}
	u.live.ask("allow? [y] once, " + more + "[e]dit, [n]o: ")
}

// alike counts the questions of other agents that wait here and ask for the same call.
func (u *Follower) alike() (n int) {
	if u.ask.seen.Kind != "permission" || u.ask.args != nil {
		return 0
	}
	for _, o := range u.next {
		if o.seen.Like == u.ask.seen.Like && o.thread != u.ask.thread {
			n++
		}
	}
	return n
}

// edits opens the call in the user's editor. Meanwhile the terminal belongs to
// the editor: nothing else reads it, and nothing is shown.
func (u *Follower) edits(ctx context.Context) {
	args := u.ask.seen.Args
	if u.ask.args != nil {
		args = u.ask.args
	}
	u.live.clear()
	edited, err := u.env.Edit(ctx, args)
	if err != nil {
		u.live.println(Line(err.Error()))
		return
	}
	u.ask.args = edited
}

// typed takes a line of the person; not ok is the end of the input.
func (u *Follower) typed(ctx context.Context, l string, ok bool) {
	u.reading = false
	if !ok {
		u.lines = nil
		u.live.ask("")
		u.stop(ErrNobody)
		return
	}
	if u.ask == nil {
		return
	}
	u.live.answered()
	l = strings.TrimSpace(strings.ToValidUTF8(l, string(utf8.RuneError)))
	c := belay.RespondAction{Action: u.ask.seen.ID, Args: u.ask.args, Seen: u.ask.seen.Version}
	raise, alike := "", false
	switch word := strings.ToLower(l); {
	case u.ask.denying:
		c.Decision, c.Message = "deny", l
	case u.ask.seen.Kind == "question" && l != "":
		c.Decision, c.Message = "answer", l
	case u.ask.seen.Kind == "form" && l != "" && word != "n" && word != "no":
		c.Decision, c.Message = "answer", l
	case u.ask.seen.Kind == "question":
	case u.ask.seen.Kind == "budget" && strings.HasPrefix(word, "+"):
		c.Decision, raise = "allow", word
	case word == "y" || word == "yes":
		c.Decision = "allow"
	case (word == "s" || word == "session") && u.ask.seen.Offer("session") != nil && u.ask.args == nil:
		c.Decision, c.Scope = "allow", "session"
	case (word == "t" || word == "trust") && len(u.ask.seen.Taint) > 0 && u.ask.args == nil:
		c.Decision, c.Clear = "allow", true
	case (word == "a" || word == "all") && u.alike() > 0:
		c.Decision, alike = "allow", true
	case (word == "e" || word == "edit") && u.ask.seen.Kind == "permission" && !u.ask.seen.Wider:
		u.edits(ctx)
	case word == "n" || word == "no":
		if u.ask.seen.Kind == "permission" {
			u.ask.denying = true
		} else {
			c.Decision = "deny"
		}
	}
	u.ask.shown = false
	if c.Decision == "" {
		return
	}
	asked := u.ask
	u.ask = nil
	if c.Decision != "allow" {
		c.Args, c.Seen = nil, ""
	}
	err := u.w.Questions.Answer(ctx, asked.thread, c, raise, alike)
	if err != nil {
		u.live.println("not taken: " + Line(err.Error()))
	}
	switch belay.CodeOf(err) {
	case belay.CodeConflict, belay.CodeBadArguments, belay.CodeBadCommand, belay.CodeUsage: // it still waits, as it is now
		u.Asked(ctx, asked.thread, asked.seen.ID)
	}
}
