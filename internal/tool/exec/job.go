//go:build unix

package exec

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/process"
	"github.com/belay-run/belay/internal/tool"
)

// job is one run of a program. The call that starts it waits for it, or leaves
// it to its thread, which keeps it then.
type job struct {
	call   tool.Call
	p      Program
	proc   *process.Process
	out    *output
	lines  *toldLines     // in front of it; nil: the program tells nothing
	pieces *chunkedOutput // nil: it ends with its call
	began  time.Time
	full   <-chan struct{}              // it printed more than it may
	over   chan struct{}                // closed when its end is recorded
	seen   atomic.Int64                 // bytes that the model has read
	size   atomic.Pointer[process.Size] // of its terminal; nil: it has none
	shut   atomic.Bool                  // no more input comes
}

// Reasons to end a program, besides those of package process.
const (
	endIdle   = "idle" // it printed nothing for too long
	endOutput = tool.EndOutput
)

// checkEvery is how often a job is checked: whether its output is to be kept,
// and whether there still is any.
const checkEvery = 500 * time.Millisecond

// watch sees to the job until all of it has ended, or for the time given if
// that isn't 0. When ctx ends it ends the job; why says for what reason.
func (j *job) watch(ctx context.Context, why func() string, most time.Duration) (ended bool) {
	limit := time.NewTimer(time.Until(j.began.Add(j.p.Limit)))
	defer limit.Stop()
	check := time.NewTicker(checkEvery)
	defer check.Stop()
	var yield <-chan time.Time
	if most > 0 {
		t := time.NewTimer(most)
		defer t.Stop()
		yield = t.C
	}
	done := ctx.Done()
	for {
		select {
		case <-j.proc.Done():
			return true
		case <-done:
			j.proc.Stop(why())
			done, yield = nil, nil
		case <-yield:
			return false
		case <-limit.C:
			j.proc.Stop(process.TimedOut)
			yield = nil
		case <-j.full:
			j.proc.Stop(endOutput)
			yield = nil
		case <-check.C:
			if j.p.Idle > 0 && time.Since(j.out.quiet()) > j.p.Idle {
				j.proc.Stop(endIdle)
				yield = nil
			}
			j.checkpoint()
		}
	}
}

// checkpoint records what came since the last one.
func (j *job) checkpoint() {
	if err := j.out.keeps.due(); err != nil {
		j.out.fail(err)
	}
}

// leave is the result of a call whose program continues.
func (j *job) leave() tool.Result {
	b, total, err := j.pieces.window(0, head+tail)
	text := closed(display(process.PlainText(b)))
	if err == nil {
		j.seen.Store(int64(len(b)))
	}
	if int64(len(b)) < total {
		text += fmt.Sprintf("[%d more bytes so far]\n", total-int64(len(b)))
	}
	return tool.Result{Left: j, Text: text + fmt.Sprintf("still running as %s after %s", j.ID(), time.Since(j.began).Round(100*time.Millisecond))}
}

// ID is the id it is recorded under.
func (j *job) ID() belay.ProcessID { return j.call.Process }

// Keep sees it to its end.
func (j *job) Keep(ctx context.Context, why func() string) event.Payload {
	defer close(j.over)
	j.watch(ctx, why, 0)
	ref, text, _ := j.out.finish() // what couldn't be kept is missing where it is read
	return Ended(j.proc.Exit(), j.out.printed(), ref, j.violation(text))
}

// Send gives it input, and waits a moment for it to read.
func (j *job) Send(text string, end bool) (n int, err error) {
	if text != "" {
		n, err = j.proc.Write([]byte(text), patience)
	}
	if err == nil && end {
		j.shut.Store(j.p.PTY == nil) // a terminal can be typed on after it
		err = j.proc.CloseInput()
	}
	return n, err
}

const patience = time.Second
