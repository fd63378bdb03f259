package feed

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strconv"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store"
)

// Scope is what a reader follows: one stream, one run, one session, or, when
// everything is empty, the whole store.
type Scope struct {
	Session belay.SessionID // set in every scope but the store's
	Stream  belay.StreamID  // only this stream of the session
	Run     belay.RunID     // only facts of this run of the session, and of its turn
	Task    belay.TaskID    // with Run: whose attempt it is
	Thread  belay.ThreadID  // with Run: where its turn is
	Turn    belay.TurnID    // with Run: its turn
}

// has reports whether a fact, or text, with these identities belongs to the scope.
func (s *Scope) has(stream belay.StreamID, ids *belay.IDs) bool {
	if s.Session != "" && ids.Session != s.Session || s.Stream != "" && stream != s.Stream {
		return false
	}
	return s.Run == "" || ids.Run == s.Run || s.Turn != "" && ids.Turn == s.Turn && ids.Thread == s.Thread
}

// ends reports whether a fact is the last one of the scope: only a run has one.
func (s *Scope) ends(ids *belay.IDs, kind string) bool {
	return s.Run != "" && ids.Run == s.Run && (kind == "task.attempt.completed" || kind == "task.attempt.failed")
}

// name is what tells scopes apart in a cursor.
func (s Scope) name() string {
	switch {
	case s.Run != "":
		return "run/" + string(s.Run)
	case s.Stream != "":
		return string(s.Stream)
	case s.Session != "":
		return "in/" + string(s.Session)
	}
	return ""
}

// Cursor is a place in the facts of a scope: after a position. Event and Time,
// if they are known, are of the fact that stands there, so that a store whose
// history is another one is noticed.
type Cursor struct {
	Position store.Position
	Event    belay.EventID
	Time     time.Time
}

// CursorOf is the place behind a fact.
func CursorOf(rec store.Record) Cursor {
	return Cursor{rec.Position, rec.Event.ID(), rec.Event.Time}
}

// A cursor's text is a form number, eight bytes of a digest over store and
// scope, four of one over the fact, the position, and four of one over all that.
const (
	cursorForm  = 1
	cursorFixed = 1 + 8 + 4 + 8
	cursorSize  = cursorFixed + 4
)

// Text is the cursor as clients keep it: opaque, and good for this scope of
// this store only.
func (s Scope) Text(runtime belay.RuntimeID, c Cursor) string {
	b := make([]byte, 0, cursorSize)
	b = append(b, cursorForm)
	b = append(b, s.mark(runtime)...)
	b = append(b, c.mark()...)
	b = binary.BigEndian.AppendUint64(b, uint64(c.Position))
	sum := sha256.Sum256(b)
	return base64.RawURLEncoding.EncodeToString(append(b, sum[:4]...))
}

func (s Scope) mark(runtime belay.RuntimeID) []byte {
	sum := sha256.Sum256([]byte(string(runtime) + "\x00" + s.name()))
	return sum[:8]
}

func (c Cursor) mark() []byte {
	if c.Event == "" {
		return make([]byte, 4)
	}
	// An id follows from the place in a stream: two histories have the same ones.
	sum := sha256.Sum256(strconv.AppendInt([]byte(c.Event+"\x00"), c.Time.UnixNano(), 10))
	return sum[:4]
}

// placed is a cursor as it was read: the fact's digest instead of the fact.
type placed struct {
	position store.Position
	fact     []byte
}

// read is the inverse of Text. What isn't a cursor, or one of another scope or
// store, is belay.CodeBadCursor.
func (s Scope) read(runtime belay.RuntimeID, text string) (placed, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) != cursorSize || b[0] != cursorForm {
		return placed{}, badCursor("it is no cursor of this interface")
	}
	sum := sha256.Sum256(b[:cursorFixed])
	position := store.Position(binary.BigEndian.Uint64(b[13:cursorFixed]))
	switch {
	case !bytes.Equal(sum[:4], b[cursorFixed:]) || position < 0:
		return placed{}, badCursor("it is damaged")
	case !bytes.Equal(b[1:9], s.mark(runtime)):
		return placed{}, badCursor("it belongs to another stream or to another store")
	}
	return placed{position, b[9:13]}, nil
}

func badCursor(why string) *belay.Error {
	return belay.Errorf(belay.CodeBadCursor, "the cursor can't be used: %s", why).
		WithHint("take a snapshot and go on from its cursor, or leave the cursor out")
}
