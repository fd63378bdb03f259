package store

import "context"

// Apart is how far the positions that a store gives after it was put back to an
// earlier state are, at least, from those before. So a position that was given in
// between, for facts that the store has no more, is known as one for ever.
const Apart Position = 1 << 24

// Lapsed reports whether the store has given a position for something that it has
// no more because it was put back to an earlier state, or hasn't come so far. What
// was only deleted isn't lapsed.
func Lapsed(ctx context.Context, st interface {
	Log
	Tombstones
}, at Position) (bool, error) {
	end, err := st.End(ctx)
	if err != nil || at > end {
		return err == nil, err
	}
	if at <= 0 || end-at < Apart {
		return false, nil
	}
	for rec, err := range st.Scan(ctx, at-1) {
		if err != nil || rec.Position-at < Apart {
			return false, err
		}
		break
	}
	gone, err := st.Tombstones(ctx, at-1)
	return err == nil && (len(gone) == 0 || gone[0].Position-at >= Apart), err
}
