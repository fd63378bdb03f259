package effect

import (
	"fmt"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/tool"
)

// CodeStuck is the code of what ended because it was given up.
const CodeStuck = "EFFECT_STUCK"

// givenUp are the ends of effects that were given up.
type givenUp struct {
	silent time.Duration
	now    time.Time
}

// ends are the facts of an end, with a warning before it.
func (g givenUp) ends(ids belay.IDs, what string, end ...core.Fact) []core.Fact {
	w := event.RuntimeWarning{Code: CodeStuck, Message: what + " " + g.said() + "; it was given up"}
	return append([]core.Fact{{IDs: ids, Data: w}}, end...)
}

func (g givenUp) said() string {
	return fmt.Sprintf("gave no sign of life for %s", g.silent)
}

func (g givenUp) tool(eff core.RunTool) []core.Fact {
	p := event.Problem{Class: tool.Lost, Code: CodeStuck,
		Message: eff.Name + " didn't end when its time was up, and was given up; nobody knows whether it did its work (lost)",
		Hint:    "look at what is there before you decide to run it again"}
	end := event.ToolFailed{Name: eff.Name, Attempt: eff.Attempt, Final: true, Problem: p, Millis: g.silent.Milliseconds()}
	return g.ends(eff.IDs, eff.Name, core.Fact{IDs: eff.IDs, Data: end})
}

func (g givenUp) model(eff core.CallModel) []core.Fact {
	p := event.Problem{Class: "transient", Code: CodeStuck, Retryable: true,
		Message: "the model gave no answer and the request could not be ended; it was given up"}
	end := event.ModelFailed{Attempt: eff.Attempt, Problem: p, RetryAt: thread.ModelRetryAt(g.now, eff.Step, eff.Failures, 0)}
	return g.ends(eff.IDs, "a request to "+eff.Provider, core.Fact{IDs: eff.IDs, Data: end})
}

// summary leaves the conversation as it is. What the requests took nobody knows.
func (g givenUp) summary(eff core.Compact) []core.Fact {
	p := event.Problem{Class: "timeout", Code: CodeStuck, Message: "shortening the conversation " + g.said(), Retryable: true}
	end := event.ContextCompactionFailed{Trigger: eff.Trigger, Strategy: eff.Strategy, Started: eff.Started,
		Problem: p, RetryAt: g.now.Add(summaryRetry), Charge: event.ChargeAll}
	return g.ends(eff.IDs, "shortening the conversation", core.Fact{IDs: eff.IDs, Data: end})
}

func (g givenUp) checker(eff core.CheckCall) []core.Fact {
	hook, point := "checker/"+eff.Checker, "permission_request"
	if eff.Request != nil {
		hook, point = eff.Checker, "sampling"
	}
	p := event.Problem{Class: "internal", Code: CodeStuck, Message: "the checker gave no answer and could not be ended"}
	end := event.HookFailed{Hook: hook, Point: point, Problem: p, Fails: "closed"}
	return g.ends(eff.IDs, "checker "+eff.Checker, core.Fact{IDs: eff.IDs, Data: end})
}

// call is the end of a call that the runtime answers itself.
func (g givenUp) call(ids belay.IDs, name, what string) []core.Fact {
	p := event.Problem{Class: tool.Internal, Code: CodeStuck, Message: what + " " + g.said(), Hint: "try it again, or do without it"}
	return g.ends(ids, what, core.Fact{IDs: ids, Data: event.ToolFailed{Name: name, Attempt: 1, Problem: p, Final: true}})
}

func (g givenUp) child(eff core.PrepareChild) []core.Fact {
	return g.call(eff.IDs, tool.SpawnName, "preparing the agent")
}

func (g givenUp) results(eff core.ShowResults) []core.Fact {
	return g.call(eff.IDs, eff.Name, "reading what agents ended with")
}

