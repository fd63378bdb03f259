// Package read is the reading side of the interface over HTTP: streams that a
// reader takes up again where it was, and views of what the log says. It
// promises that nothing here changes anything, that an answer says how far it has
// seen, and that its size doesn't follow from how long a history is.
package read

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/view"
	"github.com/belay-run/belay/internal/view/feed"
)

// Reads answers for one store.
type Reads struct {
	Store store.Store
	Hub   *feed.Hub
	Views *view.Follower // of the store; others that read it share it
	Words *view.Follower // of the words in sessions; only searches need it
	Sums  *view.Follower // of figures
	Names Names          // contents that facts name
	Stall time.Duration  // a reader of a stream that takes nothing for so long is cut off; 0 is 30 s

	// Given, if set, is called with each event that was written to a stream's
	// client.
	Given func(ctx context.Context, kind string, data []byte)
}

// New makes the reads of a store; without a hub they have no streams.
func New(st store.Store, hub *feed.Hub, views *view.Follower) *Reads {
	return &Reads{Store: st, Hub: hub, Views: views, Words: view.NewLazyFollower(st, view.Projector{Store: st, Of: view.Words}),
		Sums: view.NewLazyFollower(st, view.Projector{Store: st, Of: view.Figures})}
}

// stall is how long a reader of a stream may take nothing.
const stall = 30 * time.Second

// Snapshot is what a slow reader of a session begins with again: the session's
// row. It is feed.Options.Snapshot for the store's hub.
func Snapshot(st store.Store, views *view.Follower) func(context.Context, feed.Scope) (json.RawMessage, store.Position, error) {
	return func(ctx context.Context, s feed.Scope) (json.RawMessage, store.Position, error) {
		if err := views.Catchup(ctx); err != nil {
			return nil, 0, err
		}
		at, err := view.At(ctx, st) // before the row: it has all of the session up to here
		if err != nil {
			return nil, 0, err
		}
		row, err := (&Reads{Store: st}).row(ctx, s.Session)
		if belay.CodeOf(err) == belay.CodeNotFound {
			return nil, at, nil
		}
		if err != nil {
			return nil, 0, err
		}
		data, err := json.Marshal(row)
		return data, max(at, row.Position), err
	}
}

// Shell is a session's shell as JSON and the position up to which it has
// everything; nil when there is no such session.
func (v *Reads) Shell(ctx context.Context, id belay.SessionID) (json.RawMessage, store.Position, error) {
	return Snapshot(v.Store, v.Views)(ctx, feed.Scope{Session: id})
}

// scoped finds out what a request's stream is about.
type scoped func(ctx context.Context, q Query) (feed.Scope, error)

func wholeStore(context.Context, Query) (feed.Scope, error) { return feed.Scope{}, nil }

func (v *Reads) ofSession(ctx context.Context, q Query) (feed.Scope, error) {
	id, err := pathID(q)
	if err != nil {
		return feed.Scope{}, err
	}
	return feed.Scope{Session: belay.SessionID(id)}, v.there(ctx, belay.SessionID(id))
}

func (v *Reads) ofThread(ctx context.Context, q Query) (feed.Scope, error) {
	id, err := pathID(q)
	if err != nil {
		return feed.Scope{}, err
	}
	stream := belay.ThreadID(id).Stream()
	head, err := v.Store.Head(ctx, stream)
	if errors.Is(err, store.ErrNotFound) {
		err = unknown("thread", id)
	}
	return feed.Scope{Session: head.Session, Stream: stream}, err
}

func (v *Reads) ofRun(ctx context.Context, q Query) (feed.Scope, error) {
	id, err := pathID(q)
	if err != nil {
		return feed.Scope{}, err
	}
	if err := v.Views.Catchup(ctx); err != nil {
		return feed.Scope{}, err
	}
	run, err := view.RunByID(ctx, v.Store, belay.RunID(id))
	if belay.CodeOf(err) == belay.CodeNotFound {
		err = unknown("run", id)
	}
	return feed.Scope{Session: run.Session, Run: run.ID, Task: run.Task, Thread: run.Thread, Turn: run.Turn}, err
}

