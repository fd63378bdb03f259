package cli

import (
	"github.com/belay-run/belay/event"
)

// gist is the payload of a fact on one line.
func gist(e event.Envelope) string {
	b, err := event.Encode(e.Data)
	if err != nil {
		return err.Error()
	}
	return short(string(b), 160)
}
