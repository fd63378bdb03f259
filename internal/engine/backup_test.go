package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/scripted"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite"
	"github.com/belay-run/belay/internal/store/sqlite/backup"
	"github.com/belay-run/belay/internal/store/sqlite/verify"
	"github.com/belay-run/belay/internal/tool"
)

// station runs scripted sessions on a store in a directory.
type station struct {
	db  *sqlite.DB
	e   *system
	ref belay.Ref
}

func newStation(t *testing.T, dir string) *station {
	t.Helper()
	const steps = 8
	text := "steps:\n"
	for n := range steps {
		text += fmt.Sprintf("  - calls: [{tool: look, args: {n: %d}}]\n", n)
	}
	text += "  - calls: [{tool: complete_task, args: {summary: seen}}]\n"
	script, err := scripted.Parse("look", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	large := strings.Repeat("much to see ", 5000)
	look := pure("look", func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{Text: large}, nil })
	set, err := tool.NewSet(append(tool.TurnTools(), look)...)
	if err != nil {
		t.Fatal(err)
	}
	s := &station{}
	if s.db, err = sqlite.Open(t.Context(), dir, sqlite.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.db.Close(); err != nil {
			t.Error(err)
		}
	})
	s.e, err = newEngine(config{Store: s.db, Owner: store.ThisProcess(), Tools: set,
		Provider: func(context.Context, string, belay.Settings) (model.Provider, error) {
			return scripted.New(script), nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	rules, _ := json.Marshal(thread.Rules{Workspace: t.TempDir(), Tools: set.Specs(),
		Settings: belay.Settings{Provider: "scripted", Mode: belay.ModeDefault, Approvals: belay.ApprovalsDeny}})
	if s.ref, err = s.db.Put(t.Context(), rules, ""); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *station) session(ctx context.Context, name string) error {
	id := belay.SessionID("sess_" + name)
	order := func(n int, c belay.Command) belay.Order {
		return belay.Order{ID: belay.CommandID(fmt.Sprint("cmd_", name, n)), Principal: "user:mia", Session: id, Stream: id.Stream(), Command: c}
	}
	if err := s.db.Enqueue(ctx, order(0, belay.CreateSession{Workspace: "/ws"}), order(1, belay.SubmitWork{
		Thread: belay.ThreadID("thr_" + name), Task: belay.TaskID("task_" + name), Turn: belay.TurnID("turn_" + name), Text: belay.Content{Text: "look"}, Rules: s.ref,
	})); err != nil {
		return err
	}
	return s.e.Session(ctx, id, nil)
}

// resume takes up everything that isn't at rest and tells how many sessions that were.
func (s *station) resume(t *testing.T) (resumed int) {
	t.Helper()
	rows, err := s.db.Lanes(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[belay.SessionID]bool{}
	for _, row := range rows {
		if seen[row.Session] {
			continue
		}
		seen[row.Session] = true
		if err := s.e.Session(t.Context(), row.Session, nil); err != nil {
			t.Fatalf("%s: %v", row.Session, err)
		}
	}
	return len(seen)
}

// ends counts turns that were accepted and turns that were completed.
func (s *station) ends(t *testing.T) (accepted, completed int) {
	t.Helper()
	for r, err := range s.db.Scan(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		switch p := r.Event.Data.(type) {
		case event.TurnSubmitted:
			accepted++
		case event.TurnCompleted:
			completed++
		case event.TurnFailed:
			t.Errorf("%s: %+v", r.Event.Stream, p)
		}
	}
	return accepted, completed
}

// TestBackupUnderLoadRestoreVerifyResume backs a store up again and again while
// sessions run. Each backup becomes a store in which all of them go on to their end.
// Guarantee: S24.
func TestBackupUnderLoadRestoreVerifyResume(t *testing.T) {
	const drivers = 4
	backups := 6
	if raceEnabled {
		backups = 3
	}
	s, temp := newStation(t, t.TempDir()), t.TempDir()
	var stop atomic.Bool
	var started atomic.Int64
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop.Store(true)
	for range drivers {
		wg.Go(func() {
			for !stop.Load() {
				if err := s.session(t.Context(), fmt.Sprint("s", started.Add(1))); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	resumed, last := 0, store.Position(0)
	for i := range backups {
		for at := last; at == last; { // something continues between two backups
			changed, err := s.db.Changed(t.Context()), error(nil)
			if at, err = s.db.End(t.Context()); err != nil {
				t.Fatal(err)
			}
			if at == last {
				<-changed
			}
		}
		file, dir := filepath.Join(temp, fmt.Sprint("backup", i)), filepath.Join(temp, fmt.Sprint("store", i))
		made, err := backup.Write(t.Context(), s.db, file, backup.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := backup.Restore(t.Context(), file, dir, backup.Options{}); err != nil {
			t.Fatal(err)
		}
		if r, err := verify.Run(t.Context(), dir, verify.Options{}); err != nil || !r.OK() || r.Position != made.Position || made.Position <= last {
			t.Fatalf("backup %d: %v, %+v", i, err, r)
		}
		last = made.Position
		again := newStation(t, dir)
		resumed += again.resume(t)
		if accepted, completed := again.ends(t); accepted != completed || accepted == 0 {
			t.Errorf("backup %d: %d turns accepted, %d completed", i, accepted, completed)
		}
		if rows, err := again.db.Lanes(t.Context(), ""); err != nil || len(rows) > 0 {
			t.Errorf("backup %d: %v is not at rest, %v", i, rows, err)
		}
	}
	if resumed == 0 {
		t.Error("no backup met a session that ran")
	}
	t.Logf("%d sessions were running in %d backups", resumed, backups)
}
