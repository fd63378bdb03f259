package sqlite

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

// Guarantee: S17.
func TestProcessesShareAFile(t *testing.T) {
	const processes, facts = 4, 100
	dir := t.TempDir()
	var wg sync.WaitGroup
	for p := range processes { // the store doesn't exist yet: they make it together
		cmd := process(t, "append", dir, "p"+strconv.Itoa(p), strconv.Itoa(facts))
		wg.Go(func() {
			if err := cmd.Run(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	db := openStore(t, dir, Options{})
	seen := map[belay.StreamID]int{}
	total := 0
	for r, err := range db.Scan(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if want := strconv.Itoa(seen[r.Event.Stream]); r.Event.Data.(event.ModelDelta).Text != want {
			t.Fatalf("%s: got %+v, want %s", r.Event.Stream, r.Event.Data, want)
		}
		seen[r.Event.Stream]++
		total++
	}
	if total != processes*facts || len(seen) != processes {
		t.Fatalf("got %d facts of %d processes, want %d of %d", total, len(seen), processes*facts, processes)
	}
	if err := db.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Guarantee: S4.
func TestAKilledProcessLosesItsSessionsAtOnce(t *testing.T) {
	dir := t.TempDir()
	cmd := process(t, "hold", dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	db := openStore(t, dir, Options{})
	_, err = db.Claim(t.Context(), "sess_held", store.ThisProcess(), time.Minute)
	if owned, ok := errors.AsType[*store.OwnedError](err); !ok || owned.Owner.PID != cmd.Process.Pid {
		t.Fatalf("got %v, want owned by %d", err, cmd.Process.Pid)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if _, err := db.Claim(t.Context(), "sess_held", store.ThisProcess(), time.Minute); err != nil {
		t.Fatal(err)
	}
}

// Guarantee: S14.
func TestWhatAKilledProcessWasToldIsThere(t *testing.T) {
	for _, after := range []int64{1, 3, 40} {
		dir := t.TempDir()
		cmd := process(t, "append", dir, "a", "1000000")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		told := int64(0)
		lines := bufio.NewScanner(out)
		for lines.Scan() { // what is in the pipe after the kill was told too
			if told, err = strconv.ParseInt(lines.Text(), 10, 64); err != nil {
				t.Fatal(err)
			}
			if told == after {
				cmd.Process.Kill()
			}
		}
		cmd.Wait()
		db := openStore(t, dir, Options{})
		head, err := db.Head(t.Context(), "thread/thr_a")
		if err != nil || head.Seq < told || head.Seq > told+1 || told < after {
			t.Errorf("told %d, found %+v, %v", told, head, err)
		}
		if err := db.Check(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestADirectoryThatCannotBeWrittenIsReadOnly(t *testing.T) {
	empty, used := filepath.Join(t.TempDir(), "empty"), t.TempDir()
	if err := os.Mkdir(empty, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := openStore(t, used, Options{}).Close(); err != nil {
		t.Fatal(err)
	}
	cmd := process(t, "readonly", empty, used)
	if os.Getuid() == 0 { // root may write anywhere: somebody else must try
		const nobody = 65534
		cmd.Path = copyFile(t, cmd.Path)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		for _, dir := range []string{filepath.Dir(cmd.Path), empty, used} {
			for ; strings.HasPrefix(dir, os.TempDir()) && dir != os.TempDir(); dir = filepath.Dir(dir) {
				if err := os.Chmod(dir, 0o755); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for _, dir := range []string{empty, filepath.Join(used, "tenants"), filepath.Dir(layout.Path(used))} {
		if err := os.Chmod(dir, 0o555); err != nil {
			t.Fatal(err)
		}
	}
	defer os.Chmod(filepath.Dir(layout.Path(used)), 0o700)
	defer os.Chmod(filepath.Join(used, "tenants"), 0o700)
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
}

func copyFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "test")
	if err := os.WriteFile(copied, b, 0o755); err != nil {
		t.Fatal(err)
	}
	return copied
}
