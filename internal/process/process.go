//go:build unix

// Package process runs a program of the operating system with everything that
// comes out of it, and ends all of it. It promises: the program's tree ends
// with the call, whether it exits, runs out of time or is cancelled; the tree
// is killed when the runtime itself dies, however it dies; output of any size
// costs constant memory; a program that leaves something behind that holds its
// output open hangs nobody. It knows nothing of tools, policy or the log.
//
// Each program runs in a process group that a guard leads: a shell that does
// nothing but wait on a pipe to the runtime, and kills the group when the pipe
// closes. While the guard isn't reaped the group's number can't go to
// anybody else, so signals to it never hit a stranger. A program that leaves
// the group is found by a mark in its environment. One that leaves the group
// and clears its environment is beyond this package: that takes a sandbox.
package process

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// Defaults of a Command.
const (
	DefaultGrace  = 5 * time.Second        // from TERM to KILL
	DefaultLinger = 500 * time.Millisecond // what is left may finish after the program exited
)

// markName is the environment variable that marks everything a call started.
const markName = "BELAY_PROCESS_MARK"

// Command says what to run.
type Command struct {
	Path   string   // of the program; absolute
	Argv   []string // Argv[0] is the program's name for itself
	Dir    string
	Env    []string  // the whole environment
	Stdin  []byte    // what it can read; empty is nothing
	Output io.Writer // gets standard output and standard error as they come, from one goroutine
	Grace  time.Duration
	Linger time.Duration
	Box    Box // the boundary to run in; nil is none
}

// How a process ended.
const (
	Exited    = "exited"    // by itself
	TimedOut  = "timeout"   // the context's deadline passed
	Cancelled = "cancelled" // the context was cancelled
)

// Exit is how a process ended.
type Exit struct {
	How       string // exited, timeout, cancelled
	Code      int    // exit code; 128 and the signal's number for a signal, as shells say it
	Signal    string // that ended it: SIGKILL; empty when it exited
	Bytes     int64  // of output
	Duration  time.Duration
	OutputErr error // Output failed first with this; what came after it was dropped
}

// Process is a running program. Wait must be called, once.
type Process struct {
	PID   int
	Start string // its start time; with the pid its identity

	grace, linger time.Duration
	began         time.Time
	mark          string
	cmd           *exec.Cmd
	hold          Hold // nil: no box
	released      bool
	guard         *guard
	out           *os.File
	read          chan struct{} // closed when the output has ended
	bytes         int64         // owned by the reader until read is closed
	outErr        error         // as bytes
}

// Start runs the command. With a Box it is only held then: the program begins
// with Release, and never does without.
func Start(c Command) (*Process, error) {
	in, err := input(c.Stdin)
	if err != nil {
		return nil, err
	}
	if in != nil {
		defer in.Close()
	}
	g, err := startGuard()
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		g.end()
		return nil, fmt.Errorf("pipe for the output: %w", err)
	}
	mark := rand.Text()
	cmd := &exec.Cmd{
		Path: c.Path, Args: c.Argv, Dir: c.Dir,
		Env:    append(c.Env[:len(c.Env):len(c.Env)], markName+"="+mark),
		Stdout: w, Stderr: w,
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true, Pgid: g.pgid},
	}
	if in != nil {
		cmd.Stdin = in
	}
	p := &Process{grace: orDefault(c.Grace, DefaultGrace), linger: orDefault(c.Linger, DefaultLinger),
		began: time.Now(), mark: mark, cmd: cmd, guard: g, out: r, read: make(chan struct{})}
	if c.Box != nil {
		p.hold, err = c.Box.Prepare(cmd)
	}
	if err == nil {
		err = cmd.Start()
	}
	w.Close()
	if err != nil {
		p.unhold()
		r.Close()
		g.end()
		return nil, err
	}
	p.PID = cmd.Process.Pid
	p.Start = startOfChild(p.PID)
	go p.pump(c.Output)
	return p, nil
}

// input is a file without a name that holds what the program can read. A pipe
// would need somebody to fill it, and would keep what the program leaves.
func input(content []byte) (*os.File, error) {
	if len(content) == 0 {
		return nil, nil
	}
	f, err := os.CreateTemp("", "belay-input-*")
	if err != nil {
		return nil, fmt.Errorf("file for the input: %w", err)
	}
	err = os.Remove(f.Name())
	if err == nil {
		_, err = f.Write(content)
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("file for the input: %w", err)
	}
	return f, nil
}

func orDefault(d, def time.Duration) time.Duration {
	if d <= 0 {
		return def
	}
	return d
}

// pump moves the output until its last writer is gone or the pipe is closed.
// A failing destination must not block the program: the rest is thrown away.
func (p *Process) pump(dst io.Writer) {
	defer close(p.read)
	buf := make([]byte, 32<<10)
	for {
		n, err := p.out.Read(buf)
		p.bytes += int64(n)
		if n > 0 && dst != nil && p.outErr == nil {
			_, p.outErr = dst.Write(buf[:n])
		}
		if err != nil {
			return
		}
	}
}

// Wait waits until the program and everything it started has ended. When ctx
// ends first it sends TERM to all of it, and KILL after the grace. A process
// that was held and not released is ended without having run its program.
func (p *Process) Wait(ctx context.Context) Exit {
	if !p.released {
		p.unhold()
	}
	defer p.unhold()
	exited := make(chan struct{})
	var reap sync.WaitGroup
	reap.Go(func() {
		p.cmd.Wait() //nolint:errcheck // the state says it
		close(exited)
	})
	e := Exit{How: Exited}
	select {
	case <-exited:
	case <-ctx.Done():
		e.How = Cancelled
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			e.How = TimedOut
		}
		p.signal(syscall.SIGTERM)
		after(p.grace, exited, p.read)
	}
	if e.How == Exited {
		after(p.linger, p.read)
	}
	p.signal(syscall.SIGKILL)
	reap.Wait()
	e.Duration = time.Since(p.began)
	if !after(p.linger, p.read) {
		// Somebody beyond our reach holds the pipe.
		p.out.SetReadDeadline(time.Now()) //nolint:errcheck // a pipe has deadlines
		<-p.read
	}
	p.out.Close()
	p.guard.end()
	e.Bytes, e.OutputErr = p.bytes, p.outErr
	e.Code = p.cmd.ProcessState.ExitCode()
	if s, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		e.Code, e.Signal = 128+int(s.Signal()), signalName(s.Signal())
	}
	return e
}

// signal reaches the group and whatever carries the mark outside of it. KILL
// is repeated until a look finds nobody new, because a tree may grow meanwhile.
func (p *Process) signal(s syscall.Signal) {
	syscall.Kill(-p.guard.pgid, s) //nolint:errcheck // nobody left is fine
	for range 16 {
		strays := marked(markName+"="+p.mark, p.Start)
		for _, pid := range strays {
			syscall.Kill(pid, s) //nolint:errcheck // as above
		}
		if len(strays) == 0 || s != syscall.SIGKILL {
			return
		}
	}
}

// after waits until all channels are closed, or for d, and tells which.
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
