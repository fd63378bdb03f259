package term

import (
	"sync"

	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

// recent are facts that this process has recorded and hasn't shown yet. They
// spare their reading: the log is only asked for what isn't here.
type recent struct {
	mu    sync.Mutex
	parts []recentPart
	facts int // in all parts
}

// recentPart is what one append wrote.
type recentPart struct {
	end   store.Position // of the last fact; the others are right before it
	facts []event.Envelope
}

// maxRecent bounds the facts that wait. Of more, nothing is kept.
const maxRecent = 1024

func (r *recent) add(end store.Position, facts []event.Envelope) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.facts += len(facts); r.facts > maxRecent {
		r.parts, r.facts = nil, 0
		return
	}
	r.parts = append(r.parts, recentPart{end, facts})
}

// after takes the facts of one append that follow a position, with the position
// of the last one; none, if they aren't here or something lies between. What is
// here up to the position is dropped.
func (r *recent) after(from store.Position) (facts []event.Envelope, end store.Position) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.parts) > 0 {
		p := r.parts[0]
		if p.end > from && p.end-store.Position(len(p.facts)) != from {
			break
		}
		r.parts, r.facts = r.parts[1:], r.facts-len(p.facts)
		if p.end > from {
			return p.facts, p.end
		}
	}
	return nil, from
}
