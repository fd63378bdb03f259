package bundle

import (
	"context"
	"errors"
	"io"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/files"
	"github.com/belay-run/belay/internal/store"
)

// Standing is how a bundle's session compares with a store.
type Standing string

const (
	Absent  Standing = "absent"  // the store doesn't have it
	Same    Standing = "same"    // the store has exactly this
	Further Standing = "further" // the store has this, and more that came after it
	Differs Standing = "differs" // the store has a session of this id with another history
)

// Compare compares the session with a store.
func (b *Bundle) Compare(ctx context.Context, t store.Store) (Standing, error) {
	here, err := b.here(ctx, t)
	if err != nil || !here {
		return Absent, err
	}
	end, err := t.End(ctx)
	if err != nil {
		return "", err
	}
	want := map[belay.StreamID]store.Head{}
	for _, h := range b.heads {
		want[h.Stream] = h
	}
	standing := Same
	chains := store.NewChains(b.Manifest.Session)
	for f, err := range t.Stored(ctx, b.Manifest.Session, end) {
		if err != nil {
			return "", err
		}
		head, err := chains.Add(&f)
		if err != nil {
			return "", err
		}
		w, known := want[f.Stream]
		if !known || head.Seq > w.Seq {
			standing = Further
		}
		if known && head.Seq == w.Seq {
			if head.Hash != w.Hash {
				return Differs, nil
			}
			w.Session = "" // found
			want[f.Stream] = w
		}
	}
	for _, w := range want {
		if w.Session != "" {
			return Differs, nil
		}
	}
	return standing, nil
}

// here reports whether the store has anything of the session.
func (b *Bundle) here(ctx context.Context, t store.Store) (bool, error) {
	streams := []belay.StreamID{b.Manifest.Session.Stream()}
	for _, h := range b.heads {
		streams = append(streams, h.Stream)
	}
	for _, o := range b.orders {
		streams = append(streams, o.Stream)
	}
	for _, s := range streams {
		orders, err := t.Inbox(ctx, s)
		if err != nil || len(orders) > 0 {
			return true, err
		}
		if _, err := t.Head(ctx, s); !errors.Is(err, store.ErrNotFound) {
			return true, err
		}
	}
	return false, nil
}

// Restore brings the session into a store that doesn't have it: its content
// first, then everything else in one transaction. A process that dies before
// that leaves unreferenced content, which the store collects.
func (b *Bundle) Restore(ctx context.Context, t store.Store, lanes map[belay.StreamID]store.Lane) error {
	err := t.Restore(ctx, store.Restoration{Session: b.Manifest.Session, Heads: b.heads, Facts: b.Facts(ctx), Lanes: lanes, Inbox: b.orders,
		Keep: func(ctx context.Context) error {
			for _, c := range b.Manifest.Content {
				if err := b.keep(ctx, t, c); err != nil {
					return err
				}
			}
			return nil
		}})
	if err != nil {
		return err
	}
	_, err = b.Repair(ctx, t)
	return err
}

// Repair restores content that a store with the session lacks, and returns how
// many pieces. Content that wasn't referenced yet may have been collected during
// the transfer, when another session was deleted.
func (b *Bundle) Repair(ctx context.Context, t store.Store) (pieces int, err error) {
	for _, c := range b.Manifest.Content {
		r, err := t.Open(ctx, c.Digest)
		if err == nil {
			if err := r.Close(); err != nil {
				return pieces, err
			}
			continue
		}
		if !errors.Is(err, store.ErrNotFound) {
			return pieces, err
		}
		if err := b.keep(ctx, t, c); err != nil {
			return pieces, err
		}
		pieces++
	}
	return pieces, nil
}

func (b *Bundle) keep(ctx context.Context, t store.Store, c Content) (err error) {
	w, err := t.Writer(ctx, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	at := b.content[c.Digest]
	if _, err := io.Copy(w, files.WithContext(ctx, io.NewSectionReader(b.file, at.at, at.size))); err != nil {
		return err
	}
	ref, err := w.Commit()
	if err == nil && ref.Digest != c.Digest {
		err = bad(c.member(), "the file changed while it was read")
	}
	return err
}
