package effect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/belay-run/belay/internal/engine"
	"os"
	"os/exec"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/process"
	"github.com/belay-run/belay/internal/tool"
)

// Confine makes a boundary ready that programs of a workspace run in. Its holds
// are of kind Confined.
type Confine func(b belay.Boundary, workspace string) (process.Box, error)

// Confined is the hold of a program that a boundary confines. After Await it
// reports what was really applied.
type Confined interface {
	process.Hold
	Applied() belay.Applied
}

// CodeNotApplied is the code of a call whose boundary couldn't be had. Nothing ran.
const CodeNotApplied = "BOUNDARY_NOT_APPLIED"

// box is what a call's programs run in: the boundary that was decided. It holds
// what was applied against that, and records it before the program begins.
func (v *performer) box(run *engine.Run, eff core.RunTool, workspace string, s tool.Sink) (*tool.Box, error) {
	if eff.Bound == nil {
		return nil, nil
	}
	if v.e.c.Confine == nil {
		return nil, notApplied(eff.Bound, errors.New("this process can't confine programs"))
	}
	return newBox(v.e.c.Confine, eff.Bound, workspace, run.Leases(), s)
}

// BoxOf is a boundary for a program that no call starts. What was applied goes to the
// sink.
func BoxOf(confine Confine, bound *core.Bound, workspace string, s tool.Sink) (*tool.Box, error) {
	return newBox(confine, bound, workspace, new(engine.Leases), s)
}

func newBox(confine Confine, bound *core.Bound, workspace string, leases *engine.Leases, s tool.Sink) (*tool.Box, error) {
	is := bound.Is
	is.Least = bound.Least
	inner, err := confine(is, workspace)
	if err != nil {
		return nil, notApplied(bound, err)
	}
	b := &recording{Box: inner, leases: leases, bound: bound, workspace: workspace, sink: s}
	text, err := json.Marshal(is)
	if err != nil {
		return nil, err
	}
	return &tool.Box{Box: b, Is: belay.DigestOf(text), Output: is.Limits.Output, Stopped: b.stopped, Notes: b.notes}, nil
}

func notApplied(b *core.Bound, err error) error {
	return tool.Failf(tool.Denied, CodeNotApplied, "boundary %s couldn't be applied, so nothing ran: %v", b.Name, err).
		WithHint("tell the person; belay doctor shows what this machine can confine")
}

type recording struct {
	process.Box
	bound     *core.Bound
	workspace string
	sink      tool.Sink
	leases    *engine.Leases
}

func (b *recording) Prepare(cmd *exec.Cmd) (process.Hold, error) {
	cwd := cmd.Dir
	h, err := b.Box.Prepare(cmd)
	if err != nil {
		return nil, notApplied(b.bound, err)
	}
	return &recordingHold{Hold: h, b: b, cwd: cwd}, nil
}

type recordingHold struct {
	process.Hold
	b   *recording
	cwd string
}

// Await waits for what was applied. Less than what was decided is an error; what
// there is is durable when it returns.
func (h *recordingHold) Await(ctx context.Context) error {
	err := h.Hold.Await(ctx)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return notApplied(h.b.bound, err)
	}
	c, ok := h.Hold.(Confined)
	if !ok {
		return notApplied(h.b.bound, errors.New("what was applied is unknown"))
	}
	a := c.Applied()
	if !a.Level.AtLeast(h.b.bound.Least) {
		return notApplied(h.b.bound, errors.New("it came out as level "+string(a.Level)+", and "+string(h.b.bound.Least)+" is the least"))
	}
	p := event.SandboxApplied{Level: string(a.Level), Why: event.CutText(a.Why, maxWhy), Cwd: h.cwd, Network: a.Network, Boundary: h.b.bound.Name, Layers: map[string]string{}}
	for _, l := range a.Layers {
		p.Layers[l.Name] = event.CutText(l.String(), maxWhy)
	}
	return h.b.sink.Durable(p)
}

