package boxinit

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// rlimit is a limit of a process.
type rlimit struct {
	name string
	what int
	max  uint64
}

// rlimitsOf are the limits of each process that l asks for. Memory and
// processes are counted by the cgroup where there is one.
func rlimitsOf(l Limits, cgroup bool) []rlimit {
	all := []rlimit{{"core", unix.RLIMIT_CORE, 0}}
	add := func(name string, what int, n int64) {
		if n > 0 {
			all = append(all, rlimit{name, what, uint64(n)})
		}
	}
	add("file size", unix.RLIMIT_FSIZE, l.FileSize)
	add("open files", unix.RLIMIT_NOFILE, int64(l.OpenFiles))
	if l.CPU > 0 {
		add("cpu", unix.RLIMIT_CPU, int64((l.CPU+time.Second-1)/time.Second))
	}
	if !cgroup {
		add("memory", unix.RLIMIT_AS, l.Memory)
		add("processes", unix.RLIMIT_NPROC, int64(l.Processes))
	}
	return all
}

// rlimits checks that each limit can be set; they are set when the program
// starts, for the helper itself couldn't live within all of them.
func (h *helper) rlimits() (string, error) {
	for _, r := range h.wanted() {
		var now unix.Rlimit
		if err := unix.Prlimit(0, r.what, nil, &now); err != nil {
			return "", fmt.Errorf("limit of %s: %w", r.name, err)
		}
	}
	return "", nil
}

// wanted are the limits that the program gets, none above what the helper has.
func (h *helper) wanted() []rlimit {
	all := rlimitsOf(h.p.Limits, h.p.Try[Cgroup])
	for i, r := range all {
		var now unix.Rlimit
		if unix.Prlimit(0, r.what, nil, &now) == nil {
			all[i].max = min(r.max, now.Max)
		}
		if r.what == unix.RLIMIT_CPU && now.Max != unix.RLIM_INFINITY {
			all[i].max = min(r.max, max(now.Max, 1)-1) // bind goes one further
		}
		if r.what == unix.RLIMIT_NPROC {
			all[i].max = min(r.max+uint64(threads()+h.p.Others), now.Max)
		}
	}
	return all
}

// threads is how many the helper has: the system counts them with the
// program's processes.
func threads() int {
	e, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return 16
	}
	return len(e) + 2 // it may need another one or two
}

// forBoth reports whether the helper can live within a limit: it leaves no core and
// writes no file once the program runs.
func (r rlimit) forBoth() bool { return r.what == unix.RLIMIT_CORE || r.what == unix.RLIMIT_FSIZE }

// limited starts a program within the limits. What the helper can live within is
// final for it too, so there is no moment in which the program could raise it.
// The others are lowered for a moment in the helper, so that the program has them
// from its first instruction, made final in the program and in whatever it
// started meanwhile, and taken back.
func (h *helper) limited(start func() (int, error)) (pid int, err error) {
	limits := h.wanted()
	before := make([]unix.Rlimit, len(limits))
	for i, r := range limits {
		if err = unix.Prlimit(0, r.what, nil, &before[i]); err != nil {
			return 0, fmt.Errorf("limit of %s: %w", r.name, err)
		}
		if r.what == unix.RLIMIT_NOFILE || r.what == unix.RLIMIT_CPU {
			continue // starting takes a few descriptors; what was used is the helper's
		}
		if r.forBoth() {
			before[i] = unix.Rlimit{Cur: r.max, Max: r.max}
		}
		if err = unix.Prlimit(0, r.what, &unix.Rlimit{Cur: r.max, Max: before[i].Max}, nil); err != nil {
			return 0, fmt.Errorf("limit of %s: %w", r.name, err)
		}
	}
	pid, err = start()
	if err == nil {
		err = bind(pid, limits)
	}
	for i, r := range limits {
		unix.Prlimit(0, r.what, &before[i], nil) //nolint:errcheck // it only made the helper's own life easier
	}
	if err == nil {
		err = bindAll(limits)
	}
	return pid, err
}

// bind makes the limits final for a process. One that has ended needs none.
// Processor time has a second more to the end that can't be caught: the signal
// of the first one says what it was for.
func bind(pid int, limits []rlimit) error {
	for _, r := range limits {
		last := r.max
		if r.what == unix.RLIMIT_CPU {
			last++
		}
		err := unix.Prlimit(pid, r.what, &unix.Rlimit{Cur: r.max, Max: last}, nil)
		if err != nil && err != unix.ESRCH {
			return fmt.Errorf("limit of %s: %w", r.name, err)
		}
	}
	return nil
}

// bindAll does so for every process of the namespace but the helper, until a
// look finds no new one. Where the helper isn't the first process of one, the
// program's own start is all it sees.
func bindAll(limits []rlimit) error {
	if os.Getpid() != 1 {
		return nil
	}
	known := map[int]bool{1: true}
	for range 64 {
		fresh := false
		entries, err := os.ReadDir("/proc")
		if err != nil {
			return err
		}
		for _, e := range entries {
			pid, err := strconv.Atoi(e.Name())
			if err != nil || known[pid] {
				continue
			}
			known[pid], fresh = true, true
			if err := bind(pid, limits); err != nil {
				return err
			}
		}
		if !fresh {
			return nil
		}
	}
	return nil
}
