package tool

import (
	"context"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// Running is a program that goes on after the call that started it. What it
// does is recorded through that call's sink, which stays usable until Keep has
// returned.
type Running interface {
	ID() belay.ProcessID
	// Keep sees it to its end, and ends it with all it started when ctx ends;
	// why says then for what reason. It returns the fact of its end. It is
	// called once.
	Keep(ctx context.Context, why func() string) event.Payload
	// Send gives it input; end says that no more comes. It returns how many
	// bytes were taken.
	Send(text string, end bool) (int, error)
}

// Processes are what calls of a thread left running, and what is recorded of
// those that have ended.
type Processes interface {
	// Left lists what runs, the oldest first.
	Left() []Running
	// Recorded lists the facts of a process and the output.expired of the session
	// that came after its first one, in the order of the log; none when the
	// thread had no such process.
	Recorded(ctx context.Context, id belay.ProcessID) ([]event.Envelope, error)
}

// Why a program was ended that nobody had given a limit.
const (
	Cancelled = "cancelled" // somebody wanted it to end
	Shutdown  = "shutdown"  // the runtime left, or the session rests
)
