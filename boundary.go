package belay

import (
	"slices"
	"strings"
)

// Level is how much of a boundary is enforced; a higher one enforces more.
type Level string

const (
	L0 Level = "L0" // nothing confines the program: it has the runtime's own rights
	L1 Level = "L1" // its limits hold and it can't gain rights
	L2 Level = "L2" // also: files, network and system calls are confined
	L3 Level = "L3" // also: its own view of the files, its own processes and devices
)

// Levels lists the levels, the weakest first.
var Levels = []Level{L0, L1, L2, L3}

// AtLeast reports whether the level is at least want. An unknown level is below
// every other, and an unknown want is never met; an empty want is L0.
func (l Level) AtLeast(want Level) bool {
	w := 0
	if want != "" {
		w = slices.Index(Levels, want)
	}
	return w >= 0 && max(0, slices.Index(Levels, l)) >= w
}

// Names of the boundaries that exist everywhere.
const (
	BoundaryReadOnly  = "read-only"       // reads the workspace and the system, writes nothing that stays
	BoundaryWorkspace = "workspace-write" // also writes the workspace
	BoundaryFull      = "full"            // isn't confined
)

// Networks of a boundary.
const (
	NetworkNone  = "none"  // its own loopback and nothing else
	NetworkHosts = "hosts" // the listed hosts, through the runtime's proxy
	NetworkFull  = "full"  // the runtime's own
)

// Boundary is what a program may do at most. The zero value confines as much
// as can be.
type Boundary struct {
	Name    string        `json:"name"`              // read-only, workspace-write, full, or one's own
	Write   []string      `json:"write,omitempty"`   // absolute paths writable besides the workspace
	Read    []string      `json:"read,omitempty"`    // absolute paths readable although hidden by default, such as in a home
	Network string        `json:"network,omitempty"` // none (default), hosts, full
	Hosts   []string      `json:"hosts,omitempty"`   // of network hosts: host:port, the host exact or ".suffix"
	Leave   []string      `json:"leave,omitempty"`   // absolute paths of protected names that can be changed, and stay when the program has ended
	History bool          `json:"history,omitempty"` // what git brings from elsewhere counts as history that was there before
	Limits  ProcessLimits `json:"limits,omitzero"`
	Least   Level         `json:"least,omitempty"` // minimum sandbox level; empty is L0
}

// Reads reports whether a program can do nothing but read: nothing that it writes
// lasts, and it reaches no network.
func (b Boundary) Reads() bool {
	none := b.Network == "" || b.Network == NetworkNone
	return (b.Name == BoundaryReadOnly || b.Name == "") && none && len(b.Write)+len(b.Leave) == 0
}

// ProcessLimits bounds the resources of a program and all it starts. Zero is
// no limit.
type ProcessLimits struct {
	Memory    int64    `json:"memory,omitempty"`    // bytes: of all processes together if the machine counts that, else of each
	FileSize  int64    `json:"fileSize,omitempty"`  // bytes of a file that is written
	Output    int64    `json:"output,omitempty"`    // bytes of standard output and error; more ends the program
	Disk      int64    `json:"disk,omitempty"`      // bytes written outside the workspace (private /tmp)
	CPU       Duration `json:"cpu,omitempty"`       // processor time of a process, in whole seconds
	Wall      Duration `json:"wall,omitempty"`      // from start to end
	CPUQuota  int      `json:"cpuQuota,omitempty"`  // percent of one processor
	Processes int      `json:"processes,omitempty"` // and threads at a time
	OpenFiles int      `json:"openFiles,omitempty"` // of a process

	// Percent of the machine's memory for all processes together. Not applied where
	// the machine can't count that: per process it would stop programs that
	// reserve much and use little.
	MemoryShare int `json:"memoryShare,omitempty"`

	// For all programs of a thread since its beginning, ended ones included. Once
	// used up, no further program starts.
	TotalCPU     Duration `json:"totalCpu,omitempty"`
	TotalWritten int64    `json:"totalWritten,omitempty"` // bytes to disks
	TotalTime    Duration `json:"totalTime,omitempty"`    // from their starts to their ends

	// The same for all threads of a session.
	SessionCPU     Duration `json:"sessionCpu,omitempty"`
	SessionWritten int64    `json:"sessionWritten,omitempty"`
	SessionTime    Duration `json:"sessionTime,omitempty"`
}

// OfSession reports whether programs of other threads count.
func (l ProcessLimits) OfSession() bool {
	return l.SessionCPU > 0 || l.SessionWritten > 0 || l.SessionTime > 0
}

