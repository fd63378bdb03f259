package tool

import (
	"context"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// Running is a program that continues after the call that started it. What it
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

// Server is a Running that serves the calls of a session. It isn't shown to models,
// and Keep ends it also when nothing has used it for a while.
type Server interface {
	Running
	// Serves is the server's name.
	Serves() string
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

// Why a program without a limit was ended.
const (
	Cancelled = "cancelled" // on request
	Shutdown  = "shutdown"  // the runtime left, or the session rests
)

// Attachable is a Running that a client can be attached to: what it prints is
// available at once, before it is recorded. Its methods may be called at the
// same time.
type Attachable interface {
	Running
	// PID is its number in the system.
	PID() int
	// Printed is up to n bytes of its output from an offset on, without
	// registered secrets, and how many there are so far. Content that is gone is
	// an *Error.
	Printed(offset int64, n int) (b []byte, total int64, err error)
	// Grown is closed when it prints more.
	Grown() <-chan struct{}
	// Over is closed when it has ended and all that it printed is there.
	Over() <-chan struct{}
	// TakesInput reports whether it can be given more.
	TakesInput() bool
	// Terminal is the size of its terminal; 0, 0: it has none.
	Terminal() (rows, cols int)
	// Resize gives its terminal a size of 1 to 1000 rows and columns, and the
	// program hears of it. What can't be is an *Error.
	Resize(rows, cols int) error
}
