package sqlite

import (
	"container/heap"
	"context"
	"database/sql"
	"iter"
	"math"
	"sort"

	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

// Window yields facts of one session or stream. The streams of a session are
// merged by position; of each only what is taken is read.
func (l *factLog) Window(ctx context.Context, w store.Window) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		m := merge{db: l.access, newest: w.Newest, after: max(int64(w.After), 0)}
		if err := m.start(ctx, w); err != nil {
			yield(store.Record{}, err)
			return
		}
		heap.Init(&m)
		for len(m.streams) > 0 {
			row, err := m.step(ctx)
			if row == nil && err == nil {
				continue
			}
			var rec store.Record
			if err == nil {
				rec, err = l.record(ctx, row)
			}
			if l.isGone(ctx, row, err) {
				continue // its session is being deleted
			}
			if !yield(rec, err) || err != nil {
				return
			}
		}
	}
}

// merge walks several streams in the order of the log.
type merge struct {
	db      *access
	newest  bool
	after   int64
	before  int64
	streams []*merged // a heap: the stream with the next fact first
}

// merged is a stream of a merge and what was read of it ahead.
type merged struct {
	number int64
	next   int64 // position of the next fact; until one is read, a bound of it
	seq    int64 // the fact before the next one, in the direction of reading
	found  bool  // seq is known
	ahead  []layout.Event
	more   bool
	size   int // rows of the next portion: a merge of many streams takes few of each
}

func (m *merge) Len() int           { return len(m.streams) }
func (m *merge) Less(i, j int) bool { return (m.streams[i].next < m.streams[j].next) != m.newest }
func (m *merge) Swap(i, j int)      { m.streams[i], m.streams[j] = m.streams[j], m.streams[i] }
func (m *merge) Push(x any)         { m.streams = append(m.streams, x.(*merged)) }
func (m *merge) Pop() any {
	last := m.streams[len(m.streams)-1]
	m.streams = m.streams[:len(m.streams)-1]
	return last
}

// start finds the streams that have facts in the window.
func (m *merge) start(ctx context.Context, w store.Window) error {
	end, err := m.db.End(ctx)
	if err != nil {
		return err
	}
	m.before = int64(end) + 1
	if w.Before > 0 {
		m.before = min(m.before, int64(w.Before))
	}
	where, which := "session", string(w.Session)
	if w.Stream != "" {
		where, which = "name", string(w.Stream)
	}
	const bound = "(SELECT pos FROM events WHERE stream=s.id ORDER BY seq"
	return m.db.query(ctx, "SELECT s.id, "+bound+" LIMIT 1), "+bound+" DESC LIMIT 1) FROM streams s WHERE s."+where+"=?", []any{which},
		func(rows *sql.Rows) error {
			var number int64
			var first, last sql.NullInt64
			if err := rows.Scan(&number, &first, &last); err != nil {
				return err
			}
			if !first.Valid || last.Int64 <= m.after || first.Int64 >= m.before {
				return nil
			}
			s := &merged{number: number, next: max(first.Int64, m.after+1), more: true, size: 32}
			switch {
			case m.newest:
				s.next = min(last.Int64, m.before-1)
				if s.found = last.Int64 < m.before; s.found { // from its end on
					s.seq = math.MaxInt64
				}
			case first.Int64 > m.after: // from its beginning on
				s.found = true
			}
			m.streams = append(m.streams, s)
			return nil
		})
}

// step takes the next fact, or reads ahead where that is needed to know which
// one it is; then it gives none.
func (m *merge) step(ctx context.Context) (*layout.Event, error) {
	s := m.streams[0]
	if len(s.ahead) == 0 {
		if !s.more {
			heap.Pop(m)
			return nil, nil
		}
		if err := s.read(ctx, m); err != nil {
			return nil, err
		}
		if len(s.ahead) > 0 {
			s.next = s.ahead[0].Pos
			heap.Fix(m, 0)
		}
		return nil, nil
	}
	row := s.ahead[0]
	s.ahead = s.ahead[1:]
	switch {
	case len(s.ahead) > 0:
		s.next = s.ahead[0].Pos
	case m.newest:
		s.next = row.Pos - 1
	default:
		s.next = row.Pos + 1
	}
	heap.Fix(m, 0)
	return &row, nil
}

// A limit that is a parameter and nothing else makes SQLite prepare the statement
// again for each value.
const (
	forward  = "SELECT " + layout.EventColumns + " FROM events WHERE stream=? AND seq>? AND pos<? ORDER BY seq LIMIT ?+0"
	backward = "SELECT " + layout.EventColumns + " FROM events WHERE stream=? AND seq<? AND pos>? ORDER BY seq DESC LIMIT ?+0"
)

// read takes the next portion of the stream.
func (s *merged) read(ctx context.Context, m *merge) error {
	query, limit := forward, m.before
	if m.newest {
		query, limit = backward, m.after
	}
	if !s.found {
		if err := s.find(ctx, m); err != nil {
			return err
		}
	}
	part, more, err := m.db.events(ctx, query, s.number, s.seq, limit, s.size)
	if err != nil {
		return err
	}
	for i := range part {
		if i > 0 && (part[i].Pos < part[i-1].Pos) != m.newest {
			return outOfOrder(m.db.path)
		}
	}
	s.ahead, s.more = part, more || len(part) == s.size
	if n := len(part); n > 0 {
		s.seq = part[n-1].Row.Seq
	}
	s.size = min(2*s.size, pageSize)
	return nil
}

// find looks for the sequence behind which the window begins. Positions grow
// with the sequence, so it takes few questions however long the stream is.
func (s *merged) find(ctx context.Context, m *merge) error {
	var low, high int64
	const ends = "SELECT coalesce((SELECT seq FROM events WHERE stream=?1 ORDER BY seq LIMIT 1), 0), coalesce((SELECT seq FROM events WHERE stream=?1 ORDER BY seq DESC LIMIT 1), 0)"
	if _, err := m.db.one(ctx, ends, []any{s.number}, &low, &high); err != nil {
		return err
	}
	bound := m.after
	if m.newest {
		bound = m.before - 1
	}
	var err error
	// n facts, from the first on, are at or before the bound
	n := sort.Search(int(high-low+1), func(i int) bool {
		if err != nil {
			return true
		}
		at := bound + 1 // a fact that is gone meanwhile counts as behind the bound: nothing of the stream is left
		_, err = m.db.one(ctx, "SELECT pos FROM events WHERE stream=? AND seq=?", []any{s.number, low + int64(i)}, &at)
		return at > bound
	})
	s.found, s.seq = true, low+int64(n)-1
	if m.newest {
		s.seq++ // read backward from the fact before this one
	}
	return err
}
