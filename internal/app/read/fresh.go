package read

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/store"
)

// Fresh is how far an answer has seen the log.
type Fresh struct {
	Position store.Position `json:"position"`        // everything up to here is in it
	Stale    bool           `json:"stale,omitempty"` // the log didn't come as far as the request's after in time, or was put back since
}

// answerWithin is how long an answer may take, and its client to read it.
const answerWithin = 30 * time.Second

// patience is how long a read waits for the position it was asked for.
const patience = 2 * time.Second

// fresh waits until the log has come as far as the query's after.
func (v *Reads) fresh(ctx context.Context, q Query) (Fresh, error) {
	after, err := number(q, "after", 0, 0, 1<<62)
	if err != nil {
		return Fresh{}, err
	}
	return WaitFor(ctx, v.Store, store.Position(after))
}

// WaitFor waits until the log has come as far as a position, for up to two seconds.
func WaitFor(ctx context.Context, st store.Store, after store.Position) (f Fresh, err error) {
	there, err := Until(ctx, st, func() (_ bool, err error) {
		f.Position, err = st.End(ctx)
		return f.Position >= after, err
	})
	f.Stale = !there
	if there && f.Position-after >= store.RestoreGap { // it may be of a time before the store was put back
		f.Stale, err = store.RolledBack(ctx, st, after)
	}
	return f, err
}

// Until calls done, and again whenever the log has grown, until it is true, for up to two
// seconds. It reports whether it became true.
func Until(ctx context.Context, st store.Store, done func() (bool, error)) (bool, error) {
	end := time.NewTimer(patience)
	defer end.Stop()
	for {
		changed := st.Changed(ctx)
		if ok, err := done(); ok || err != nil {
			return ok, err
		}
		select {
		case <-changed:
		case <-end.C:
			return false, nil
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

// Summed waits until the view of figures is folded up to what an answer has seen, for up
// to two seconds, and reports whether it isn't: folding goes on behind the log.
func (v *Reads) Summed(ctx context.Context, f Fresh) (stale bool, err error) {
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err = v.Sums.Catchup(within)
	if within.Err() != nil && ctx.Err() == nil {
		return true, nil
	}
	return f.Stale, err
}

// Part is which part of a list is meant: what lies before a position, 0 is the end, and
// how much of it.
func Part(q Query) (before store.Position, limit int, err error) {
	at, err := number(q, "before", 0, 0, 1<<62)
	if err != nil {
		return 0, 0, err
	}
	n, err := number(q, "limit", 100, 1, mostSessions)
	return store.Position(at), int(n), err
}

// number is a whole number of the query, or the default when it isn't there.
func number(q Query, name string, otherwise, least, most int64) (int64, error) {
	s := q.Values.Get(name)
	if s == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < least || n > most {
		return 0, input.At("query "+name, belay.Errorf(belay.CodeUsage, "%q is no whole number from %d to %d", input.Shown(s), least, most).WithHint("%s=%d", name, max(otherwise, least)))
	}
	return n, nil
}

// handler answers with what a function reads.
func handler(read func(ctx context.Context, q Query) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerWithin)) //nolint:errcheck // a connection that can't have one is a test's
		ctx, cancel := context.WithTimeout(r.Context(), answerWithin)
		defer cancel()
		out, err := read(ctx, QueryOf(r))
		var body []byte
		if err == nil {
			body, err = json.Marshal(out)
		}
		if err != nil {
			input.WriteProblem(w, r, err)
			return
		}
		h := w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("Cache-Control", "no-store")
		h.Set("Content-Length", strconv.Itoa(len(body)+1))
		w.Write(append(body, '\n')) //nolint:errcheck // the client is gone; there is nobody to tell
	}
}
