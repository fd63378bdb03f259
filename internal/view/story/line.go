package story

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// Line is a fact on one line: its time of day, its place in the stream, its
// type, what it is about and what it says.
func Line(e event.Envelope) string {
	s := fmt.Sprintf("%-9s #%-4d %-22s", e.Time.UTC().Format("15:04:05.000"), e.Seq, e.Type())
	return Clean(strings.TrimRight(s+" "+join("  ", about(e), says(e)), " "))
}

// about names what a fact is about, by the narrowest id it has.
func about(e event.Envelope) string {
	ids := e.IDs
	switch p := e.Data.(type) {
	case event.ToolCatalogResolved: // its call and step are placeholders
		return short(string(ids.Turn))
	case event.SessionUpdated:
		return join(" ", short(string(ids.Session)), when(short(string(p.Turn)), "gives %s"))
	}
	if strings.HasPrefix(e.Type(), "subagent.") {
		return short(string(ids.Subagent))
	}
	return short(cmp.Or(string(ids.Action), string(ids.Process), string(ids.Call), string(ids.Step), string(ids.Turn), string(ids.Run),
		string(ids.Task), string(ids.Subagent), string(ids.Item), string(ids.Job), string(ids.Thread), string(ids.Session)))
}

// says is what a fact says, in a few words.
func says(e event.Envelope) string {
	for _, family := range []func(event.Payload) (string, bool){saysSession, saysTurn, saysTask, saysFamily, saysModel, saysRoute, saysTool, saysGate, saysProcess, saysRuntime, saysHistory} {
		if s, ok := family(e.Data); ok {
			return s
		}
	}
	raw, err := event.Encode(e.Data)
	if err != nil {
		return ""
	}
	return cut(string(raw), 120)
}

func saysSession(p event.Payload) (string, bool) {
	switch p := p.(type) {
	case event.SessionCreated:
		shell := ifSet(p.Settings.Shell, func(s belay.Shell) string { return "commands by " + s.Path })
		return join(", ", when(p.Title, `"%s"`), "in "+p.Workspace, modeAndModel(p.Settings), shell), true
	case event.SessionUpdated:
		used := ifSet(p.Used, func(u event.ThreadUse) string { return short(string(u.Thread)) + " used " + programUse(u.ProgramUse) })
		planned := ifSet(p.Planned, func(t event.PlannedTask) string {
			return join(": ", "task "+short(string(t.Task))+" is "+t.Status, t.Reason)
		})
		return join(", ", when(p.Title, `"%s"`), when(ifSet(p.Settings, modeAndModel), "settings: %s"), labels(p), used, planned), true
	case event.ThreadStarted:
		return join(", ", p.Kind, when(p.Workspace, "in %s"), ifSet(p.ForkedFrom, forkedFrom), ifSet(p.ImportedFrom, importedFrom)), true
	case event.ThreadUpdated:
		rules := ifSet(p.Rules, func(r belay.Ref) string { return "rules " + r.Digest.Short() })
		pause := func(p event.Pause) string { return p.Op + when(p.Programs, " (in the background go on: %s)") }
		return join(", ", ifSet(p.Pause, pause), p.Place, p.Reason, ifSet(p.Limits, limits), rules, when(p.Mode, "mode %s at most"), when(p.Boundary, "boundary %s at most"), when(ifSet(p.Reported, programUse), "its programs used %s")), true
	}
	return "", false
}

func modeAndModel(s belay.Settings) string {
	return join(", ", "mode "+string(s.Mode), join("/", s.Provider, s.Model))
}

// programUse returns what programs took.
func programUse(u belay.ProgramUse) string {
	return fmt.Sprintf("%s of processors and %d bytes to disks in %s: %s", u.CPU, u.Written, u.Time, plural(u.Ended, "program"))
}

func labels(p event.SessionUpdated) string {
	archived := ifSet(p.Archived, func(is bool) string { return map[bool]string{true: "archived", false: "not archived any more"}[is] })
	return join(", ", when(strings.Join(p.Tag, " "), "tagged %s"), when(strings.Join(p.Untag, " "), "not tagged %s any more"), archived)
}

