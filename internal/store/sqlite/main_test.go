package sqlite

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
)

// roles are what the test binary does as another process.
var roles = map[string]func(ctx context.Context, args []string) error{
	"append":   roleAppend,
	"hold":     roleHold,
	"readonly": roleReadOnly,
	"mix":      roleMix,
	"faults":   roleFaults,
	"delete":   roleDelete,
	"full":     roleFull,
}

func TestMain(m *testing.M) {
	if role := roles[os.Getenv("STORE_TEST_ROLE")]; role != nil {
		if err := role(context.Background(), os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// process starts the test binary in a role.
func process(t *testing.T, role string, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, args...)
	cmd.Env = append(os.Environ(), "STORE_TEST_ROLE="+role)
	cmd.Stderr = os.Stderr
	return cmd
}

// roleAppend appends to a session of its own, one fact after another, and
// prints each sequence that it was told is durable.
func roleAppend(ctx context.Context, args []string) error {
	dir, name := args[0], args[1]
	n, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	db, err := Open(ctx, dir, Options{})
	if err != nil {
		return err
	}
	b := store.Batch{Session: belay.SessionID("sess_" + name), Stream: belay.ThreadID("thr_" + name).Stream()}
	if b.Epoch, err = db.Claim(ctx, b.Session, store.ThisProcess(), time.Minute); err != nil {
		return err
	}
	for i := range n {
		b.After = int64(i)
		b.Events = []event.Envelope{{Data: event.ModelDelta{Text: strconv.Itoa(i)}}}
		if _, err := db.Append(ctx, b); err != nil {
			return err
		}
		fmt.Println(b.After + 1)
	}
	return db.Close()
}

// roleHold claims a session, says so, and waits to be killed.
func roleHold(ctx context.Context, args []string) error {
	db, err := Open(ctx, args[0], Options{})
	if err != nil {
		return err
	}
	if _, err := db.Claim(ctx, "sess_held", store.ThisProcess(), time.Hour); err != nil {
		return err
	}
	fmt.Println("held")
	select {}
}

// roleReadOnly expects that the directory can't be written.
func roleReadOnly(ctx context.Context, args []string) error {
	for _, dir := range args {
		db, err := Open(ctx, dir, Options{})
		if err == nil {
			return fmt.Errorf("%s: opened (%v)", dir, db.Close())
		}
		if belay.CodeOf(err) != belay.CodeStoreReadOnly {
			return fmt.Errorf("%s: %w", dir, err)
		}
	}
	return nil
}
