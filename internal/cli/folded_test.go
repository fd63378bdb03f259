package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/store"
)

// starting is a place to begin sessions in.
type starting struct {
	t     *testing.T
	home  string
	store string
	sys   Sys
	out   bytes.Buffer
	errs  bytes.Buffer
}

func newStarting(t *testing.T) *starting {
	dir := t.TempDir()
	x := &starting{t: t, home: dir, store: filepath.Join(dir, "store")}
	ws := filepath.Join(dir, "ws")
	if err := os.Mkdir(ws, 0o700); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "script.yaml")
	if err := os.WriteFile(script, []byte("steps:\n  - calls: [{tool: complete_task, args: {summary: done}}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	x.sys = Sys{Env: term.Env{In: strings.NewReader(""), Out: &x.out, Err: &x.errs, Environ: []string{"HOME=" + dir, "USER=tester", "BELAY_SCRIPT=" + script, "PATH=" + os.Getenv("PATH")}}, Dir: ws}
	return x
}

// main runs the program.
func (x *starting) main(want int, args ...string) string {
	x.t.Helper()
	x.out.Reset()
	x.errs.Reset()
	ctx, stop := context.WithTimeout(x.t.Context(), time.Minute)
	defer stop()
	if got := Main(ctx, append([]string{"--store", x.store}, args...), x.sys); got != want {
		x.t.Fatalf("%s: exit code %d, want %d:\n%s", args, got, want, x.errs.String())
	}
	return x.out.String()
}

// TestAThreadIsFoldedAgainForANewFact, and only then.
func TestAThreadIsFoldedAgainForANewFact(t *testing.T) {
	x := newStarting(t)
	x.main(0, "run", "do it")
	a := &program{Sys: x.sys, Place: Place{Store: x.store}}
	a.Now = time.Now
	a.Host = a.newHost()
	w, _, _, err := openSession(t.Context(), a, "", true, false)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	first, err := w.state(t.Context())
	if err != nil || first == nil || first.Prev == nil {
		t.Fatalf("%+v, %v", first, err)
	}
	before := w.Store.(store.Admin).Stats().Reads
	again, err := w.state(t.Context())
	if err != nil || again != first {
		t.Errorf("nothing was added, and it was folded again, %v", err)
	}
	if n := w.Store.(store.Admin).Stats().Reads - before; n != 1 {
		t.Errorf("%d queries, want the one for the end of the log", n)
	}
	x.main(1, "run", "--continue", "and more") // another process, whose script has no more
	later, err := w.state(t.Context())
	if err != nil || later.Prev == nil || later.Prev.Turn == first.Prev.Turn {
		t.Errorf("a turn of another process isn't there: %+v, %v", later.Prev, err)
	}
}