// forkedFrom and importedFrom say where a thread's history comes from.
func forkedFrom(f belay.Fork) string {
	return "forked from " + short(string(f.Session)) + cmp.Or(when(short(string(f.Turn)), " after %s"), " before its first turn")
}

func importedFrom(i belay.Import) string { return join(" ", "imported from", i.Format, i.Name) }

func saysTurn(p event.Payload) (string, bool) {
	switch p := p.(type) {
	case event.TurnSubmitted:
		return join(": ", when(p.By, "by %s"), join(", ", quote(p.Text.Text), Attached(p.Text))), true
	case event.TurnStarted:
		return join(", ", "completion "+string(p.Completion), limits(p.Limits), "rules "+p.Rules.Digest.Short()), true
	case event.TurnCompleted:
		return join(", ", quote(p.Summary.Text), stats(p.Stats)), true
	case event.TurnFailed:
		return join(", ", fmt.Sprintf("%s %s: %s", p.Outcome, p.Code, p.Reason), stats(p.Stats)), true
	case event.QueueChanged:
		return saysQueue(p), true
	case event.RunStatus:
		until := ""
		if !p.Until.IsZero() {
			until = "until " + clock(p.Until)
		}
		return join(", ", join(" by ", join(" ", p.Status, p.Phase), p.By), when(short(p.WaitingFor), "for %s"), until, p.Reason), true
	}
	return "", false
}

func stats(s event.TurnStats) string {
	return join(", ", plural(s.Steps, "step"), plural(s.Calls, "call"), took(time.Duration(s.ActiveMS)*time.Millisecond)+" active", tokens(s.Usage))
}

// saysQueue tells a change of the row of waiting turns.
func saysQueue(p event.QueueChanged) string {
	place := ""
	if p.Position > 0 {
		place = fmt.Sprintf("at place %d of %d", p.Position, p.Length)
	}
	return join(", ", join(" ", p.Op, short(string(p.Turn)), string(p.Mode), place), when(short(string(p.Into)), "part of %s now"), when(p.By, "by %s"),
		ifSet(p.Policy, queueing), quote(p.Note))
}

func queueing(q belay.Queueing) string {
	most, quiet := "", ""
	if q.Cap > 0 {
		most = fmt.Sprintf("cap %d", q.Cap)
	}
	if q.Quiet > 0 {
		quiet = "quiet " + q.Quiet.String()
	}
	return join(" ", when(string(q.Mode), "mode %s"), when(string(q.Drop), "drop %s"), most, quiet)
}

