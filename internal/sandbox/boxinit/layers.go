// Package boxinit is what a program runs in: the process that applies a boundary
// to itself, and starts the program on the runtime's word. Only package sandbox starts
// it.
//
// Its package imports little, because it is decided here whether the process is
// a helper, before packages that the rest of the program needs are initialized:
// that takes longer than all the helper does.
package boxinit

import (
	"strings"
	"syscall"
	"time"
)

// Name is the first argument that makes the binary a helper.
const Name = "belay-sandbox"

// Attributes is where git finds what the profile tells it.
const Attributes = "/dev/.gitattributes"

// Layers of a boundary, in the order they are applied.
const (
	Cgroup     = "cgroup"    // limits of all processes together
	User       = "user"      // a user namespace, where the runtime isn't root
	PID        = "pid"       // sees and reaches its own processes only; all end with the first
	IPC        = "ipc"       // its own shared memory, queues and host name
	Net        = "net"       // its own network: a loopback and nothing else
	Mounts     = "mounts"    // its own view of the files, read-only but for what is listed
	Proc       = "proc"      // /proc shows its own processes, read-only
	Protected  = "protected" // protected names that exist in the workspace are read-only
	Landlock   = "landlock"  // file access by a list, as a second wall
	Caps       = "caps"      // no capability, and none to be had
	Privileges = "no_new_privs"
	Seccomp    = "seccomp" // system calls that lead out
	Rlimits    = "rlimits" // limits of each process
)

// Layer is one layer as it came out; as in belay.Layer.
type Layer struct {
	Name   string `json:"name"`
	State  string `json:"state"`
	Detail string `json:"detail,omitempty"`
}

// States of a layer here: what isn't tried isn't reported.
const (
	applied     = "applied"
	unavailable = "unavailable"
)

// Networks that a helper tells apart.
const (
	networkHosts = "hosts"
	networkFull  = "full"
)

// Limits are those that a helper applies, each as in belay.ProcessLimits.
type Limits struct {
	Memory, FileSize, Disk int64
	CPU, Wall              time.Duration
	Processes, OpenFiles   int
}

// What private folders can have no more of; as in belay.LimitDisk and
// belay.LimitInodes.
const (
	fullDisk   = "disk"
	fullInodes = "inodes"
)

// Ending is how a program ended, as its helper saw it.
type Ending struct {
	Code   int            `json:"code"`             // exit code; 128 and the signal's number for a signal
	Signal syscall.Signal `json:"signal,omitempty"` // that ended it
	Limit  string         `json:"limit,omitempty"`  // that ended it: wall
	Full   string         `json:"full,omitempty"`   // what its private folders have no more of: disk, inodes
	CPU    time.Duration  `json:"cpu,omitempty"`    // of the program and what it waited for
	Memory int64          `json:"memory,omitempty"` // bytes, the most that one process had
}

// Within reports whether a path is a folder or below it.
func Within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir) && path[len(dir)] == '/'
}
