package boxinit

import (
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// run starts the program and stays until it and all it started have ended.
func (h *helper) run() int {
	signals := make(chan os.Signal, 64)
	signal.Notify(signals, passed...)
	defer signal.Stop(signals)
	if h.p.Limits.Processes > 0 {
		threadsAhead(spareThreads)
	}
	if h.p.Limits.Memory > 0 && !h.p.Try[Cgroup] {
		memoryAhead()
	}
	unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) //nolint:errcheck // the first process is one anyway
	pid, err := h.limited(h.start)
	if err != nil {
		h.end()
		return h.line.broken("start "+h.p.Path, err)
	}
	gone, leases := make(chan struct{}), make(chan time.Duration)
	go h.line.watch(gone, leases)
	ended := make(chan Ending, 1)
	rest := make(chan struct{})
	go reap(pid, ended, rest)
	return h.supervise(pid, signals, gone, leases, ended, rest)
}

// spareThreads is how many threads a helper may come to need.
const spareThreads = 8

// threadsAhead makes threads and leaves them idle: a helper that needed one more
// while the program has used up what may run would end, and all with it.
func threadsAhead(n int) {
	var there, gone sync.WaitGroup
	there.Add(n)
	for range n {
		gone.Go(func() {
			runtime.LockOSThread()
			there.Done()
			there.Wait() // all of them at once, each on a thread of its own
			runtime.UnlockOSThread()
		})
	}
	gone.Wait()
}

// spareMemory is how much a helper may come to need while it has the program's
// limits itself.
const spareMemory = 8 << 20

// memoryAhead makes room in the heap: a helper that had to ask the system for
// more within a limit of memory, which it may be above of already, would end.
func memoryAhead() {
	room := make([]byte, spareMemory)
	runtime.KeepAlive(room)
	runtime.GC()
}

// start starts the program in a process group of its own, in the foreground
// where the helper leads a terminal.
func (h *helper) start() (int, error) {
	attr := &syscall.ProcAttr{Dir: h.p.Dir, Env: h.p.Env, Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}}
	if leadsTerminal() {
		attr.Sys.Foreground, attr.Sys.Ctty = true, 0
	}
	return syscall.ForkExec(h.p.Path, h.p.Argv, attr)
}

func leadsTerminal() bool {
	sid, err := unix.Getsid(0)
	if err != nil || sid != unix.Getpid() {
		return false
	}
	_, err = unix.IoctlGetInt(0, unix.TIOCGPGRP)
	return err == nil
}

// watch passes on how long the program may run, until the end of the line: the
// runtime is gone, or has let go.
func (l *line) watch(gone chan<- struct{}, leases chan<- time.Duration) {
	b := make([]byte, 32)
	for {
		n, err := l.read(b)
		if err != nil || n <= 0 {
			close(gone)
			return
		}
		if d, ok := extended(b[:n]); ok {
			leases <- d
		}
	}
}

// reap waits for every process that ends, and reports how the program ended and when
// no process is left.
func reap(pid int, ended chan<- Ending, rest chan<- struct{}) {
	runtime.LockOSThread()
	for {
		var ws unix.WaitStatus
		var ru unix.Rusage
		p, err := unix.Wait4(-1, &ws, unix.WALL, &ru)
		switch {
		case err == unix.EINTR:
		case err != nil:
			close(rest)
			return
		case p == pid:
			e := Ending{Code: ws.ExitStatus(), CPU: time.Duration(ru.Utime.Nano() + ru.Stime.Nano()), Memory: ru.Maxrss << 10}
			if ws.Signaled() {
				e.Signal = ws.Signal()
				e.Code = 128 + int(e.Signal)
			}
			ended <- e
		}
	}
}

