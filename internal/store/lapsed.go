package store

import "context"

// RestoreGap is how far the positions that a store gives after it was put back to an
// earlier state are, at least, from those before. So a position that was given in
// between, for facts that the store has no more, is known as one for ever.
const RestoreGap Position = 1 << 24

// RolledBack reports whether the store has given a position for something that it has
// no more because it was put back to an earlier state, or hasn't come so far. What
// was only deleted isn't lapsed.
func RolledBack(ctx context.Context, st interface {
	Log
	Tombstones
}, at Position) (bool, error) {
	end, err := st.End(ctx)
	if err != nil || at > end {
		return err == nil, err
	}
	if at <= 0 || end-at < RestoreGap {
		return false, nil
	}
	for rec, err := range st.Scan(ctx, at-1) {
		if err != nil || rec.Position-at < RestoreGap {
			return false, err
		}
		break
	}
	gone, err := st.Tombstones(ctx, at-1)
	return err == nil && (len(gone) == 0 || gone[0].Position-at >= RestoreGap), err
}
