package sessions

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/core/quota"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view"
)

// DeleteSession is what delete_session takes.
type DeleteSession struct {
	Session belay.SessionID `json:"sessionId"`
}

// SessionDeleted is what a deletion did.
type SessionDeleted struct {
	app.Result
	Time     time.Time `json:"time"`
	By       string    `json:"by"`
	Facts    int64     `json:"facts"`          // that the session had
	Contents int       `json:"contents"`       // that went with it
	Left     int       `json:"left,omitempty"` // contents that are collected later
}

// Delete removes a session with its facts, its content and its worktree, for good, and
// records that.
func Delete(ctx context.Context, r *app.Call, in *DeleteSession) (*SessionDeleted, error) {
	if err := input.Named("sessionId", string(in.Session)); err != nil {
		return nil, err
	}
	s, gone, err := FindDeletable(ctx, r.Store, string(in.Session))
	if err == nil && s.ID != in.Session || errors.Is(err, store.ErrNotFound) || belay.CodeOf(err) == belay.CodeNotFound {
		err = app.NoSession(in.Session)
	}
	if err != nil {
		return nil, input.At("sessionId", err)
	}
	if err := removeWorktree(ctx, r, &s); err != nil {
		return nil, err
	}
	d, err := r.Store.DeleteSession(ctx, s.ID, r.By.String())
	if errors.Is(err, store.ErrNotFound) {
		err = r.Hinted(belay.Errorf(belay.CodeNotFound, "no session %s in this store", s.ID).WithHint("belay sessions list --all"), "GET /v1/sessions lists them")
	}
	if err != nil {
		return nil, err
	}
	if err := closeSlices(ctx, r, s.ID); err != nil {
		return nil, err
	}
	if err := store.RecordDeletions(ctx, r.Store, store.ThisProcess(), []store.Tombstone{d.Tombstone}); err != nil {
		return nil, err
	}
	if err := r.Reads.Views.Catchup(ctx); err != nil {
		return nil, err
	}
	out := &SessionDeleted{Result: app.Result{Status: app.Done, Session: s.ID, Repeated: gone}, Time: d.Time, By: d.By, Facts: d.Facts, Contents: d.Contents, Left: d.Left}
	return out, r.End(ctx, &out.Result)
}

// closeSlices ends what a deleted session had of quotas.
func closeSlices(ctx context.Context, r *app.Call, id belay.SessionID) error {
	q, err := r.QuotaState(ctx)
	if err != nil {
		return err
	}
	for _, c := range q.Close(id, r.Now()) {
		if _, _, err := r.Engine.Decide(ctx, r.Order(belay.CommandID(belay.NewID(belay.PrefixCommand)), belay.SystemSession, quota.Stream, c)); err != nil {
			return err
		}
	}
	return nil
}

// FindDeletable returns a session by its id or the beginning of it, or by its whole id
// one whose deletion has begun: that is in no list any more.
func FindDeletable(ctx context.Context, st store.Store, name string) (s view.Session, gone bool, err error) {
	s, err = app.FindSession(ctx, st, name)
	if err == nil || belay.CodeOf(err) != belay.CodeNotFound {
		return s, false, err
	}
	all, terr := st.Tombstones(ctx, 0)
	if terr != nil {
		return s, false, terr
	}
	for _, t := range all {
		if string(t.Session) == name {
			return view.Session{ID: t.Session}, true, nil
		}
	}
	return s, false, err
}

// removeWorktree takes away the worktree of a session that is about to be deleted, and
// those of its agents. One with changes that are in no commit keeps the session too.
func removeWorktree(ctx context.Context, r *app.Call, s *view.Session) error {
	all := slices.Clone(s.Trees)
	if s.Worktree != nil {
		all = append(all, view.Tree{Worktree: *s.Worktree})
	}
	all = slices.DeleteFunc(all, func(t view.Tree) bool { return t.Removed })
	if len(all) == 0 {
		return nil
	}
	if owner, err := r.Store.OwnerOf(ctx, s.ID); err != nil || owner != nil {
		return err // a driven session isn't deleted
	}
	for _, t := range all {
		if _, err := r.Workspaces.RemoveWorktree(ctx, t.Worktree, false); err != nil {
			return r.Hinted(app.WithHint(err, "commit them there, or belay worktree remove --force "+cmp.Or(string(t.Agent), string(s.ID))), "commit them there")
		}
	}
	return nil
}
