package layout

import (
	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

// Output is an output of a session.
type Output struct {
	Session belay.SessionID
	Digest  [32]byte
}

// Naming is a fact that names an output.
type Naming struct {
	Output
	Pos int64
}

// ExpiredDigest is what an output.expired lets go.
func ExpiredDigest(data []byte) (d [32]byte, ok bool) {
	p, err := event.Decode("output.expired", 1, data)
	if err != nil {
		return d, false
	}
	return store.RawDigest(p.(event.OutputExpired).Digest)
}
