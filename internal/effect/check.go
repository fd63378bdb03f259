package effect

import (
	"context"
	"encoding/json"
	"errors"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/model"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/policy"
)

// checkCall asks a checker about a call. A checker that doesn't answer is a fact
// too; the rules say what follows. When the process shuts down nothing is
// recorded: the next one asks again.
func (v *performer) checkCall(ctx context.Context, run *engine.Run, eff core.CheckCall) []core.Fact {
	begun := v.e.c.Now()
	var c policy.Checker
	hook, point := "checker/"+eff.Checker, "permission_request"
	answer, err := policy.Answer{}, json.Unmarshal(eff.Spec, &c)
	var used belay.Usage
	var output *belay.Ref
	switch {
	case err != nil:
	case eff.Request != nil:
		hook, point = eff.Checker, "sampling"
		answer.Decision = "continue"
		output, used, err = v.sample(ctx, c, eff)
	case c.Kind == "model":
		answer, used, err = v.review(ctx, c, eff)
	case v.e.c.Check == nil:
		err = errors.New("nothing here can ask checkers")
	default:
		answer, err = v.e.c.Check(ctx, c, eff.Dir, eff.Question)
	}
	if ctx.Err() != nil && run.Leaving() {
		return nil
	}
	ms := v.e.c.Now().Sub(begun).Milliseconds()
	if err == nil {
		return []core.Fact{{IDs: eff.IDs, Data: event.HookCompleted{Hook: hook, Point: point, Decision: string(answer.Decision), Reason: answer.Reason, Code: answer.Code,
			Output: output, Millis: ms, Usage: used}}}
	}
	fails := "closed"
	if c.Fails() == policy.Allow {
		fails = "open"
	}
	problem := event.Problem{Class: "internal", Code: "CHECKER_FAILED", Message: event.CutText(v.e.c.Secrets.String(err.Error()), 500)}
	if ctx.Err() != nil {
		problem = event.Problem{Class: "cancelled", Code: "CANCELLED", Message: "the answer is no longer needed"}
	}
	charge := event.ChargeAll
	if _, refused := errors.AsType[*model.Error](err); used.Reported {
		charge = event.ChargeAnswer
	} else if refused {
		charge = event.ChargeNothing
	}
	return []core.Fact{{IDs: eff.IDs, Data: event.HookFailed{Hook: hook, Point: point, Problem: problem, Fails: fails, Millis: ms, Usage: used, Charge: charge}}}
}
