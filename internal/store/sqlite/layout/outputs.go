package layout

import (
	"database/sql"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

// Output is an output of a session.
type Output struct {
	Session belay.SessionID
	Digest  [32]byte
}

// Naming is a fact that names an output.
type Naming struct {
	Output
	Pos int64
}

// Expirations are the outputs that were let go, with the position of the last fact
// that says so.
type Expirations map[Output]int64

// ExpiredQuery selects what Expirations.Scan reads.
const ExpiredQuery = "SELECT e.pos, s.session, e.data FROM events e JOIN streams s ON s.id=e.stream " +
	"WHERE e.type=(SELECT id FROM types WHERE name='output.expired') ORDER BY e.pos"

// Scan adds a row. One whose fact can't be read lets nothing go.
func (x Expirations) Scan(rows *sql.Rows) error {
	var n Naming
	var data sql.RawBytes
	if err := rows.Scan(&n.Pos, &n.Session, &data); err != nil {
		return err
	}
	if p, err := event.Decode("output.expired", 1, data); err == nil {
		if digest, ok := store.RawDigest(p.(event.OutputExpired).Digest); ok {
			n.Digest = digest
			x[n.Output] = n.Pos
		}
	}
	return nil
}