func saysTask(p event.Payload) (string, bool) {
	switch p := p.(type) {
	case event.TaskCreated:
		return join(": ", when(p.By, "by %s"), quote(p.Objective.Text)), true
	case event.TaskStarted:
		return "", true
	case event.TaskAccepted:
		return when(p.By, "by %s"), true
	case event.TaskProgress:
		count := ""
		if p.Total > 0 {
			count = fmt.Sprintf("%d of %d", p.Done, p.Total)
		}
		return join(", ", when(p.By, "by %s"), p.Phase, ifSet(p.Check, event.CheckResult.Text), count, when(p.Summary.Text, `"%s"`), when(p.Delivery, "its result is %s")), true
	case event.TaskUpdated:
		return join(", ", when(p.By, "by %s"), when(p.Title, `"%s"`), when(p.Owner, "owner %s"), ifSet(p.Assignee, func(name string) string { return "assigned to " + cmp.Or(name, "the main agent") }), ifSet(p.Priority, func(n int) string { return fmt.Sprintf("priority %d", n) }),
			ifSet(p.Objective, func(c belay.Content) string { return "objective " + quote(c.Text) }),
			ifSet(p.Acceptance, func(c []belay.Check) string { return some(len(c), "check") }),
			ifSet(p.Constraints, func(belay.Constraints) string { return "other constraints" }), ifSet(p.Retry, func(r belay.Retry) string { return fmt.Sprintf("retry %d", r.Max) })), true
	case event.TaskDependencyUpdated:
		return join(", ", p.Op+" "+strings.ReplaceAll(string(p.Relation), "_", " ")+" "+short(cmp.Or(string(p.Target), p.To)), when(p.OnFailed, "else %s"), p.Because), true
	case event.TaskQueued:
		return "waits: " + p.Reason, true
	case event.TaskDelegated:
		return "to a " + p.To, true
	case event.TaskWaiting:
		return join(", ", p.Status, p.Reason), true
	case event.TaskArchived:
		return join(", ", when(p.By, "by %s"), p.Reason), true
	case event.TaskPaused:
		return join(", ", when(p.By, "by %s"), p.Reason), true
	case event.TaskResumed:
		return join(", ", when(p.By, "by %s"), p.Status, p.Reason), true
	case event.TaskRetrying:
		return join(", ", when(p.Agent, "by %s"), p.Reason), true
	case event.TaskCancelRequested:
		return join(", ", when(p.By, "by %s"), p.Reason), true
	case event.TaskAttemptStarted:
		return join(", ", fmt.Sprintf("attempt %d", p.Number), "turn "+short(string(p.Turn)), p.Purpose), true
	case event.TaskAttemptCompleted:
		return quote(p.Summary.Text), true
	case event.TaskAttemptFailed:
		return fmt.Sprintf("%s: %s", p.Outcome, p.Reason), true
	case event.TaskOver:
		e := p.End()
		return join(": ", string(e.Outcome)+when(e.By, " by %s"), join(", ", e.Reason, when(e.Summary.Text, `"%s"`))), true
	}
	return "", false
}

func saysFamily(p event.Payload) (string, bool) {
	ended := func(e belay.AttemptEnd) string {
		return join(": ", string(e.Outcome), join(", ", e.Reason, when(e.Summary.Text, `"%s"`)))
	}
	switch p := p.(type) {
	case event.SubagentSpawned:
		waits := ""
		if p.Waits {
			waits = "waits for a place"
		}
		return join(", ", p.Agent+when(p.Nickname, " %s"), quote(p.Objective.Text), fmt.Sprintf("depth %d", p.Depth), "thread "+short(string(p.Thread)), waits), true
	case event.SubagentStatus:
		if p.End != nil {
			return p.Status + ": " + ended(*p.End), true
		}
		return join(", ", p.Status, p.Agent+when(p.Nickname, " %s"), p.Reason), true
	case event.SubagentInput:
		again := ""
		if p.Again {
			again = "it goes on"
		}
		return join(", ", when(p.By, "by %s"), quote(p.Text.Text), again), true
	case event.SubagentCompleted:
		return ended(p.AttemptEnd), true
	case event.SubagentFailed:
		return join(", ", p.Code, ended(p.AttemptEnd)), true
	case event.SubagentClosed:
		return join(", ", when(p.By, "by %s"), p.Reason), true
	}
	return "", false
}

func saysModel(p event.Payload) (string, bool) {
	switch p := p.(type) {
	case event.ModelRequested:
		return join(", ", join("/", p.Provider, p.Model), p.Kind+when(p.Limit, " (%s)"), fmt.Sprintf("attempt %d", p.Attempt)), true
	case event.ModelDelta:
		return fmt.Sprintf("%d bytes more after %d", len(p.Text), p.Offset), true
	case event.ModelCompleted:
		var calls, searches []string
		for _, c := range p.Calls {
			calls = append(calls, c.Name)
		}
		for _, s := range p.Searches {
			searches = append(searches, s.String())
		}
		return join(", ", quoted(p.Text.Text), strings.Join(searches, ", "), when(strings.Join(calls, " "), "calls %s"), some(len(p.Images), "picture"), unusual(p), tokens(p.Usage)), true
	case event.ReasoningSummary:
		return join(", ", quote(p.Text.Text), some(int(p.Tokens), "token")), true
	case event.ModelFailed:
		return join(", ", fmt.Sprintf("attempt %d", p.Attempt), problem(p.Problem), again(p.RetryAt)), true
	}
	return "", false
}