// ProgramUse is what ended programs used, as far as the system reports it.
type ProgramUse struct {
	Ended   int      `json:"ended,omitempty"`   // number of programs
	CPU     Duration `json:"cpu,omitempty"`     // processor time
	Time    Duration `json:"time,omitempty"`    // from their starts to their ends
	Written int64    `json:"written,omitempty"` // bytes to disks
}

// Plus is what both took.
func (u ProgramUse) Plus(o ProgramUse) ProgramUse {
	return ProgramUse{Ended: u.Ended + o.Ended, CPU: u.CPU + o.CPU, Time: u.Time + o.Time, Written: u.Written + o.Written}
}

// DefaultProcessLimits apply to a confined boundary that sets none. They don't
// slow down normal work but stop what would exhaust the machine: a build of 64
// jobs with 30 threads each fits, a fork bomb doesn't; and the memory left over
// is enough for the runtime and the system.
var DefaultProcessLimits = ProcessLimits{Processes: 2048, MemoryShare: 75}

// Limits that a program can meet, as facts and policies name them.
const (
	LimitMemory    = "memory"
	LimitFileSize  = "file_size"
	LimitOutput    = "output"
	LimitDisk      = "disk"
	LimitInodes    = "inodes" // files of the private folders, which follow from disk
	LimitCPU       = "cpu"
	LimitWall      = "wall"
	LimitProcesses = "processes"
	LimitOpenFiles = "open_files"
	LimitTotalCPU  = "total_cpu"
	LimitTotalDisk = "total_written"
	LimitTotalTime = "total_time"

	LimitSessionCPU  = "session_cpu"
	LimitSessionDisk = "session_written"
	LimitSessionTime = "session_time"
	LimitLease       = "lease" // the runtime's hold on the session, which ended while the program ran
)

// States of a layer.
const (
	LayerApplied     = "applied"
	LayerUnavailable = "unavailable" // the machine lacks it
	LayerDisabled    = "disabled"    // a file, flag or person said so
)

// Layer is one part of a boundary, as it came out.
type Layer struct {
	Name   string `json:"name"`  // of a fixed list: see docs/sandbox.md
	State  string `json:"state"` // applied, unavailable, disabled
	Detail string `json:"detail,omitempty"`
}

// String is the layer's state as facts carry it: applied, unavailable(EPERM),
// disabled(boundary full).
func (l Layer) String() string {
	if l.Detail == "" {
		return l.State
	}
	return l.State + "(" + l.Detail + ")"
}

// Applied is the boundary that a program really got, read back before it ran.
type Applied struct {
	Level   Level   `json:"level"`
	Why     string  `json:"why,omitempty"` // what keeps it from a higher level
	Network string  `json:"network"`       // none, hosts, full
	Layers  []Layer `json:"layers,omitempty"`
}

// Check returns an error if the boundary is invalid.
func (b Boundary) Check() error {
	if b.Least != "" && !slices.Contains(Levels, b.Least) {
		return Errorf(CodeBadBoundary, "level %q of boundary %q doesn't exist", b.Least, b.Name).WithHint("L0, L1, L2 or L3")
	}
	if !slices.Contains([]string{"", NetworkNone, NetworkHosts, NetworkFull}, b.Network) {
		return Errorf(CodeBadBoundary, "network %q of boundary %q doesn't exist", b.Network, b.Name).WithHint("none, hosts or full")
	}
	if (len(b.Hosts) > 0) != (b.Network == NetworkHosts) {
		return Errorf(CodeBadBoundary, "boundary %q has network %q and %d hosts", b.Name, b.Network, len(b.Hosts)).WithHint("network hosts wants a list of hosts, the others have none")
	}
	for _, p := range slices.Concat(b.Write, b.Read, b.Leave) {
		if !strings.HasPrefix(p, "/") || strings.ContainsRune(p, 0) {
			return Errorf(CodeBadBoundary, "path %q of boundary %q isn't absolute", p, b.Name).WithHint("write it from the root: /srv/data")
		}
	}
	return b.Limits.check(b.Name)
}

func (l ProcessLimits) check(name string) error {
	for _, n := range []int64{l.Memory, l.FileSize, l.Output, l.Disk, int64(l.CPU), int64(l.Wall), int64(l.CPUQuota), int64(l.Processes), int64(l.OpenFiles), int64(l.TotalCPU), l.TotalWritten, int64(l.TotalTime), int64(l.SessionCPU), l.SessionWritten, int64(l.SessionTime), int64(l.MemoryShare)} {
		if n < 0 {
			return Errorf(CodeBadBoundary, "a limit of boundary %q is below zero", name).WithHint("leave it out for no limit")
		}
	}
	if l.MemoryShare > 100 {
		return Errorf(CodeBadBoundary, "boundary %q has %d percent of the memory", name, l.MemoryShare).WithHint("1 to 100")
	}
	return nil
}
