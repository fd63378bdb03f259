package event

import "github.com/belay-run/belay"

// ProcessStarted says that the operating system has the process.
type ProcessStarted struct {
	fact
	PID       int      `json:"pid"`
	StartTime string   `json:"startTime,omitempty"` // tells it from another process with the same pid
	Argv      []string `json:"argv"`
	Cwd       string   `json:"cwd,omitempty"`
	TTY       bool     `json:"tty,omitempty"`    // it has a terminal
	Server    string   `json:"server,omitempty"` // the MCP server that it is: it stays after its call, for the whole session
}

// ProcessOutput is a piece of a process's output. For a process that may
// outlive its call the pieces are the whole output, without gaps; otherwise
// they are a sample taken while it ran, and its end names the whole.
type ProcessOutput struct {
	fact
	Name   string     `json:"stream"`                     // stdout, stderr; both when it is one stream
	Offset int64      `json:"offset,omitempty"`           // of the piece in the output
	Text   string     `json:"text"`                       // the piece, when it is short
	Ref    *belay.Ref `json:"ref,omitempty" output:"ref"` // the piece, when it is not
}

// ProcessInput is input or a signal for a process. With Asked it is requested;
// the fact with the same number and without Asked is its outcome.
type ProcessInput struct {
	fact
	Bytes  int64  `json:"bytes"`            // taken by the process; when asked, to be sent
	Asked  bool   `json:"asked,omitempty"`  // not sent yet
	Number int    `json:"number,omitempty"` // number of a requested input; a tool's input has none
	Text   string `json:"text,omitempty"`   // text to send, when asked
	End    bool   `json:"end,omitempty"`    // no more input follows
	Signal string `json:"signal,omitempty"` // SIGTERM asks it to end
	By     string `json:"by,omitempty"`     // principal
	Reason string `json:"reason,omitempty"`
	Error  string `json:"error,omitempty"` // why part of it was not taken
}

// ProcessCompleted is a process that exited by itself.
type ProcessCompleted struct {
	fact
	Exit   int        `json:"exit"`
	Output *belay.Ref `json:"output,omitempty" output:"ref"`
	Bytes  int64      `json:"bytes,omitempty"`
	Lines  int64      `json:"lines,omitempty"` // that it printed; an open one counts
	Millis int64      `json:"ms,omitempty"`
	ProcessUse
}

// ProcessUse is what a process and its children took of the machine, as far as
// the system tells.
type ProcessUse struct {
	CPU  int64 `json:"cpuMs,omitempty"`     // processor time
	Peak int64 `json:"peakBytes,omitempty"` // peak memory of the largest process

	Written   int64  `json:"writtenBytes,omitempty"`  // written to disks
	Together  int64  `json:"togetherBytes,omitempty"` // peak memory of all processes, if a boundary makes the system count it
	Processes int    `json:"processes,omitempty"`     // peak number of processes and threads, likewise
	Throttled int64  `json:"throttledMs,omitempty"`   // time waited for processor quota
	Limit     string `json:"limit,omitempty"`         // boundary limit reached: memory, processes, cpu, wall, file_size, open_files, output, disk, inodes, lease
}

// UseOf is what a process took that ended by this fact; ms is how long it ran.
// False: the fact is no end of a process that was started.
func UseOf(p Payload) (use ProcessUse, ms int64, ok bool) {
	switch p := p.(type) {
	case ProcessCompleted:
		return p.ProcessUse, p.Millis, true
	case ProcessTerminated:
		return p.ProcessUse, p.Millis, true
	}
	return use, 0, false
}

// ProcessFailed is a process that could not be started, or whose end is
// unknown.
type ProcessFailed struct {
	fact
	Class  string `json:"class"` // not_found, denied, lost, internal
	Reason string `json:"reason"`
}

// ProcessTerminated is a process that was ended from outside.
type ProcessTerminated struct {
	fact
	Signal string     `json:"signal"`
	Reason string     `json:"reason"` // timeout, idle, output, cancelled, shutdown
	Output *belay.Ref `json:"output,omitempty" output:"ref"`
	Bytes  int64      `json:"bytes,omitempty"`
	Lines  int64      `json:"lines,omitempty"` // that it printed; an open one counts
	Millis int64      `json:"ms,omitempty"`
	ProcessUse
}
