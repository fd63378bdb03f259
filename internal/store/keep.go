package store

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// Tombstone is what is left of a deleted session: that it was, and how its
// streams ended. It has a place in the order of all facts, so that who folds
// the log learns of the deletion exactly once.
type Tombstone struct {
	Session  belay.SessionID
	Position Position
	Time     time.Time
	By       string // who wanted it
	Facts    int64  // how many there were
	Heads    []Head // of its streams that had facts, by name
	Epoch    int64  // of its last owner; the epochs of a restored session go on from here
	Restored bool   // the session may be written again
}

// Deleted is what a deletion did.
type Deleted struct {
	Tombstone
	Contents int // that were removed with the session
	Left     int // contents that only it named and that are left to collection
}

// Copy shares nothing with t.
func (t *Tombstone) Copy() Tombstone {
	c := *t
	c.Heads = slices.Clone(t.Heads)
	return c
}

// DocumentStart has the bytes with which content begins that may name other
// content: a JSON object or list. Text, images and archives name nothing.
var DocumentStart = []byte("{[")

// MayDelete refuses what can't be deleted.
func MayDelete(session belay.SessionID) error {
	if session == "" || session == belay.SystemSession {
		return belay.Errorf(belay.CodeBadState, "the runtime's own session can't be deleted").At(string(session))
	}
	return nil
}

// IsDeleted is the error for a session that was deleted.
func IsDeleted(session belay.SessionID) error {
	return belay.Errorf(belay.CodeDeleted, "the session was deleted").At(string(session)).
		WithHint("belay sessions list --all")
}

// Named calls each with every digest in stored bytes, wherever "sha256:" and 64
// digits stand: so content that they name is found without understanding the
// bytes.
func Named(b []byte, each func(digest [32]byte)) { digests(b, "sha256:", "", each) }

// Quoted calls each with every digest that is a whole string of a JSON text. A
// text that only mentions one, as a message to a model does, names nothing by
// it.
func Quoted(b []byte, each func(digest [32]byte)) { digests(b, `"sha256:`, `"`, each) }

// digests calls each with every 64 digits that stand between mark and end.
func digests(b []byte, mark, end string, each func(digest [32]byte)) {
	const digits = 2 * 32
	for {
		i := bytes.Index(b, []byte(mark))
		if i < 0 {
			return
		}
		b = b[i+len(mark):]
		var d [32]byte
		if len(b) < digits+len(end) {
			return
		}
		if _, err := hex.Decode(d[:], b[:digits]); err == nil && bytes.HasPrefix(b[digits:], []byte(end)) {
			each(d)
		}
	}
}

// Needs tells apart what a fact names: outputs, which may expire, and what has
// to be kept as long as the fact is. A row that can't be read needs all it names.
func (r *Row) Needs(needs, output func(digest [32]byte)) {
	rest := r.Data
	if event.NamesOutputs(r.Type) && bytes.Contains(r.Data, []byte(`"sha256:`)) {
		p, err := event.Decode(r.Type, max(int(r.Version), 1), r.Data)
		if err == nil {
			var outputs []belay.Ref
			p, outputs = event.WithoutOutputs(p)
			if rest, err = json.Marshal(p); err == nil {
				for _, ref := range outputs {
					if raw, ok := RawDigest(ref.Digest); ok {
						output(raw)
					}
				}
			}
		}
		if err != nil {
			rest = r.Data
		}
	}
	Quoted(rest, needs)
	(&Row{Refs: r.Refs}).Named(needs)
}

// Named calls each with every digest in a row.
func (r *Row) Named(each func(digest [32]byte)) {
	Named(r.Data, each)
	refs, err := readRefs(r.Refs)
	if err != nil {
		return // a damaged row is reported by its reader
	}
	for _, ref := range refs {
		if raw, ok := RawDigest(ref.Digest); ok {
			each(raw)
		}
	}
}
