package layout

import (
	"database/sql"
	"encoding/binary"
	"hash/crc32"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

// EachRow hands over the rows of a query and closes it.
func EachRow(rows *sql.Rows, err error, each func(*sql.Rows) error) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// StreamColumns are what Stream.Scan reads.
const StreamColumns = "id, name, session, seq, time, hash, runnable, wake, sum"

// Stream is a stream's end and its lane.
type Stream struct {
	ID             int64
	Name           belay.StreamID
	Session        belay.SessionID
	Seq            int64
	Time           int64
	Hash           [32]byte
	Runnable, Wake int64
}

// NewStream is a stream without facts and without a number.
func NewStream(name belay.StreamID, session belay.SessionID) Stream {
	return Stream{Name: name, Session: session, Hash: store.Genesis(session, name)}
}

// Sum covers every column, so that a changed lane or head is noticed. It is
// put together in room.
func (s *Stream) Sum(room []byte) int64 {
	b := append(append(room[:0], s.Name...), 0)
	b = append(append(b, s.Session...), 0)
	for _, n := range [...]int64{s.Seq, s.Time, s.Runnable, s.Wake} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	return int64(crc32.Checksum(append(b, s.Hash[:]...), castagnoli))
}

// Scan reads a row of StreamColumns, and what is selected behind them into more. A
// row that isn't what was written is CodeStoreDamaged; all of it was read then.
func (s *Stream) Scan(scan func(...any) error, more ...any) error {
	var hash []byte
	var sum int64
	into := append([]any{&s.ID, &s.Name, &s.Session, &s.Seq, &s.Time, &hash, &s.Runnable, &s.Wake, &sum}, more...)
	if err := scan(into...); err != nil {
		return err
	}
	if copy(s.Hash[:], hash) != len(s.Hash) || len(hash) != len(s.Hash) || s.Sum(make([]byte, 0, 256)) != sum {
		return store.Damaged("streams/"+string(s.Name), "a stream's row isn't what was written")
	}
	return nil
}

// EventColumns are what Event.Scan reads.
const EventColumns = "pos, stream, seq, time, type, version, requires, ids, refs, data, hash"

// Event is a row of the events table.
type Event struct {
	Pos        int64
	Stream     int64
	TypeNumber int64
	Hash       []byte
	Row        store.Row
}

// Scan reads a row of EventColumns. The name of its type stands in another table.
func (e *Event) Scan(scan func(...any) error) error {
	return scan(&e.Pos, &e.Stream, &e.Row.Seq, &e.Row.Time, &e.TypeNumber, &e.Row.Version, &e.Row.Requires, &e.Row.IDs, &e.Row.Refs, &e.Row.Data, &e.Hash)
}
