package memory

import (
	"context"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

// changes is a claim on a workspace under one ownership.
type changes struct {
	path  string
	epoch int64
}

// ClaimWriter makes a session a writer of a workspace.
func (s *owners) ClaimWriter(ctx context.Context, session belay.SessionID, epoch int64, path string, shared bool) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.d.mu.Unlock()
	if o := s.d.owners[session]; o == nil || o.ID == "" || o.Epoch != epoch {
		return store.ErrStale
	}
	if err := s.vacant(session, path, shared); err != nil {
		return err
	}
	s.d.writers[session] = changes{path, epoch}
	s.done()
	return nil
}

// vacant refuses a claim on a workspace that another session writes.
func (h *handle) vacant(session belay.SessionID, path string, shared bool) error {
	if shared {
		return nil
	}
	for _, w := range h.writers(path) {
		if w.Session != session {
			return &store.WriterError{Writer: w}
		}
	}
	return nil
}

// Writers lists who may change a workspace.
func (s *owners) Writers(ctx context.Context, path string) ([]store.Writer, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.d.mu.Unlock()
	return s.writers(path), nil
}

func (h *handle) writers(path string) (found []store.Writer) {
	for session, w := range h.d.writers {
		if o := h.d.owners[session]; h.live(o) && o.Epoch == w.epoch && store.Overlap(w.path, path) {
			found = append(found, store.Writer{Session: session, Path: w.path, Owner: o.Owner})
		}
	}
	slices.SortFunc(found, func(a, b store.Writer) int { return strings.Compare(string(a.Session), string(b.Session)) })
	return found
}
