package sqlite

import (
	"context"
	"database/sql"
	"os"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

// DropExpired removes the outputs of which facts say that they have expired, and
// that nothing else needs. It takes nothing but those facts for an order, so a
// removal that was cut short continues with the next call, and content goes never
// before the fact that lets it go.
//
// Something needs content when a fact names it in any other way than as an
// output, when a fact names it as an output that hasn't expired in its session
// since, when a command that waits does, or a document.
func (gc *collector) DropExpired(ctx context.Context) (done store.Expired, err error) {
	let := layout.Expirations{}
	if err := gc.query(ctx, layout.ExpiredQuery, nil, let.Scan); err != nil || len(let) == 0 {
		return done, err
	}
	c, sizes := contents{}, map[[32]byte]int64{}
	for m := range let {
		if _, known := sizes[m.Digest]; known {
			continue
		}
		size, there, err := gc.sizeOf(ctx, m.Digest)
		if err != nil {
			return done, err
		}
		if sizes[m.Digest] = size; there {
			c.add(m.Digest)
		}
	}
	done.Contents, done.Left, err = gc.drop(ctx, c, false, func(ctx context.Context, c contents) (seen, error) {
		return gc.outputCensus(ctx, c, func(n layout.Naming) bool { return let[n.Output] > n.Pos })
	})
	for d, kept := range c {
		if kept {
			done.Needed++
		} else if _, there, e := gc.sizeOf(ctx, d); e == nil && !there {
			done.Bytes += sizes[d]
		}
	}
	return done, err
}

// NeededBesides tells which contents something names in another way than as an
// output: to let them go would free nothing.
func (gc *collector) NeededBesides(ctx context.Context, digests []belay.Digest) (map[belay.Digest]bool, error) {
	c := contents{}
	for _, d := range digests {
		if raw, ok := store.RawDigest(d); ok {
			c.add(raw)
		}
	}
	if len(c) == 0 {
		return nil, nil
	}
	_, err := gc.outputCensus(ctx, c, func(layout.Naming) bool { return true })
	needed := map[belay.Digest]bool{}
	for d, kept := range c {
		if kept {
			needed[store.DigestFrom(d[:])] = true
		}
	}
	return needed, err
}

// sizeOf is the size of a content, if it is there.
func (gc *collector) sizeOf(ctx context.Context, d [32]byte) (size int64, there bool, err error) {
	there, err = gc.one(ctx, "SELECT length(data) FROM blobs WHERE digest=?", []any{d[:]}, &size)
	if err != nil || there {
		return size, there, err
	}
	info, err := os.Stat(layout.ContentFile(gc.blobs, store.DigestFrom(d[:])))
	if err != nil {
		return 0, false, nil //nolint:nilerr // a file that can't be looked at isn't removed
	}
	return info.Size(), true, nil
}

// outputCensus keeps the candidates that something needs. An output that covered
// accepts is none of it. Cached states and views aren't asked: what they name,
// facts name.
func (gc *collector) outputCensus(ctx context.Context, c contents, covered func(layout.Naming) bool) (s seen, err error) {
	if s, err = gc.look(ctx); err != nil {
		return s, err
	}
	if err := gc.factNeeds(ctx, s, c, covered); err != nil {
		return s, err
	}
	if err := gc.named(ctx, inboxContents, s.gone, c.keep); err != nil {
		return s, err
	}
	return s, gc.documents(ctx, c, store.Quoted)
}

// factNeeds keeps the candidates that facts need. A fact whose stream has no row
// needs all it names.
func (gc *collector) factNeeds(ctx context.Context, s seen, c contents, covered func(layout.Naming) bool) error {
	var refs, data sql.RawBytes
	return gc.portions(ctx, "SELECT pos, stream, version, refs, data, coalesce((SELECT name FROM types WHERE id=type),''), "+
		"coalesce((SELECT session FROM streams WHERE id=stream),'') FROM events WHERE pos>? ORDER BY pos LIMIT 512", func(rows *sql.Rows) (pos int64, err error) {
		var stream int64
		var n layout.Naming
		var r store.Row
		if err := rows.Scan(&pos, &stream, &r.Version, &refs, &data, &r.Type, &n.Session); err != nil || s.gone[stream] {
			return pos, err
		}
		n.Pos, r.Refs, r.Data = pos, refs, data
		r.Needs(c.keep, func(d [32]byte) {
			if n.Digest = d; !covered(n) {
				c.keep(d)
			}
		})
		return pos, nil
	})
}
