package effect

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/tool"
)

// Inspect looks after what programs leave in a workspace that other programs
// obey, outside of every boundary. What is new and makes them run something is
// moved aside, unless the program may leave it. It is called before a program
// begins and when it is over.
type Inspect func(ctx context.Context, workspace string, at Moment, may core.May) []Leftover

// Moment is when a workspace is looked at.
type Moment int

// The moments.
const (
	ProgramBegins Moment = iota
	ProgramGoesOn        // and nobody waits for it
	ProgramEnded
	FilesWritten // by a tool, as was allowed: those that may be left
)

// Leftover is a file that was moved aside.
type Leftover struct {
	Layer    string // who looks at such files: git, protected
	Path     string // absolute
	To       string // where it is now; empty: it couldn't be moved
	Why      string // what it would make run
	Restored bool   // what stood there before is there again
}

// maxLeftovers bounds how many are told of one call.
const maxLeftovers = 16

// inspected runs a call, and looks at the workspace around it if it can start
// programs. A call that left something is stopped like one that its boundary
// stopped: the thread decides what comes of it.
func (v *performer) inspected(ctx context.Context, spec belay.ToolSpec, may core.May, c tool.Call, run func() (tool.Result, error)) (tool.Result, error) {
	begins := slices.Contains(spec.Capabilities, tool.CapProcess)
	keep := context.WithoutCancel(ctx) // what a cancelled call left is looked at as well
	switch {
	case v.e.c.Inspect == nil, may.Reads:
		return run()
	case !begins && !slices.Contains(spec.Capabilities, tool.CapProcesses):
		r, err := run()
		if spec.Access == belay.Write && len(r.Files) > 0 { // a program that runs didn't leave that
			may = core.May{}
			for _, f := range r.Files {
				may.Leave = append(may.Leave, filepath.Join(c.Dir, f.Path))
			}
			v.e.c.Inspect(keep, c.Dir, FilesWritten, may)
		}
		return r, err
	}
	var left []Leftover
	if begins {
		left = v.e.c.Inspect(keep, c.Dir, ProgramBegins, may)
	}
	r, err := run()
	at := ProgramEnded
	if !begins || r.Left != nil {
		at = ProgramGoesOn
	}
	left = append(left, v.e.c.Inspect(keep, c.Dir, at, may)...)
	if len(left) == 0 {
		return r, err
	}
	for _, p := range violations(left) {
		c.Sink.Fact(p)
	}
	said := tell(left)
	if told, ok := errors.AsType[*tool.Error](err); ok {
		told.Text = lines(told.Text, said)
		return r, told
	}
	if r.Text = lines(r.Text, said); err != nil || r.Left != nil {
		return r, err
	}
	e := tool.Failf(tool.Denied, tool.CodeViolation, "it left what another program runs or obeys: %s", left[0].Path).
		WithHint("do without it; a person can look at what was moved aside, and put it back")
	e.Text, e.Output, e.Files = r.Text, r.Output, r.Files
	return tool.Result{}, e
}

func lines(text, more string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + more
}

// violations are the facts of what was moved aside.
func violations(left []Leftover) (all []event.Payload) {
	for _, m := range left[:min(len(left), maxLeftovers)] {
		all = append(all, event.SandboxViolation{Layer: m.Layer, Op: policy.OpObeyed, Target: event.CutText(m.Path, maxPath), Reason: event.CutText(m.what(), maxPath)})
	}
	return all
}

const maxPath = 2000

// what says what happened to the file.
func (m Leftover) what() string {
	switch {
	case m.To == "":
		return m.Why
	case m.Restored:
		return m.Why + "; moved to " + m.To + ", and what stood there before is back"
	}
	return m.Why + "; moved to " + m.To
}

// tell is what the model reads of it.
func tell(left []Leftover) string {
	var b strings.Builder
	for _, m := range left[:min(len(left), maxLeftovers)] {
		b.WriteString("[moved aside: " + m.Path + ": " + m.what() + "]\n")
	}
	return b.String()
}

// leftBehind are the facts of a program that went on after its call and ended.
func (v *performer) leftBehind(ctx context.Context, ids belay.IDs) (all []core.Fact) {
	if v.e.c.Inspect == nil {
		return nil
	}
	l, ok := v.take(false, func(l backgroundProcess) bool { return l.ID() == ids.Process })
	if !ok || l.workspace == "" || l.may.Reads {
		return nil
	}
	for _, p := range violations(v.e.c.Inspect(context.WithoutCancel(ctx), l.workspace, ProgramEnded, l.may)) {
		all = append(all, core.Fact{IDs: ids, Data: p})
	}
	return all
}
