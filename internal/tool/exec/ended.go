//go:build unix

package exec

import (
	"fmt"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/process"
	"github.com/belay-run/belay/internal/tool"
)

// Ended is the fact of how a process ended that printed some lines; v is what its
// boundary stopped.
func Ended(e process.Exit, lines int64, ref *belay.Ref, v *event.SandboxViolation) event.Payload {
	saw := e.Evidence
	use := event.ProcessUse{CPU: e.CPU.Milliseconds(), Peak: e.Peak, Written: e.Written, Together: saw.Memory, Processes: saw.Processes, Throttled: saw.Throttled.Milliseconds()}
	if v != nil && v.Op == opLimit {
		use.Limit = v.Target
	}
	if e.How != process.Exited {
		return event.ProcessTerminated{Signal: sent(e), Reason: e.How, Output: ref, Bytes: e.Bytes, Lines: lines, Millis: e.Duration.Milliseconds(), ProcessUse: use}
	}
	return event.ProcessCompleted{Exit: e.Code, Output: ref, Bytes: e.Bytes, Lines: lines, Millis: e.Duration.Milliseconds(), ProcessUse: use}
}

// ended records how a process ended and is what the model reads of it.
func (j *job) ended() (tool.Result, error) {
	if j.lines != nil {
		j.lines.flush()
	}
	ref, text, saveErr := j.out.finish()
	end := j.proc.Exit()
	if end.OutputErr != nil {
		saveErr = end.OutputErr
	}
	v := j.violation(text)
	j.call.Sink.Fact(Ended(end, j.out.printed(), ref, v))
	if end.How != process.Exited && (v == nil || end.How != endOutput) { // a limit that it met meanwhile isn't what ended it
		return tool.Result{}, j.stopped(text, ref)
	}
	notes := ""
	if j.call.Box != nil && j.call.Box.Notes != nil {
		for _, n := range j.call.Box.Notes(end, text, j.p.Dir) {
			notes += "[" + n + "]\n"
		}
	}
	text = closed(text) + notes + fmt.Sprintf("exit %d", end.Code)
	if end.Signal != "" {
		text += " (ended by " + end.Signal + ")"
	}
	if v != nil && (end.Code != 0 || end.How != process.Exited) {
		return tool.Result{}, boxed(v, text, ref)
	}
	if saveErr != nil {
		e := tool.Failf(tool.Internal, CodeOutputNotSaved, "the command ended with exit %d, but its output could not be kept: %v", end.Code, saveErr)
		e.Text = text
		return tool.Result{}, e
	}
	return tool.Result{Text: text, Output: ref, Exit: end.Code}, nil
}

// stopped is the failure of a command that was ended from outside. A cancelled
// call is of class timeout too.
func (j *job) stopped(text string, ref *belay.Ref) error {
	end := j.proc.Exit()
	e := tool.Failf(tool.Timeout, CodeCancelled, "the command was cancelled after %s and ended with all it started", end.Duration.Round(time.Millisecond))
	switch end.How {
	case process.TimedOut:
		e = tool.Failf(tool.Timeout, CodeTimeout, "the command did not end within %s; it was ended with all it started", j.p.Limit).
			WithHint("%s", j.p.Hint)
	case endIdle:
		e = tool.Failf(tool.Timeout, CodeIdle, "the command printed nothing for %s; it was ended with all it started", j.p.Idle).
			WithHint("see whether it waits for input, or give a larger idle_seconds")
	case endOutput:
		e = tool.Failf(tool.Conflict, CodeTooMuch, "the command printed more than %d bytes; it was ended with all it started", j.out.limit).
			WithHint("make it print less, or to a file")
	}
	e.Text, e.Output = text, ref
	return e
}

// opLimit is the operation of a violation that met a limit.
const opLimit = "limit"

// sent is the signal that ended the process; TERM when it took the hint and
// exited by itself.
func sent(end process.Exit) string {
	if end.Signal == "" {
		return "SIGTERM"
	}
	return end.Signal
}

// closed is text that ends its last line.
func closed(text string) string {
	if text == "" || text[len(text)-1] == '\n' {
		return text
	}
	return text + "\n"
}
