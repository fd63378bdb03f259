//go:build linux

package sqlite

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite/verify"
	"github.com/belay-run/belay/internal/testkit/needs"
)

// roleFull appends until the disk is full, says so, and continues when it is
// told that there is space again.
func roleFull(ctx context.Context, args []string) error {
	db, err := Open(ctx, args[0], Options{})
	if err != nil {
		return err
	}
	b := store.Batch{Session: "sess_full", Stream: "thread/thr_full"}
	if b.Epoch, err = db.Claim(ctx, b.Session, store.ThisProcess(), time.Hour); err != nil {
		return err
	}
	appendOne := func() error {
		b.Events = []event.Envelope{{Data: event.ModelDelta{Text: strconv.FormatInt(b.After, 10) + strings.Repeat("x", 3000)}}}
		if _, err := db.Append(ctx, b); err != nil {
			return err
		}
		b.After++
		fmt.Println("ack", b.After)
		return nil
	}
	for err = appendOne(); err == nil; {
		err = appendOne()
	}
	for range 3 {
		fmt.Println("append", belay.CodeOf(err))
		err = appendOne()
	}
	_, err = db.Put(ctx, make([]byte, 1<<20), "")
	fmt.Println("put", belay.CodeOf(err))
	fmt.Println("waiting")
	if _, err := os.Stdin.Read(make([]byte, 1)); err != nil {
		return err
	}
	if _, err := db.Put(ctx, make([]byte, 1<<20), ""); err != nil {
		return err
	}
	for range 20 {
		if err := appendOne(); err != nil {
			return err
		}
	}
	return db.Close()
}

// Guarantee: S15.
func TestFaultAFullDiskLosesNothingAndTheProcessGoesOn(t *testing.T) {
	needs.Root(t)
	dir := t.TempDir()
	err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m")
	needs.Facility(t, "mount", err == nil, fmt.Sprint(err))
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	began := time.Now()
	cmd := process(t, "full", dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	before := untilWaiting(t, lines)
	r, err := verify.Run(t.Context(), dir, verify.Options{})
	if err != nil || r.Events != before || len(r.Problems) > 1 || len(r.Problems) == 1 && !r.Problems[0].Tail() { // half a frame of what was refused
		t.Errorf("while it is full: %d facts, told %d: %v, %v", r.Events, before, err, r.Problems)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, "size=8m"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(in, "g"); err != nil {
		t.Fatal(err)
	}
	after := 0
	for lines.Scan() {
		fmt.Sscanf(lines.Text(), "ack %d", &after)
	}
	if err := cmd.Wait(); err != nil || after != before+20 {
		t.Fatalf("with space again: %v, %d facts, want %d", err, after, before+20)
	}
	r, err = verify.Run(t.Context(), dir, verify.Options{})
	if err != nil || !r.OK() || r.Events != after || len(r.Warnings) > 0 {
		t.Errorf("in the end: %d facts, told %d: %v, %v, %v", r.Events, after, err, r.Problems, r.Warnings)
	}
	t.Logf("1 MB: full after %d facts, %d after it had grown; %v", before, after, time.Since(began).Round(time.Millisecond))
}

// untilWaiting reads what the process was told until it waits for space.
func untilWaiting(t *testing.T, lines *bufio.Scanner) (acked int) {
	t.Helper()
	full := 0
	for lines.Scan() && lines.Text() != "waiting" {
		switch line := lines.Text(); {
		case line == "append store_full", line == "put store_full":
			full++
		default:
			if _, err := fmt.Sscanf(line, "ack %d", &acked); err != nil {
				t.Errorf("unexpected: %s", line)
			}
		}
	}
	if full != 4 || acked < 20 {
		t.Errorf("%d facts, then %d times full", acked, full)
	}
	return acked
}

func TestFaultAStoreOnAReadOnlyDiskCanBeReadAndVerified(t *testing.T) {
	needs.Root(t)
	dir := t.TempDir()
	err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=8m")
	needs.Facility(t, "mount", err == nil, fmt.Sprint(err))
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	db := openStore(t, dir, Options{})
	newWork(t, db, "a").append(t, db, "x")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), dir, Options{})
	wantCode(t, err, belay.CodeStoreReadOnly)
	if r, err := verify.Run(t.Context(), dir, verify.Options{}); err != nil || !r.OK() || r.Events != 1 {
		t.Errorf("%v, %+v", err, r)
	}
	ro := openStore(t, dir, Options{ReadOnly: true})
	if head, err := ro.Head(t.Context(), "thread/thr_a"); err != nil || head.Seq != 1 {
		t.Errorf("%+v, %v", head, err)
	}
}
