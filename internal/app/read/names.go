package read

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

// Names are the contents that the facts of sessions name. What was looked at is kept in
// memory, so that each fact is looked at once: of the sessions that were asked about last.
type Names struct {
	mu  sync.Mutex
	all []*named // the one that was asked about last is the last
}

// named is what the facts of a session name, up to a position.
type named struct {
	session  belay.SessionID
	first    belay.EventID // of the session: another one is another session of this name
	upTo     store.Position
	contents map[[32]byte]bool
}

// Bounds of what is kept.
const (
	mostNamed    = 8
	mostContents = 200_000 // of a session; what is beyond is looked for each time
)

// Named reports whether a fact of a session names a content.
func (n *Names) Named(ctx context.Context, st store.Store, session belay.SessionID, d belay.Digest) (bool, error) {
	want, ok := store.RawDigest(d)
	if !ok {
		return false, nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	s, err := n.of(ctx, st, session)
	if err != nil || s == nil {
		return false, err
	}
	if s.contents[want] {
		return true, nil
	}
	is := false
	for rec, err := range st.Window(ctx, store.Window{Session: session, After: s.upTo}) {
		if err != nil {
			return false, err
		}
		raw, err := json.Marshal(rec.Event)
		if err != nil {
			return false, err
		}
		fits := len(s.contents) < mostContents
		store.Named(raw, func(d [32]byte) {
			is = is || d == want
			s.contents[d] = fits || s.contents[d]
		})
		if fits {
			s.upTo = rec.Position
		}
		if is {
			break
		}
	}
	return is, nil
}

// of is what is known of a session; nil if it has no facts, or has none any more.
func (n *Names) of(ctx context.Context, st store.Store, session belay.SessionID) (*named, error) {
	var first belay.EventID
	for rec, err := range st.Window(ctx, store.Window{Session: session}) {
		if err != nil {
			return nil, err
		}
		first = rec.Event.ID()
		break
	}
	i := slices.IndexFunc(n.all, func(s *named) bool { return s.session == session })
	s := &named{session: session, first: first, contents: map[[32]byte]bool{}}
	if i >= 0 {
		if n.all[i].first == first {
			s = n.all[i]
		}
		n.all = slices.Delete(n.all, i, i+1)
	}
	if first == "" {
		return nil, nil
	}
	n.all = append(n.all, s)
	if len(n.all) > mostNamed {
		n.all = slices.Delete(n.all, 0, 1)
	}
	return s, nil
}
