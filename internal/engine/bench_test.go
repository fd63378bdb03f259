package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/effect/history"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/secret"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite"
	"github.com/belay-run/belay/internal/testkit/needs"
	"github.com/belay-run/belay/internal/tool"
)

// metronome is a model that answers at once with one call, steps times, and
// notes when it was asked.
type metronome struct {
	steps int
	mu    sync.Mutex
	asked map[string][]time.Time // by session: when a request came
	ended map[string][]time.Time // when its answer was out
	tools map[*model.ToolDef]int // requests by where their tools are in memory
	hook  func(request int)      // called with the number of a request, from 1; may be nil
}

func (m *metronome) Stream(_ context.Context, r model.Request) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		who := r.Messages[0].Parts[0].Text
		m.mu.Lock()
		m.asked[who] = append(m.asked[who], time.Now())
		n := len(m.asked[who])
		m.tools[&r.Tools[0]]++
		m.mu.Unlock()
		if m.hook != nil {
			m.hook(n)
		}
		call := &model.Call{ID: fmt.Sprint("c", n), Name: "look", Args: fmt.Sprintf(`{"n":%d}`, n)}
		if n > m.steps {
			call = &model.Call{ID: "end", Name: "complete_task", Args: `{"summary":"done"}`}
		}
		yield(model.Chunk{Text: "I look at the next one.", Call: call}, nil)
		m.mu.Lock()
		m.ended[who] = append(m.ended[who], time.Now())
		m.mu.Unlock()
		yield(model.Chunk{Stop: "tool_calls", Usage: &belay.Usage{Input: 1000, Output: 20}}, nil)
	}
}

// gaps is the runtime's own time per step: end of an answer to the next request.
func (m *metronome) gaps(who string) (out []time.Duration) {
	for i := 1; i < len(m.asked[who]); i++ {
		out = append(out, m.asked[who][i].Sub(m.ended[who][i-1]))
	}
	return out
}

type rig struct {
	db  *sqlite.DB
	e   *system
	m   *metronome
	ref belay.Ref
	dir string

	contents atomic.Int64 // that were read
}

// counted is a store that counts the contents that are read.
type counted struct {
	*sqlite.DB
	n *atomic.Int64
}

func (c counted) Get(ctx context.Context, d belay.Digest) ([]byte, error) {
	c.n.Add(1)
	return c.DB.Get(ctx, d)
}

func newRig(b testing.TB, steps int) *rig { return newRigIn(b, b.TempDir(), steps) }

func newRigIn(b testing.TB, dir string, steps int) *rig {
	return newRigOf(b, dir, steps, "some text of what there is to see in it, as a small file or the answer of a search would have", nil)
}

// newRigOf is newRigIn with a tool that returns a text, and what hides secrets in it.
func newRigOf(b testing.TB, dir string, steps int, text string, hides *secret.Scrubber) *rig {
	b.Helper()
	r := &rig{dir: dir, m: &metronome{steps: steps, asked: map[string][]time.Time{}, ended: map[string][]time.Time{}, tools: map[*model.ToolDef]int{}}}
	look := pure("look", func(_ context.Context, c tool.Call) (tool.Result, error) {
		return tool.Result{Text: "seen " + string(c.Args) + " and " + text}, nil
	})
	set, err := tool.NewSet(append(tool.TurnTools(), look)...)
	if err != nil {
		b.Fatal(err)
	}
	if r.db, err = sqlite.Open(b.Context(), r.dir, sqlite.Options{}); err != nil {
		b.Fatal(err)
	}
	r.e, err = newEngine(config{Store: counted{r.db, &r.contents}, Secrets: hides, Owner: store.ThisProcess(), Tools: set, Provider: func(context.Context, string, belay.Settings) (model.Provider, error) { return r.m, nil }})
	if err != nil {
		b.Fatal(err)
	}
	raw, _ := json.Marshal(thread.Rules{Workspace: b.TempDir(), Tools: set.Specs(), System: "bench", Settings: belay.Settings{Provider: "metronome", Mode: belay.ModeDefault, Approvals: belay.ApprovalsDeny}})
	if r.ref, err = r.db.Put(b.Context(), raw, ""); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { r.db.Close() })
	return r
}

