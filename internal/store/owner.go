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
	id := belay.NewID("own")
	if ns := namespace(); ns != "" {
		id += namespaceMark + ns
	}
	return Owner{ID: id, Host: host, PID: pid, Start: processStart(pid)}
}

// Alive reports whether an owner's process may still run. Only within one boot of one
// host and one PID namespace does a missing process mean that it is dead. Any other one
// can't be seen and counts as alive, so that only the end of its lease frees what it owns.
func Alive(o Owner) bool { return !visible(o) || Runs(o) }

// visible reports whether the number of an owner's process means here what it meant to
// the owner. What an owner doesn't say, or the system doesn't tell, isn't taken as equal.
func visible(o Owner) bool {
	host, err := os.Hostname()
	_, theirs, _ := strings.Cut(o.ID, namespaceMark)
	booted := o.Start[strings.LastIndex(o.Start, bootMark)+1:]
	ours, boot := namespace(), bootID()
	return err == nil && o.Host == host && ours != "" && theirs == ours && boot != "" && booted == boot
}

// Runs is Alive as far as it can be told from here, for what has no lease: on this host it
// looks for the process and compares start times, because numbers are used again.
func Runs(o Owner) bool {
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

// Marks of what stands behind them: in an owner's id the PID namespace, and in its start
// time the boot. Builds that don't know the first look at the others alone.
const (
	namespaceMark = "@"
	bootMark      = "@"
)

// namespace is the PID namespace of this process; empty when the system doesn't tell, or
// shows the processes of another one.
func namespace() string {
	if self, err := os.Readlink("/proc/self"); err != nil || self != strconv.Itoa(os.Getpid()) {
		return ""
	}
	name, _ := os.Readlink("/proc/self/ns/pid")
	return strings.Trim(strings.TrimPrefix(name, "pid:"), "[]")
}

// bootID tells one boot of the system from others; empty when the system doesn't tell.
func bootID() string {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return string(boot[:min(8, len(boot))])
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
	return fields[19] + bootMark + bootID()
}
