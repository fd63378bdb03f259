package engine_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	osprocess "github.com/belay-run/belay/internal/process"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/testkit/memory"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/exec"
)

// programs is a bench whose tools run programs; its turns end with an answer.
func programs(t *testing.T, script string) *bench {
	c := exec.Config{Environ: []string{"PATH=/usr/bin:/bin"}, Grace: 500 * time.Millisecond}
	return newBench(t, "name: t\nsteps:\n"+script, func(s *belay.Settings) { s.Completion = belay.CompletionConversational }, exec.Tools(c)...)
}

// allEnded reports whether every process of the log has one end, and is gone.
func (b *bench) allEnded() (ends []event.Payload) {
	b.t.Helper()
	started := map[belay.ProcessID]event.ProcessStarted{}
	var order []belay.ProcessID
	end := map[belay.ProcessID][]event.Payload{}
	for _, e := range b.log() {
		switch p := e.Data.(type) {
		case event.ProcessStarted:
			started[e.IDs.Process] = p
			order = append(order, e.IDs.Process)
		case event.ProcessCompleted, event.ProcessFailed, event.ProcessTerminated:
			end[e.IDs.Process] = append(end[e.IDs.Process], p)
		}
	}
	for _, id := range order {
		if p := started[id]; len(end[id]) != 1 || osprocess.Alive(p.PID, p.StartTime) {
			b.t.Errorf("%s (pid %d, alive %v) has the ends %+v", id, p.PID, osprocess.Alive(p.PID, p.StartTime), end[id])
		}
		ends = append(ends, end[id]...)
	}
	return ends
}

const server = "  - calls: [{tool: exec, args: {command: 'echo up; exec sleep 300', background_after: 0}}]\n  - text: it runs\n"

// Guarantee: T60.
func TestBackgroundProcessesEndWhenTheirSessionRests(t *testing.T) {
	b := programs(t, server)
	log := b.run()
	if n := len(find[event.TurnCompleted](log)); n != 1 {
		t.Errorf("%d turns are complete", n)
	}
	ends := b.allEnded()
	if len(ends) != 1 || ends[0].(event.ProcessTerminated).Reason != "shutdown" {
		t.Errorf("it ended with %+v", ends)
	}
	if last := log[len(log)-1].Type(); last != "process.terminated" {
		t.Errorf("the last fact is %s", last)
	}
	if out := find[event.ProcessOutput](log); len(out) > 1 || len(out) == 1 && out[0].Text != "up\n" {
		t.Errorf("its output is %+v", out)
	}
}

// A session whose driver stays keeps what runs, and commands reach it.
// Guarantee: T63.
func TestBackgroundProcessesHearCommands(t *testing.T) {
	b := programs(t, "  - calls: [{tool: exec, args: {command: 'read x; echo got $x; read y; echo $y', background_after: 0}}]\n  - text: it runs\n")
	b.submit(1, "go")
	rests := make(chan struct{}, 1)
	session := make(chan error, 1)
	go func() {
		session <- b.e.Session(t.Context(), sess, func([]store.LaneRow) bool {
			select {
			case rests <- struct{}{}:
			default:
			}
			return len(find[event.ProcessCompleted](b.log())) == 0
		})
	}()
	<-rests
	var id belay.ProcessID
	for _, e := range b.log() {
		if e.IDs.Process != "" {
			id = e.IDs.Process
		}
	}
	c := b.c
	c.Owner = store.Owner{ID: "other", Host: "test", PID: 2}
	other, err := newEngine(c) // another process
	if err != nil {
		t.Fatal(err)
	}
	say := func(c belay.Command) error {
		_, err := other.Submit(t.Context(), belay.Order{ID: belay.CommandID(belay.NewID(belay.PrefixCommand)), Principal: "user:ann", Session: sess, Stream: thr.Stream(), Command: c})
		return err
	}
	if err := say(belay.WriteProcessStdin{Process: id, Input: "one\n"}); err != nil {
		t.Fatal(err)
	}
	if err := say(belay.WriteProcessStdin{Process: "proc_none", Input: "one\n"}); belay.CodeOf(err) != belay.CodeUnavailable {
		t.Errorf("got %v", err)
	}
	if err := say(belay.WriteProcessStdin{Process: id, Input: "two\n", End: true}); err != nil {
		t.Fatal(err)
	}
	if err := <-session; err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, p := range find[event.ProcessOutput](b.log()) {
		text.WriteString(p.Text)
	}
	var sent []event.ProcessInput
	for _, p := range find[event.ProcessInput](b.log()) {
		if !p.Asked {
			sent = append(sent, p)
		}
	}
	if text.String() != "got one\ntwo\n" || len(sent) != 2 || sent[0].Bytes != 4 || !sent[1].End {
		t.Errorf("it printed %q after %+v", text.String(), sent)
	}
	ends := b.allEnded()
	if len(ends) != 1 || event.TypeOf(ends[0]) != "process.completed" {
		t.Errorf("it ended with %+v", ends)
	}
}

