package thread

import (
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/policy"
)

// run starts calls that are allowed. There are no locks: the decision not to
// start is the lock. Reads run together as far as the width goes, writes to one
// resource run in the order of the answer, an exclusive call runs alone; calls
// get their slots in the order of the answer, so that none waits for ever.
func run(d *decision) bool {
	st := d.Turn.Step
	free := d.slots()
	for i, c := range st.Calls {
		if c.Phase == CallOver {
			continue
		}
		spec, _ := d.rules.Tool(c.Name)
		switch {
		case c.Phase == CallRunning:
			d.want(d.effect(c))
		case c.Phase == CallWaits:
			d.answerInternally(spec, c, d.rules.args(c))
		case c.Phase == CallOrphaned && d.lostBy(c):
		case c.Phase != CallOrphaned && !d.due(i):
		case spec.Handled != "":
			d.answerInternally(spec, c, d.rules.args(c))
		case c.Phase != CallOrphaned && d.now.Before(c.RetryAt):
			d.want(core.Timer{Name: "tool/" + string(c.ID)})
			d.wakeAt(c.RetryAt)
		case d.onlyReads(spec): // another attempt of what was allowed once
			d.record(d.failed(c, event.Problem{Class: "denied", Code: "OTHER_WRITER", Message: "not run again: session " + string(d.Use.Writer) + " writes in the workspace now"}))
		case c.Phase != CallOrphaned && d.refuseOverLimit(spec, c):
		case d.waitsForHold(spec, c):
		case free.take(spec) && (c.Phase == CallOrphaned || spending{d}.covers(c)): // the budget last: what a call asks for it uses
			d.begins(c, c.Phase == CallOrphaned && d.classOf(c) == belay.Recoverable)
		}
	}
	return !st.settled()
}

// due reports whether an attempt of a call is to begin as far as people, the gate and the
// other calls decide about it.
func (d *decision) due(i int) bool {
	c := d.Turn.Step.Calls[i]
	return d.mayBegin(c) && c.Verdict == policy.Allow && !d.held(i)
}

// couldBegin reports whether at most the budget, the gate and calls that run keep a call
// from beginning that a tool answers.
func (d *decision) couldBegin(i int) bool {
	c := d.Turn.Step.Calls[i]
	spec, known := d.rules.Tool(c.Name)
	switch {
	case !known || spec.Handled != "":
		return false
	case c.Phase == CallProposed:
		return true
	case d.now.Before(c.RetryAt) || !d.due(i):
		return false
	}
	_, waits := d.wantsHold(spec, c)
	return !waits
}

// held reports whether a call has to wait for another of the same answer: for
// every earlier one that isn't over, and for a later one only if it is already
// running, which other rules can bring about.
func (d *decision) held(i int) bool {
	calls := d.Turn.Step.Calls
	spec, _ := d.rules.Tool(calls[i].Name)
	mine := touches(spec, calls[i].paths())
	for j, c := range calls {
		if c.Phase == CallOver || j == i || j > i && !c.inFlight() {
			continue
		}
		o, _ := d.rules.Tool(c.Name)
		if calls[i].Check != "" && o.Handled == "complete" { // it waits for the check
			continue
		}
		if spec.Exclusive || o.Exclusive || mine.conflicts(touches(o, c.paths())) {
			return true
		}
	}
	return false
}

// begins records that an attempt is about to run, with the boundary it gets.
func (d *decision) begins(c *Call, recover bool) {
	spec, _ := d.rules.Tool(c.Name)
	boundary := "workspace"
	switch {
	case !hasProcess(spec):
	case c.Bound != nil && !d.rules.confines(c):
		boundary = c.Bound.Name
		d.record(core.Fact{IDs: d.callIDs(c), Data: event.SandboxApplied{
			Level: string(belay.L0), Why: unconfined(d.rules, c), Cwd: d.rules.Workspace, Network: belay.NetworkFull, Boundary: boundary,
		}})
	case c.Bound != nil: // whoever starts a program records what it really got
		boundary = c.Bound.Name
	default:
		boundary = d.rules.Boundary.Level
		d.record(core.Fact{IDs: d.callIDs(c), Data: event.SandboxApplied{
			Level: d.rules.Boundary.Level, Why: d.rules.Boundary.Why, Cwd: d.rules.Workspace, Network: d.rules.Boundary.Network,
		}})
	}
	answer := ""
	if in := c.input(); in != nil {
		answer = in.Action
	}
	d.record(core.Fact{IDs: d.callIDs(c), Data: event.ToolStarted{
		Answer: answer,
		Name:   c.Name, Attempt: c.Attempt + 1, Effect: string(d.classOf(c)), ArgsHash: c.ArgsHash, Expect: d.expect(c), Expects: d.expects(c),
		Boundary: boundary, ReadOnly: spec.ReadOnly, Polling: spec.Polling, Recover: recover, Taint: d.rules.resultTaint(spec, c),
	}})
}

// confines reports whether the programs of a call run in a boundary at all.
func (r *Rules) confines(c *Call) bool {
	return c.Bound != nil && !c.Bound.Unbounded() && (r.Boundary.Tries || belay.Level(r.Boundary.Level).AtLeast(belay.L1))
}

