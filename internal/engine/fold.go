package engine

import (
	"iter"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/core"
	"github.com/belay-run/belay/internal/store"
)

// Folded is a stream as its facts say it is.
type Folded struct {
	Decider core.Decider
	Lane    store.Lane
}

// Fold folds the facts of a session that may be in no store. get brings content
// that deciding needs. The lanes are those that driving would leave behind.
func Fold(session belay.SessionID, facts iter.Seq2[store.Stored, error], get func(belay.Digest) ([]byte, error), now time.Time) (map[belay.StreamID]Folded, error) {
	all := map[belay.StreamID]Folded{}
	for f, err := range facts {
		if err != nil {
			return nil, err
		}
		e, err := f.Row.Unpack("", session, f.Stream)
		if err != nil {
			return nil, err
		}
		if err := known(f.Stream, e); err != nil {
			return nil, err
		}
		v, ok := all[f.Stream]
		if !ok {
			if v.Decider, _, err = NewDecider(f.Stream); err != nil {
				return nil, err
			}
			all[f.Stream] = v
		}
		v.Decider.Apply(e)
	}
	for s, v := range all {
		var err error
		if v.Lane, err = laneOf(v.Decider, get, now); err != nil {
			return nil, err
		}
		all[s] = v
	}
	return all, nil
}

// laneOf is a stream's lane by what its state wants now. Its next drive decides
// what there is to decide.
func laneOf(d core.Decider, get func(belay.Digest) ([]byte, error), now time.Time) (store.Lane, error) {
	if err := supply(d, get, nil); err != nil {
		return store.Lane{}, err
	}
	rd := d.Next(now)
	if len(rd.Decided)+len(rd.Effects) > 0 || d.InFlight() {
		return store.Lane{Runnable: true}, nil
	}
	return store.Lane{Wake: rd.Wake}, nil
}
