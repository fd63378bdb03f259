package work

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/store"
)

// Session is one session of many.
type Session interface {
	// Run begins the session and drives it to its rest.
	Run(ctx context.Context) error
	// Outcome is how its turn ended; empty: it was completed.
	Outcome(ctx context.Context) string
}

// pace is when the model of one session was asked and had answered. One request
// at a time is out.
type pace struct {
	ended time.Time
	steps int
	gaps  []time.Duration // from the end of an answer to the next request
}

// run is one session of many.
type run struct {
	pace
	session Session
	err     error
}

// paced is how the pace of a session comes to its requests.
type paced struct{}

// Metered notes the pace of requests and is otherwise the provider it stands before.
type Metered struct{ model.Provider }

// Abilities are those of the provider.
func (m Metered) Abilities(name string) model.Abilities { return model.AbilitiesOf(m.Provider, name) }

// Stream asks the provider.
func (m Metered) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Chunk, error] {
	p, _ := ctx.Value(paced{}).(*pace)
	if p == nil {
		return m.Provider.Stream(ctx, r)
	}
	return func(yield func(model.Chunk, error) bool) {
		if !p.ended.IsZero() {
			p.gaps = append(p.gaps, time.Since(p.ended))
			p.ended = time.Time{}
		}
		for chunk, err := range m.Provider.Stream(ctx, r) {
			if chunk.Stop != "" {
				p.ended = time.Now()
				p.steps++
			}
			if !yield(chunk, err) {
				return
			}
		}
	}
}

// Report is what a run of many sessions came to.
type Report struct {
	Sessions    int            `json:"sessions"`
	Completed   int            `json:"completed"`
	Steps       int            `json:"steps"`
	Seconds     float64        `json:"seconds"`
	PerSecond   float64        `json:"sessionsPerSecond"`
	StepsPerSec float64        `json:"stepsPerSecond"`
	StepP50     float64        `json:"stepP50Ms"` // end of an answer to the next request
	StepP99     float64        `json:"stepP99Ms"`
	Commits     float64        `json:"commitsPerStep"`
	CPU         float64        `json:"cpuMsPerStep"`
	Memory      int64          `json:"memoryBytes"`    // resident, at its highest
	Ends        map[string]int `json:"ends,omitempty"` // other than completed: how many, by outcome or error
}

// Run runs n sessions on a store and waits for the last. Their providers are
// Metered; session makes the one of a number from 1.
func Run(ctx context.Context, st store.Store, n int, session func(number int) Session) *Report {
	runs := make([]run, n)
	r := &Report{Sessions: n}
	commits, spent, begun := transactions(st), processorTime(), time.Now()
	var wg sync.WaitGroup
	for i := range runs {
		runs[i].session = session(i + 1)
		wg.Go(func() { runs[i].err = runs[i].session.Run(context.WithValue(ctx, paced{}, &runs[i].pace)) })
	}
	wg.Wait()
	r.Seconds, r.Memory = time.Since(begun).Seconds(), highWater()
	r.take(runs)
	if r.Steps > 0 {
		r.Commits = float64(transactions(st)-commits) / float64(r.Steps)
		r.CPU = float64((processorTime() - spent).Microseconds()) / 1000 / float64(r.Steps)
	}
	for i := range runs {
		r.count(ctx, &runs[i])
	}
	return r
}

// take adds up what the sessions did.
func (r *Report) take(runs []run) {
	var gaps []time.Duration
	for i := range runs {
		r.Steps += runs[i].steps
		gaps = append(gaps, runs[i].gaps...)
	}
	slices.Sort(gaps)
	r.StepP50, r.StepP99 = quantile(gaps, 0.5), quantile(gaps, 0.99)
	r.PerSecond, r.StepsPerSec = float64(r.Sessions)/r.Seconds, float64(r.Steps)/r.Seconds
}

// count adds how a session ended.
func (r *Report) count(ctx context.Context, one *run) {
	var end string
	if one.err != nil {
		end = one.err.Error()
	} else {
		end = one.session.Outcome(context.WithoutCancel(ctx))
	}
	if end == "" {
		r.Completed++
		return
	}
	if r.Ends == nil {
		r.Ends = map[string]int{}
	}
	r.Ends[end]++
}

// transactions counts the commits of a store.
func transactions(st store.Store) int64 {
	if db, ok := st.(store.Admin); ok {
		return db.Stats().Transactions
	}
	return 0
}

// processorTime is what this process took so far.
func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// quantile is one of sorted times, in milliseconds.
func quantile(sorted []time.Duration, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return float64(sorted[int(q*float64(len(sorted)-1))].Microseconds()) / 1000
}

// highWater is the most memory that was resident, in bytes.
func highWater() int64 {
	if b, err := os.ReadFile("/proc/self/status"); err == nil {
		if _, rest, ok := strings.Cut(string(b), "VmHWM:"); ok {
			kb, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
			if n, err := strconv.ParseInt(kb, 10, 64); err == nil {
				return n << 10
			}
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.Sys)
}

// Print prints it.
func (r *Report) Print(e *term.Env) {
	e.Show(r, func() {
		fmt.Fprintf(e.Out, "%d of %s completed, %s in %.2f s: %.1f sessions/s, %.0f steps/s\n", r.Completed, term.Plural(r.Sessions, "session"), term.Plural(r.Steps, "step"), r.Seconds, r.PerSecond, r.StepsPerSec)
		fmt.Fprintf(e.Out, "step p50 %.2f ms, p99 %.2f ms, from the end of an answer to the next request\n", r.StepP50, r.StepP99)
		fmt.Fprintf(e.Out, "%.2f commits and %.2f ms of processor time per step, %d MB of memory at most\n", r.Commits, r.CPU, r.Memory>>20)
		for _, end := range slices.Sorted(maps.Keys(r.Ends)) {
			fmt.Fprintf(e.Out, "%s: %d\n", term.Line(end), r.Ends[end])
		}
	})
}
