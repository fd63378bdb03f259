package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	procs "runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store/sqlite"
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
	x.sys = Sys{Stdin: strings.NewReader(""), Stdout: &x.out, Stderr: &x.errs, Dir: ws, Env: []string{"HOME=" + dir, "USER=tester", "BELAY_SCRIPT=" + script, "PATH=" + os.Getenv("PATH")}}
	return x
}

// main runs the program, with two processors.
func (x *starting) main(want int, args ...string) string {
	x.t.Helper()
	defer procs.GOMAXPROCS(procs.GOMAXPROCS(2))
	x.out.Reset()
	x.errs.Reset()
	ctx, stop := context.WithTimeout(x.t.Context(), time.Minute)
	defer stop()
	if got := Main(ctx, append([]string{"--store", x.store}, args...), x.sys); got != want {
		x.t.Fatalf("%s: exit code %d, want %d:\n%s", args, got, want, x.errs.String())
	}
	return x.out.String()
}

// TestWhatEncodesTheFirstFactsIsMadeAhead holds the list against what a run
// writes before its first request.
func TestWhatEncodesTheFirstFactsIsMadeAhead(t *testing.T) {
	x := newStarting(t)
	x.main(0, "run", "--allow", "exec", "do it")
	var written []string
	for line := range strings.Lines(x.main(0, "events", "--json")) {
		var fact struct{ Type string }
		if err := json.Unmarshal([]byte(line), &fact); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(written, fact.Type) {
			written = append(written, fact.Type)
		}
		if fact.Type == event.TypeOf(event.ModelRequested{}) {
			break
		}
	}
	var made []string
	for _, p := range firstFacts() {
		made = append(made, event.TypeOf(p))
	}
	if slices.Sort(written); !slices.Equal(written, slices.Sorted(slices.Values(made))) {
		t.Errorf("a run begins with facts of the types\n%s\nand made ready is\n%s", written, made)
	}
}

// TestAStoreIsOpenedAheadOnce: who opens the store takes it, the next one opens
// another, and one that nobody took is closed.
func TestAStoreIsOpenedAheadOnce(t *testing.T) {
	x := newStarting(t)
	x.main(0, "run", "do it")
	defer procs.GOMAXPROCS(procs.GOMAXPROCS(2))
	a := &app{Sys: x.sys, Place: Place{Store: x.store}}
	a.Now = time.Now
	a.early.open(t.Context(), a)
	taken, err := a.open(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	if taken != a.early.db {
		t.Error("the store that was opened ahead isn't the one that is used")
	}
	other, err := a.open(t.Context(), true)
	if err != nil || other == taken {
		t.Errorf("it was used twice: %v", err)
	}
	a.early.end()
	for _, st := range []interface{ Close() error }{taken, other} {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}
	a.early = early{}
	a.early.open(t.Context(), a)
	a.early.end()
	if _, err := a.early.db.End(t.Context()); err == nil {
		t.Error("a store that nobody asked for stayed open")
	}
}

// TestTheStoreIsGuessed: before the arguments are read it is opened only if none of
// them can name another, and it is the one that reading them comes to.
func TestTheStoreIsGuessed(t *testing.T) {
	x := newStarting(t)
	x.main(0, "run", "do it")
	defer procs.GOMAXPROCS(procs.GOMAXPROCS(2))
	x.sys.Env, x.sys.Now = append(x.sys.Env, "BELAY_STORE="+x.store), time.Now
	for args, want := range map[string]string{
		"run do it": x.store, "run --max-steps 3 do it": x.store, "sessions resume --last": x.store,
		"run --store /elsewhere do it": "", "run --store=/elsewhere do it": "", "run --help": "", "sessions resume -h": "", "serve": "", "bench run": "",
	} {
		a := &app{Sys: x.sys}
		a.early.guess(t.Context(), a, strings.Fields(args))
		if got := a.early.dir; got != want {
			t.Errorf("%q opens %q ahead, want %q", args, got, want)
		}
		a.placeFromEnv()
		opened := a.early.come
		if a.early.open(t.Context(), a); want != "" && a.early.come != opened {
			t.Errorf("%q opens it twice", args)
		}
		a.early.end()
	}
	elsewhere := newStarting(t)
	elsewhere.main(0, "run", "do it")
	a := &app{Sys: x.sys}
	a.early.guess(t.Context(), a, []string{"run"})
	a.Store = elsewhere.store
	st, err := a.open(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	if a.early.end(); st == a.early.db || st.Close() != nil {
		t.Error("the store that was guessed is used for another, or that one doesn't close")
	}
	if _, err := a.early.db.End(t.Context()); err == nil {
		t.Error("a store that was guessed wrongly stayed open")
	}
}

// TestAStartThatFailsMakesNothing: a store isn't made ahead, and one that can't be
// opened is told by who needs it.
func TestAStartThatFailsMakesNothing(t *testing.T) {
	x := newStarting(t)
	x.main(2, "run", "--provider", "nobody", "do it")
	if hasStore(x.store) {
		t.Error("a run that can't begin made a store")
	}
	x.main(0, "run", "do it")
	if err := os.WriteFile(sqlite.Path(x.store), []byte("no database, and longer than nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	x.main(2, "run", "--provider", "nobody", "do it")
	if told := x.errs.String(); !strings.Contains(told, "nobody") {
		t.Errorf("the mistake in the settings isn't what is told: %s", told)
	}
}

// The arguments tell before they are read whether something will be driven.
func TestWhatDrivesIsKnownByItsFirstWords(t *testing.T) {
	for args, want := range map[string]bool{
		"run do it": true, "sessions resume": true, "sessions resume x": true, "serve": true, "bench run x": true,
		"": false, "sessions": false, "sessions list": false, "version": false, "events run": false, "--json run do it": false,
	} {
		if got := drives(strings.Fields(args)); got != want {
			t.Errorf("%q: %v", args, got)
		}
	}
}
