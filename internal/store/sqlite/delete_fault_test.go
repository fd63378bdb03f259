//go:build linux

package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/store/sqlite/verify"
	"github.com/belay-run/belay/internal/testkit/needs"
)

// roleDelete deletes a session and compacts, and says its outcome.
func roleDelete(ctx context.Context, args []string) error {
	runtime.LockOSThread()
	db, err := openStubbornly(ctx, args[0])
	if err != nil {
		return err
	}
	if _, err = db.DeleteSession(ctx, "sess_mix0", "user:mia"); err == nil {
		_, err = db.Compact(ctx, false)
	}
	if err != nil {
		fmt.Println("delete", belay.CodeOf(err))
	}
	if err := db.Close(); err != nil {
		fmt.Println("close", belay.CodeOf(err))
	}
	fmt.Println("done")
	return nil
}

// TestFaultADeletionOnAFailingDisk fails single calls that write or sync while
// a session is deleted: the other session is whole, and the deletion continues.
// BELAY_FAULTS=full tries all.
// Guarantee: S32.
func TestFaultADeletionOnAFailingDisk(t *testing.T) {
	needs.Program(t, "strace")
	positions := []int{1, 5, 14}
	if os.Getenv("BELAY_FAULTS") == "full" {
		positions = faultPositions(20)
	}
	for _, call := range []string{"pwrite64", "fdatasync", "fsync", "ftruncate", "unlinkat"} {
		for _, problem := range []string{"ENOSPC", "EIO"} {
			for _, n := range positions {
				what := fmt.Sprintf("%s %s at %d", call, problem, n)
				dir := t.TempDir()
				db := openStore(t, dir, Options{})
				m, err := newMix(t.Context(), db, 2)
				if err == nil {
					err = m.steps(t.Context(), 40)
				}
				if err := cmp.Or(err, db.Close()); err != nil {
					t.Fatal(err)
				}
				out, trace := deleteUnderFaults(t, dir, call, problem, n)
				if !strings.Contains(out, "done") {
					t.Errorf("%s: it ends early:\n%s", what, out)
				}
				r, err := verify.Run(t.Context(), dir, verify.Options{})
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				for _, p := range r.Problems {
					if !p.Tail() {
						t.Errorf("%s: %v", what, p)
					}
				}
				again, err := Open(t.Context(), dir, Options{})
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				if _, err := again.DeleteSession(t.Context(), "sess_mix0", "user:mia"); err != nil {
					t.Errorf("%s: %v", what, err)
				}
				if _, err := again.Compact(t.Context(), false); err != nil {
					t.Errorf("%s: %v", what, err)
				}
				if err := again.Close(); err != nil {
					t.Errorf("%s: %v", what, err)
				}
				if r := verified(t, dir); !r.OK() || len(r.Warnings) > 0 || r.Streams != 1 || r.Events != 40 {
					t.Errorf("%s: %v, %v, %d facts", what, r.Problems, r.Warnings, r.Events)
				}
				if !strings.Contains(trace, "(INJECTED)") {
					break
				}
			}
		}
	}
}

func deleteUnderFaults(t *testing.T, dir, call, problem string, n int) (out, trace string) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "trace")
	role := process(t, "delete", dir)
	cmd := exec.CommandContext(t.Context(), "strace", append([]string{"-f", "-qq", "--seccomp-bpf", "-e", "signal=none", "-o", log, "-e", "trace=" + call,
		"-e", fmt.Sprintf("inject=%s:error=%s:when=%d", call, problem, n)}, role.Args...)...)
	cmd.Env = role.Env
	b, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s at %d: %v\n%s", call, problem, n, err, b)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	return string(b), string(text)
}