// Guarantee: T63.
func TestBackgroundProcessesAreTerminatedByCommand(t *testing.T) {
	b := programs(t, server)
	b.submit(1, "go")
	asked := false
	err := b.e.Session(t.Context(), sess, func([]store.LaneRow) bool {
		if asked {
			return len(find[event.ProcessTerminated](b.log())) == 0
		}
		asked = true
		for _, e := range b.log() {
			if _, ok := e.Data.(event.ProcessStarted); ok {
				o := belay.Order{ID: "cmd_kill", Principal: "user:ann", Session: sess, Stream: thr.Stream(), Command: belay.TerminateProcess{Process: e.IDs.Process}}
				if err := b.h.Enqueue(t.Context(), o); err != nil {
					t.Error(err)
				}
			}
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	if ends := b.allEnded(); len(ends) != 1 || ends[0].(event.ProcessTerminated).Reason != "cancelled" {
		t.Errorf("it ended with %+v", ends)
	}
}

// Wherever the driver leaves, nothing runs on, every process has one end in the
// log, and the next driver continues.
// Guarantee: T60.
func TestBackgroundProcessesAtEveryPointOfLeaving(t *testing.T) {
	script := "  - calls: [{tool: exec, args: {command: 'echo one; exec sleep 300', background_after: 0}}, {tool: process, args: {}}]\n" +
		"  - calls: [{tool: process, args: {}}]\n  - text: it runs\n"
	for at := 1; ; at++ {
		b := programs(t, script)
		ctx, leave := context.WithCancelCause(t.Context())
		var n atomic.Int64
		b.c.Point = func(string) {
			if n.Add(1) == int64(at) {
				leave(errors.New("told to leave"))
			}
		}
		e, err := newEngine(b.c)
		if err != nil {
			t.Fatal(err)
		}
		b.submit(1, "go")
		err = e.Session(ctx, sess, nil)
		if err != nil && ctx.Err() == nil {
			t.Fatal(err)
		}
		leave(nil)
		reached := n.Load() >= int64(at)
		b.allEnded()
		b.c.Point = nil
		if b.e, err = newEngine(b.c); err != nil {
			t.Fatal(err)
		}
		if err := b.e.Session(t.Context(), sess, nil); err != nil {
			t.Fatal(err)
		}
		b.allEnded()
		if !slices.ContainsFunc(b.log(), func(e event.Envelope) bool { return strings.HasPrefix(e.Type(), "turn.completed") }) {
			t.Errorf("left at %d: the turn didn't end", at)
		}
		if !reached {
			t.Logf("%d points", at-1)
			return
		}
	}
}

// leftover is a program that a call left behind.
type leftover struct{ kept atomic.Int32 }

func (*leftover) ID() belay.ProcessID            { return "proc_leftover" }
func (*leftover) Send(string, bool) (int, error) { return 0, nil }

func (l *leftover) Keep(ctx context.Context, why func() string) event.Payload {
	l.kept.Add(1)
	<-ctx.Done()
	return event.ProcessTerminated{Reason: why()}
}

// A call may leave a program in the very moment in which its drive leaves: nobody
// would see to it any more.
func TestBackgroundProcessesOfACallThatEndsWhileTheDriveLeaves(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	var l leftover
	start := fn{spec: tool.Spec{Name: "start", Doc: "d", Input: noArgs, Effect: belay.AtMostOnce}, run: func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		leave()
		<-ctx.Done()
		return tool.Result{Text: "it runs", Left: &l}, nil
	}}
	b := newBench(t, "steps:\n  - calls: [{tool: start, args: {}}]\n"+done, nil, start)
	b.submit(1, "go")
	if err := b.e.Session(ctx, sess, nil); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if l.kept.Load() != 1 {
		t.Errorf("it was seen to %d times", l.kept.Load())
	}
}

// TestCrashWithProgramsAtEveryPoint lets the process die at each point while a
// program runs in the background and another for a call: nothing of them is
// alive then, what had no end is lost, and the next process ends the turn.
// Guarantee: T61.
func TestCrashWithProgramsAtEveryPoint(t *testing.T) {
	at, points := make(chan int), atomic.Int64{}
	var over atomic.Bool
	var wg sync.WaitGroup
	for range 4 { // they wait most of the time
		wg.Go(func() {
			for n := range at {
				t.Run(strconv.Itoa(n), func(t *testing.T) {
					if !crashedWithPrograms(t, n) {
						over.Store(true)
						return
					}
					points.Add(1)
				})
			}
		})
	}
	for n := 1; !over.Load(); n++ {
		at <- n
	}
	close(at)
	wg.Wait()
	if points.Load() < 30 {
		t.Errorf("only %d points", points.Load())
	}
	t.Logf("%d points", points.Load())
}

func crashedWithPrograms(t *testing.T, at int) (died bool) {
	effects := filepath.Join(t.TempDir(), "effects.log")
	b := programs(t, "  - calls: [{tool: exec, args: {command: 'echo one; exec sleep 300', background_after: 0.02}}]\n"+
		"  - calls: [{tool: exec, args: {command: 'echo ran >>"+effects+"'}}]\n  - calls: [{tool: process, args: {}}]\n  - text: it runs\n")
	b.submit(1, "go")
	h := b.h.Data().Open(memory.Options{})
	ctx, cut := context.WithCancelCause(t.Context())
	defer cut(nil)
	var n atomic.Int64
	c := b.c
	c.Store, c.Owner = h, store.Owner{ID: "mortal", Host: "test", PID: 2}
	c.Point = func(string) {
		if n.Add(1) == int64(at) {
			h.Kill()
			cut(errPower)
		}
	}
	e, err := newEngine(c)
	if err != nil {
		t.Fatal(err)
	}
	err = e.Session(ctx, sess, nil)
	if died = ctx.Err() != nil; err != nil && !died {
		t.Fatal(err)
	}
	open := 0
	for _, e := range b.log() {
		if p, ok := e.Data.(event.ProcessStarted); ok {
			open++
			if osprocess.Alive(p.PID, p.StartTime) {
				t.Errorf("%s is alive", e.IDs.Process)
			}
		}
	}
	if !died {
		return false
	}
	if err := b.e.Session(t.Context(), sess, nil); err != nil {
		t.Fatal(err)
	}
	b.allEnded()
	log := b.log()
	if n := len(find[event.TurnCompleted](log)); n != 1 {
		t.Errorf("the turn ended %d times", n)
	}
	for _, p := range find[event.ProcessFailed](log) {
		if open--; p.Class != "lost" || open < 0 {
			t.Errorf("one more is lost than was begun: %+v", p)
		}
	}
	ran, _ := os.ReadFile(effects)
	if strings.Count(string(ran), "ran") > 1 {
		t.Errorf("the at-most-once call ran twice")
	}
	return true
}
