//go:build unix

package shell

import (
	"fmt"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/process"
	"github.com/belay-run/belay/internal/tool"
)

// ended records how a process ended and is what the model reads of it.
func (r *run) ended(end process.Exit, text string, ref *belay.Ref, saveErr error) (tool.Result, error) {
	millis := end.Duration.Milliseconds()
	if end.How != process.Exited {
		r.call.Sink.Fact(event.ProcessTerminated{Signal: sent(end), Reason: end.How, Output: ref, Bytes: end.Bytes, Millis: millis})
		return tool.Result{}, r.stopped(end, text, ref)
	}
	r.call.Sink.Fact(event.ProcessCompleted{Exit: end.Code, Output: ref, Bytes: end.Bytes, Millis: millis})
	text = closed(text) + fmt.Sprintf("exit %d", end.Code)
	if end.Signal != "" {
		text += " (ended by " + end.Signal + ")"
	}
	if e := r.boxed(end, text, ref); e != nil {
		return tool.Result{}, e
	}
	if saveErr != nil {
		e := tool.Failf(tool.Internal, CodeOutputNotSaved, "the command ended with exit %d, but its output could not be kept: %v", end.Code, saveErr)
		e.Text = text
		return tool.Result{}, e
	}
	return tool.Result{Text: text, Output: ref}, nil
}

// stopped is the failure of a command that was ended from outside. A
// cancelled call is of class timeout too: somebody's patience ended.
func (r *run) stopped(end process.Exit, text string, ref *belay.Ref) error {
	e := tool.Failf(tool.Timeout, CodeCancelled, "the command was cancelled after %s and ended with all it started", end.Duration.Round(time.Millisecond))
	if end.How == process.TimedOut {
		e = tool.Failf(tool.Timeout, CodeTimeout, "the command did not end within %s; it was ended with all it started", r.p.Limit).
			WithHint("%s", r.p.Hint)
	}
	e.Text, e.Output = text, ref
	return e
}

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
