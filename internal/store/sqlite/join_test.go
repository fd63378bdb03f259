package sqlite

import (
	"context"
	"errors"
	"testing"

	"github.com/belay-run/belay"
)

// during is a write that happens while another one is on its way.
type during struct{ run func(w *writer) error }

func (d during) apply(w *writer) error { return d.run(w) }

// TestAClosedStoreTakesNoWrite, nor does one whose disk failed.
func TestAClosedStoreTakesNoWrite(t *testing.T) {
	ran := during{func(*writer) error { t.Error("it was written"); return nil }}
	db := openStore(t, t.TempDir(), Options{})
	failed := errors.New("the disk failed")
	db.writer.failed = failed
	if err := db.do(context.WithoutCancel(t.Context()), ran); !errors.Is(err, failed) {
		t.Errorf("after a failure: %v", err)
	}
	db.writer.failed = nil
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := db.do(context.WithoutCancel(t.Context()), ran); belay.CodeOf(err) != belay.CodeBadState {
		t.Errorf("after Close: %v", err)
	}
}

// TestAnAppendWritesFewPages counts the pages that appends of one stream change:
// head, facts and their index, and the counter of positions. An append that
// leaves the lane as it is leaves the index of lanes alone.
func TestAnAppendWritesFewPages(t *testing.T) {
	const appends, pages = 100, 4
	db := openStore(t, t.TempDir(), Options{})
	w := newWork(t, db, "pages")
	w.b.Lane.Runnable = true
	w.append(t, db, "first")
	frames := func() int64 { return db.Stats().WALBytes / frameBytes }
	before := frames()
	for range appends {
		w.append(t, db, "more")
	}
	splits := int64(appends / 4) // leaves that are full: two pages besides
	if n := frames() - before; n > appends*pages+splits {
		t.Errorf("%d appends wrote %d pages, at most %d were promised", appends, n, appends*pages+splits)
	}
}
