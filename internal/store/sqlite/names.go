package sqlite

import (
	"context"
	"fmt"
	"sync"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

// names remembers what the numbers of a table's rows stand for. The numbers never
// change their meaning, so nothing here goes stale.
type names[N any] struct {
	mu    sync.Mutex
	known map[int64]N
}

type streamName struct {
	stream  belay.StreamID
	session belay.SessionID
}

const rememberedNames = 1 << 14

// find is the name of a number, which the query reads where it isn't known.
func (n *names[N]) find(ctx context.Context, a *access, number int64, query string, into func(*N) []any) (name N, found bool, err error) {
	n.mu.Lock()
	name, found = n.known[number]
	n.mu.Unlock()
	if found {
		return name, true, nil
	}
	if found, err = a.one(ctx, query, []any{number}, into(&name)...); !found || err != nil {
		return name, found, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.known == nil || len(n.known) >= rememberedNames {
		n.known = map[int64]N{}
	}
	n.known[number] = name
	return name, true, nil
}

// named completes a row with the name of its type, and finds its stream.
func (a *access) named(ctx context.Context, e *layout.Event) (in streamName, err error) {
	if e.Row.Type, err = a.typeName(ctx, e.TypeNumber); err == nil {
		in, err = a.streamName(ctx, e.Stream)
	}
	return in, err
}

func (a *access) typeName(ctx context.Context, number int64) (string, error) {
	name, found, err := a.typeNames.find(ctx, a, number, "SELECT name FROM types WHERE id=?", func(n *string) []any { return []any{n} })
	if err == nil && !found {
		err = store.Damaged(fmt.Sprintf("types/%d", number), "a fact's type has no name")
	}
	return name, err
}

func (a *access) streamName(ctx context.Context, number int64) (streamName, error) {
	name, found, err := a.streamNames.find(ctx, a, number, "SELECT name, session FROM streams WHERE id=?", func(n *streamName) []any { return []any{&n.stream, &n.session} })
	if err == nil && !found {
		err = store.Damaged(fmt.Sprintf("streams/%d", number), "a fact's stream has no row")
	}
	return name, err
}
