package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"os"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

// anchorRow is a row of the anchors. The state is kept as the text of its
// reference, so that whoever looks for what names content finds it.
type anchorRow struct {
	store.Anchor
	number int64 // of the stream
	at     int64
	state  []byte
}

const anchorColumns = "a.stream, a.seq, a.hash, a.time, a.state, a.version, a.sum"

// scan reads a row of anchorColumns and checks it.
func (r *anchorRow) scan(scan func(...any) error, more ...any) error {
	var hash []byte
	var sum int64
	if err := scan(append([]any{&r.number, &r.Seq, &hash, &r.at, &r.state, &r.Version, &sum}, more...)...); err != nil {
		return err
	}
	r.Time = store.FromMicros(r.at)
	n := copy(r.Hash[:], hash)
	if err := json.Unmarshal(r.state, &r.State); err != nil || n != len(r.Hash) || len(hash) != n || r.sum() != sum {
		return store.Damaged("anchors/"+string(r.Stream), "an anchor isn't what was written")
	}
	return nil
}

// sum covers every column.
func (r *anchorRow) sum() int64 {
	b := binary.AppendVarint(nil, r.number)
	b = binary.AppendVarint(b, r.Seq)
	b = binary.AppendVarint(b, r.at)
	b = append(append(b, r.Hash[:]...), r.state...)
	return int64(crc32.Checksum(append(append(b, 0), r.Version...), castagnoli))
}

type anchorOp struct {
	a     store.Anchor
	epoch int64
	row   anchorRow
	done  bool // nothing was left
	set   bool // the anchor stands: only its facts are to go
}

// SetAnchor lets the first facts of a stream go: the anchor comes first, and
// from then on nobody reads before it; then the facts, a portion at a time.
func (db *DB) SetAnchor(ctx context.Context, a store.Anchor, epoch int64) error {
	for op := (&anchorOp{a: a, epoch: epoch}); !op.done; {
		if err := db.do(ctx, op); err != nil {
			return err
		}
	}
	return nil
}

func (o *anchorOp) committed(*writer) { o.set = true }

func (o *anchorOp) apply(w *writer) (refused, broken error) {
	if !o.set {
		if refused, broken := o.place(w); refused != nil || broken != nil {
			return refused, broken
		}
	}
	var err error
	o.done, err = w.dropPrefix(o.row.number, o.row.Seq)
	return nil, err
}

// dropPrefix removes a portion of the facts before an anchor.
func (w *writer) dropPrefix(stream, seq int64) (done bool, err error) {
	if err := w.exec(thoroughly); err != nil {
		return false, err
	}
	n, err := w.count("DELETE FROM events WHERE pos IN (SELECT pos FROM events WHERE stream=? AND seq<=? ORDER BY seq LIMIT ?)", stream, seq, purgePortion)
	w.grown += int(n) * 1024
	return n < purgePortion, cmpErr(err, w.exec(lightly))
}

// place checks the anchor and writes it.
func (o *anchorOp) place(w *writer) (refused, broken error) {
	f, refused, broken := w.fence(&store.Batch{Session: o.a.Session, Stream: o.a.Stream, Epoch: o.epoch})
	if refused != nil || broken != nil {
		return refused, broken
	}
	there, broken := w.hasContent(o.a.State.Digest)
	if broken != nil {
		return nil, broken
	}
	if f.s.id == 0 || !there {
		return store.ErrNotFound, nil
	}
	old, found, refused, broken := w.anchor(f.s.id, o.a.Stream)
	if refused != nil || broken != nil {
		return refused, broken
	}
	if found && old.Seq == o.a.Seq && old.Hash == o.a.Hash {
		o.row = old
		return nil, nil
	}
	var hash []byte
	if _, broken = w.row("SELECT hash FROM events WHERE stream=? AND seq=?", []any{f.s.id, o.a.Seq}, &hash); broken != nil {
		return nil, broken
	}
	if o.a.Seq >= f.s.seq || found && old.Seq >= o.a.Seq || !bytes.Equal(hash, o.a.Hash[:]) {
		return store.ErrConflict, nil
	}
	state, err := json.Marshal(o.a.State)
	if err != nil {
		return nil, err
	}
	o.row = anchorRow{Anchor: o.a, number: f.s.id, at: store.Micros(w.now()), state: state}
	return nil, w.exec("INSERT INTO anchors (stream, seq, hash, time, state, version, sum) VALUES (?,?,?,?,?,?,?) ON CONFLICT (stream) DO UPDATE SET "+
		"seq=excluded.seq, hash=excluded.hash, time=excluded.time, state=excluded.state, version=excluded.version, sum=excluded.sum",
		o.row.number, o.row.Seq, o.row.Hash[:], o.row.at, state, o.row.Version, o.row.sum())
}

// hasContent tells whether content is there, inside the transaction.
func (w *writer) hasContent(d belay.Digest) (bool, error) {
	raw, ok := store.RawDigest(d)
	if !ok {
		return false, nil
	}
	found, err := w.row("SELECT 1 FROM blobs WHERE digest=?", []any{raw[:]}, new(int))
	if err == nil && !found {
		_, statErr := os.Stat(w.db.blobPath(d))
		found = statErr == nil
	}
	return found, err
}

// anchor reads a stream's anchor inside the transaction.
func (w *writer) anchor(number int64, name belay.StreamID) (r anchorRow, found bool, refused, broken error) {
	s, err := w.prepared("SELECT " + anchorColumns + " FROM anchors a WHERE stream=?")
	if err != nil {
		return r, false, nil, err
	}
	r.Stream = name
	switch err := r.scan(s.QueryRowContext(w.db.life, number).Scan); {
	case err == sql.ErrNoRows:
		return r, false, nil, nil
	case belay.CodeOf(err) == belay.CodeStoreDamaged:
		return r, false, err, nil
	case err != nil:
		return r, false, nil, err
	}
	return r, true, nil, nil
}

// AnchorOf is a stream's anchor, or nil.
func (db *DB) AnchorOf(ctx context.Context, name belay.StreamID) (found *store.Anchor, err error) {
	all, err := db.anchors(ctx, "s.name=?", string(name))
	for i := range all {
		found = &all[i].Anchor
	}
	return found, err
}

// anchors lists rows of the anchors.
func (db *DB) anchors(ctx context.Context, where string, args ...any) (all []anchorRow, err error) {
	err = db.query(ctx, "SELECT "+anchorColumns+", s.name, s.session FROM anchors a JOIN streams s ON s.id=a.stream WHERE "+where, args, func(rows *sql.Rows) error {
		var r anchorRow
		err := r.scan(rows.Scan, &r.Stream, &r.Session)
		all = append(all, r)
		return err
	})
	return all, err
}

// finishAnchors removes facts before anchors that a crash left.
func (db *DB) finishAnchors(ctx context.Context) error {
	left, err := db.anchors(ctx, "EXISTS (SELECT 1 FROM events e WHERE e.stream=a.stream AND e.seq<=a.seq)")
	if err != nil {
		return err
	}
	for _, r := range left {
		for op := (&anchorOp{row: r, set: true}); !op.done; {
			if err := db.do(ctx, op); err != nil {
				return err
			}
		}
	}
	return nil
}
