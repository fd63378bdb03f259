//go:build unix

package process

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// Done is closed when the program and everything it started has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exit is how it ended; only once Done is closed.
func (p *Process) Exit() Exit { return p.exit }

// Stop ends the program and everything it started: TERM, and KILL after the
// grace. why becomes the Exit's How. It returns at once; the first why counts.
func (p *Process) Stop(why string) {
	select {
	case p.stop <- why:
	default:
	}
}

// Wait waits until the program and everything it started has ended. When ctx
// ends first it stops all of it. A process that was held and not released is
// ended without having run its program.
func (p *Process) Wait(ctx context.Context) Exit {
	p.mu.Lock()
	released := p.released
	p.mu.Unlock()
	if !released {
		p.unhold()
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		p.Stop(ReasonOf(ctx))
		<-p.done
	}
	return p.exit
}

// ReasonOf returns how a process ends whose context has ended: TimedOut or Cancelled.
func ReasonOf(ctx context.Context) string {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return TimedOut
	}
	return Cancelled
}

// supervise sees the program to its end.
func (p *Process) supervise() {
	defer close(p.done)
	exited := make(chan struct{})
	go func() {
		p.cmd.Wait() //nolint:errcheck // the state says it
		close(exited)
	}()
	e := Exit{How: Exited}
	select {
	case <-exited:
	case e.How = <-p.stop:
		p.signal(syscall.SIGTERM)
		after(p.grace, exited, p.read)
	}
	if e.How == Exited {
		after(p.linger, p.read)
	}
	p.signal(syscall.SIGKILL)
	<-exited
	e.Duration = time.Since(p.began)
	if !after(p.linger, p.read) {
		// A process that we can't reach holds the pipe.
		for _, f := range []*os.File{p.out, p.errs} {
			if f != nil {
				f.SetReadDeadline(time.Now()) //nolint:errcheck // pipes and terminals have deadlines
			}
		}
		<-p.read
	}
	p.disconnect()
	p.guard.end()
	e.Evidence = p.evidence()
	p.unhold()
	e.Bytes, e.OutputErr = p.bytes.Load(), p.outErr
	state := p.cmd.ProcessState
	e.Code, e.CPU = state.ExitCode(), state.UserTime()+state.SystemTime()
	if r, ok := state.SysUsage().(*syscall.Rusage); ok { // of the process and its children
		e.Peak, e.Written = r.Maxrss*memoryUnit, r.Oublock*blockUnit
	}
	if e.Evidence.Peak > 0 {
		e.Peak = e.Evidence.Peak
	}
	if s, ok := state.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		e.Code, e.Signal = 128+int(s.Signal()), signalName(s.Signal())
	}
	p.exit = e
}

// signal reaches the group and whatever carries the mark outside of it. KILL is
// repeated until no new process is found, because a tree may grow meanwhile.
func (p *Process) signal(s syscall.Signal) {
	switch {
	case p.pty:
		syscall.Kill(-p.PID, s) //nolint:errcheck // no process left is fine
	case p.apart:
		p.cmd.Process.Signal(s) //nolint:errcheck // as above
	}
	syscall.Kill(-p.guard.pgid, s) //nolint:errcheck // as above
	for range endRounds {
		strays := marked(p.mark, p.Start)
		for _, pid := range strays {
			syscall.Kill(pid, s) //nolint:errcheck // as above
		}
		if len(strays) == 0 || s != syscall.SIGKILL {
			return
		}
	}
}

// after waits until all channels are closed, or for d, and reports whether they
// were.
func after(d time.Duration, chans ...chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for _, c := range chans {
		select {
		case <-c:
		case <-timer.C:
			return false
		}
	}
	return true
}