// Release lets the program begin, for as long as the leases last.
func (h *recordingHold) Release() error {
	err := h.Hold.Release()
	if l, ok := h.Hold.(process.LeasedHold); ok && err == nil {
		h.b.leases.Add(l)
	}
	return err
}

// Close gives back what the hold has.
func (h *recordingHold) Close() error {
	if l, ok := h.Hold.(process.LeasedHold); ok {
		h.b.leases.Remove(l)
	}
	return h.Hold.Close()
}

// Evidence is what the boundary recorded about the program's end, if anything.
func (h *recordingHold) Evidence() process.Evidence {
	if w, ok := h.Hold.(process.EvidenceHold); ok {
		return w.Evidence()
	}
	return process.Evidence{}
}

// maxWhy bounds what a fact says of one layer.
const maxWhy = 300

// stopped returns what the boundary denied a program, even one that succeeded.
// For such a program only counted limits are known: its output about others may
// be any text.
func (b *recording) stopped(end process.Exit, said, dir string) *event.SandboxViolation {
	v := event.SandboxViolation{Boundary: b.bound.Name}
	saw, limits := end.Evidence, b.bound.Is.Limits
	switch {
	case end.How == tool.EndOutput && limits.Output > 0 && end.Bytes > limits.Output:
		v.Layer, v.Op, v.Target = "output", policy.OpLimit, belay.LimitOutput
		v.Reason = fmt.Sprintf("it printed more than %d bytes", limits.Output)
		return &v
	case saw.Limit != "":
		v.Layer, v.Op, v.Target, v.Reason = saw.Layer, policy.OpLimit, saw.Limit, event.CutText(saw.Reason, maxWhy)
		return &v
	case end.How != process.Exited:
		return nil
	case end.Signal == "SIGSYS":
		v.Layer, v.Op, v.Reason = "seccomp", policy.OpCall, "the system ended it for a system call that the boundary forbids"
		return &v
	case len(saw.Refused) > 0:
		v.Layer, v.Op, v.Target, v.Reason = "network", policy.OpConnect, event.CutText(saw.Refused[0], maxWhy), "the proxy was asked for it"
		return &v
	}
	is := b.bound.Is
	if saw.Counted {
		is.Limits.Processes = 0 // else it would have been seen
	}
	if end.Code == 0 {
		is.Limits = belay.ProcessLimits{}
	}
	seen := policy.Seen{Exists: outside, Private: saw.Private}
	op, target, ok := policy.ParseViolation(said, b.workspace, dir, is, seen)
	if !ok {
		return nil
	}
	v.Layer, v.Op, v.Target, v.Reason = "files", op, event.CutText(target, maxWhy), "its output says so"
	switch op {
	case policy.OpConnect:
		v.Layer = "network"
	case policy.OpLimit:
		v.Layer = "rlimits"
	}
	return &v
}

// notes tell whoever reads the output what the boundary kept from the program without
// stopping it.
func (b *recording) notes(end process.Exit, said, dir string) (all []string) {
	for _, p := range policy.CoveredSecrets(said, dir, end.Evidence.Covered) {
		all = append(all, event.CutText(p, maxWhy)+" is hidden: it usually holds a secret; a command that names it asks")
	}
	if b.bound.Machine {
		all = append(all, "only this call's own processes and network are visible")
	}
	return all
}

// outside reports whether a path is there, outside of every boundary.
func outside(p string) bool {
	_, err := os.Lstat(p)
	return err == nil
}

// blocked is the failure of a call that its boundary stopped, or that isn't any
// more what a person allowed: the thread decides what follows.
func blocked(p *event.ToolFailed) {
	switch p.Problem.Code {
	case thread.CodeViolation, thread.CodeFolderChanged, thread.CodeProgramChanged, thread.CodeEnvironmentChanged:
		p.Final = false
	}
}
