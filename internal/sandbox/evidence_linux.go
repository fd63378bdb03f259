package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/process"
	"github.com/belay-run/belay/internal/sandbox/boxinit"
)

// Evidence is what the boundary saw of the program, once the helper has ended:
// the limit that it met, if the system or the helper counted that, and what all
// of it took together.
func (h *Hold) Evidence() process.Evidence {
	end, _ := h.Ended()
	e := h.group.usage()
	e.Peak, e.Refused, e.Private, e.Covered = end.Memory, h.Refused(), h.private, h.covered
	l := h.box.b.Limits
	switch {
	case end.Limit == belay.LimitWall:
		met := e.Reason
		if e.Limit, e.Layer, e.Reason = belay.LimitWall, layerHelper, "it ran for "+time.Duration(l.Wall).String(); met != "" {
			e.Reason += "; " + met
		}
	case end.Limit == belay.LimitLease:
		e.Limit, e.Layer, e.Reason = belay.LimitLease, layerHelper, "the runtime gave no sign of life until its hold on the session ended"
	case e.Limit != "":
	case l.CPU > 0 && (end.Signal == syscall.SIGXCPU || end.Code == overTime):
		e.Limit, e.Layer, e.Reason = belay.LimitCPU, boxinit.Rlimits, "the system ended it with SIGXCPU"
	case l.CPU > 0 && end.CPU >= time.Duration(l.CPU) && (end.Signal == syscall.SIGKILL || end.Code == killed): // it ignored that
		e.Limit, e.Layer, e.Reason = belay.LimitCPU, boxinit.Rlimits, "it had "+end.CPU.Round(10*time.Millisecond).String()+" of processors"
	case l.FileSize > 0 && (end.Signal == syscall.SIGXFSZ || end.Code == overSize):
		e.Limit, e.Layer, e.Reason = belay.LimitFileSize, boxinit.Rlimits, "the system ended it with SIGXFSZ"
	case end.Full != "":
		e.Limit, e.Layer, e.Reason = end.Full, boxinit.Mounts, "its private folders are full"
	}
	return e
}

// layerHelper is what a violation names as its layer when the helper itself held
// the limit.
const layerHelper = "helper"

// Exit codes of a shell whose program a signal ended.
const (
	killed   = 128 + int(syscall.SIGKILL)
	overTime = 128 + int(syscall.SIGXCPU)
	overSize = 128 + int(syscall.SIGXFSZ)
)

// usage is what the groups counted. A limit counts if it was enforced: a process was
// ended for memory, or couldn't be made.
func (c *cgroup) usage() (e process.Evidence) {
	if c == nil {
		return e
	}
	if dir, ok := c.dirs["pids"]; ok {
		e.Counted = true
		e.Processes = max(0, int(first(dir, "pids.peak"))-1) // the helper is one of them
		if n := line(dir, "pids.events", "max"); n > 0 {
			e.Limit, e.Layer = belay.LimitProcesses, boxinit.Cgroup
			e.Reason = fmt.Sprintf("the system refused %d processes or threads", n)
		}
	}
	if dir, ok := c.dirs["memory"]; ok {
		e.Memory = max(first(dir, "memory.max_usage_in_bytes"), first(dir, "memory.peak"))
		if n := max(line(dir, "memory.oom_control", "oom_kill"), line(dir, "memory.events", "oom_kill")); n > 0 {
			e.Limit, e.Layer = belay.LimitMemory, boxinit.Cgroup
			e.Reason = fmt.Sprintf("the system ended %d processes for their memory", n)
		}
	}
	if dir, ok := c.dirs["cpu"]; ok {
		e.Throttled = time.Duration(line(dir, "cpu.stat", "throttled_time")) + time.Duration(line(dir, "cpu.stat", "throttled_usec"))*time.Microsecond
	}
	return e
}

// first is the number that a file of a group is; 0 if there is none.
func first(dir, name string) int64 {
	b, _ := os.ReadFile(filepath.Join(dir, name))
	n, _ := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return n
}

// line is the number behind a word in a file of a group; 0 if there is none.
func line(dir, name, word string) int64 {
	b, _ := os.ReadFile(filepath.Join(dir, name))
	for l := range strings.Lines(string(b)) {
		if f := strings.Fields(l); len(f) == 2 && f[0] == word {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			return n
		}
	}
	return 0
}
