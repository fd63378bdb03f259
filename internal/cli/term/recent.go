package term

import (
	"sync"

	"github.com/belay-run/belay/internal/store"
)

// recent are facts that this process has recorded and hasn't shown yet. They
// spare their reading: the log is only asked for what isn't here.
type recent struct {
	mu    sync.Mutex
	parts [][]store.Record // each is what one append wrote
	facts int              // in all parts
}

// maxRecent bounds the facts that wait. Of more, nothing is kept.
const maxRecent = 1024

func (r *recent) add(facts []store.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.facts += len(facts); r.facts > maxRecent {
		r.parts, r.facts = nil, 0
		return
	}
	r.parts = append(r.parts, facts)
}

// after takes the facts of one append that follow a position; none, if they aren't
// here or something lies between. What is here up to the position is dropped.
func (r *recent) after(from store.Position) []store.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.parts) > 0 {
		p := r.parts[0]
		over := p[len(p)-1].Position <= from
		if !over && p[0].Position != from+1 {
			break
		}
		r.parts, r.facts = r.parts[1:], r.facts-len(p)
		if !over {
			return p
		}
	}
	return nil
}
