package history

import (
	"cmp"
	"context"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/file"
	"github.com/belay-run/belay/internal/workspace/git"
)

// Snapshots keeps whole states of a workspace and compares them.
type Snapshots interface {
	// Take keeps the workspace as it is under a name; the same files are the same id.
	Take(ctx context.Context, workspace, name string) (id string, err error)
	// Diff lists the files that differ between two of them.
	Diff(ctx context.Context, workspace, from, to string) ([]git.Change, error)
	// Read is the content of a kept file.
	Read(ctx context.Context, workspace string, f *git.Entry) ([]byte, error)
}

// keptTurn is a turn with the snapshots around it.
type keptTurn struct {
	id            belay.TurnID
	before, after string
}

// turnSnapshots are the snapshots of the turns after a rollback's target, and what
// was restored between them.
type turnSnapshots struct {
	turns    []keptTurn
	restored []map[string]event.ArtifactChanged // by the number of turns before it, by path
}

func (k *turnSnapshots) fold(ev event.Envelope) {
	switch p := ev.Data.(type) {
	case event.ModelRequested: // a turn without a step changed nothing
		k.turn(ev.IDs.Turn)
	case event.ArtifactChanged:
		if p.Kind == "snapshot" && p.Name == "before" {
			k.turn(ev.IDs.Turn)
		}
		n := len(k.turns)
		switch {
		case p.Kind == "file" && ev.IDs.Turn == "":
			for len(k.restored) <= n {
				k.restored = append(k.restored, map[string]event.ArtifactChanged{})
			}
			k.restored[n][p.Path] = p
		case p.Kind != "snapshot" || p.Op != "taken" || n == 0 || k.turns[n-1].id != ev.IDs.Turn:
		case p.Name == "before":
			k.turns[n-1].before = p.Version
		default:
			k.turns[n-1].after = p.Version
		}
	}
}

// turn takes up a turn.
func (k *turnSnapshots) turn(id belay.TurnID) {
	if n := len(k.turns); n == 0 || k.turns[n-1].id != id {
		k.turns = append(k.turns, keptTurn{id: id})
	}
}

// whole reports whether there is a snapshot before and after each turn.
func (k *turnSnapshots) whole() bool {
	for _, t := range k.turns {
		if t.before == "" || t.after == "" {
			return false
		}
	}
	return len(k.turns) > 0
}

// since is what was restored of a file after n turns, if anything was.
func (k *turnSnapshots) since(n int, path string) (event.ArtifactChanged, bool) {
	if n >= len(k.restored) {
		return event.ArtifactChanged{}, false
	}
	p, ok := k.restored[n][path]
	return p, ok
}

// lookKept plans the files that git keeps: all that turns changed, by whatever
// means. It returns them, so that they aren't planned by their facts again.
func (rb *Rollback) lookKept(ctx context.Context, p *Past, l Planner, k *turnSnapshots) (done map[string]bool, err error) {
	done = map[string]bool{}
	if l.Keeper == nil || !k.whole() {
		return done, nil
	}
	others, err := k.others(ctx, l, done)
	if err != nil {
		return nil, err
	}
	net, err := l.Keeper.Diff(ctx, l.Dir, k.turns[0].before, k.turns[len(k.turns)-1].after)
	if err != nil {
		return nil, err
	}
	for _, c := range net {
		if done[c.Path] {
			if err := rb.lookChange(ctx, p, l, k, c, others[c.Path]); err != nil {
				return nil, err
			}
		}
	}
	return done, nil
}

// others are the files that changed between turns, and mine those that turns changed.
func (k *turnSnapshots) others(ctx context.Context, l Planner, mine map[string]bool) (others map[string]bool, err error) {
	others = map[string]bool{}
	for i, t := range k.turns {
		if i > 0 {
			between, err := l.Keeper.Diff(ctx, l.Dir, k.turns[i-1].after, t.before)
			if err != nil {
				return nil, err
			}
			for _, c := range between {
				r, restored := k.since(i, c.Path)
				if others[c.Path] = true; restored {
					d, err := digestIn(ctx, l, c.To)
					if err != nil {
						return nil, err
					}
					others[c.Path] = d != Digest(r.After)
				}
			}
		}
		changed, err := l.Keeper.Diff(ctx, l.Dir, t.before, t.after)
		if err != nil {
			return nil, err
		}
		for _, c := range changed {
			mine[c.Path] = true
		}
	}
	return others, nil
}

// digestIn is the digest of a kept file.
func digestIn(ctx context.Context, l Planner, f *git.Entry) (string, error) {
	if f == nil {
		return file.Absent, nil
	}
	b, err := l.Keeper.Read(ctx, l.Dir, f)
	return string(belay.DigestOf(b)), err
}

// lookChange decides what becomes of a file that git keeps.
func (rb *Rollback) lookChange(ctx context.Context, p *Past, l Planner, k *turnSnapshots, c git.Change, others bool) error {
	if c.From != nil && c.From.Kind != "file" || c.To != nil && c.To.Kind != "file" {
		return rb.lose(c.Path, "it is or was a link or a repository of its own")
	}
	now, err := file.Look(ctx, l.Root, c.Path)
	if err != nil {
		return cmp.Or(context.Cause(ctx), rb.lose(c.Path, Reason(c.Path, err).Error()))
	}
	var before []byte
	want := file.Absent
	if c.From != nil {
		if before, err = l.Keeper.Read(ctx, l.Dir, c.From); err != nil {
			return err
		}
		want = string(belay.DigestOf(before))
	}
	if now.Digest == want {
		return nil
	}
	have, err := digestIn(ctx, l, c.To)
	if err != nil {
		return err
	}
	if r, restored := k.since(len(k.turns), c.Path); restored {
		have = Digest(r.After)
	}
	f, why := FileChange{Path: c.Path}, ""
	switch {
	case now.Digest != have:
		why = changedSince
	case others:
		why = changedBetween
	}
	if c.From == nil {
		return rb.change(ctx, p.st, l, f, now, why, func() (*belay.Ref, error) { return nil, nil })
	}
	f.Mode = c.From.Mode
	return rb.change(ctx, p.st, l, f, now, why, func() (*belay.Ref, error) { return l.keep(ctx, p.st, before) })
}

// keep keeps content, or only names it when nothing will be done.
func (l Planner) keep(ctx context.Context, st store.Blobs, content []byte) (*belay.Ref, error) {
	switch {
	case l.Secrets == nil:
		return &belay.Ref{Digest: belay.DigestOf(content), Size: int64(len(content))}, nil
	case l.Secrets.Holds(content):
		return nil, tool.ErrHoldsSecret
	}
	ref, err := st.Put(ctx, content, "")
	return &ref, err
}
