package layout

import (
	"crypto/sha256"
	"encoding/binary"
	"hash/crc32"
	"strconv"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sumOf is a checksum of a text and numbers that stand in one row.
func sumOf(text string, numbers ...int64) int64 {
	b := append(make([]byte, 0, 128), text...)
	for _, n := range numbers {
		b = binary.AppendVarint(append(b, 0), n)
	}
	return int64(crc32.Checksum(b, castagnoli))
}

// KeySum covers a key's row: a changed key would let a batch in twice.
func KeySum(stream int64, key []byte, pos int64) int64 { return sumOf(string(key), stream, pos) }

// EpochSum covers what keeps a stale owner out.
func EpochSum(key string, epoch int64) int64 { return sumOf(key, epoch) }

// StateSum covers the stream's name too: a row that changed its number would
// be another stream's state.
func StateSum(stream belay.StreamID, s *store.State) int64 {
	b := append([]byte(stream), 0)
	b = binary.AppendVarint(b, s.Seq)
	b = append(append(b, s.Version...), 0)
	return int64(crc32.Update(crc32.Checksum(b, castagnoli), castagnoli, s.Data))
}

// MetaSum covers what a store says of itself.
func MetaSum(runtime, created string) string {
	return strconv.FormatInt(sumOf(runtime+"\x00"+created), 10)
}

// SettingPrefix begins the keys of what a person decided about the store. They
// are beside what the store says of itself, each with a checksum of its own.
const SettingPrefix = "set:"

// SealSetting puts a checksum in front of a value.
func SealSetting(key, value string) string {
	return strconv.FormatInt(sumOf(key+"\x00"+value), 10) + " " + value
}

// OpenSetting takes the checksum off again; not ok: the value isn't what was sealed.
func OpenSetting(key, raw string) (value string, ok bool) {
	_, value, ok = strings.Cut(raw, " ")
	return value, ok && SealSetting(key, value) == raw
}

// ShortDigest is half a SHA-256 over parts and their lengths.
func ShortDigest(parts ...string) []byte {
	b := make([]byte, 0, 1024) // most need no more, and so nothing of the heap
	for _, p := range parts {
		b = binary.AppendUvarint(b, uint64(len(p)))
		b = append(b, p...)
	}
	sum := sha256.Sum256(b)
	return sum[:16]
}
