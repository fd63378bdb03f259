package cli

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/explain"
)

// prompt is a question that waits for the person at this terminal.
type prompt struct {
	id      belay.ActionID
	kind    string // permission, question, continue
	what    string
	gives   string // what a yes gives it, if anything has to be said of that
	again   bool   // a boundary stopped it: a yes runs it again
	until   time.Time
	denying bool // no was said; the reason is asked for
	shown   bool
}

// standing finds what stood before this process began: how far the turn was,
// and the questions that wait.
func (u *watch) standing(ctx context.Context) error {
	s, err := u.w.state(ctx)
	if err != nil || s == nil {
		return err
	}
	u.live.goOn(s)
	if len(openAsks(s)) == 0 {
		return nil
	}
	open, err := openActions(ctx, u.w.store, u.w.thread)
	if err != nil {
		return err
	}
	for _, o := range open {
		u.asked(ctx, o.ID, o.Fact)
	}
	return nil
}

// asked notes a question, and says who can answer when it isn't asked here.
func (u *watch) asked(ctx context.Context, id belay.ActionID, p event.ActionRequired) {
	if u.w.approvals == belay.ApprovalsAsk && u.a.interactive() {
		what, err := u.whole(ctx, p)
		if err != nil { // nobody allows what they can't see
			u.live.println("a question can't be shown, and stays open: " + line(err.Error()))
			return
		}
		u.next = append(u.next, prompt{id: id, kind: p.Kind, what: what, gives: gives(p), again: p.Stopped != nil, until: p.Until})
		return
	}
	if !u.a.JSON && u.w.approvals == belay.ApprovalsWait {
		u.live.println("waits for an answer until " + p.Until.Local().Format("2 Jan 15:04") + ": " + short(p.Prompt.Text, 200))
		if g := gives(p); g != "" {
			u.live.println("  " + g)
		}
		for _, c := range howToAnswer(id, p.Kind) {
			u.live.println("  " + c + u.a.storeFlag())
		}
	}
}

// whole is what a question asks, however long the arguments of its call are.
func (u *watch) whole(ctx context.Context, p event.ActionRequired) (string, error) {
	if p.Kind != "permission" || p.Prompt.Ref == nil {
		return p.Prompt.Text, nil
	}
	args, err := u.w.store.Get(ctx, p.Prompt.Ref.Digest)
	return explain.Call(p.Tool, args), err
}

// gives says what a yes gives a call: the boundary that its programs run in, and
// what a narrower one stopped.
func gives(p event.ActionRequired) string {
	switch {
	case p.Boundary == "":
		return ""
	case p.Stopped == nil:
		return "in boundary " + line(p.Boundary)
	}
	what := "it"
	if p.Stopped.Op != "" {
		what += ": " + p.Stopped.Op + " " + p.Stopped.Target
	}
	return line("boundary " + p.Stopped.Boundary + " stopped " + what + "; a yes runs it again in boundary " + p.Boundary)
}

func howToAnswer(id belay.ActionID, kind string) []string {
	if kind == "question" {
		return []string{"belay answer " + string(id) + " TEXT", "belay deny " + string(id)}
	}
	return []string{"belay approve " + string(id), "belay deny " + string(id)}
}

// resolved drops a question that somebody answered, here or elsewhere.
func (u *watch) resolved(id belay.ActionID) {
	if u.ask != nil && u.ask.id == id {
		u.ask = nil
		u.live.ask("")
	}
	for i := range u.next {
		if u.next[i].id == id {
			u.next = append(u.next[:i], u.next[i+1:]...)
			return
		}
	}
}

// prompt shows the question whose turn it is.
func (u *watch) prompt() {
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
	switch u.ask.kind {
	case "question":
		u.live.println("the agent asks: " + text(u.ask.what))
		u.live.ask("answer (ctrl-d leaves it open): ")
	case "continue":
		u.live.println(text(u.ask.what))
		u.live.ask("go on? [y]es, [n]o: ")
	default:
		u.live.println("it wants to run: " + text(u.ask.what))
		if u.ask.gives != "" {
			u.live.println(u.ask.gives)
		}
		if u.ask.again {
			u.live.ask("run it again? [y] once, [s] exactly this call for this session, [n]o: ")
			return
		}
		u.live.ask("allow? [y] once, [s] for this session, [n]o: ")
	}
}

// typed takes a line of the person; not ok is the end of the input.
func (u *watch) typed(ctx context.Context, l string, ok bool) {
	if !ok {
		u.lines = nil
		u.live.ask("")
		u.stop(errNobody)
		return
	}
	if u.ask == nil {
		return
	}
	u.live.answered()
	l = strings.TrimSpace(strings.ToValidUTF8(l, string(utf8.RuneError)))
	c := belay.RespondAction{Action: u.ask.id}
	switch word := strings.ToLower(l); {
	case u.ask.denying:
		c.Decision, c.Message = "deny", l
	case u.ask.kind == "question" && l != "":
		c.Decision, c.Message = "answer", l
	case u.ask.kind == "question":
	case word == "y" || word == "yes":
		c.Decision = "allow"
	case (word == "s" || word == "session") && u.ask.kind == "permission":
		c.Decision, c.Scope = "allow", "session"
	case word == "n" || word == "no":
		if u.ask.kind == "permission" {
			u.ask.denying = true
		} else {
			c.Decision = "deny"
		}
	}
	u.ask.shown = false
	if c.Decision == "" {
		return
	}
	u.ask = nil
	if _, err := u.w.engine.Submit(ctx, u.w.a.order(u.w.session, u.w.thread.Stream(), c)); err != nil {
		u.live.println("not taken: " + line(err.Error()))
	}
}