// there reports whether a session has facts, or at least a command that waits.
func (v *Reads) there(ctx context.Context, id belay.SessionID) error {
	if _, err := v.Store.Head(ctx, id.Stream()); !errors.Is(err, store.ErrNotFound) {
		return err
	}
	for _, err := range v.Store.Window(ctx, store.Window{Session: id, Newest: true}) {
		return err
	}
	rows, err := v.Store.Lanes(ctx, id)
	if err == nil && len(rows) == 0 {
		err = unknown("session", string(id))
	}
	return err
}

func pathID(q Query) (string, error) {
	id := q.ID
	return id, input.At("path id", belay.CheckID("the id", id))
}

func unknown(what, id string) error {
	return input.At("path id", belay.Errorf(belay.CodeNotFound, "there is no %s %s", what, id).WithHint("GET /v1/sessions lists what there is"))
}

// stream follows a scope. since is where a request begins that doesn't say.
func (v *Reads) stream(of scoped, since string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		reader, err := v.reader(r.Context(), of, since, QueryOf(r))
		if err != nil {
			input.WriteProblem(w, r, err)
			return
		}
		h := w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-store")
		h.Set("X-Accel-Buffering", "no") // for proxies that hold answers back
		out := sink{w: bufio.NewWriter(w), control: http.NewResponseController(w), stall: cmp.Or(max(v.Stall, 0), stall)}
		w.WriteHeader(http.StatusOK)
		out.w.WriteString("retry: 1000\n\n") //nolint:errcheck // it leaves with the first delivery, which comes at once
		give := func(ms []feed.Message) error {
			err := out.give(ms)
			for i := 0; i < len(ms) && err == nil && v.Given != nil; i++ {
				v.Given(r.Context(), ms[i].Type, ms[i].Data)
			}
			return err
		}
		_ = reader.Follow(r.Context(), give) // the client may be gone
		_ = out.give(nil)                    // neither is who was told nothing
	}
}

// SessionReader begins to follow a session, behind the query's cursor or from the first
// fact on. Whoever makes a reader calls Follow or Close.
func (v *Reads) SessionReader(ctx context.Context, q Query) (*feed.Reader, error) {
	return v.reader(ctx, v.ofSession, feed.Start, q)
}

// reader begins where a request wants: behind the last event that a client has
// seen, else where it says, else at the route's default.
func (v *Reads) reader(ctx context.Context, of scoped, since string, q Query) (*feed.Reader, error) {
	scope, err := of(ctx, q)
	if err != nil {
		return nil, err
	}
	query := q.Values
	chosen, err := filter(query)
	if err != nil {
		return nil, err
	}
	field := "query since"
	if s := query.Get("since"); s != "" {
		since = s
	}
	if last := q.LastEvent; last != "" {
		field, since = "header Last-Event-ID", last
	}
	reader, err := v.Hub.Reader(ctx, scope, chosen, since)
	if belay.CodeOf(err) == belay.CodeBadCursor {
		err = input.At(field, err)
	}
	return reader, err
}

// sink writes messages as server-sent events. Messages are written as they are: who takes
// nothing costs no copy of them.
type sink struct {
	w       *bufio.Writer
	control *http.ResponseController
	stall   time.Duration
}

// give writes one delivery. A client that doesn't take it in time is cut off:
// it comes back with the cursor of what it has.
func (s *sink) give(ms []feed.Message) error {
	if len(ms) == 0 && s.w.Buffered() == 0 {
		return nil
	}
	if err := s.control.SetWriteDeadline(time.Now().Add(s.stall)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	for i := range ms {
		writeEvent(s.w, &ms[i])
	}
	if err := s.w.Flush(); err != nil {
		return err
	}
	return s.control.Flush()
}

// writeEvent writes one event. Its data is JSON of one line.
func writeEvent(w *bufio.Writer, m *feed.Message) {
	if m.Type == feed.TypeBeat {
		w.WriteString(": beat\n\n") //nolint:errcheck // Flush says so
		return
	}
	if m.Cursor != "" {
		w.WriteString("id: " + m.Cursor + "\n") //nolint:errcheck // as above
	}
	w.WriteString("event: " + m.Type + "\ndata: ") //nolint:errcheck // as above
	w.Write(m.Data)                                //nolint:errcheck // as above
	w.WriteString("\n\n")                          //nolint:errcheck // as above
}
