package memory

import (
	"context"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

// alive is the handles' own knowledge of who was killed.
func (d *Data) alive(o store.Owner) bool {
	h, ok := d.handles[o.ID]
	return !ok || h.over == nil
}

func (h *handle) live(o *owner) bool {
	return o != nil && o.ID != "" && o.lease.After(h.o.Now()) && h.o.Alive(o.Owner)
}

// Claim makes o the owner of a session.
func (s *owners) Claim(ctx context.Context, session belay.SessionID, o store.Owner, ttl time.Duration) (int64, error) {
	if session == "" || o.ID == "" {
		return 0, belay.Errorf(belay.CodeInternal, "a claim without session or owner").At(string(session))
	}
	if err := s.lock(ctx); err != nil {
		return 0, err
	}
	defer s.d.mu.Unlock()
	epoch, err := s.next(session, o)
	if err != nil {
		return 0, err
	}
	s.own(session, o, epoch, ttl)
	s.done()
	return epoch, nil
}

// next is the epoch that a claim of o gets.
func (h *handle) next(session belay.SessionID, o store.Owner) (int64, error) {
	old := h.d.owners[session]
	if h.live(old) && old.ID != o.ID {
		return 0, &store.OwnedError{Session: session, Owner: old.Owner}
	}
	last, err := h.d.buried(session)
	if old != nil {
		last = old.Epoch
	}
	return last + 1, err
}

// own makes o the owner of a session for a time.
func (h *handle) own(session belay.SessionID, o store.Owner, epoch int64, ttl time.Duration) {
	now := h.o.Now()
	o.Epoch, o.Since = epoch, store.FromMicros(store.Micros(now))
	h.d.owners[session] = &owner{o, now.Add(ttl)}
	h.d.handles[o.ID] = h
	h.claims[session] = epoch
}

// Renew extends all leases of o.
func (s *owners) Renew(ctx context.Context, o store.Owner, ttl time.Duration) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.d.mu.Unlock()
	for _, held := range s.d.owners {
		if held.ID == o.ID && o.ID != "" {
			held.lease = s.o.Now().Add(ttl)
		}
	}
	s.done()
	return nil
}

// Release gives a session back.
func (s *owners) Release(ctx context.Context, session belay.SessionID, epoch int64) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.d.mu.Unlock()
	s.release(session, epoch)
	s.done()
	return nil
}

func (h *handle) release(session belay.SessionID, epoch int64) {
	if o := h.d.owners[session]; o != nil && o.Epoch == epoch {
		o.Owner = store.Owner{Epoch: epoch}
	}
	if h.claims[session] == epoch {
		delete(h.claims, session)
	}
}

// Owned are the sessions that have a live owner.
func (s *owners) Owned(ctx context.Context) (map[belay.SessionID]store.Owner, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.d.mu.Unlock()
	all := map[belay.SessionID]store.Owner{}
	for session, o := range s.d.owners {
		if s.live(o) {
			all[session] = o.Owner
		}
	}
	return all, nil
}

// OwnerOf is the live owner of a session, or nil.
func (s *owners) OwnerOf(ctx context.Context, session belay.SessionID) (*store.Owner, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.d.mu.Unlock()
	o := s.d.owners[session]
	if !s.live(o) {
		return nil, nil
	}
	c := o.Owner
	return &c, nil
}
