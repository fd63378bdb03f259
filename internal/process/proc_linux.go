package process

import (
	"bytes"
	"fmt"
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

// marked lists living processes whose environment has the line, of those that
// did not start before since.
func marked(line, since string) []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil
	}
	from, _ := strconv.ParseUint(since, 10, 64)
	var found []int
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		start, err := StartTime(pid)
		if err != nil {
			continue
		}
		if ticks, _ := strconv.ParseUint(start, 10, 64); ticks < from {
			continue
		}
		env, err := os.ReadFile("/proc/" + name + "/environ")
		if err == nil && bytes.Contains(append(env, 0), []byte(line+"\x00")) {
			found = append(found, pid)
		}
	}
	return found
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
