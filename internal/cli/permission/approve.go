// Package permission has the commands about what agents may do: answers to what they
// ask, grants, rules, and trust in files.
package permission

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/approvals"
	"github.com/belay-run/belay/internal/block"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/view/story"
)

// ApproveCmd is the command "belay approve".
type ApproveCmd struct {
	ID      string `arg:"" optional:"" help:"The question, by its id, or one that waits by a beginning of it or its last digits; without it, what waits is listed."`
	Session bool   `help:"Allow it for the whole session: every call of the tool, of one that names a host those to this host, or exactly this call, whichever holds."`

	Prefix string        `placeholder:"WORDS" help:"Allow commands that begin with these words, files below this folder, or calls to this host."`
	Count  int           `placeholder:"N" help:"Allow N calls: exactly this one, or what --prefix says."`
	For    time.Duration `placeholder:"TIME" help:"Allow it for so long: exactly this call, or what --prefix says, such as 2h."`

	Only bool `help:"Allow the agent that asks and those below it what goes beyond this call, rather than all agents of the session."`

	Budget string `placeholder:"+AMOUNT" help:"Raise the budget by this, rather than by what is proposed, such as +5usd."`

	Args    string `placeholder:"JSON" xor:"change" help:"Run the call with these arguments in place of the model's: all of them, as one JSON object."`
	Edit    bool   `xor:"change" help:"Change the arguments in $VISUAL or $EDITOR first."`
	Version string `placeholder:"VERSION" help:"Only if the request is still the one that was shown with this version."`

	Clear bool `name:"clear-taint" help:"You looked at what the conversation has from outside, and vouch for it."`
	Alike bool `help:"Allow it to all agents of the session that ask for the same call, in the same folder and boundary."`
}

// Run implements command.Command.
func (c *ApproveCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	r := approvals.RespondAction{Decision: "allow", Clear: c.Clear, Version: c.Version, Budget: c.Budget, Alike: c.Alike}
	if c.Args != "" {
		args, err := term.ParseArgs([]byte(c.Args))
		if err != nil {
			return 0, err
		}
		if err := r.Change(args); err != nil {
			return 0, err
		}
	}
	if c.For != 0 {
		r.Until = a.Now().Add(c.For).UTC()
	}
	r.Prefix, r.Count, r.Only = c.Prefix, c.Count, c.Only
	switch {
	case c.Session:
		r.Scope = "session"
	case c.Prefix != "":
		r.Scope = "prefix"
	case c.Count != 0:
		r.Scope = "count"
	case c.For != 0:
		r.Scope = "until"
	}
	return respond(ctx, a, c.ID, r, c.Edit)
}

// DenyCmd is the command "belay deny".
type DenyCmd struct {
	ID      string `arg:"" optional:"" help:"The question, by its id, or one that waits by a beginning of it or its last digits; without it, what waits is listed."`
	Message string `short:"m" placeholder:"TEXT" help:"Why; the model reads it."`
	Alike   bool   `help:"Deny it to all agents of the session that ask for the same call, in the same folder and boundary."`
}

// Run implements command.Command.
func (c *DenyCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	return respond(ctx, a, c.ID, approvals.RespondAction{Decision: "deny", Message: c.Message, Alike: c.Alike}, false)
}

// AnswerCmd is the command "belay answer".
type AnswerCmd struct {
	ID   string   `arg:"" help:"The question, by its id, or one that waits by a beginning of it or its last digits."`
	Text []string `arg:"" help:"The answer."`

	Alike bool `help:"Give it to all agents of the session that ask the same."`
}

// Run implements command.Command.
func (c *AnswerCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	text := strings.Join(c.Text, " ")
	if strings.TrimSpace(text) == "" {
		return 0, belay.Errorf(belay.CodeUsage, "the answer is empty").WithHint("belay answer %s TEXT; belay deny %s gives none", c.ID, c.ID)
	}
	return respond(ctx, a, c.ID, approvals.RespondAction{Decision: "answer", Message: text, Alike: c.Alike}, false)
}

// respond sends an answer to the thread that asked, wherever it is driven; without an id
// it lists what waits. With edits the call is changed first.
func respond(ctx context.Context, a *command.Program, id string, c approvals.RespondAction, edits bool) (int, error) {
	return a.Ordering(ctx, func(r *app.Runtime) (int, error) {
		if id == "" {
			return listActions(ctx, a, r, mostListed)
		}
		action, thread, err := findAction(ctx, r, id)
		if err != nil {
			return 0, err
		}
		c.Action = action
		what := map[string]string{"allow": "allowed", "deny": "denied", "answer": "answered"}[c.Decision]
		var req *block.Preview
		if c.Decision == "allow" {
			if req, err = sees(ctx, &a.Env, r, thread, &c, edits); err != nil {
				return 0, err
			}
		}
		if c.Args != nil {
			what += " with other arguments"
		}
		res, err := approvals.Respond(ctx, r.Call("respond_action"), &c)
		if belay.CodeOf(err) == belay.CodeConflict {
			showAgain(ctx, &a.Env, r, thread, action)
		}
		if err != nil {
			return 0, err
		}
		if n := len(res.Alike); n > 0 {
			what += fmt.Sprintf(", with %d alike", n)
		}
		if o := req.Offer(c.Scope); o != nil && c.Scope == "session" && !a.JSON {
			fmt.Fprintf(a.Err, "for this session: %s\n", o.What(req.Tool, req.Shows == block.PreviewCommand))
		}
		return a.Tell(ctx, r, res, what)
	})
}

// sees shows what is about to be allowed and binds the answer to exactly that:
// to the version that was named, or to the one that is shown here.
func sees(ctx context.Context, e *term.Env, r *app.Runtime, thread belay.ThreadID, c *approvals.RespondAction, edits bool) (*block.Preview, error) {
	req, err := approvals.Preview(ctx, r, thread, c.Action)
	if req == nil || err != nil {
		return nil, err // it doesn't wait any more: the thread says its outcome
	}
	if c.Version != "" && c.Version != req.Version {
		e.ShowAsked(req)
		return nil, belay.Errorf(belay.CodeConflict, "the request has changed since version %s: it is version %s now", term.Line(c.Version), req.Version).At(string(c.Action)).
			WithHint("look at it as it is, then: %s", term.AnswerCommands(req.ID, req.Kind, req.Version)[0])
	}
	c.Version = req.Version
	e.ShowAsked(req)
	if edits && req.Tool == "" {
		return nil, belay.Errorf(belay.CodeBadCommand, "a %s has no arguments to change", req.Kind).At(string(c.Action)).WithHint("belay answer %s TEXT answers a question, belay approve %s allows the rest", c.Action, c.Action)
	}
	if edits {
		args, err := e.Edit(ctx, req.Args)
		if err != nil {
			return nil, err
		}
		if err := c.Change(args); err != nil {
			return nil, err
		}
	}
	if c.Args != nil && !e.JSON && req.Tool != "" {
		fmt.Fprintf(e.Err, "changed to: %s\n", story.Call(req.Tool, c.Args.JSON()))
	}
	return req, nil
}

// showAgain shows a request that has changed meanwhile, if it still waits.
func showAgain(ctx context.Context, e *term.Env, r *app.Runtime, thread belay.ThreadID, id belay.ActionID) {
	if req, err := approvals.Preview(ctx, r, thread, id); err == nil && req != nil {
		e.ShowAsked(req)
	}
}
