package sqlite

import (
	"context"
	"database/sql"
	"os"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
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
	let, err := gc.expirations(ctx)
	if err != nil || len(let) == 0 {
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
	done.Contents, done.Left, err = gc.dropUnless(ctx, c, false, func(ctx context.Context, c contents) (seen, error) {
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

// expirations are the outputs that were let go, with the position of the last
// fact that says so.
func (gc *collector) expirations(ctx context.Context) (map[layout.Output]int64, error) {
	type found struct {
		pos, stream int64
		digest      [32]byte
	}
	var all []found
	var data sql.RawBytes
	err := gc.query(ctx, "SELECT pos, stream, data FROM events WHERE type=(SELECT id FROM types WHERE name='output.expired') ORDER BY pos", nil, func(rows *sql.Rows) error {
		var f found
		if err := rows.Scan(&f.pos, &f.stream, &data); err != nil {
			return err
		}
		if d, ok := layout.ExpiredDigest(data); ok {
			f.digest = d
			all = append(all, f)
		}
		return nil
	})
	if err != nil || len(all) == 0 {
		return nil, err
	}
	gone, err := gc.unfinished(ctx)
	if err != nil {
		return nil, err
	}
	let := map[layout.Output]int64{}
	for _, f := range all {
		if gone[f.stream] {
			continue
		}
		name, err := gc.streamName(ctx, f.stream)
		if err != nil {
			return nil, err
		}
		let[layout.Output{Session: name.session, Digest: f.digest}] = f.pos
	}
	return let, nil
}

// sizeOf is the size of a content, if it is there.
func (gc *collector) sizeOf(ctx context.Context, d [32]byte) (size int64, there bool, err error) {
	err = gc.query(ctx, "SELECT length(data) FROM blobs WHERE digest=?", []any{d[:]}, func(rows *sql.Rows) error {
		there = true
		return rows.Scan(&size)
	})
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
	for _, query := range []string{
		"SELECT num, body, stream FROM inbox WHERE num>? ORDER BY num LIMIT 512",
	} {
		err := gc.portions(ctx, query, func(rows *sql.Rows) (number int64, err error) {
			var stream int64
			var text sql.RawBytes
			if err := rows.Scan(&number, &text, &stream); err != nil || s.gone[stream] {
				return number, err
			}
			store.Named(text, c.keep)
			return number, nil
		})
		if err != nil {
			return s, err
		}
	}
	return s, gc.documents(ctx, c, store.Quoted)
}

// factNeeds keeps the candidates that facts need.
func (gc *collector) factNeeds(ctx context.Context, s seen, c contents, covered func(layout.Naming) bool) error {
	types, err := gc.outputTypes(ctx)
	if err != nil {
		return err
	}
	type output struct {
		stream, pos int64
		digest      [32]byte
	}
	var outputs []output
	err = gc.portions(ctx, "SELECT pos, stream, type, version, refs, data FROM events WHERE pos>? ORDER BY pos LIMIT 512", func(rows *sql.Rows) (pos int64, err error) {
		var stream, typ int64
		var r store.Row
		var refs, data sql.RawBytes
		if err := rows.Scan(&pos, &stream, &typ, &r.Version, &refs, &data); err != nil || s.gone[stream] {
			return pos, err
		}
		r.Type, r.Refs, r.Data = types[typ], refs, data
		r.Needs(c.keep, func(d [32]byte) {
			if kept, candidate := c[d]; candidate && !kept {
				outputs = append(outputs, output{stream, pos, d})
			}
		})
		return pos, nil
	})
	for _, o := range outputs {
		if err != nil {
			break
		}
		var name streamName
		if name, err = gc.streamName(ctx, o.stream); err == nil && !covered(layout.Naming{Output: layout.Output{Session: name.session, Digest: o.digest}, Pos: o.pos}) {
			c.keep(o.digest)
		}
	}
	return err
}

// outputTypes are the numbers of the types whose facts can name outputs.
func (gc *collector) outputTypes(ctx context.Context) (map[int64]string, error) {
	types := map[int64]string{}
	err := gc.query(ctx, "SELECT id, name FROM types", nil, func(rows *sql.Rows) error {
		var id int64
		var name string
		err := rows.Scan(&id, &name)
		if event.NamesOutputs(name) {
			types[id] = name
		}
		return err
	})
	return types, err
}

// portions runs a query whose rows begin with a number, in portions after it.
func (a *access) portions(ctx context.Context, query string, row func(*sql.Rows) (int64, error)) error {
	for last, n := int64(-1), pageSize; n == pageSize; {
		n = 0
		err := a.query(ctx, query, []any{last}, func(rows *sql.Rows) error {
			number, err := row(rows)
			if err != nil {
				return err
			}
			if n++; number <= last {
				return outOfOrder(a.path)
			}
			last = number
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
