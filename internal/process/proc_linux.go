package process

import (
	"bytes"
	"fmt"
	"iter"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// StartTime is when a process started, as the system tells it: clock ticks
// since boot. With the pid it names a process until the next boot. A process
// that is gone, or a zombie, is an error.
func StartTime(pid int) (string, error) {
	f, err := stat(pid)
	if err != nil {
		return "", err
	}
	if hasEnded(f) {
		return "", fmt.Errorf("process %d has ended", pid)
	}
	return f[startField], nil
}

// startOfChild is StartTime for a child that wasn't waited for: it also answers
// when the child has ended already.
func startOfChild(pid int) string {
	f, err := stat(pid)
	if err != nil {
		return ""
	}
	return f[startField]
}

// Fields of a stat line, as stat returns them.
const (
	stateField  = 0
	parentField = 1
	timesField  = 11 // four: its own and those of children that ended
	startField  = 19
	pagesField  = 21
)

// stat are the fields of a process's stat line from the third on. The second is the
// name in parentheses, which may itself contain spaces and parentheses.
func stat(pid int) ([]string, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil, err
	}
	i := bytes.LastIndexByte(b, ')')
	f := strings.Fields(string(b[i+1:]))
	if i < 0 || len(f) <= pagesField {
		return nil, fmt.Errorf("process %d: its stat line has another form", pid)
	}
	return f, nil
}

// hasEnded reports whether a process with these fields is one that ended.
func hasEnded(stat []string) bool { return stat[stateField] == "Z" || stat[stateField] == "X" }

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
	env, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	for line := range bytes.SplitSeq(env, []byte{0}) {
		if mark, ok := bytes.CutPrefix(line, []byte(markName+"=")); ok {
			return string(mark)
		}
	}
	return ""
}

// pidNamespace is the namespace in which this process has its pid.
func pidNamespace() string {
	name, _ := os.Readlink("/proc/self/ns/pid")
	return strings.Trim(strings.TrimPrefix(name, "pid:"), "[]")
}

// Units of what the system says that a process used: memory is in kilobytes here,
// and what is written to disks in blocks of 512 bytes, whatever a disk's are.
const (
	memoryUnit = 1 << 10
	blockUnit  = 512
)

// closeOnExec marks every descriptor but the standard three at once.
func closeOnExec() error {
	return unix.CloseRange(firstInherited, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC)
}
