package command

import (
	"runtime"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/process"
)

// Browser is what opens addresses.
type Browser struct {
	opener string
	// Ended has how the opener ended. That may be never: it may become the browser itself.
	Ended <-chan error
}

// Browse has the person's browser show an address or a file. It doesn't wait for it, and
// the browser outlives this program.
func Browse(address string) Browser {
	b := Browser{opener: "xdg-open"}
	if runtime.GOOS == "darwin" {
		b.opener = "open"
	}
	b.Ended = process.StartDetached(b.opener, address)
	return b
}

// Failure is the error of an opener that ended; nil if it opened the address.
func (b Browser) Failure(end error) error {
	if end == nil {
		return nil
	}
	return belay.Errorf(belay.CodeUnavailable, "no browser can be started: %s", files.Reason(end)).At(b.opener)
}
