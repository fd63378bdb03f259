package store

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/belay-run/belay"
)

// ThisProcess names the running process as an owner. Each call makes another
// owner: a process that opens a store twice is two owners.
func ThisProcess() Owner {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	pid := os.Getpid()
	return Owner{ID: belay.NewID("own"), Host: host, PID: pid, Start: processStart(pid)}
}

// Alive reports whether an owner's process may still run. On this host it looks
// for the process and compares start times, because numbers are used again; a
// process of another host can't be seen and counts as alive, so that only the
// end of its lease frees what it owns.
func Alive(o Owner) bool {
	if host, err := os.Hostname(); err != nil || o.Host != host {
		return true
	}
	if o.PID <= 0 {
		return false
	}
	if start := processStart(o.PID); start != "" {
		return start != ended && (o.Start == "" || start == o.Start)
	}
	p, err := os.FindProcess(o.PID)
	if err != nil {
		return false
	}
	err = p.Signal(syscall.Signal(0))
	return err == nil || errors.Is(err, os.ErrPermission)
}

// ended is the start of a process that is over but not yet collected by its parent.
const ended = "ended"

// processStart is when a process was started, in ticks since the boot and the
// boot's id; empty when the system doesn't tell.
func processStart(pid int) string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	// The second field is the program's name in brackets and may hold anything.
	_, rest, ok := strings.Cut(string(b[max(0, strings.LastIndexByte(string(b), ')')):]), ") ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 20 {
		return ""
	}
	if fields[0] == "Z" || fields[0] == "X" {
		return ended
	}
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return fields[19] + "@" + string(boot[:min(8, len(boot))])
}
