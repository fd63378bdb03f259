package sqlite

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/store/sqlite/layout"
)

func openBench(b testing.TB, dir string) *DB {
	b.Helper()
	db, err := Open(b.Context(), dir, Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	return db
}

// benchSession is a claimed session that appends one step after another.
type benchSession struct {
	batch store.Batch
	turn  belay.TurnID
}

func newBenchSession(b testing.TB, db *DB, name string) *benchSession {
	b.Helper()
	session := belay.SessionID("sess_" + name)
	epoch, err := db.Claim(b.Context(), session, store.Owner{ID: "own_bench", Host: "h"}, time.Hour)
	if err != nil {
		b.Fatal(err)
	}
	return &benchSession{turn: belay.TurnID(belay.NewID(belay.PrefixTurn)),
		batch: store.Batch{Session: session, Stream: belay.ThreadID("thr_" + name).Stream(), Epoch: epoch}}
}

// step is the facts of one model answer with one call: two decisions.
func (s *benchSession) step(i int) (answer, result []event.Envelope) {
	ids := belay.IDs{Session: s.batch.Session, Thread: belay.ThreadID(s.batch.Stream.ID()), Turn: s.turn,
		Step: belay.StepID(belay.DeriveID(belay.PrefixStep, s.batch.Stream, int64(i), 0))}
	e := func(p event.Payload) event.Envelope { return event.Envelope{IDs: ids, Data: p} }
	asked := e(event.ModelRequested{Attempt: 1, Kind: "normal", Provider: "p", From: 1, To: int64(i)})
	said := e(event.ModelCompleted{Attempt: 1, Usage: belay.Usage{Input: 10, Output: 5}})
	ids.Call = belay.CallID(belay.DeriveID(belay.PrefixCall, s.batch.Stream, int64(i), 0))
	return []event.Envelope{said, e(event.PermissionEvaluated{Decision: "allow"}), e(event.SandboxApplied{Level: "L0"}), e(event.ToolStarted{Name: "read", Attempt: 1})},
		[]event.Envelope{e(event.ToolResult{Name: "read", Attempt: 1, Output: belay.Content{Text: strings.Repeat("x", 200)}}), e(event.RunStatus{Status: "running"}), asked}
}

func (s *benchSession) append(b testing.TB, db *DB, key string, events []event.Envelope) {
	s.batch.Events, s.batch.Key = events, key
	s.batch.State = &store.State{Seq: s.batch.After, Version: "v", Data: make([]byte, 1024)}
	s.batch.Lane.Runnable = true
	if _, err := db.Append(b.Context(), s.batch); err != nil {
		b.Error(err)
		return
	}
	s.batch.After += int64(len(events))
}

func percentile(all []time.Duration, p float64) float64 {
	slices.Sort(all)
	return float64(all[min(len(all)-1, int(float64(len(all))*p))].Microseconds())
}

// syncFloor is what one small write and sync costs on this disk now.
func syncFloor(b testing.TB) []time.Duration {
	f, err := os.Create(filepath.Join(b.TempDir(), "probe"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	all := make([]time.Duration, 200)
	page := make([]byte, 4096)
	for i := range all {
		began := time.Now()
		f.Write(page)
		f.Sync()
		all[i] = time.Since(began)
	}
	return all
}

// processor is the processor time that this process has used.
func processor() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkAppend is one decision of a lone session: what a step waits for, twice.
func BenchmarkAppend(b *testing.B) {
	db := openBench(b, b.TempDir())
	s := newBenchSession(b, db, "a")
	floor := syncFloor(b)
	var took []time.Duration
	used := processor()
	for i := 0; b.Loop(); i++ {
		answer, result := s.step(i)
		for n, events := range [][]event.Envelope{answer, result} {
			began := time.Now()
			s.append(b, db, "k"+strconv.Itoa(2*i+n), events)
			took = append(took, time.Since(began))
		}
	}
	b.ReportMetric(percentile(took, 0.5), "p50-µs/append")
	b.ReportMetric(percentile(took, 0.99), "p99-µs/append")
	b.ReportMetric(percentile(floor, 0.5), "p50-µs/sync")
	b.ReportMetric(percentile(floor, 0.99), "p99-µs/sync")
	b.ReportMetric(float64(len(took))/b.Elapsed().Seconds(), "appends/s")
	b.ReportMetric(float64((processor()-used).Microseconds())/float64(len(took)), "cpu-µs/append")
}

// BenchmarkAppendMany is 100 sessions at once.
func BenchmarkAppendMany(b *testing.B) {
	const sessions = 100
	db := openBench(b, b.TempDir())
	var all []*benchSession
	for i := range sessions {
		all = append(all, newBenchSession(b, db, strconv.Itoa(i)))
	}
	before := db.Stats()
	var next atomic.Int64
	b.ResetTimer()
	var wg sync.WaitGroup
	for _, s := range all {
		wg.Go(func() {
			for i := 0; next.Add(1) <= int64(b.N); i++ {
				answer, result := s.step(i)
				s.append(b, db, "a"+strconv.Itoa(i), answer)
				s.append(b, db, "r"+strconv.Itoa(i), result)
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	after := db.Stats()
	b.ReportMetric(float64(after.Appends-before.Appends)/b.Elapsed().Seconds(), "appends/s")
	b.ReportMetric(float64(after.Transactions-before.Transactions)/float64(after.Appends-before.Appends), "tx/append")
}

// BenchmarkBytes is what a step adds to the disk besides its payloads.
func BenchmarkBytes(b *testing.B) {
	const steps = 2000
	for b.Loop() {
		dir := b.TempDir()
		db := openBench(b, dir)
		s := newBenchSession(b, db, "a")
		payload := 0
		for i := range steps {
			answer, result := s.step(i)
			for _, e := range append(answer, result...) {
				raw, _ := event.Encode(e.Data)
				payload += len(raw)
			}
			s.append(b, db, "model/"+strconv.Itoa(i), answer)
			s.append(b, db, "tool/"+strconv.Itoa(i), result)
		}
		if err := db.Close(); err != nil {
			b.Fatal(err)
		}
		info, err := os.Stat(layout.Path(dir))
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric((float64(info.Size())-float64(payload))/steps, "overhead-B/step")
		b.ReportMetric(float64(payload)/steps, "payload-B/step")
		b.ReportMetric(float64(info.Size())/steps/7, "B/event")
	}
}

// BenchmarkRead and BenchmarkScan are facts per second.
func BenchmarkRead(b *testing.B) {
	db := openBench(b, b.TempDir())
	s := newBenchSession(b, db, "a")
	for i := range 2000 {
		answer, result := s.step(i)
		s.append(b, db, "", append(answer, result...))
	}
	b.Run("stream", func(b *testing.B) {
		n := 0
		for b.Loop() {
			for _, err := range db.Read(b.Context(), s.batch.Stream, 0) {
				if err != nil {
					b.Fatal(err)
				}
				n++
			}
		}
		b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "facts/s")
	})
	b.Run("log", func(b *testing.B) {
		n := 0
		for b.Loop() {
			for _, err := range db.Scan(b.Context(), 0) {
				if err != nil {
					b.Fatal(err)
				}
				n++
			}
		}
		b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "facts/s")
	})
	b.Run("tail", func(b *testing.B) {
		for b.Loop() {
			for range db.Read(b.Context(), s.batch.Stream, s.batch.After-10) {
			}
		}
	})
}

// BenchmarkOpen is what a start waits for.
func BenchmarkOpen(b *testing.B) {
	b.Run("new", func(b *testing.B) {
		opened := time.Duration(0)
		for b.Loop() {
			began := time.Now()
			db, err := Open(b.Context(), b.TempDir(), Options{})
			if err != nil {
				b.Fatal(err)
			}
			opened += time.Since(began)
			db.Close()
		}
		b.ReportMetric(float64(opened.Microseconds())/float64(b.N), "open-µs/op")
	})
	b.Run("old", func(b *testing.B) {
		dir := b.TempDir()
		openBench(b, dir).Close()
		opened := time.Duration(0)
		for b.Loop() {
			began := time.Now()
			db, err := Open(b.Context(), dir, Options{})
			if err != nil {
				b.Fatal(err)
			}
			opened += time.Since(began)
			db.Close()
		}
		b.ReportMetric(float64(opened.Microseconds())/float64(b.N), "open-µs/op")
	})
}
