package read_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/app/read"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/testkit/memory"
	"github.com/belay-run/belay/internal/view"
	"github.com/belay-run/belay/internal/view/feed/feedtest"
)

type query = read.Query

// shown are the read models of the first session of a history, as JSON.
func shown(ctx context.Context, st store.Store) (string, error) {
	v := &read.Reads{Store: st, Views: view.NewFollower(st)}
	out := ""
	show := func(name string, read func(query) (any, error), id string) error {
		got, err := read(query{ID: id})
		if err != nil {
			return err
		}
		raw, err := json.Marshal(got)
		out += name + " " + string(raw) + "\n"
		return err
	}
	return out, errors.Join(
		show("session", func(q query) (any, error) { return v.SessionSnapshot(ctx, q) }, "sess_a"),
		show("thread", func(q query) (any, error) { return v.ThreadRead(ctx, q) }, "thr_second"),
		show("queue", func(q query) (any, error) { return read.OfFold(read.QueueOf)(v, ctx, q) }, "sess_a"),
		show("tasks", func(q query) (any, error) { return read.OfFold(read.TasksOf)(v, ctx, q) }, "sess_a"),
		show("context", func(q query) (any, error) { return read.OfFold(read.ContextOf)(v, ctx, q) }, "sess_a"),
		show("artifacts", func(q query) (any, error) { return v.ArtifactCheckpoints(ctx, q) }, "sess_a"),
		show("permissions", func(q query) (any, error) { return read.OfFold(read.PermissionsOf)(v, ctx, q) }, "sess_a"),
		show("environment", func(q query) (any, error) { return read.OfFold(read.EnvironmentOf)(v, ctx, q) }, "sess_a"),
		show("routing", func(q query) (any, error) { return read.OfFold(read.RoutingOf)(v, ctx, q) }, "sess_a"))
}

// cutting is a store whose process dies at a save of a view: before it, or after.
type cutting struct {
	store.Store
	left int // saves until then
	done bool
}

var errDied = errors.New("killed")

func (c *cutting) SaveView(ctx context.Context, name string, from, to store.Position, rows map[string]store.ViewRow) error {
	if c.left--; c.left > 0 {
		return c.Store.SaveView(ctx, name, from, to, rows)
	}
	if c.done {
		if err := c.Store.SaveView(ctx, name, from, to, rows); err != nil {
			return err
		}
	}
	return errDied
}

// TestReadModelsFollowFromTheFacts: whoever reads between, whenever they are
// killed while the views are saved, and when all views are made anew, the read
// models are what a fold of all facts is, byte for byte.
// Guarantee: L20.
func TestReadModelsFollowFromTheFacts(t *testing.T) {
	st := memory.Open(memory.Options{})
	w := history(t, st, 3)
	ids := feedtest.IDs("a")
	killed := 0
	for round := range 6 {
		for i := range 400 { // enough that a fold is kept
			w.Add(ids, event.PermissionEvaluated{Decision: "deny", Tool: fmt.Sprint("tool", i)}, event.OutputTruncated{Bytes: int64(i)},
				event.ContextResolved{Taint: []string{fmt.Sprint("web:", i%40)}}, event.ArtifactChanged{Kind: "file", Path: fmt.Sprint("f", i%9), Op: "changed"})
		}
		c := &cutting{Store: st, left: round/2 + 1, done: round%2 == 1}
		if _, err := shown(t.Context(), c); errors.Is(err, errDied) {
			killed++
		} else if err != nil {
			t.Fatal(err)
		}
		if _, err := shown(t.Context(), st); err != nil {
			t.Fatal(err)
		}
	}
	if killed < 4 {
		t.Errorf("only %d of 6 were killed", killed)
	}
	again, err := shown(t.Context(), st)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(view.Rebuild(t.Context(), st), read.Forget(t.Context(), st)); err != nil {
		t.Fatal(err)
	}
	anew, err := shown(t.Context(), st)
	if err != nil || anew != again {
		t.Errorf("made anew they are (%v)\n%.2000s\nwere\n%.2000s", err, anew, again)
	}
}
