package cli

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	procs "runtime"
	"slices"
	"strings"
	"sync"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite"
)

// early is what a second processor does for a start, while the first reads
// arguments and settings: things that every turn needs and nothing can change.
// None of it is seen when the start fails, and mistakes are told by who needs it.
type early struct {
	wg    sync.WaitGroup
	begun bool
	mu    sync.Mutex
	dir   string // of the store that is being opened; empty: none
	come  chan struct{}
	db    *sqlite.DB
	err   error
}

// drives reports whether the arguments look as if a turn will come of them.
func drives(args []string) bool {
	switch {
	case len(args) == 0:
		return false
	case args[0] == "sessions":
		return len(args) > 1 && args[1] == "resume"
	}
	return args[0] == "run" || args[0] == "serve" || args[0] == "bench"
}

// begin begins with what depends on nothing, if it hasn't; fresh tells that a
// session may begin, which writes facts that one that continues doesn't. It is
// joined by end, which must be called.
func (h *early) begin(a *app, fresh bool) {
	if h.begun {
		return
	}
	h.begun = true
	if procs.GOMAXPROCS(0) < 2 {
		return
	}
	h.wg.Go(func() {
		a.builtin()
		policy.Builtin()
		a.recall()
		if fresh {
			encoders()
		}
		a.models.catalog(a)
	})
}

// guess begins to open the store before the arguments are read, where none of
// them can name another than the environment does. If it was the wrong one, it is
// closed in the end, and who needs the right one opens it.
func (h *early) guess(ctx context.Context, a *app, args []string) {
	if args[0] != "run" && args[0] != "sessions" { // a server has more than one
		return
	}
	if slices.ContainsFunc(args, func(s string) bool { return strings.HasPrefix(s, "--store") || s == "--help" || s == "-h" }) {
		return
	}
	usual := &app{Sys: a.Sys}
	usual.placeFromEnv()
	usual.Now = a.Now
	h.open(ctx, usual)
}

// open begins to open a store that exists, if none is being opened. A new one is
// made when it is known that there is something to keep.
func (h *early) open(ctx context.Context, a *app) {
	dir, err := a.storeDir()
	if err != nil || h.come != nil || procs.GOMAXPROCS(0) < 2 || !hasStore(dir) {
		return
	}
	h.dir, h.come = dir, make(chan struct{})
	h.wg.Go(func() {
		defer close(h.come)
		h.db, h.err = sqlite.Open(ctx, dir, sqlite.Options{Now: a.Now})
	})
}

// store is the store that was opened ahead, once; ok is false when there is none.
func (h *early) store(dir string) (st store.Store, ok bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.dir == "" || h.dir != dir {
		return nil, false, nil
	}
	h.dir = ""
	<-h.come
	if h.err != nil {
		return nil, true, h.err
	}
	return h.db, true, nil
}

// end waits for what was begun, and closes a store that nobody asked for.
func (h *early) end() {
	h.wg.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.dir != "" && h.db != nil {
		h.db.Close() //nolint:errcheck // nothing was written
	}
	h.dir = ""
}

// recall recalls what the sandbox can do here. Where no earlier process found it
// out, who needs it tries.
func (a *app) recall() {
	dir := a.cacheDir()
	if on, _ := a.sandboxed(); !on || dir == "" {
		return
	}
	if _, err := os.Stat(filepath.Join(dir, machineFile)); err == nil {
		a.confinement()
	}
}

// encoders makes ready what encodes the first states and facts of a session:
// what JSON needs to know of a type is found out once in a process, and takes its
// time. The state of a thread isn't kept before its turn has ended.
func encoders() {
	for _, s := range []belay.StreamID{belay.SessionID("").Stream(), belay.TaskID("").Stream()} {
		if d, _, err := engine.NewDecider(s); err == nil {
			d.Save() //nolint:errcheck // nobody wants it
		}
	}
	json.Marshal(&thread.Rules{}) //nolint:errcheck // as above
	for _, p := range firstFacts() {
		event.Encode(p) //nolint:errcheck // as above
	}
}

// firstFacts are of the types that come before a session's first request.
func firstFacts() []event.Payload {
	return []event.Payload{
		event.SessionCreated{}, event.SessionUpdated{}, event.PolicyChanged{},
		event.TaskCreated{}, event.TaskStarted{}, event.TaskAttemptStarted{},
		event.ThreadStarted{}, event.TurnSubmitted{}, event.TurnStarted{},
		event.ToolCatalogResolved{}, event.TaskProfileResolved{}, event.RoutingSingleCandidate{}, event.ModelRequested{},
	}
}