// unconfined is why they don't.
func unconfined(r *Rules, c *Call) string {
	if c.Bound.Unbounded() {
		return "boundary " + c.Bound.Name + " confines nothing"
	}
	return r.Boundary.Why
}

func hasProcess(spec belay.ToolSpec) bool {
	for _, c := range spec.Capabilities {
		if c == capProcess {
			return true
		}
	}
	return false
}

// lostBy settles a call whose driver is gone, if it won't run again. Whether it
// may is what its tool promises.
func (d *decision) lostBy(c *Call) bool {
	spec, _ := d.rules.Tool(c.Name)
	switch class := d.classOf(c); {
	case c.Attempt-c.Rounds >= maxAttempts:
		d.record(d.failed(c, event.Problem{Class: "internal", Code: "CRASH_LOOP", Message: "the runtime stopped again and again while " + c.Name + " was running"}))
	case d.onlyReads(spec):
		d.record(d.failed(c, lostProblem(c)))
	case class == belay.Pure || class == belay.Idempotent || class == belay.Recoverable:
		return false
	default:
		d.record(d.failed(c, lostProblem(c)))
	}
	return true
}

// onlyReads reports whether a tool changes things while another session is the
// workspace's writer.
func (p *programState) onlyReads(t belay.ToolSpec) bool {
	return p.Use.Use == belay.UseReader && !t.ReadOnly && t.Handled == ""
}

func lostProblem(c *Call) event.Problem {
	return event.Problem{Class: "lost", Code: "LOST",
		Message: "the runtime stopped while " + c.Name + " was running; nobody knows whether it did its work (lost). It was not run again.",
		Hint:    "look at what is there before you decide to run it again"}
}

func (d *decision) classOf(c *Call) belay.EffectClass {
	spec, ok := d.rules.Tool(c.Name)
	switch {
	case c.Check != "": // it is made to be run again
		return belay.Idempotent
	case !ok || spec.Effect == "":
		return belay.AtMostOnce
	}
	return spec.Effect
}

// paths are the files a call names; none when it names none.
func (c *Call) paths() []string {
	if c.Path != "" {
		return []string{c.Path}
	}
	return c.Paths
}

// expect is the digest that the thread last saw of the file a call names.
func (f *fileState) expect(c *Call) string {
	if c.Path == "" {
		return ""
	}
	return f.Files.digest(cleanPath(c.Path))
}

// expects is expect for a call that names several files; those that the thread
// never saw are left out.
func (f *fileState) expects(c *Call) (known []event.FileSeen) {
	for _, name := range c.Paths {
		if d := f.Files.digest(cleanPath(name)); d != "" {
			known = append(known, event.FileSeen{Path: cleanPath(name), Digest: d})
		}
	}
	return known
}

func (d *decision) effect(c *Call) core.RunTool {
	e := core.RunTool{IDs: d.callIDs(c), Attempt: c.Attempt, Name: c.Name, Args: c.Args, ArgsRef: c.ArgsRef, Links: c.Links, Recover: c.Recover, Rules: d.Turn.Rules, Stands: c.Stands, Input: c.input()}
	spec, ok := d.rules.Tool(c.Name)
	if ok {
		e.Known, e.Timeout = d.knows(spec), time.Duration(spec.Timeout)
		if hasProcess(spec) && c.Bound != nil {
			at := belay.L0
			if d.rules.confines(c) {
				at = belay.Level(d.rules.Boundary.Level)
			}
			is := c.Bound.Is
			e.May = core.May{Leave: is.Leave, History: is.History, Held: at.AtLeast(belay.L3), Reads: is.Reads() && at.AtLeast(belay.L2)}
		}
		if hasProcess(spec) && d.rules.confines(c) {
			e.Bound = &core.Bound{Name: c.Bound.Name, Is: c.Bound.Is, Least: c.Least}
			e.Bound.Machine = policy.ShowsMachine(spec, d.rules.args(c), d.rules.Place())
			if have := belay.Level(d.rules.Boundary.Level); !have.AtLeast(c.Least) { // a person said yes to what there is
				e.Bound.Least = have
			}
		}
	}
	e.Quiet = spec.Command != nil && len(policy.GitFolders(spec, d.rules.args(c), d.rules.Place())) > 0
	if c.Expect != "" {
		e.Expect = map[string]string{cleanPath(c.Path): c.Expect}
	}
	if len(c.Expects) > 0 {
		e.Expect = make(map[string]string, len(c.Expects))
		for _, f := range c.Expects {
			e.Expect[f.Path] = f.Digest
		}
	}
	return e
}

// ToolRetryAt reports whether a failed attempt is run again, and when: transient
// failures of tools whose repetition is harmless, twice, after 1 and 2 seconds.
func ToolRetryAt(now time.Time, spec belay.ToolSpec, attempt int, p event.Problem) (time.Time, bool) {
	harmless := spec.Effect == belay.Pure || spec.Effect == belay.Idempotent
	if p.Class != "transient" || !harmless || attempt > 2 {
		return time.Time{}, false
	}
	return now.Add(time.Duration(attempt) * time.Second), true
}
