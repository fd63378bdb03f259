package process

import (
	"bytes"
	"fmt"
	"iter"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// StartTime is when a process started, as the system tells it: clock ticks
// since boot. With the pid it names a process until the next boot. A process
// that is gone, or a zombie, is an error.
func StartTime(pid int) (string, error) {
	state, start, err := stat(pid)
	if err == nil && (state == 'Z' || state == 'X') {
		return "", fmt.Errorf("process %d has ended", pid)
	}
	return start, err
}

// startOfChild is StartTime for a child that wasn't waited for: it also answers
// when the child has ended already.
func startOfChild(pid int) string {
	_, start, err := stat(pid)
	if err != nil {
		return ""
	}
	return start
}

func stat(pid int) (state byte, start string, err error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, "", err
	}
	state, start, ok := parseStat(b)
	if !ok {
		return 0, "", fmt.Errorf("process %d: its stat line has another form", pid)
	}
	return state, start, nil
}

// parseStat takes field 3 and field 22 of a stat line. Field 2 is the name in
// parentheses, which may itself contain spaces and parentheses.
func parseStat(b []byte) (state byte, start string, ok bool) {
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return 0, "", false
	}
	f := strings.Fields(string(b[i+1:]))
	if len(f) < 20 || len(f[0]) != 1 {
		return 0, "", false
	}
	return f[0][0], f[19], true
}

// marked lists living processes whose environment has the mark, of those that
// did not start before since.
func marked(mark, since string) (found []int) {
	from, _ := strconv.ParseUint(since, 10, 64)
	for pid := range pids() {
		start, err := StartTime(pid)
		if err != nil {
			continue
		}
		if ticks, _ := strconv.ParseUint(start, 10, 64); ticks < from {
			continue
		}
		if markIn(pid) == mark {
			found = append(found, pid)
		}
	}
	return found
}

// strays ends the processes of this user that a killed runtime left, and lists
// them. The process ended is the one that was examined: a pid that is reused
// meanwhile is not signalled.
func strays() (ended []int) {
	self := os.Geteuid()
	for pid := range pids() {
		var st unix.Stat_t
		if unix.Stat("/proc/"+strconv.Itoa(pid), &st) != nil || int(st.Uid) != self || pid == os.Getpid() || !left(markIn(pid)) {
			continue
		}
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue
		}
		if _, err := StartTime(pid); err == nil && left(markIn(pid)) && unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) == nil {
			ended = append(ended, pid)
		}
		unix.Close(fd)
	}
	return ended
}

// pids are the processes that can be seen.
func pids() iter.Seq[int] {
	return func(yield func(int) bool) {
		dir, err := os.Open("/proc")
		if err != nil {
			return
		}
		defer dir.Close()
		names, _ := dir.Readdirnames(-1) // what was read is better than nothing
		for _, name := range names {
			if pid, err := strconv.Atoi(name); err == nil && !yield(pid) {
				return
			}
		}
	}
}

// markIn is the mark in the environment of a process; empty is none, or one that
// can't be read.
func markIn(pid int) string {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return ""
	}
	for line := range bytes.SplitSeq(env, []byte{0}) {
		if mark, ok := bytes.CutPrefix(line, []byte(markName+"=")); ok {
			return string(mark)
		}
	}
	return ""
}

// pidNamespace is the namespace in which this process has its pid.
func pidNamespace() string {
	name, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return strings.Trim(strings.TrimPrefix(name, "pid:"), "[]")
}

// peak is the most memory that a process or one of its children had.
func peak(s *os.ProcessState) int64 {
	if r, ok := s.SysUsage().(*syscall.Rusage); ok {
		return r.Maxrss << 10 // it is in kilobytes here
	}
	return 0
}

// written is how many bytes a process and its children wrote to disks. The
// system counts blocks of 512 bytes, whatever a disk's are.
func written(s *os.ProcessState) int64 {
	if r, ok := s.SysUsage().(*syscall.Rusage); ok {
		return r.Oublock << 9
	}
	return 0
}

// closeOnExec marks every descriptor but the standard three at once.
func closeOnExec() error {
	return unix.CloseRange(firstInherited, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC)
}
