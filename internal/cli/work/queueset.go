package work

import (
	"context"
	"fmt"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/turns"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/config"
)

type queueSetCmd struct {
	ID     string `arg:"" optional:"" help:"The session; the last one of this workspace."`
	Thread string `placeholder:"ID" help:"Of this thread; of the newest."`
	Mode   string `placeholder:"MODE" help:"What becomes of a turn that comes while another one runs: enqueue, steer, collect, interrupt, rollback, reject."`
	Cap    string `placeholder:"N" help:"How many may wait, 1 to 100."`
	Drop   string `placeholder:"WHICH" help:"Which doesn't run when more come: new, old, summarise."`
	Quiet  string `placeholder:"TIME" help:"With collect: how long nothing must come, at most 1m."`
}

// policyRow is how a thread takes turns, as JSON.
type policyRow struct {
	Session belay.SessionID `json:"session"`
	Thread  belay.ThreadID  `json:"thread"`
	Queue   belay.Queueing  `json:"queue"`
	Pending bool            `json:"pending,omitempty"` // accepted, and not handled yet
}

// over is a policy with what was given over it.
func (c *queueSetCmd) over(q belay.Queueing) (belay.Queueing, error) {
	return config.Queueing(q, config.Given{"queue": {c.Mode}, "queue-cap": {c.Cap}, "queue-drop": {c.Drop}, "queue-quiet": {c.Quiet}},
		map[string]string{"queue": "--mode", "queue-cap": "--cap", "queue-drop": "--drop", "queue-quiet": "--quiet"})
}

// queueingText is a policy in one line.
func queueingText(q belay.Queueing) string {
	q = config.WholeQueueing(q)
	s := fmt.Sprintf("%s, at most %s, then drop %s", q.Mode, term.Plural(q.Cap, "turn"), q.Drop)
	if q.Mode == belay.QueueCollect {
		s += ", quiet " + q.Quiet.String()
	}
	return s
}

func (c *queueSetCmd) Order(ctx context.Context, a *command.Program, r *app.Runtime) (int, error) {
	have, err := loadQueue(ctx, a, r.Store, c.ID)
	if err != nil {
		return 0, err
	}
	th, err := have.thread(c.Thread)
	if err != nil {
		return 0, err
	}
	q, err := c.over(th.Line)
	if err != nil {
		return 0, err
	}
	told := policyRow{Session: have.session, Thread: th.Thread, Queue: config.WholeQueueing(q)}
	if q != th.Line {
		in := &turns.ConfigureQueue{Session: have.session, Thread: th.Thread, Mode: string(q.Mode), Cap: q.Cap, Drop: string(q.Drop)}
		if q.Quiet != 0 {
			in.Quiet = q.Quiet.String()
		}
		res, err := turns.Configure(ctx, r.Call("configure_queue"), in)
		if err != nil {
			return 0, have.refusal(err)
		}
		told.Pending = res.Status == app.Accepted
	}
	if told.Pending {
		return a.Say(told, "accepted, not yet handled")
	}
	return a.Say(told, "%s takes turns: %s", term.Line(string(th.Thread)), queueingText(q))
}

// thread is one by its id, or the newest.
func (r *queueView) thread(id string) (*app.ThreadState, error) {
	open := slices.DeleteFunc(slices.Clone(r.threads), func(t *app.ThreadState) bool { return !t.Open || id != "" && string(t.Thread) != id })
	if len(open) == 0 {
		return nil, belay.Errorf(belay.CodeNotFound, "it has no such thread").At(string(r.session)).WithHint("belay sessions show %s", r.session)
	}
	return open[len(open)-1], nil
}
