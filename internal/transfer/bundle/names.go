package bundle

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

// names is the content that a session names, as its facts are read in the order
// of the log.
type names struct {
	where   map[belay.Digest]string // which fact or command, the last
	needed  map[belay.Digest]bool   // not only as an output
	expired map[belay.Digest]bool   // and not printed again
}

func newNames() names {
	return names{map[belay.Digest]string{}, map[belay.Digest]bool{}, map[belay.Digest]bool{}}
}

// need takes content that has to be there.
func (n *names) need(where string, refs []belay.Ref) {
	for _, ref := range refs {
		n.where[ref.Digest], n.needed[ref.Digest] = where, true
	}
}

// fact takes what a fact names.
func (n *names) fact(where string, e *event.Envelope, data []byte) error {
	n.need(where, slices.Collect(maps.Values(e.Refs)))
	if !event.NamesOutputs(e.Type()) {
		n.need(where, store.RefsIn(data))
		return nil
	}
	rest, outputs := event.WithoutOutputs(e.Data)
	text, err := json.Marshal(rest)
	if err != nil {
		return err
	}
	n.need(where, store.RefsIn(text))
	for _, ref := range outputs {
		if ref.Digest.Valid() {
			n.where[ref.Digest] = where
			delete(n.expired, ref.Digest)
		}
	}
	if p, ok := e.Data.(event.OutputExpired); ok && n.where[p.Digest] != "" {
		n.expired[p.Digest] = true
	}
	return nil
}

// gone reports whether content is an output that expired and that nothing else needs.
func (n *names) gone(d belay.Digest) bool { return n.expired[d] && !n.needed[d] }

func (n *names) allGone() (all []Content) {
	for _, d := range slices.Sorted(maps.Keys(n.expired)) {
		if n.gone(d) {
			all = append(all, Content{Digest: d})
		}
	}
	return all
}