func (r *rig) session(ctx context.Context, who string) error {
	id := belay.SessionID("sess_" + who)
	order := func(n int, c belay.Command) belay.Order {
		return belay.Order{ID: belay.CommandID(fmt.Sprint("cmd_", who, n)), Principal: "user:bench", Session: id, Stream: id.Stream(), Command: c}
	}
	if err := r.db.Enqueue(ctx, order(0, belay.CreateSession{Workspace: "/ws"}), order(1, belay.SubmitWork{
		Thread: belay.ThreadID("thr_" + who), Task: belay.TaskID("task_" + who), Turn: belay.TurnID("turn_" + who), Text: belay.Content{Text: who}, Rules: r.ref,
	})); err != nil {
		return err
	}
	return r.e.Session(ctx, id, nil)
}

func quantile(d []time.Duration, q float64) time.Duration {
	d = slices.Clone(d)
	slices.Sort(d)
	return d[int(q*float64(len(d)-1))]
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// probe is what the disk takes for one synced append of a page, in the same minute.
func probe(b *testing.B, dir string) time.Duration {
	f, err := os.Create(filepath.Join(dir, "probe"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	var took []time.Duration
	for range 200 {
		begun := time.Now()
		f.Write(make([]byte, 4096))
		f.Sync()
		took = append(took, time.Since(begun))
	}
	return quantile(took, 0.5)
}

// BenchmarkStep is one session of n steps with one tool call each: the time
// between the end of an answer and the next request, early and late, with every
// commit synced.
func BenchmarkStep(b *testing.B) {
	for _, steps := range []int{20, 200, 2000} {
		b.Run(fmt.Sprint(steps), func(b *testing.B) {
			r := newRig(b, steps)
			sync := probe(b, r.dir)
			before := r.db.Stats()
			size := r.size()
			n := 0
			for b.Loop() {
				n++
				if err := r.session(b.Context(), fmt.Sprint("s", n)); err != nil {
					b.Fatal(err)
				}
			}
			after := r.db.Stats()
			if err := r.db.Close(); err != nil { // its write-ahead log goes into the database
				b.Fatal(err)
			}
			var all, late []time.Duration
			for i := range n {
				g := r.m.gaps(fmt.Sprint("s", i+1))
				all = append(all, g...)
				late = append(late, g[len(g)*9/10:]...)
			}
			total := float64(n * steps)
			b.ReportMetric(ms(quantile(all, 0.5)), "p50-ms")
			b.ReportMetric(ms(quantile(all, 0.99)), "p99-ms")
			b.ReportMetric(ms(quantile(late, 0.5)), "late-p50-ms")
			b.ReportMetric(ms(sync), "fsync-ms")
			b.ReportMetric(float64(after.Transactions-before.Transactions)/total, "commits/step")
			b.ReportMetric(float64(after.Reads-before.Reads)/total, "reads/step")
			b.ReportMetric(float64(after.Statements-before.Statements)/total, "writes/step")
			b.ReportMetric(float64(r.size()-size)/total, "B/step")
			b.ReportMetric(float64(b.Elapsed().Microseconds())/total, "µs/step")
		})
	}
}

// BenchmarkOutput is a step with 32 KiB of a program's text as output, with the known forms
// of secrets hidden and without, in turns: what hiding them takes of it.
func BenchmarkOutput(b *testing.B) {
	const steps = 40
	files, err := filepath.Glob("*.go")
	if err != nil {
		b.Fatal(err)
	}
	var text strings.Builder
	for _, name := range files { // as a program prints it
		code, err := os.ReadFile(name)
		if err != nil {
			b.Fatal(err)
		}
		text.Write(code)
	}
	looking := &secret.Scrubber{}
	looking.Look(secret.Known{})
	rigs := []*rig{newRigOf(b, b.TempDir(), steps, text.String()[:32<<10], &secret.Scrubber{}), newRigOf(b, b.TempDir(), steps, text.String()[:32<<10], looking)}
	var took [2][]time.Duration
	var worked [2]time.Duration
	n := 0
	for b.Loop() {
		n++
		for i, r := range rigs {
			who := fmt.Sprint("s", n)
			before := cpu()
			if err := r.session(b.Context(), who); err != nil {
				b.Fatal(err)
			}
			worked[i] += cpu() - before
			took[i] = append(took[i], r.m.gaps(who)...)
		}
	}
	without, with := quantile(took[0], 0.5), quantile(took[1], 0.5)
	b.ReportMetric(ms(without), "without-p50-ms")
	b.ReportMetric(ms(with), "with-p50-ms")
	b.ReportMetric(float64(with)/float64(without), "times")
	b.ReportMetric(ms(worked[0])/float64(n*steps), "without-cpu-ms")
	b.ReportMetric(ms(worked[1])/float64(n*steps), "with-cpu-ms")
}

// BenchmarkOwnTime is the same on a file system without a disk: what the
// runtime itself takes for a step, at steps 10, 100, 190, 1,000 and 2,000.
func BenchmarkOwnTime(b *testing.B) {
	dir, err := os.MkdirTemp("/dev/shm", "belay-bench-")
	needs.Facility(b, "shm", err == nil, "no file system in memory")
	defer os.RemoveAll(dir)
	r := newRigIn(b, dir, 2000)
	n := 0
	for b.Loop() {
		n++
		if err := r.session(b.Context(), fmt.Sprint("s", n)); err != nil {
			b.Fatal(err)
		}
	}
	for _, at := range []int{10, 100, 190, 1000, 1950} {
		var took []time.Duration
		for i := range n {
			g := r.m.gaps(fmt.Sprint("s", i+1))
			took = append(took, g[max(at-50, 0):min(at+50, len(g))]...)
		}
		b.ReportMetric(ms(quantile(took, 0.5)), fmt.Sprintf("p50@%d-ms", at))
		b.ReportMetric(ms(quantile(took, 0.99)), fmt.Sprintf("p99@%d-ms", at))
	}
}

// cpu is the processor time this process took so far.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkMany is many sessions of five steps at once.
func BenchmarkMany(b *testing.B) {
	for _, sessions := range []int{1, 100, 1000} {
		b.Run(fmt.Sprint(sessions), func(b *testing.B) {
			r := newRig(b, 5)
			before, spent := r.db.Stats(), cpu()
			n := 0
			for b.Loop() {
				var wg sync.WaitGroup
				for range sessions {
					n++
					who := fmt.Sprint("s", n)
					wg.Go(func() {
						if err := r.session(b.Context(), who); err != nil {
							b.Error(err)
						}
					})
				}
				wg.Wait()
			}
			after := r.db.Stats()
			var mem runtime.MemStats
			runtime.ReadMemStats(&mem)
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "sessions/s")
			b.ReportMetric(float64(after.Transactions-before.Transactions)/float64(n*5), "commits/step")
			b.ReportMetric(float64(after.Reads-before.Reads)/float64(n), "reads/session")
			b.ReportMetric(float64(after.Statements-before.Statements)/float64(n), "writes/session")
			b.ReportMetric(ms(cpu()-spent)/float64(n*5), "cpu-ms/step")
			b.ReportMetric(float64(mem.Sys)/(1<<20), "MB-sys")
		})
	}
}

func (r *rig) size() (n int64) {
	_ = filepath.WalkDir(r.dir, func(p string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if i, err := d.Info(); err == nil {
				n += i.Size()
			}
		}
		return nil
	})
	return n
}

// BenchmarkMillion opens a store whose thread has a million facts and comes to
// its state: from the cache, and by folding everything.
func BenchmarkMillion(b *testing.B) {
	r := newRig(b, 2000)
	to := r.long(b, 1_000_000)
	if err := r.db.Close(); err != nil {
		b.Fatal(err)
	}
	benchLong(b, r, to)
}

// long makes a thread of so many facts, which are those of one session again and again.
func (r *rig) long(b *testing.B, facts int64, then ...event.Payload) belay.StreamID {
	if err := r.session(b.Context(), "s"); err != nil {
		b.Fatal(err)
	}
	from := belay.ThreadID("thr_s").Stream()
	var turn []event.Envelope // one turn of 2,000 steps, to be repeated
	for e, err := range r.db.Read(b.Context(), from, 1) {
		if err != nil {
			b.Fatal(err)
		}
		turn = append(turn, e)
	}
	to := belay.ThreadID("thr_long").Stream()
	epoch, err := r.db.Claim(b.Context(), "sess_long", store.ThisProcess(), time.Hour)
	if err != nil {
		b.Fatal(err)
	}
	d, version, _ := engine.NewDecider(to)
	var seq int64
	add := func(events ...event.Envelope) {
		state, _ := d.Save()
		sb := store.Batch{Session: "sess_long", Stream: to, After: seq - int64(len(events)), Epoch: epoch, Events: events, State: &store.State{Seq: seq, Version: version, Data: state}}
		if _, err := r.db.Append(b.Context(), sb); err != nil {
			b.Fatal(err)
		}
	}
	for seq < facts {
		for part := range slices.Chunk(turn, 500) {
			part = slices.Clone(part)
			for i := range part {
				seq++
				e := &part[i]
				e.Stream, e.Seq, e.IDs.Session, e.IDs.Thread = to, seq, "sess_long", "thr_long"
				d.Apply(*e)
			}
			add(part...)
		}
	}
	for _, p := range then {
		if c, is := p.(event.ContextCompactionCompleted); is {
			c.To, c.Reads = seq, seq+1
			p = c
		}
		seq++
		e := event.Envelope{Stream: to, Seq: seq, IDs: belay.IDs{Session: "sess_long", Thread: "thr_long", Turn: "turn_s"}, Data: p}
		d.Apply(e)
		add(e)
	}
	return to
}

// BenchmarkBehindABoundary opens a store whose thread has a boundary behind many facts,
// and comes to what its next request shows.
func BenchmarkBehindABoundary(b *testing.B) {
	for _, facts := range []int64{5_000, 500_000} {
		b.Run(fmt.Sprint(facts), func(b *testing.B) {
			r := newRig(b, 2000)
			var said []byte
			for n := range 50 {
				raw, _ := json.Marshal(belay.Said{Message: belay.Text(belay.RoleUser, fmt.Sprint("message ", n, strings.Repeat(" and more", 200)))})
				said = append(append(said, raw...), '\n')
			}
			window, err := r.db.Put(b.Context(), said, belay.MediaSaid)
			if err != nil {
				b.Fatal(err)
			}
			to := r.long(b, facts, event.ContextCompactionCompleted{Trigger: "manual", Strategy: "summarise", Window: []belay.Ref{window}})
			if err := r.db.Close(); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				db, err := sqlite.Open(b.Context(), r.dir, sqlite.Options{})
				if err != nil {
					b.Fatal(err)
				}
				_, seq, _, err := engine.Load(b.Context(), db, to)
				if err != nil {
					b.Fatal(err)
				}
				msgs, err := history.Messages(b.Context(), db, to, seq, seq)
				if err != nil || len(msgs) < 50 {
					b.Fatal(len(msgs), err)
				}
				b.StopTimer() // the request has left by then
				db.Close()
				b.StartTimer()
			}
		})
	}
}

func benchLong(b *testing.B, r *rig, to belay.StreamID) {
	var open, cached time.Duration
	n := 0
	for b.Loop() {
		n++
		begun := time.Now()
		db, err := sqlite.Open(b.Context(), r.dir, sqlite.Options{})
		if err != nil {
			b.Fatal(err)
		}
		open += time.Since(begun)
		if _, _, _, err := engine.Load(b.Context(), db, to); err != nil {
			b.Fatal(err)
		}
		cached += time.Since(begun)
		db.Close()
	}
	b.ReportMetric(ms(open/time.Duration(n)), "open-ms")
	b.ReportMetric(ms(cached/time.Duration(n)), "resume-ms")
	db, err := sqlite.Open(b.Context(), r.dir, sqlite.Options{ReadOnly: true})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	begun, last := time.Now(), int64(0)
	fresh, _, _ := engine.NewDecider(to)
	for e, err := range db.Read(b.Context(), to, 0) {
		if err != nil {
			b.Fatal(err)
		}
		fresh.Apply(e)
		last = e.Seq
	}
	b.ReportMetric(time.Since(begun).Seconds(), "fold-all-s")
	b.ReportMetric(float64(last), "facts")
}
