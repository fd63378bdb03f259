package event

import "github.com/belay-run/belay"

// ProcessStarted says that the operating system has the process.
type ProcessStarted struct {
	fact
	PID       int      `json:"pid"`
	StartTime string   `json:"startTime,omitempty"` // tells a recycled pid from the process
	Argv      []string `json:"argv"`
	Cwd       string   `json:"cwd,omitempty"`
	TTY       bool     `json:"tty,omitempty"` // it has a terminal
}

// ProcessOutput is a piece of the output of a process. The pieces of one that may
// outlive its call follow one another without a gap: together they are its whole
// output. Of one that ends with its call they are what was recorded meanwhile:
// of a flood only the last of it, and its end names the whole.
type ProcessOutput struct {
	fact
	Name   string     `json:"stream"`           // stdout, stderr; both when it is one stream
	Offset int64      `json:"offset,omitempty"` // of the piece in the output
	Text   string     `json:"text"`             // the piece, when it is short
	Ref    *belay.Ref `json:"ref,omitempty"`    // the piece, when it is not
}

// ProcessInput is what was sent to a process: input, or a signal. Asked says that
// somebody wants it sent; the same number without it says the outcome of that.
type ProcessInput struct {
	fact
	Bytes  int64  `json:"bytes"`            // that the process took; that it is to take, when asked
	Asked  bool   `json:"asked,omitempty"`  // it isn't sent yet
	Number int    `json:"number,omitempty"` // of what commands ask for; what a tool sends has none
	Text   string `json:"text,omitempty"`   // what is to be sent, when asked
	End    bool   `json:"end,omitempty"`    // and no more input comes
	Signal string `json:"signal,omitempty"` // SIGTERM: it is to end
	By     string `json:"by,omitempty"`     // who asks
	Reason string `json:"reason,omitempty"`
	Error  string `json:"error,omitempty"` // why not all of it was taken
}

// ProcessCompleted is a process that exited by itself.
type ProcessCompleted struct {
	fact
	Exit   int        `json:"exit"`
	Output *belay.Ref `json:"output,omitempty"`
	Bytes  int64      `json:"bytes,omitempty"`
	Millis int64      `json:"ms,omitempty"`
	ProcessUse
}

// ProcessUse is what a process and its children took of the machine, as far as
// the system tells.
type ProcessUse struct {
	CPU  int64 `json:"cpuMs,omitempty"`     // milliseconds of processors
	Peak int64 `json:"peakBytes,omitempty"` // memory of the largest of them

	Written   int64  `json:"writtenBytes,omitempty"`  // to disks; what only memory holds isn't counted
	Together  int64  `json:"togetherBytes,omitempty"` // memory of all of them at most, where a boundary's limits make the system count it
	Processes int    `json:"processes,omitempty"`     // and threads at a time, at most; counted as that
	Throttled int64  `json:"throttledMs,omitempty"`   // milliseconds that they waited because their share of the processors was used up
	Limit     string `json:"limit,omitempty"`         // of the boundary, that they met: memory, processes, cpu, wall, file_size, open_files, output, disk, inodes, lease
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

// ProcessFailed is a process that could not be started or whose end nobody saw.
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
	Output *belay.Ref `json:"output,omitempty"`
	Bytes  int64      `json:"bytes,omitempty"`
	Millis int64      `json:"ms,omitempty"`
	ProcessUse
}