func saysRoute(p event.Payload) (string, bool) {
	switch p := p.(type) {
	case event.TaskProfileResolved:
		return join(", ", p.Kind, when(strings.Join(p.Capabilities, " "), "needs %s"), "fallback "+p.Fallback), true
	case event.RoutingSingleCandidate:
		return join(": ", routeName(p.Route)+when(p.Address, " at %s"), p.Reason), true
	case event.RoutingCandidatesResolved:
		var names []string
		for _, c := range p.Candidates {
			names = append(names, routeName(c.Route))
		}
		return join(", ", strings.Join(names, " "), excluded(p.Excluded)), true
	case event.RoutingDecided:
		return join(": ", routeName(p.Route)+when(p.Address, " at %s"), p.Reason), true
	case event.RoutingNotPossible:
		return cut(p.Reason, 200), true
	case event.RoutingFallbackApplied:
		return fmt.Sprintf("%s%s instead of %s: %s", routeName(p.To), when(p.Address, " at %s"), routeName(p.From), cut(p.Reason, 160)), true
	case event.CostRecorded:
		over, failed := "", ""
		if p.Over > 0 {
			over = amount(p.Over) + " more than was reserved"
		}
		if p.Failed {
			failed = "an attempt without an answer"
		}
		return join(", ", priced(p.Cost), join("/", p.Provider, p.Model), p.Source, ofSummary(p.Cost), failed, over), true
	case event.CostEstimated:
		return join(", ", priced(p.Cost)+" at most", join("/", p.Provider, p.Model), tokens(p.Usage), ofSummary(p.Cost)), true
	case event.LimitChanged:
		return join(", ", p.Op, p.Scope, when(short(string(p.Thread)), "%s"), when(p.Limit.String(), "limit %s"), when(p.Least.String(), "%s at least"), when(p.Amount.String(), "%s"),
			when(p.Spent.String(), "spent %s"), when(p.Kept.String(), "keeps %s"), when(p.By, "by %s")), true
	case event.RateLimitHit:
		return join(", ", join("/", p.Provider, p.Model), again(p.RetryAt)), true
	}
	return "", false
}

// priced is what a request costs; of an unknown price there is no amount.
func priced(c event.Cost) string {
	if c.Unpriced {
		return "price unknown"
	}
	return amount(c.Amount)
}

func amount(micro int64) string { return fmt.Sprintf("%.6f USD", float64(micro)/1e6) }

func routeName(r event.Route) string { return join("/", r.Provider, r.Model) }

func excluded(list []event.Excluded) string {
	var out []string
	for _, e := range list {
		out = append(out, "not "+routeName(e.Route)+" ("+e.Reason+")")
	}
	return strings.Join(out, ", ")
}

// leftOut says how much of a conversation its model isn't shown any more.
func leftOut(p event.ContextCompactionCompleted) string {
	return when(join(", ", some(p.Pruned, "result"), some(p.Dropped, "message")), "without %s")
}

// unsummarised says why a conversation was shortened without the summary that was wanted.
func unsummarised(p event.ContextCompactionCompleted) string {
	if p.Problem == nil {
		return ""
	}
	return "no summary: " + problem(*p.Problem)
}

func ofSummary(c event.Cost) string {
	if c.Summary() {
		return "for a summary"
	}
	return ""
}

func problem(p event.Problem) string {
	code := p.Code
	if strings.EqualFold(code, p.Class) {
		code = ""
	}
	return join(": ", join(" ", p.Class, code), cut(p.Message, 160))
}

func again(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return "again at " + at.UTC().Format("15:04:05.000")
}