// supervise passes on signals, and ends everything when the runtime is gone, or
// gave no sign of life until its lease ended, the time is over, or the program
// has ended and what it left had its time.
func (h *helper) supervise(pid int, signals <-chan os.Signal, gone <-chan struct{}, leases <-chan time.Duration, ended <-chan Ending, rest <-chan struct{}) int {
	wall := never
	if w := h.p.Limits.Wall; w > 0 {
		wall = time.After(w)
	}
	var e Ending
	linger, kill, lease := never, never, never
	for {
		select {
		case s := <-signals:
			h.pass(pid, s.(syscall.Signal))
		case <-gone:
			h.end()
			return failed
		case d := <-leases:
			lease = time.After(d)
		case <-lease:
			return h.finish(Ending{Code: 128 + int(syscall.SIGKILL), Signal: syscall.SIGKILL, Limit: "lease"})
		case <-wall:
			e.Limit, wall = "wall", never
			h.everybody(pid, syscall.SIGTERM)
			kill = time.After(h.p.Grace)
		case <-kill:
			h.everybody(pid, syscall.SIGKILL)
			kill = never
		case x := <-ended:
			x.Limit = e.Limit
			e, ended = x, nil
			linger = time.After(h.p.Linger)
		case <-rest:
			if ended != nil { // said before the last one was waited for
				limit := e.Limit
				e = <-ended
				e.Limit = limit
			}
			return h.finish(e)
		case <-linger:
			return h.finish(e)
		}
	}
}

var never <-chan time.Time

// finish ends what is left and says how the program ended. Its exit code is
// the program's.
func (h *helper) finish(e Ending) int {
	e.Full = h.full()
	h.end()
	h.line.send(Message{End: &e}) //nolint:errcheck // the exit code says most of it
	return e.Code
}

// full is what the program's private folders have no more of: disk or inodes;
// empty is that they have both.
func (h *helper) full() string {
	if !h.p.Try[Mounts] || len(h.p.Private) == 0 {
		return ""
	}
	var fs unix.Statfs_t
	switch {
	case unix.Statfs(h.p.Private[0], &fs) != nil || fs.Type != unix.TMPFS_MAGIC:
		return ""
	case fs.Bavail == 0:
		return fullDisk
	case fs.Ffree == 0:
		return fullInodes
	}
	return ""
}

// passed are the signals that a helper passes on: the first ones, which ask for
// an end, to everybody, the rest to the program's group.
var passed = []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGCONT, syscall.SIGTSTP}

func (h *helper) pass(pid int, s syscall.Signal) {
	switch s {
	case syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT:
		h.everybody(pid, s)
	default:
		syscall.Kill(-pid, s) //nolint:errcheck // it may have ended
	}
}

// everybody gets the signal: all of the namespace, or the program's group
// where there is none.
func (h *helper) everybody(pid int, s syscall.Signal) {
	if os.Getpid() == 1 {
		pid = 1 // of minus one all are meant
	}
	syscall.Kill(-pid, s) //nolint:errcheck // no process left is fine
}

// end kills what is left. The first process of a namespace takes everybody
// with it; elsewhere the helper, who is given every orphan, looks for its
// children until there are none.
func (h *helper) end() {
	if os.Getpid() == 1 {
		syscall.Kill(-1, syscall.SIGKILL) //nolint:errcheck // no process left is fine
		return
	}
	began := time.Now()
	for n := 0; n < endRounds || time.Since(began) < endTime; n++ {
		for _, c := range children() {
			syscall.Kill(c, syscall.SIGKILL) //nolint:errcheck // it may have ended
		}
		// The list may lack some while others end; the system knows whether
		// there is a child at all. What has ended makes room for what it leaves.
		if _, err := unix.Wait4(-1, nil, unix.WNOHANG|unix.WALL, nil); err == unix.ECHILD {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// A helper that isn't the first process of a namespace tries so long and so
// often to end what is left. On a machine that is starved, as by a fork bomb
// elsewhere, a time alone would be over before it had looked twice.
const (
	endTime   = 5 * time.Second
	endRounds = 500
)

// children are the helper's living children, of all its threads.
func children() []int {
	var all []int
	tasks, _ := os.ReadDir("/proc/self/task")
	for _, t := range tasks {
		b, _ := os.ReadFile("/proc/self/task/" + t.Name() + "/children")
		for f := range strings.FieldsSeq(string(b)) {
			if pid, err := strconv.Atoi(f); err == nil {
				all = append(all, pid)
			}
		}
	}
	return all
}
