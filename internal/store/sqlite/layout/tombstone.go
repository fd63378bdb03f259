package layout

import (
	"encoding/binary"
	"hash/crc32"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

// TombstoneColumns are what Tombstone.Scan reads.
const TombstoneColumns = "pos, session, time, principal, facts, epoch, restored, heads, pending, sum"

// Tombstone is a row of the tombstones.
type Tombstone struct {
	store.Tombstone
	Pending []int64 // numbers of streams whose rows are still to be removed
}

// Scan reads a row of TombstoneColumns and checks it.
func (g *Tombstone) Scan(scan func(...any) error) error {
	var at, sum int64
	var heads, pending []byte
	if err := scan(&g.Position, &g.Session, &at, &g.By, &g.Facts, &g.Epoch, &g.Restored, &heads, &pending, &sum); err != nil {
		return err
	}
	g.Time = store.FromMicros(at)
	var whole bool
	if g.Heads, whole = readHeads(g.Session, heads); whole {
		g.Pending, whole = readNumbers(pending)
	}
	if !whole || g.Sum() != sum {
		return store.Damaged("tombstones/"+strings.ToValidUTF8(string(g.Session), "?"), "a tombstone isn't what was written")
	}
	return nil
}

// Values are the columns' values, in their order.
func (g *Tombstone) Values() []any {
	restored := int64(0)
	if g.Restored {
		restored = 1
	}
	return []any{int64(g.Position), string(g.Session), store.Micros(g.Time), g.By, g.Facts, g.Epoch, restored,
		appendHeads(g.Heads), appendNumbers(g.Pending), g.Sum()}
}

// Sum covers every column.
func (g *Tombstone) Sum() int64 {
	b := append([]byte(g.Session), 0)
	b = append(append(b, g.By...), 0)
	for _, n := range [...]int64{int64(g.Position), store.Micros(g.Time), g.Facts, g.Epoch} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	if g.Restored {
		b = append(b, 1)
	}
	b = append(append(b, 0), appendHeads(g.Heads)...)
	return int64(crc32.Checksum(append(append(b, 0), appendNumbers(g.Pending)...), castagnoli))
}

func appendHeads(heads []store.Head) []byte {
	b := []byte{}
	for _, h := range heads {
		b = binary.AppendUvarint(b, uint64(len(h.Stream)))
		b = append(b, h.Stream...)
		b = binary.AppendVarint(b, h.Seq)
		b = binary.AppendVarint(b, store.Micros(h.Time))
		b = append(b, h.Hash[:]...)
	}
	return b
}

func readHeads(session belay.SessionID, b []byte) (heads []store.Head, whole bool) {
	d := store.NewDecoder(b)
	for d.More() {
		h := store.Head{Session: session, Stream: belay.StreamID(d.Bytes()), Seq: d.Varint(), Time: store.FromMicros(d.Varint())}
		copy(h.Hash[:], d.Take(uint64(len(h.Hash))))
		heads = append(heads, h)
	}
	return heads, d.Whole()
}

func appendNumbers(numbers []int64) []byte {
	b := []byte{}
	for _, n := range numbers {
		b = binary.AppendVarint(b, n)
	}
	return b
}

func readNumbers(b []byte) (numbers []int64, whole bool) {
	d := store.NewDecoder(b)
	for d.More() {
		numbers = append(numbers, d.Varint())
	}
	return numbers, d.Whole()
}
