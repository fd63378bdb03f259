package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	procs "runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/lib/readfile"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/store"
)

type benchCmd struct {
	Run benchRunCmd `cmd:"" help:"Run many sessions at once in this process and print how fast they went."`
}

type benchRunCmd struct {
	SettingFlags
	Sessions int      `default:"100" placeholder:"N" help:"How many run at the same time (default 100)."`
	Text     []string `arg:"" optional:"" help:"What each of them is to do; run the steps."`
}

// sessionMark is replaced by a session's number in the model's name and the text.
const sessionMark = "{SESSION}"

func (c *benchRunCmd) run(ctx context.Context, a *app) (int, error) {
	if c.Sessions < 1 || c.Sessions > 100_000 {
		return 0, belay.Errorf(belay.CodeUsage, "%d sessions: must be between 1 and 100000", c.Sessions).At("--sessions").WithHint("--sessions 100")
	}
	ws, err := a.checkedWorkspace()
	if err != nil {
		return 0, err
	}
	p, err := a.enter(ctx, ws)
	if err != nil {
		return 0, err
	}
	settings, err := a.fresh(p, c.given())
	if err != nil {
		return 0, err
	}
	settings.Share = true // they are all in one workspace
	forget, err := a.throwAway()
	if err != nil {
		return 0, err
	}
	defer forget()
	ctx, release := a.UntilSignal(ctx)
	defer release()
	b := &benchmark{app: a, ws: ws, settings: settings, text: cmp.Or(strings.Join(c.Text, " "), "run the steps")}
	r, err := b.run(ctx, c.Sessions)
	if err != nil {
		return 0, err
	}
	r.print(a)
	if r.Completed < r.Sessions {
		return belay.ExitFailed, nil
	}
	return belay.ExitOK, nil
}

// throwAway takes a store for this process alone, unless one is named by flag.
// The function it returns removes it.
func (a *app) throwAway() (func(), error) {
	if a.StoreFlag != "" {
		return func() {}, nil
	}
	dir, err := os.MkdirTemp("", "belay-bench-")
	if err != nil {
		return nil, belay.Errorf(belay.CodeWorkspace, "there is no place for a store: %s", readfile.Reason(err)).At(os.TempDir()).WithHint("--store DIR")
	}
	a.Store = dir
	return func() { os.RemoveAll(dir) }, nil //nolint:errcheck // it is in a folder that the system clears
}

// benchmark is many sessions of one process.
type benchmark struct {
	app      *app
	ws       string
	settings config.Settings
	text     string
}

// pace is when the model of one session was asked and had answered. One request
// at a time is out.
type pace struct {
	ended time.Time
	steps int
	gaps  []time.Duration // from the end of an answer to the next request
}

// benchRun is one session of many.
type benchRun struct {
	pace
	work *turnRun
	err  error
}

// paced is how the pace of a session comes to its requests.
type paced struct{}

// metered notes the pace of requests and is otherwise the provider it stands before.
type metered struct{ model.Provider }

func (m metered) Abilities(name string) model.Abilities { return model.AbilitiesOf(m.Provider, name) }

func (m metered) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Chunk, error] {
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

// benchReport is what a run of many sessions came to.
type benchReport struct {
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

// run runs n sessions and waits for the last.
func (b *benchmark) run(ctx context.Context, n int) (*benchReport, error) {
	st, err := b.app.open(ctx, true)
	if err != nil {
		return nil, err
	}
	b.app.wrapProvider = func(p model.Provider) model.Provider { return metered{p} }
	rt, err := b.app.runtime(st, nil)
	if err != nil {
		return nil, errors.Join(err, st.Close())
	}
	defer rt.close() //nolint:errcheck // everything that was accepted is durable
	runs := make([]benchRun, n)
	r := &benchReport{Sessions: n}
	commits, spent, begun := transactions(st), processorTime(), time.Now()
	var wg sync.WaitGroup
	for i := range runs {
		runs[i].work = &turnRun{runtime: rt, a: b.app}
		wg.Go(func() { runs[i].err = b.session(ctx, runs[i].work, i+1, &runs[i].pace) })
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
	return r, nil
}

// take adds up what the sessions did.
func (r *benchReport) take(runs []benchRun) {
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
func (r *benchReport) count(ctx context.Context, b *benchRun) {
	var end string
	if b.err != nil {
		end = b.err.Error()
	} else {
		end = b.work.outcome(context.WithoutCancel(ctx))
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

// session runs one session to its rest.
func (b *benchmark) session(ctx context.Context, w *turnRun, n int, p *pace) error {
	if err := b.begin(ctx, w, "s"+strconv.Itoa(n)); err != nil {
		return err
	}
	err := w.Engine.Session(context.WithValue(ctx, paced{}, p), w.session, nil)
	return errors.Join(err, w.release())
}

// begin begins the session that a number names.
func (b *benchmark) begin(ctx context.Context, w *turnRun, number string) error {
	settings := b.settings
	settings.Model = strings.ReplaceAll(settings.Model, sessionMark, number)
	text := strings.ReplaceAll(b.text, sessionMark, number)
	return w.begin(ctx, b.ws, text, settings, task{text: text}, false)
}

// outcome is how the session's turn ended; empty: it was completed.
func (w *turnRun) outcome(ctx context.Context) string {
	s, err := w.state(ctx)
	switch {
	case err != nil:
		return err.Error()
	case s == nil || s.Turn != nil || s.Prev == nil:
		return "not ended"
	case s.Prev.Outcome != belay.Completed:
		return string(s.Prev.Outcome)
	}
	return ""
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
	var m procs.MemStats
	procs.ReadMemStats(&m)
	return int64(m.Sys)
}

func (r *benchReport) print(a *app) {
	if a.JSON {
		a.PrintJSON(r)
		return
	}
	fmt.Fprintf(a.Out, "%d of %s completed, %s in %.2f s: %.1f sessions/s, %.0f steps/s\n", r.Completed, term.Plural(r.Sessions, "session"), term.Plural(r.Steps, "step"), r.Seconds, r.PerSecond, r.StepsPerSec)
	fmt.Fprintf(a.Out, "step p50 %.2f ms, p99 %.2f ms, from the end of an answer to the next request\n", r.StepP50, r.StepP99)
	fmt.Fprintf(a.Out, "%.2f commits and %.2f ms of processor time per step, %d MB of memory at most\n", r.Commits, r.CPU, r.Memory>>20)
	for _, end := range slices.Sorted(maps.Keys(r.Ends)) {
		fmt.Fprintf(a.Out, "%s: %d\n", term.Line(end), r.Ends[end])
	}
}
