package sqlite

import (
	"context"
	"database/sql"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

const (
	laneColumns = "SELECT " + layout.StreamColumns + ", "
	laneInbox   = "(SELECT count(*) FROM inbox i WHERE i.stream=s.id)"
	// The partial index holds just the streams that want something, so a store
	// full of finished sessions costs nothing.
	lanesWanting = laneColumns + laneInbox + " FROM streams s WHERE s.runnable<>0 OR s.wake<>0"
	lanesWaiting = laneColumns + "n FROM (SELECT stream, count(*) AS n FROM inbox GROUP BY stream) JOIN streams s ON s.id=stream"
	// A session has a few streams: look at each instead of at all that waits.
	lanesOf = laneColumns + laneInbox + " AS n FROM streams s WHERE s.session=? AND (s.runnable<>0 OR s.wake<>0 OR n>0) ORDER BY 1"
)

// Lanes reads the scheduling rows.
func (in *inbox) Lanes(ctx context.Context, session belay.SessionID) ([]store.LaneRow, error) {
	if session != "" {
		return in.lanes(ctx, lanesOf, string(session))
	}
	return in.lanes(ctx, lanesWanting+" UNION ALL "+lanesWaiting+" WHERE s.runnable=0 AND s.wake=0 ORDER BY 1")
}

// Waiting reads the inbox first: it is short.
func (in *inbox) Waiting(ctx context.Context) ([]store.LaneRow, error) {
	return in.lanes(ctx, lanesWaiting+" ORDER BY 1")
}

func (in *inbox) lanes(ctx context.Context, query string, args ...any) (lanes []store.LaneRow, err error) {
	err = in.query(ctx, query, args, func(rows *sql.Rows) error {
		var s layout.Stream
		var inbox int
		if err := s.Scan(rows.Scan, &inbox); err != nil {
			return err
		}
		lanes = append(lanes, store.LaneRow{Session: s.Session, Stream: s.Name, Seq: s.Seq, Inbox: inbox,
			Lane: store.Lane{Runnable: s.Runnable != 0, Wake: store.FromMicros(s.Wake)}})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return lanes, nil
}

// LoadState reads the cached state of a stream. It is a cache: a row that
// isn't what was written is as good as none.
func (in *inbox) LoadState(ctx context.Context, name belay.StreamID, version string) (*store.State, error) {
	var st store.State
	var sum int64
	found, err := in.one(ctx, "SELECT t.seq, t.version, t.data, t.sum FROM streams s JOIN states t ON t.stream=s.id WHERE s.name=? AND t.version=?",
		[]any{string(name), version}, &st.Seq, &st.Version, &st.Data, &sum)
	if err != nil || !found || layout.StateSum(name, &st) != sum {
		return nil, err
	}
	return &st, nil
}