func saysTool(p event.Payload) (string, bool) {
	switch p := p.(type) {
	case event.ToolCatalogResolved:
		return fmt.Sprintf("%s: %s", plural(len(p.Tools), "tool"), cut(strings.Join(p.Tools, " "), 120)), true
	case event.ContextResolved:
		return given(p), true
	case event.HistoryWindowLoaded:
		return fmt.Sprintf("the conversation from its boundary #%d on", p.From), true
	case event.ContextCompactionStarted:
		return join(", ", p.Trigger, p.Strategy, fmt.Sprintf("up to #%d", p.To), when(p.Focus, "focus on %q"), when(p.By, "asked for by %s")), true
	case event.ContextCompactionCompleted:
		return join(", ", p.Strategy, fmt.Sprintf("%d tokens became %d", p.TokensBefore, p.TokensAfter), leftOut(p), unsummarised(p)), true
	case event.ContextCompactionFailed:
		return join(", ", p.Strategy, problem(p.Problem), again(p.RetryAt)), true
	case event.ToolStarted:
		how := ""
		if p.Recover {
			how = "looks up what the attempt before did"
		}
		return join(", ", p.Name, fmt.Sprintf("attempt %d", p.Attempt), p.Effect, when(p.Boundary, "boundary %s"), "arguments "+p.ArgsHash.Short(), how), true
	case event.ToolProgress:
		return p.String(), true
	case event.ToolArgs:
		return join(", ", p.Name, "changed by "+p.By, "arguments "+p.Before.Short()+" became "+p.ArgsHash.Short(), changedTo(p, 100)), true
	case event.ToolResult:
		exit := ""
		if p.Exit != 0 {
			exit = p.Outcome()
		}
		return join(", ", p.Name, exit, fmt.Sprintf("attempt %d", p.Attempt), took(time.Duration(p.Millis)*time.Millisecond), quote(p.Output.Text)), true
	case event.ToolFailed:
		return join(", ", p.Name, fmt.Sprintf("attempt %d", p.Attempt), problem(p.Problem), again(p.RetryAt)), true
	case event.ArtifactChanged:
		if p.Kind == "plan" {
			return "plan: " + cut(strings.ReplaceAll(event.PlanText(p.Plan), "\n", "; "), 400), true
		}
		what := join(" ", p.Kind, p.Op, p.Path, p.Name, when(p.Version, "version %s"))
		if p.By == "" {
			return what, true
		}
		return join(", ", what, "by "+p.By, p.Note), true
	case event.OutputTruncated:
		return fmt.Sprintf("%d of %d bytes shown", p.Shown, p.Bytes), true
	case event.OutputExpired:
		return join(", ", fmt.Sprintf("an output of %d bytes", p.Bytes), p.Digest.Short(), "of "+p.Since.UTC().Format("2006-01-02 15:04 UTC"), p.Reason, p.Why, when(p.By, "by %s")), true
	}
	return "", false
}

// onceMore is why a person is asked about a call that was allowed.
func onceMore(a event.Again) string { return "once more (" + a.Code + "): " + a.Reason }

// changedTo is what a call runs with in place of the model's arguments.
func changedTo(p event.ToolArgs, n int) string {
	if p.ArgsRef != nil {
		return "(" + plural(int(p.ArgsRef.Size), "byte") + ")"
	}
	return cut(string(p.Args), n)
}

// given names what the model gets besides the conversation.
func given(p event.ContextResolved) string {
	var have, not []string
	for _, i := range p.Items {
		have = append(have, i.Name+when(i.Scope, " (%s)"))
	}
	for _, o := range p.Omitted {
		not = append(not, o.Name+" ("+o.Reason+")")
	}
	if p.Look > 0 && len(have)+len(not) == 0 {
		return "nothing around it has changed"
	}
	return join("; ", when(strings.Join(have, ", "), "given %s"), when(strings.Join(not, ", "), "left out %s"))
}

