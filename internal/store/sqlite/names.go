package sqlite

import (
	"context"
	"database/sql"
	"strconv"
	"sync"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

// names remembers what the numbers in rows stand for. The numbers never change
// their meaning, so nothing here goes stale.
type names struct {
	mu      sync.Mutex
	types   map[int64]string
	streams map[int64]streamName
}

type streamName struct {
	stream  belay.StreamID
	session belay.SessionID
}

const rememberedStreams = 1 << 14

func (n *names) init() {
	n.types, n.streams = map[int64]string{}, map[int64]streamName{}
}

func (a *access) typeName(ctx context.Context, number int64) (string, error) {
	a.names.mu.Lock()
	name, ok := a.names.types[number]
	a.names.mu.Unlock()
	if ok {
		return name, nil
	}
	err := a.query(ctx, "SELECT name FROM types WHERE id=?", []any{number}, func(rows *sql.Rows) error {
		ok = true
		return rows.Scan(&name)
	})
	if err != nil {
		return "", err
	}
	if !ok {
		return "", store.Damaged("types/"+strconv.FormatInt(number, 10), "a fact's type has no name")
	}
	a.names.mu.Lock()
	a.names.types[number] = name
	a.names.mu.Unlock()
	return name, nil
}

func (a *access) streamName(ctx context.Context, number int64) (streamName, error) {
	a.names.mu.Lock()
	n, ok := a.names.streams[number]
	a.names.mu.Unlock()
	if ok {
		return n, nil
	}
	err := a.query(ctx, "SELECT name, session FROM streams WHERE id=?", []any{number}, func(rows *sql.Rows) error {
		ok = true
		return rows.Scan(&n.stream, &n.session)
	})
	if err != nil {
		return n, err
	}
	if !ok {
		return n, store.Damaged("streams/"+strconv.FormatInt(number, 10), "a fact's stream has no row")
	}
	a.names.mu.Lock()
	defer a.names.mu.Unlock()
	if len(a.names.streams) >= rememberedStreams {
		clear(a.names.streams)
	}
	a.names.streams[number] = n
	return n, nil
}