func (g givenUp) check(eff core.Verify) []core.Fact {
	r := event.CheckResult{ID: eff.Check.ID, Kind: eff.Check.Kind, Status: event.CheckUnknown, Reason: "it " + g.said()}
	if eff.Note {
		r.Status = event.CheckNoted
	}
	return g.ends(eff.IDs, "check "+eff.Check.ID, core.Fact{IDs: eff.IDs, Data: event.TaskProgress{Phase: event.PhaseVerifying, Check: &r}})
}

func (g givenUp) admission(eff core.Admit) []core.Fact {
	p := event.ThreadUpdated{Pause: &event.Pause{Op: event.Paused, Agent: eff.Agent, Until: g.now.Add(admitAgain)},
		Reason: "asking whether the agent may work " + g.said()}
	return g.ends(eff.IDs, "asking whether the agent may work", core.Fact{IDs: eff.IDs, Data: p})
}

func (g givenUp) input(eff core.BindInput) []core.Fact {
	ids := belay.IDs{Session: eff.IDs.Session}
	p := event.PlannedTask{Task: eff.IDs.Task, Status: event.PlanUnbound, Reason: CodeStuck + ": making its input " + g.said()}
	return g.ends(ids, "making the input of a task", core.Fact{IDs: ids, Data: event.SessionUpdated{Planned: &p}})
}

func (g givenUp) tree(eff core.SettleTree) []core.Fact {
	p := event.SubagentStatus{Status: event.SubagentSettled, Worktree: &eff.Tree, Reason: "looking at it " + g.said()}
	return g.ends(eff.IDs, "looking at the worktree "+eff.Tree.Path, core.Fact{IDs: eff.IDs, Data: p})
}

func (g givenUp) look(eff core.LookAround) []core.Fact {
	p := event.ContextResolved{Look: eff.Look, Omitted: leftOut(eff)}
	return g.ends(eff.IDs, "looking around in "+eff.Dir, core.Fact{IDs: eff.IDs, Data: p})
}

func (g givenUp) snapshot(eff core.TakeSnapshot) []core.Fact {
	p := event.ArtifactChanged{Kind: "snapshot", Op: "failed", Name: eff.When, Scope: eff.How, Note: "keeping the workspace " + g.said()}
	return g.ends(eff.IDs, "keeping the workspace "+eff.Dir, core.Fact{IDs: eff.IDs, Data: p})
}

func (g givenUp) rollback(eff core.GoBack) []core.Fact {
	p := rollbackOf(eff)
	p.Kept = []string{"no file was restored: looking for what has changed " + g.said()}
	return g.ends(eff.IDs, "looking for what a turn has changed in "+eff.Dir, thread.Rollback(eff.IDs, p)...)
}

// restored doesn't say how many files it restored: those have facts.
func (g givenUp) restored(eff core.RestoreFiles) []core.Fact {
	end := eff.Event
	end.Kept = event.Fitting(append(end.Kept, "some files may not be restored: restoring "+g.said()), roomForKept)
	return g.ends(eff.IDs, "restoring files in "+eff.Dir, core.Fact{IDs: eff.IDs, Data: end})
}

// quota refuses for the moment, as when the quotas can't be asked.
func (g givenUp) quota(eff core.AskQuota) []core.Fact {
	p := event.LimitChanged{Op: event.LimitRefused, Scope: "quota", GrantID: eff.ID, Until: g.now}
	return g.ends(eff.IDs, "asking the quotas", core.Fact{IDs: eff.IDs, Data: p})
}

func (g givenUp) sent(eff core.SendInput) []core.Fact {
	p := event.ProcessInput{Number: eff.Number, End: eff.End, Error: "writing to the process " + g.said()}
	return g.ends(eff.IDs, "writing to a process", core.Fact{IDs: eff.IDs, Data: p})
}

// lostProcess is the end of a program that this runtime can't end.
func (v *performer) lostProcess(g givenUp, eff core.KeepProcess) []core.Fact {
	v.e.background.remove(v.stream, eff.IDs.Process)
	p := event.ProcessFailed{Class: tool.Lost, Reason: "it " + g.said() + "; it may still run"}
	return g.ends(eff.IDs, "a program", core.Fact{IDs: eff.IDs, Data: p})
}
