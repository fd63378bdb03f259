package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// MaxEvent is the size of the largest fact, identities and payload together:
// what is longer belongs in a blob that the fact names.
const MaxEvent = 16 << 10

// Row is a fact as drivers store it. What the hash chain covers is exactly
// this, so a driver keeps the byte fields as they are.
type Row struct {
	Seq      int64
	Time     int64 // microseconds since 1970, UTC
	Type     string
	Version  int64
	Requires int64
	IDs      []byte // see appendIDs
	Refs     []byte // see appendRefs; nil when there are none
	Data     []byte // the payload's JSON
}

// Pack makes the stored form of a fact of a stream. The fact's Seq and Time
// are taken as they are; a zero time becomes 0.
func Pack(session belay.SessionID, stream belay.StreamID, e *event.Envelope) (Row, error) {
	name := e.Type()
	if name == "" {
		return Row{}, belay.Errorf(belay.CodeInternal, "a payload of type %T is in no table", e.Data).At(string(stream))
	}
	data, err := e.Encoded()
	if err != nil {
		return Row{}, belay.Errorf(belay.CodeInternal, "a fact can't be encoded").At(string(stream)).Wrap(err)
	}
	ids := appendIDs(make([]byte, 0, 96), session, stream, &e.IDs)
	refs := appendRefs(nil, e.Refs)
	if n := len(data) + len(ids) + len(refs); n > MaxEvent {
		return Row{}, belay.Errorf(belay.CodeTooLarge, "a fact of type %s has %d bytes, the limit is %d", name, n, MaxEvent).
			At(string(stream)).WithHint("keep long content in a blob and name it")
	}
	return Row{Seq: e.Seq, Time: Micros(e.Time), Type: name, Version: int64(e.Version), Requires: int64(e.Requires),
		IDs: ids, Refs: refs, Data: data}, nil
}

// Unpack is the inverse of Pack. An error means that the row is damaged, or that a newer
// program wrote it: its payload is whole, and says something in a form of its own.
func (r *Row) Unpack(runtime belay.RuntimeID, session belay.SessionID, stream belay.StreamID) (event.Envelope, error) {
	e := event.Envelope{Stream: stream, Seq: r.Seq, Time: FromMicros(r.Time), Runtime: runtime,
		Version: int(r.Version), Requires: int(r.Requires)}
	var err error
	if e.IDs, err = readIDs(r.IDs, session, stream); err == nil {
		if e.Refs, err = readRefs(r.Refs); err == nil {
			if e.Data, err = event.Decode(r.Type, max(e.Version, 1), r.Data); err != nil && isObject(r.Data) {
				return e, belay.Errorf(belay.CodeStoreNewer, "a newer program wrote a fact of type %s that this one can't read", r.Type).
					At(RowName(stream, r.Seq)).WithHint("use the program that last wrote the store, or a newer one; belay verify says whether the fact is as it was written").Wrap(err)
			}
		}
	}
	if err != nil {
		return e, Damaged(RowName(stream, r.Seq), "a fact can't be read").Wrap(err)
	}
	return e, nil
}

// isObject reports whether bytes are one whole object of JSON.
func isObject(b []byte) bool {
	b = bytes.TrimLeft(b, " \t\r\n")
	return len(b) > 0 && b[0] == '{' && json.Valid(b)
}

// RowName names the place of a fact, for error texts.
func RowName(stream belay.StreamID, seq int64) string {
	return string(stream) + "#" + strconv.FormatInt(seq, 10)
}

// Damaged is the error for stored bytes that aren't what was written.
func Damaged(where, what string) *belay.Error {
	return belay.Errorf(belay.CodeStoreDamaged, "%s", what).At(where).
		WithHint("run belay verify: it names what is damaged and what can still be read")
}

// Canonical adds the bytes that the hash chain covers.
func (r *Row) Canonical(dst []byte) []byte {
	dst = append(dst, 1) // the form's own version
	dst = binary.AppendVarint(dst, r.Seq)
	dst = binary.AppendVarint(dst, r.Time)
	dst = binary.AppendVarint(dst, r.Version)
	dst = binary.AppendVarint(dst, r.Requires)
	dst = appendBytes(dst, r.Type)
	dst = appendBytes(dst, r.IDs)
	dst = appendBytes(dst, r.Refs)
	return appendBytes(dst, r.Data)
}

func appendBytes[T string | []byte](dst []byte, b T) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(b)))
	return append(dst, b...)
}

// Genesis is the chain before a stream's first fact.
func Genesis(session belay.SessionID, stream belay.StreamID) [32]byte {
	b := appendBytes([]byte("belay chain 1\x00"), string(session))
	return sha256.Sum256(appendBytes(b, string(stream)))
}

// Link is the chain after row r: SHA-256 over the chain before it and the
// row's canonical bytes. It builds them in buf, which is returned for reuse.
func Link(prev [32]byte, r *Row, buf []byte) (hash [32]byte, reuse []byte) {
	buf = r.Canonical(append(buf[:0], prev[:]...))
	return sha256.Sum256(buf), buf
}

// appendRefs adds the stored form of refs: a count, then in role order the
// role, the digest's 32 bytes, the size and the media type. A digest of
// another form is stored as text after the number 1.
func appendRefs(dst []byte, refs map[string]belay.Ref) []byte {
	if len(refs) == 0 {
		return nil
	}
	dst = binary.AppendUvarint(dst, uint64(len(refs)))
	for _, role := range slices.Sorted(maps.Keys(refs)) {
		ref := refs[role]
		dst = appendBytes(dst, role)
		if raw, ok := RawDigest(ref.Digest); ok {
			dst = append(append(dst, 0), raw[:]...)
		} else {
			dst = appendBytes(append(dst, 1), string(ref.Digest))
		}
		dst = binary.AppendVarint(dst, ref.Size)
		dst = appendBytes(dst, ref.Media)
	}
	return dst
}

func readRefs(b []byte) (map[string]belay.Ref, error) {
	if len(b) == 0 {
		return nil, nil
	}
	d, refs := NewDecoder(b), map[string]belay.Ref{}
	count := d.Uvarint()
	for n := uint64(0); n < count && !d.failed; n++ {
		role, ref := string(d.Bytes()), belay.Ref{}
		switch form := d.Take(1); {
		case d.failed:
		case form[0] == 0:
			ref.Digest = DigestFrom(d.Take(32))
		case form[0] == 1:
			ref.Digest = belay.Digest(d.Bytes())
		default:
			d.failed = true
		}
		ref.Size, ref.Media = d.Varint(), string(d.Bytes())
		refs[role] = ref
	}
	if !d.Whole() || count == 0 || uint64(len(refs)) != count {
		return nil, Damaged("", "the stored references can't be read")
	}
	return refs, nil
}

// RawDigest is the digest's 32 bytes; false when d isn't in the one form that
// DigestOf writes.
func RawDigest(d belay.Digest) (raw [32]byte, ok bool) {
	b, err := hex.DecodeString(strings.TrimPrefix(string(d), "sha256:"))
	if err != nil || len(b) != len(raw) || DigestFrom(b) != d {
		return raw, false
	}
	return [32]byte(b), true
}

// DigestFrom is the inverse of RawDigest.
func DigestFrom(raw []byte) belay.Digest {
	return belay.Digest(hex.AppendEncode([]byte("sha256:"), raw))
}

// Micros is the stored form of a time: microseconds, 0 for the zero time.
func Micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// FromMicros is the inverse of Micros, in UTC.
func FromMicros(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}