func saysGate(p event.Payload) (string, bool) {
	switch p := p.(type) {
	case event.PermissionEvaluated:
		return fmt.Sprintf("%s %s by %s (%s, %s): %s; arguments %s", p.Decision, p.Tool, p.Rule, p.Tier, p.ReasonCode, p.Reason, p.ArgsHash.Short()), true
	case event.PermissionRequested:
		return join(", ", p.Tool, "arguments "+p.ArgsHash.Short(), "until "+clock(p.Until), ifSet(p.Again, onceMore)), true
	case event.PermissionResolved:
		return join(", ", event.Answered(p.Decision, p.By), p.Scope, when(p.Message, `"%s"`)), true
	case event.ActionRequired:
		return join(", ", p.Kind, quote(p.Prompt.Text), when(p.Boundary, "boundary %s"), "until "+clock(p.Until)+", then "+p.Default), true
	case event.ActionResolved:
		return join(", ", event.Answered(p.Decision, p.By), p.Scope, when(cut(p.Message.Text, 100), `"%s"`)), true
	case event.SandboxApplied:
		return join(", ", p.Level, when(p.Boundary, "boundary %s"), p.Why, when(p.Network, "network %s")), true
	case event.SandboxViolation:
		return join(", ", when(p.Boundary, "boundary %s"), join(" ", "stopped", p.Op, p.Target), p.Layer, p.Reason), true
	case event.PolicyChanged:
		return join(", ", p.Kind+" "+p.Op, p.Tool, p.Path, when(p.Scope, "for the %s"), when(p.By, "by %s")), true
	}
	return "", false
}

func saysProcess(p event.Payload) (string, bool) {
	switch p := p.(type) {
	case event.ProcessStarted:
		return fmt.Sprintf("pid %d: %s", p.PID, cut(strings.Join(p.Argv, " "), 120)), true
	case event.ProcessOutput:
		n := int64(len(p.Text))
		if p.Ref != nil {
			n = p.Ref.Size
		}
		return fmt.Sprintf("%s, %d bytes after %d", p.Name, n, p.Offset), true
	case event.ProcessInput:
		return saysInput(p), true
	case event.ProcessCompleted:
		return fmt.Sprintf("exit %d, %d bytes, %s", p.Exit, p.Bytes, took(time.Duration(p.Millis)*time.Millisecond)), true
	case event.ProcessFailed:
		return p.Class + ": " + p.Reason, true
	case event.ProcessTerminated:
		return join(", ", p.Signal, p.Reason, took(time.Duration(p.Millis)*time.Millisecond)), true
	}
	return "", false
}

func saysInput(p event.ProcessInput) string {
	what := fmt.Sprintf("%d bytes", p.Bytes)
	switch {
	case p.Signal != "":
		what = p.Signal
	case p.End:
		what += " and the end"
	}
	if p.Asked {
		what += " asked for"
	}
	return join(", ", what, when(p.By, "by %s"), when(p.Reason, `"%s"`), p.Error)
}

// times is of how many requests an entry is the record, if they are several.
func times(n int) string {
	if n < 2 {
		return ""
	}
	return plural(n, "request")
}

func saysRuntime(p event.Payload) (string, bool) {
	switch p := p.(type) {
	case event.ChannelMessage:
		return join(", ", join(" ", p.Kind, p.Command), when(p.Principal, "of %s"), join(": ", p.Code, p.Message), times(p.Count)), true
	case event.RuntimeWarning:
		return p.Code + ": " + p.Message, true
	case event.RuntimeError:
		return join(", ", p.Code+": "+p.Message, p.Where, p.Hint), true
	}
	return "", false
}

func saysHistory(p event.Payload) (string, bool) {
	back := func(scope string, count int, to string) string {
		what := "files"
		if scope == event.ScopeThread {
			what = "conversation and files"
		}
		after := "before the first turn"
		if to != "" {
			after = "to the end of " + short(to)
		}
		return join(" ", what, "back", after) + when(plural(count, "turn"), ", %s taken back")
	}
	switch p := p.(type) {
	case event.HistoryRollbackStarted:
		return join(", ", back(p.Scope, p.Count, string(p.To)), plural(p.Files, "file")+" to restore", when(p.By, "by %s"), p.Reason), true
	case event.HistoryRollbackCompleted:
		return join(", ", back(p.Scope, p.Count, string(p.To)), plural(p.Restored, "file")+" restored", when(strings.Join(p.Kept, "; "), "not taken back: %s")), true
	}
	return "", false
}
