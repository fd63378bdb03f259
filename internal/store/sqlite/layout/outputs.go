package layout

import (
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

// ExpiredDigest is what an output.expired lets go.
func ExpiredDigest(data []byte) (d [32]byte, ok bool) {
	p, err := event.Decode("output.expired", 1, data)
	if err != nil {
		return d, false
	}
	return store.RawDigest(p.(event.OutputExpired).Digest)
}
