package engine_test

import (
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/testkit/modelserver"
)

// A server that sends a gigabyte costs a bounded amount of memory: as a line
// without an end, packed or not, as text that never stops, as a call whose
// arguments never do. The attempt has failed, and isn't
// made again.
// Guarantee: E52.
func TestAGigabyteIsNotKept(t *testing.T) {
	const limit = 192 << 20
	long := answer(strings.Repeat("text ", 20<<10), "stop")
	call := answer("", "tool_calls", model.Call{Name: "look", Args: `{"path":"` + strings.Repeat("p", 200<<10) + `"}`})
	scenes := map[string]modelserver.Scene{
		"line":      amid(modelserver.Giant),
		"gzip line": with(amid(modelserver.Giant), func(f *modelserver.Fault) { f.Gzip = true }),
		"text":      with(long, func(f *modelserver.Fault) { f.Kind, f.Upon = modelserver.Flood, "text text" }),
		"arguments": with(call, func(f *modelserver.Fault) { f.Kind, f.Upon = modelserver.Flood, "ppppp" }),
	}
	for i, name := range slices.Sorted(maps.Keys(scenes)) {
		s := scenes[name]
		for j, protocol := range protocols(t) {
			if name == "arguments" && protocol == "google" {
				continue // its calls come whole, one by one, and count one by one
			}
			if raceEnabled && j != i {
				continue // each scene and each protocol once: the detector makes them slow
			}
			t.Run(name+" "+protocol, func(t *testing.T) {
				peak := watchHeap()
				synctest.Test(t, func(t *testing.T) {
					f := once(name, s)
					p := f.stage(t, protocol)
					defer p.far.close()
					log := p.b.run()
					fails := find[event.ModelFailed](log)
					if len(fails) != 1 || fails[0].Problem.Code != "TOO_LARGE" || fails[0].Problem.Retryable || len(find[event.TurnFailed](log)) != 1 {
						t.Errorf("%d failures, the end is %s", len(fails), log[len(log)-1].Type())
					}
				})
				if grown := peak(); grown > limit {
					t.Errorf("the heap grew by %d MB", grown>>20)
				} else {
					t.Logf("the heap grew by %d MB", grown>>20)
				}
			})
		}
	}
}

// watchHeap looks at the heap until the function it returns is called, which
// says by how many bytes it grew at most.
func watchHeap() func() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	before, most := m.HeapAlloc, m.HeapAlloc
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapAlloc)
		}
	}()
	return func() uint64 { close(stop); <-stopped; return most - before }
}
