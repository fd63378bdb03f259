package cli

import (
	"context"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/view"
)

type approveCmd struct {
	ID      string `arg:"" help:"The action, or the beginning of its id."`
	Session bool   `help:"Allow the tool for the whole session, not just this call."`

	Prefix string        `placeholder:"WORDS" help:"Allow commands that begin with these words, or files below this folder."`
	Count  int           `placeholder:"N" help:"Allow N calls: exactly this one, or what --prefix says."`
	For    time.Duration `placeholder:"TIME" help:"Allow it for so long: exactly this call, or what --prefix says; 2h."`

	Clear bool `name:"clear-taint" help:"You looked at what the conversation has from outside, and vouch for it."`
}

func (c *approveCmd) run(ctx context.Context, a *app) (int, error) {
	r := belay.RespondAction{Decision: "allow", Clear: c.Clear}
	if c.For != 0 {
		r.Until = a.Now().Add(c.For).UTC()
	}
	r.Prefix, r.Count = c.Prefix, c.Count
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
	return a.respond(ctx, c.ID, r)
}

type denyCmd struct {
	ID      string `arg:"" help:"The action, or the beginning of its id."`
	Message string `short:"m" placeholder:"TEXT" help:"Why; the model reads it."`
}

func (c *denyCmd) run(ctx context.Context, a *app) (int, error) {
	return a.respond(ctx, c.ID, belay.RespondAction{Decision: "deny", Message: c.Message})
}

type answerCmd struct {
	ID   string   `arg:"" help:"The action, or the beginning of its id."`
	Text []string `arg:"" help:"The answer."`
}

func (c *answerCmd) run(ctx context.Context, a *app) (int, error) {
	return a.respond(ctx, c.ID, belay.RespondAction{Decision: "answer", Message: strings.Join(c.Text, " ")})
}

// respond brings an answer to the thread that asked, wherever it is driven.
func (a *app) respond(ctx context.Context, id string, c belay.RespondAction) (int, error) {
	st, err := a.open(ctx, false)
	if err != nil {
		return 0, err
	}
	r, err := a.runtime(st, nil)
	if err != nil {
		return 0, err
	}
	defer r.close()
	if err := view.Catchup(ctx, st); err != nil {
		return 0, err
	}
	at, err := view.ActionByID(ctx, st, id)
	if err != nil {
		return 0, unknownAction(err, id)
	}
	c.Action = at.ID
	ans, err := r.engine.Submit(ctx, a.order(at.Session, at.Stream, c))
	if err != nil {
		return 0, err
	}
	what := map[string]string{"allow": "allowed", "deny": "denied", "answer": "answered"}[c.Decision]
	return a.accepted(ctx, r, at.Session, at.Stream, what, ans.Pending)
}

func unknownAction(err error, id string) error {
	if belay.CodeOf(err) != belay.CodeNotFound {
		return err
	}
	return belay.Errorf(belay.CodeUnknownAction, "nothing in this store waits, or waited, under this id").At(id).
		WithHint("belay sessions list --all, then belay sessions show ID")
}
