package event

import "github.com/belay-run/belay"

// ProcessStarted says that the operating system has the process.
type ProcessStarted struct {
	fact
	PID       int      `json:"pid"`
	StartTime string   `json:"startTime,omitempty"` // tells a recycled pid from the process
	Argv      []string `json:"argv"`
	Cwd       string   `json:"cwd,omitempty"`
}

// ProcessOutput is a checkpoint of output that is still flowing.
type ProcessOutput struct {
	fact
	Name   string `json:"stream"` // stdout, stderr
	Offset int64  `json:"offset,omitempty"`
	Text   string `json:"text"`
}

// ProcessInput is what was written to standard input.
type ProcessInput struct {
	fact
	Bytes int64 `json:"bytes"`
}

// ProcessCompleted is a process that exited by itself.
type ProcessCompleted struct {
	fact
	Exit   int        `json:"exit"`
	Output *belay.Ref `json:"output,omitempty"`
	Bytes  int64      `json:"bytes,omitempty"`
	Millis int64      `json:"ms,omitempty"`
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
	Reason string     `json:"reason"` // timeout, cancelled, shutdown
	Output *belay.Ref `json:"output,omitempty"`
	Bytes  int64      `json:"bytes,omitempty"`
	Millis int64      `json:"ms,omitempty"`
}
