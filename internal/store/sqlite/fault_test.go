//go:build linux

package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite/verify"
	"github.com/belay-run/belay/internal/testkit/needs"
)

const (
	faultWorkers = 3
	faultAppends = 12 // by each worker
)

// roleFaults appends in several goroutines and says what it was told: a line
// for each fact that is durable, for each refusal, and at the end whether the
// store is closed for writing. It continues after a full disk and stops after a
// failed one.
func roleFaults(ctx context.Context, args []string) error {
	runtime.LockOSThread() // opening and closing happen on this thread
	db, err := openStubbornly(ctx, args[0])
	if err != nil {
		return err
	}
	var writer tidOp
	if err := db.do(ctx, &writer); err != nil {
		return err
	}
	fmt.Println("threads", unix.Gettid(), writer.tid)
	var failed atomic.Bool
	var wg sync.WaitGroup
	errs := make([]error, faultWorkers)
	for i := range faultWorkers {
		wg.Go(func() { errs[i] = faultWorker(ctx, db, i, &failed) })
	}
	wg.Wait()
	if db.writer.closedForWriting() != nil {
		fmt.Println("closed")
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := db.Close(); err != nil {
		fmt.Println("close", belay.CodeOf(err))
	}
	fmt.Println("done")
	return nil
}

// openStubbornly opens a store although one call of its own may fail.
func openStubbornly(ctx context.Context, dir string) (db *DB, err error) {
	for range 3 {
		if db, err = Open(ctx, dir, Options{oneThread: true}); err == nil {
			return db, nil
		}
		fmt.Println("open", belay.CodeOf(err))
	}
	return nil, err
}

// tidOp tells the thread that the writer runs on.
type tidOp struct{ tid int }

func (o *tidOp) apply(*writer) error {
	o.tid = unix.Gettid()
	return nil
}

// stubbornly repeats a write that finds the disk full. A write that succeeds
// after another was told that the store is closed is an error.
func stubbornly(failed *atomic.Bool, write func() error) (closed bool, err error) {
	for range 4 {
		late := failed.Load()
		err = write()
		switch code := belay.CodeOf(err); {
		case err == nil && late:
			return true, errors.New("a write succeeded after a failed one")
		case err == nil:
			return false, nil
		case code == belay.CodeStoreFull:
			fmt.Println("full")
		case code == belay.CodeStoreFailed:
			if !failed.Swap(true) {
				fmt.Println("failed")
			}
		default:
			return true, err
		}
	}
	if failed.Load() {
		return true, nil // each try was refused
	}
	return true, err
}

func faultWorker(ctx context.Context, db *DB, number int, failed *atomic.Bool) (err error) {
	name := "f" + strconv.Itoa(number)
	b := store.Batch{Session: belay.SessionID("sess_" + name), Stream: belay.ThreadID("thr_" + name).Stream()}
	closed, err := stubbornly(failed, func() (err error) {
		b.Epoch, err = db.Claim(ctx, b.Session, store.ThisProcess(), time.Hour)
		return err
	})
	for i := 1; i <= faultAppends && !closed && err == nil; i++ {
		closed, err = stubbornly(failed, func() error {
			ref, err := db.Put(ctx, fmt.Appendf(nil, "content %s %d", name, i), "")
			if err != nil {
				return err
			}
			b.Events = []event.Envelope{{Data: event.ModelDelta{Text: strconv.Itoa(i)}, Refs: map[string]belay.Ref{"text": ref}}}
			_, err = db.Append(ctx, b)
			return err
		})
		if err != nil || closed {
			return err
		}
		b.After++
		fmt.Println("ack", b.Stream, b.After)
		if number == 0 && i%4 == 0 {
			fold := foldOp("PASSIVE")
			if i == 8 {
				fold = "TRUNCATE"
			}
			if _, err := stubbornly(failed, func() error { return db.do(ctx, fold) }); err != nil {
				return err
			}
		}
	}
	return err
}

// fate is the outcome of a process under faults.
type fate struct {
	dir          string
	out          []byte // its lines
	trace        []byte // its calls
	main, writer int    // its threads
}

var lineOf = regexp.MustCompile(`(?m)^(\d+) +(\w+)\((.*)$`)

// calls counts the calls by thread, only those that failed on demand if so
// asked. SQLite syncs the directory once after it made the log and doesn't
// look at the result; Open has done so before and does look.
func (f *fate) calls(injected bool) map[int]int {
	n := map[int]int{}
	for _, m := range lineOf.FindAllSubmatch(f.trace, -1) {
		if injected && !bytes.Contains(m[3], []byte("(INJECTED)")) || bytes.Contains(m[3], []byte("/tenants/default>")) {
			continue
		}
		tid, _ := strconv.Atoi(string(m[1]))
		n[tid]++
	}
	return n
}

func (f *fate) said(line string) bool { return strings.Contains("\n"+string(f.out), "\n"+line+"\n") }

// runUnderFaults runs the role on a store with content, and fails the n-th
// call of each thread when n isn't 0.
func runUnderFaults(t *testing.T, call, problem string, n int) *fate {
	t.Helper()
	f := &fate{dir: t.TempDir()}
	db, err := Open(t.Context(), f.dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	newWork(t, db, "before").append(t, db, "before")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "trace")
	role := process(t, "faults", f.dir)
	args := []string{"-f", "-y", "--seccomp-bpf", "-qq", "-e", "signal=none", "-o", log, "-e", "trace=" + call}
	if n > 0 {
		args = append(args, "-e", fmt.Sprintf("inject=%s:error=%s:when=%d", call, problem, n))
	}
	cmd := exec.CommandContext(t.Context(), "strace", append(args, role.Args...)...)
	var stderr bytes.Buffer
	cmd.Env, cmd.Stderr = role.Env, &stderr
	var runErr error
	f.out, runErr = cmd.Output()
	what := fmt.Sprintf("%s %s at %d", call, problem, n)
	if runErr != nil || stderr.Len() > 0 {
		t.Fatalf("%s: %v: %s\n%s", what, runErr, &stderr, f.out)
	}
	if f.trace, err = os.ReadFile(log); err != nil {
		t.Fatal(err)
	}
	i := bytes.Index(f.out, []byte("threads "))
	if _, err := fmt.Sscanf(string(f.out[max(i, 0):]), "threads %d %d", &f.main, &f.writer); err != nil {
		t.Fatalf("%s: %v:\n%s", what, err, f.out)
	}
	return f
}

// survived wants everything that was acknowledged, after another process has
// opened the store, and nothing else that doesn't fit.
func (f *fate) survived(t *testing.T, what string) (acked int) {
	t.Helper()
	r, err := verify.Run(t.Context(), f.dir, verify.Options{})
	for _, p := range r.Problems {
		if !p.Tail() { // what was refused may be there in part
			t.Errorf("%s: before it is opened: %v", what, p)
		}
	}
	if err != nil {
		t.Errorf("%s: before it is opened: %v", what, err)
	}
	told := map[belay.StreamID]int64{}
	for line := range strings.Lines(string(f.out)) {
		var s string
		var seq int64
		if n, _ := fmt.Sscanf(line, "ack %s %d", &s, &seq); n == 2 {
			told[belay.StreamID(s)] = max(told[belay.StreamID(s)], seq)
			acked++
		}
	}
	db, err := Open(t.Context(), f.dir, Options{})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	for s, seq := range told {
		last := int64(0)
		for e, err := range db.Read(t.Context(), s, 0) {
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			last++
			if e.Seq != last || e.Data.(event.ModelDelta).Text != strconv.FormatInt(last, 10) {
				t.Errorf("%s: %s: got %+v as fact %d", what, s, e, last)
			}
		}
		if last < seq || last > seq+1 {
			t.Errorf("%s: %s: told %d, found %d", what, s, seq, last)
		}
	}
	newWork(t, db, "after").append(t, db, "the reopened store takes facts")
	if err := db.Close(); err != nil {
		t.Errorf("%s: %v", what, err)
	}
	if r, err := verify.Run(t.Context(), f.dir, verify.Options{}); err != nil || !r.OK() || len(r.Warnings) > 0 {
		t.Errorf("%s: after it was opened: %v, %v, %v", what, err, r.Problems, r.Warnings)
	}
	return acked
}

// judge holds what the process said against what was done to its calls.
func (f *fate) judge(t *testing.T, call, problem string, n int) {
	t.Helper()
	what := fmt.Sprintf("%s %s at %d", call, problem, n)
	acked := f.survived(t, what)
	hit := f.calls(true)
	fatal := call == "fdatasync" || call == "fsync" || call == "pwrite64" && problem == "EIO"
	if !f.said("done") {
		t.Errorf("%s: not done:\n%s", what, f.out)
	}
	if fatal && hit[f.writer] > 0 && !f.said("closed") {
		t.Errorf("%s: the store is open for writing after a failed disk:\n%s", what, f.out)
	}
	if !fatal && (acked != faultWorkers*faultAppends || f.said("closed") || f.said("failed")) {
		t.Errorf("%s: %d facts acknowledged, want %d:\n%s", what, acked, faultWorkers*faultAppends, f.out)
	}
}

// TestFaultEveryCallThatWritesOrSyncs fails each call of a writing process
// once, by its number, until a run ends without reaching that number.
// BELAY_FAULTS=full tries all numbers, otherwise a few are tried.
// Guarantee: S25.
func TestFaultEveryCallThatWritesOrSyncs(t *testing.T) {
	needs.Program(t, "strace")
	for _, call := range []string{"pwrite64", "fdatasync", "fsync", "ftruncate"} {
		base := runUnderFaults(t, call, "none", 0)
		counts := base.calls(false)
		if acked := base.survived(t, "no fault"); acked != faultWorkers*faultAppends {
			t.Fatalf("without a fault: %d facts acknowledged", acked)
		}
		if opened := regexp.MustCompile(fmt.Sprintf(`(?m)^%d +fsync\(\d+<[^>]*/tenants/default>`, base.main)); call == "fsync" && !opened.Match(base.trace) {
			t.Errorf("the directory isn't synced when the store is opened:\n%s", base.trace)
		}
		most := 0
		for tid, n := range counts {
			if tid != base.main && tid != base.writer {
				t.Errorf("%s: thread %d, neither the writer's nor the one that opens, makes %d calls", call, tid, n)
			}
			most = max(most, n)
		}
		for _, problem := range []string{"ENOSPC", "EIO"} {
			t.Run(call+"/"+problem, func(t *testing.T) {
				began, hit, unhit := time.Now(), 0, 0
				for _, n := range faultPositions(most) {
					f := runUnderFaults(t, call, problem, n)
					f.judge(t, call, problem, n)
					if unhit++; bytes.Contains(f.trace, []byte("(INJECTED)")) {
						hit++
						unhit = 0
					}
					if n > most && unhit == 3 {
						break
					}
				}
				t.Logf("%s %s: %d positions of about %d, by thread %v (opening %d, writer %d); %v", call, problem, hit, most, counts,
					base.main, base.writer, time.Since(began).Round(100*time.Millisecond))
				if hit == 0 && most > 0 {
					t.Errorf("no call was reached")
				}
			})
		}
	}
}

// faultPositions are the calls to fail, about most of them there are. How
// writes meet in groups differs from run to run, so all means: until there are
// no more of them in three runs.
func faultPositions(most int) []int {
	if os.Getenv("BELAY_FAULTS") != "full" {
		all := []int{1, max(1, most/2), max(1, most*4/5)}
		return slices.Compact(all)
	}
	all := make([]int, 4*most+100)
	for i := range all {
		all[i] = i + 1
	}
	return all
}
