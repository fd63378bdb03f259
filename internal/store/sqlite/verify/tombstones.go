package verify

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

// tombstones checks what is left of deleted sessions, and that nothing else is.
func (v *verification) tombstones(ctx context.Context) error {
	v.gonestreams = map[int64]bool{}
	err := v.each(ctx, "SELECT "+layout.TombstoneColumns+" FROM tombstones ORDER BY pos", nil, func(rows *sql.Rows) error {
		var g layout.Tombstone
		switch err := g.Scan(rows.Scan); {
		case belay.CodeOf(err) == belay.CodeStoreDamaged:
			v.problem("tombstones/"+strings.ToValidUTF8(string(g.Session), "?"), "a tombstone isn't what was written")
			return nil
		case err != nil:
			return err
		}
		v.graves = append(v.graves, g.Tombstone)
		for _, n := range g.Pending {
			v.gonestreams[n] = true
		}
		if len(g.Pending) > 0 {
			v.warn("tombstones/"+string(g.Session), "its deletion was cut short; deleting it again finishes it")
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, c := range []struct{ query, what string }{
		{"SELECT t.session FROM tombstones t JOIN streams s ON s.session=t.session WHERE t.restored=0 LIMIT 10", "it was deleted and has a stream"},
		{"SELECT t.session FROM tombstones t JOIN owners o ON o.key=t.session WHERE t.restored=0 LIMIT 10", "it was deleted and has an owner"},
		{"SELECT t.session FROM tombstones t JOIN events e ON e.pos=t.pos LIMIT 10", "its position is a fact's too"},
	} {
		if err := v.each(ctx, c.query, nil, func(rows *sql.Rows) error {
			var session string
			err := rows.Scan(&session)
			v.problem("tombstones/"+strings.ToValidUTF8(session, "?"), "%s", c.what)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// gone says how a stream that heads name went with its session; empty if it didn't.
func (v *verification) gone(want *store.Head) string {
	for _, t := range v.graves {
		i := slices.IndexFunc(t.Heads, func(h store.Head) bool { return h.Stream == want.Stream })
		if i < 0 || t.Heads[i].Seq < want.Seq || t.Heads[i].Seq == want.Seq && t.Heads[i].Hash != want.Hash {
			continue
		}
		return fmt.Sprintf("its session %s was deleted on %s by %s", t.Session, t.Time.Format("2006-01-02 15:04 UTC"), t.By)
	}
	return ""
}
