//go:build unix

// Package process runs a program of the operating system with everything that
// comes out of it, and ends all of it. It promises: the program's tree ends with
// the call, whether it exits, runs out of time or is cancelled; the tree is
// killed when the runtime itself dies, however it dies; output of any size costs
// constant memory; a call doesn't hang when its program leaves something behind
// that holds the output open. It knows nothing of tools, policy or the log.
//
// Each program runs in a process group that a guard leads: a shell that does
// nothing but wait on a pipe to the runtime, and kills the group when the pipe
// closes. While the guard isn't reaped the group's number can't be reused, so
// signals never reach another group. A program that leaves the group is found by
// a mark in its environment, after the runtime was killed by whichever runtime
// comes next. One that leaves the group and clears its environment is beyond
// this package: that takes a sandbox.
//
// On a terminal the program leads a session, as terminals want it, so its group
// is one of its own; the guard gets its number.
package process

import (
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Defaults of a Command.
const (
	DefaultGrace  = 5 * time.Second        // from TERM to KILL
	DefaultLinger = 500 * time.Millisecond // what is left may finish after the program exited
)

// Command describes the program to run.
type Command struct {
	Path   string   // of the program; absolute
	Argv   []string // Argv[0] is the program's name for itself
	Dir    string
	Env    []string  // the whole environment
	Stdin  []byte    // what it can read; empty is nothing
	Open   bool      // Write gives it input while it runs, instead of Stdin
	PTY    *Size     // it gets a terminal of this size, which Write types on; nil: pipes
	Output io.Writer // gets standard output and standard error as they come, from one goroutine
	Errors io.Writer // gets standard error instead, from a goroutine of its own; not with PTY
	Grace  time.Duration
	Linger time.Duration
	Box    Box // the boundary to run in; nil is none
}

// Size is that of a terminal, in characters.
type Size struct{ Rows, Cols int }

// How a process ended. Who stops one may give another reason.
const (
	Exited    = "exited"    // by itself
	TimedOut  = "timeout"   // the context's deadline passed
	Cancelled = "cancelled" // the context was cancelled
)

// Exit is how a process ended.
type Exit struct {
	How       string // exited, timeout, cancelled, or the reason that Stop was given
	Code      int    // exit code; 128 and the signal's number for a signal, as shells say it
	Signal    string // that ended it: SIGKILL; empty when it exited
	Bytes     int64  // of output
	Duration  time.Duration
	OutputErr error         // Output failed first with this; what came after it was dropped
	CPU       time.Duration // of the program and those of its children that were waited for
	Peak      int64         // bytes of memory of the largest of them; 0 is unknown
	Written   int64         // bytes that they wrote to disks; what only memory holds isn't counted; 0 is unknown
	Evidence  Evidence      // what its boundary saw
}

// Usage is what a process and all below it take.
type Usage struct {
	Processes int
	CPU       time.Duration // so far, with those below it that have ended
	Bytes     int64         // of memory that they have now; shared pages count for each
}

// Process is a running program. It must be waited for: with Wait, or with Stop
// and Done.
type Process struct {
	PID   int
	Start string // its start time; with the pid its identity

	grace, linger time.Duration
	began         time.Time
	mark          string
	cmd           *exec.Cmd
	guard         *guard
	out           *os.File      // where its output comes from: a pipe, or a terminal
	errs          *os.File      // where standard error comes from; nil: out
	in            *os.File      // where its input goes; nil: nowhere
	pty           bool          // out and in are one terminal
	apart         bool          // it is a helper that isn't in the guard's group
	read          chan struct{} // closed when the output has ended
	bytes         atomic.Int64
	outErr        error // owned by the reader until read is closed

	stop chan string   // capacity 1: why it is to end
	done chan struct{} // closed when all of it has ended
	exit Exit          // then

	mu       sync.Mutex
	hold     Hold // nil: no box
	released bool
}

// Start runs the command. With a Box it is only held then: the program begins
// with Release, and never does without.
func Start(c Command) (*Process, error) {
	g, err := startGuard()
	if err != nil {
		return nil, err
	}
	mark := thisOwner().mark(rand.Text())
	cmd := &exec.Cmd{
		Path: c.Path, Args: c.Argv, Dir: c.Dir,
		Env:         append(c.Env[:len(c.Env):len(c.Env)], markName+"="+mark),
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true, Pgid: g.pgid},
	}
	p := &Process{grace: orDefault(c.Grace, DefaultGrace), linger: orDefault(c.Linger, DefaultLinger),
		began: time.Now(), mark: mark, cmd: cmd, guard: g, pty: c.PTY != nil,
		read: make(chan struct{}), stop: make(chan string, 1), done: make(chan struct{})}
	far, err := p.connect(c)
	if err == nil && c.Box != nil {
		p.hold, err = c.Box.Prepare(cmd)
	}
	if err == nil {
		err = cmd.Start()
	}
	for _, f := range far {
		f.Close()
	}
	if err != nil {
		p.unhold()
		p.disconnect()
		g.end()
		return nil, err
	}
	p.PID = cmd.Process.Pid
	p.apart = c.Box != nil && cmd.SysProcAttr.Setsid
	if p.pty {
		g.watch(p.PID)
	}
	p.Start = startOfChild(p.PID)
	go p.readAll(c.Output, c.Errors)
	go p.supervise()
	return p, nil
}

// connect makes the program's standard streams. It returns the program's ends,
// also with an error.
func (p *Process) connect(c Command) (far []*os.File, err error) {
	if c.PTY != nil {
		near, end, err := openPTY(*c.PTY)
		if err != nil {
			return nil, fmt.Errorf("terminal: %w", err)
		}
		p.out, p.in = near, near
		p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = end, end, end
		p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		return []*os.File{end}, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("pipe for the output: %w", err)
	}
	far = append(far, w)
	p.out, p.cmd.Stdout, p.cmd.Stderr = r, w, w
	if c.Errors != nil {
		if p.errs, w, err = os.Pipe(); err != nil {
			return far, fmt.Errorf("pipe for the errors: %w", err)
		}
		far = append(far, w)
		p.cmd.Stderr = w
	}
	var in *os.File
	if c.Open {
		in, p.in, err = os.Pipe()
	} else {
		in, err = input(c.Stdin)
	}
	if in != nil {
		far = append(far, in)
		p.cmd.Stdin = in
	}
	return far, err
}

func (p *Process) disconnect() {
	for _, f := range []*os.File{p.out, p.errs} {
		if f != nil {
			f.Close()
		}
	}
	if p.in != nil && !p.pty {
		p.in.Close()
	}
}

// input is a file without a name that holds what the program can read. A pipe
// would need a goroutine to fill it, and would keep what the program doesn't
// read.
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

// readAll moves the output until all of it has ended.
func (p *Process) readAll(out, errs io.Writer) {
	defer close(p.read)
	var other sync.WaitGroup
	if p.errs != nil {
		other.Go(func() { p.pump(p.errs, errs) }) //nolint:errcheck // what isn't taken is thrown away
	}
	p.outErr = p.pump(p.out, out)
	other.Wait()
}

// pump moves an output until its last writer is gone or the pipe is closed.
// A failing destination must not block the program: the rest is thrown away.
func (p *Process) pump(src *os.File, dst io.Writer) (failed error) {
	buf := make([]byte, 32<<10)
	for {
		n, err := src.Read(buf)
		p.bytes.Add(int64(n))
		if n > 0 && dst != nil && failed == nil {
			_, failed = dst.Write(buf[:n])
		}
		if err != nil {
			return failed
		}
	}
}
