//go:build unix

package exec_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/process"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/tool/exec"
	"github.com/belay-run/belay/internal/tool/tooltest"
)

// thread keeps what calls leave running, as an engine does.
type thread struct {
	*tooltest.Bench
	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup
	mu   sync.Mutex
	left []tool.Running
	n    int
	let  map[belay.Digest]bool // outputs that have expired
}

func newThread(t *testing.T) *thread {
	th := &thread{Bench: tooltest.NewBench(t)}
	th.ctx, th.stop = context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(th.rest)
	return th
}

// rest ends everything, as the end of a session does.
func (th *thread) rest() {
	th.stop()
	th.wg.Wait()
}

func (th *thread) Left() []tool.Running {
	th.mu.Lock()
	defer th.mu.Unlock()
	return slices.Clone(th.left)
}

func (th *thread) Recorded(_ context.Context, id belay.ProcessID) (facts []event.Envelope, err error) {
	if id != th.id() {
		return nil, nil
	}
	for _, p := range th.Sink.Facts() {
		facts = append(facts, event.Envelope{Data: p})
	}
	for d := range th.let {
		facts = append(facts, event.Envelope{Data: event.OutputExpired{Digest: d, Reason: event.ExpiredByRetention}})
	}
	return facts, nil
}

func (th *thread) id() belay.ProcessID { return belay.ProcessID(fmt.Sprint("proc_", th.n)) }

// call runs a tool; the next process has the next id.
func (th *thread) call(t tool.Tool, a args) (tool.Result, error) {
	if t.Spec().Name == "exec" {
		th.n++
	}
	c := th.Call(a)
	c.Process, c.Processes = th.id(), th
	r, err := t.Run(th.T.Context(), c)
	if r.Left != nil {
		th.keep(r.Left)
	}
	return r, err
}

func (th *thread) keep(r tool.Running) {
	th.mu.Lock()
	th.left = append(th.left, r)
	th.mu.Unlock()
	th.wg.Go(func() {
		end := r.Keep(th.ctx, func() string { return tool.Shutdown })
		th.mu.Lock()
		th.left = slices.DeleteFunc(th.left, func(o tool.Running) bool { return o == r })
		th.mu.Unlock()
		th.Sink.Fact(end)
	})
}

func (th *thread) ok(t tool.Tool, a args) string {
	th.T.Helper()
	r, err := th.call(t, a)
	if err != nil {
		th.T.Fatalf("%v: %v", a, err)
	}
	return r.Text
}

// until reads a process until it has said something.
func (th *thread) until(id, want string) string {
	th.T.Helper()
	var all strings.Builder
	for range 500 {
		all.WriteString(th.ok(exec.Processes(), args{"id": id, "wait_seconds": 20}))
		if strings.Contains(all.String(), want) {
			return all.String()
		}
	}
	th.T.Fatalf("%s never said %q, but %.200q", id, want, all.String())
	return ""
}

// printed waits until a process has printed something, wherever it was read.
func (th *thread) printed(id, want string) {
	th.T.Helper()
	for range 500 {
		if strings.Contains(th.ok(exec.Processes(), args{"id": id, "offset": 0, "wait_seconds": 20}), want) {
			return
		}
	}
	th.T.Fatalf("%s never printed %q", id, want)
}

func TestAProcessGoesOnAfterItsCall(t *testing.T) {
	th := newThread(t)
	text := th.ok(exec.Exec(config()), args{"command": "echo up; read x; echo got $x; read y; echo bye; exit 3", "background_after": 0})
	if !strings.Contains(text, "still running as proc_1 after ") {
		t.Fatalf("got %q", text)
	}
	th.printed("proc_1", "up\n")
	if got := th.ok(exec.Processes(), args{}); !strings.HasPrefix(got, "proc_1 running for ") || !strings.Contains(got, "read x") {
		t.Errorf("listed %q", got)
	}
	if got := th.ok(exec.Processes(), args{"id": "proc_1"}); !strings.HasPrefix(got, "[bytes 3 to 3 of 3]\nrunning for") {
		t.Errorf("nothing new reads as %q", got)
	}
	if got := th.ok(exec.Sender(), args{"id": "proc_1", "input": "word\n"}); !strings.HasPrefix(got, "sent 5 bytes") {
		t.Errorf("got %q", got)
	}
	th.until("proc_1", "got word\n")
	th.ok(exec.Sender(), args{"id": "proc_1", "control": "eof"})
	th.until("proc_1", "exit 3")
	th.wg.Wait()
	got := facts(th.Bench) // a slow machine has more pieces of output
	if !strings.HasPrefix(got, "process.started ") || !strings.HasSuffix(got, " process.output process.completed") || strings.Count(got, "process.input") != 2 {
		t.Errorf("facts %s", got)
	}
	if got := th.ok(exec.Processes(), args{"id": "proc_1", "offset": 3}); got != "got word\nbye\n[bytes 3 to 16 of 16]\nexit 3" {
		t.Errorf("what is kept reads as %q", got)
	}
	if got := th.ok(exec.Processes(), args{}); got != "nothing runs in the background" {
		t.Errorf("listed %q", got)
	}
	gone(t, th.Bench)
}

func TestACommandThatEndsBeforeItsYieldIsLikeAnyOther(t *testing.T) {
	th := newThread(t)
	for _, a := range []args{{"command": "echo quick; exit 4", "background_after": 60}} {
		if got := th.ok(exec.Exec(config()), a); got != "quick\nexit 4" {
			t.Errorf("%v: got %q", a, got)
		}
	}
	if len(th.Left()) != 0 {
		t.Error("something is left")
	}
}

func TestACommandThatRunsOnIsLeft(t *testing.T) {
	th := newThread(t)
	began := time.Now()
	text := th.ok(exec.Exec(config()), args{"command": "echo begun; sleep 300", "background_after": 0.5})
	if !strings.Contains(text, "still running as proc_1 after") || time.Since(began) < 500*time.Millisecond {
		t.Errorf("after %v: %q", time.Since(began), text)
	}
	if got := th.ok(exec.Sender(), args{"id": "proc_1", "control": "kill"}); got != "ended (cancelled) by SIGTERM" {
		t.Errorf("got %q", got)
	}
	th.wg.Wait()
	all := th.Sink.Facts()
	if end, ok := all[len(all)-1].(event.ProcessTerminated); !ok || end.Reason != "cancelled" || end.Signal != "SIGTERM" {
		t.Errorf("facts %s", facts(th.Bench))
	}
	gone(t, th.Bench)
	for _, a := range []args{{"id": "proc_1", "input": "late\n"}, {"id": "proc_1", "control": "kill"}} {
		_, err := th.call(exec.Sender(), a)
		if e := tooltest.Failure(err); e == nil || e.Code != exec.CodeEnded || !strings.Contains(e.Message, "ended (cancelled) by SIGTERM") {
			t.Errorf("%v: got %v, want that it has ended, and how", a, err)
		}
	}
}

func TestWhatRunsEndsWithItsSession(t *testing.T) {
	th := newThread(t)
	th.ok(exec.Exec(config()), args{"command": "sleep 300 & trap '' TERM; echo up; while :; do sleep 1; done", "background_after": 0})
	th.printed("proc_1", "up")
	th.rest()
	all := th.Sink.Facts()
	if end, ok := all[len(all)-1].(event.ProcessTerminated); !ok || end.Reason != "shutdown" || end.Signal != "SIGKILL" {
		t.Errorf("facts %v", th.Sink.Facts())
	}
	gone(t, th.Bench)
}

// Guarantee: T65.
func TestATerminal(t *testing.T) {
	th := newThread(t)
	text := th.ok(exec.Exec(config()), args{"command": `stty size; test -t 0 -a -t 1 -a -t 2 && echo all; trap 'stty size' WINCH; echo $TERM; while :; do read x; echo "<$x>"; done`, "background_after": 0, "tty": true})
	if !strings.Contains(text, "still running") {
		t.Fatalf("got %q", text)
	}
	th.printed("proc_1", "24 80\nall\nxterm\n")
	if s := th.Sink.Facts()[0].(event.ProcessStarted); !s.TTY {
		t.Errorf("got %+v", s)
	}
	th.ok(exec.Sender(), args{"id": "proc_1", "control": "40x132"})
	th.until("proc_1", "40 132")
	th.ok(exec.Sender(), args{"id": "proc_1", "input": "typed\n"})
	th.until("proc_1", "<typed>")
	th.rest()
	gone(t, th.Bench)
}

// Guarantee: T66.
func TestLimitsOfABackgroundProcess(t *testing.T) {
	for want, a := range map[string]args{
		"timeout": {"command": "while :; do echo x; sleep 0.1; done", "timeout_seconds": 1.5, "background_after": 0},
		"idle":    {"command": "echo once; sleep 300", "idle_seconds": 1, "background_after": 0},
	} {
		th := newThread(t)
		th.ok(exec.Exec(config()), a)
		th.wg.Wait()
		all := th.Sink.Facts()
		if end, ok := all[len(all)-1].(event.ProcessTerminated); !ok || end.Reason != want {
			t.Errorf("%s: got %+v", want, all[len(all)-1])
		}
		gone(t, th.Bench)
	}
	b := tooltest.NewBench(t)
	_, err := b.Run(t.Context(), exec.Exec(config()), args{"command": "echo once; sleep 300", "idle_seconds": 0.7})
	if e := tooltest.Failure(err); e == nil || e.Code != exec.CodeIdle || e.Text != "once\n" {
		t.Errorf("got %v", err)
	}
}

// Guarantee: T66.
func TestTooMuchOutputEndsTheProgram(t *testing.T) {
	b := tooltest.NewBench(t)
	sink := &counting{Sink: b.Sink}
	call := b.Call(args{})
	call.Sink = sink
	p := exec.Program{Argv: []string{"/bin/sh", "-c", "while :; do head -c 65536 /dev/zero | tr '\\000' x; done"}, Dir: b.Dir, Env: config().Environ, Limit: time.Minute, Grace: time.Second, Most: 1 << 20}
	_, end, err := p.Run(t.Context(), call)
	if e := tooltest.Failure(err); e == nil || e.Code != exec.CodeTooMuch || end.How != "output" || sink.n > 1<<20 {
		t.Errorf("got %+v, %v after %d bytes", end, err, sink.n)
	}
}

// Guarantee: T64.
func TestPiecesAreTheWholeOutput(t *testing.T) {
	th := newThread(t)
	script := `i=0; while [ $i -lt 20000 ]; do echo "line $i of the output, é and more of it to make it long"; i=$((i+1)); done; printf '\377end'`
	th.ok(exec.Exec(config()), args{"command": script + "; sleep 300", "background_after": 0})
	th.until("proc_1", "end")
	th.ok(exec.Sender(), args{"id": "proc_1", "control": "kill"})
	th.wg.Wait()
	var whole []byte
	for _, f := range th.Sink.Facts() {
		p, ok := f.(event.ProcessOutput)
		if !ok {
			continue
		}
		if p.Offset != int64(len(whole)) {
			t.Fatalf("a piece at %d after %d bytes", p.Offset, len(whole))
		}
		part := []byte(p.Text)
		if p.Ref != nil {
			var err error
			if part, err = th.Sink.Kept(p.Ref.Digest); err != nil {
				t.Fatal(err)
			}
		}
		whole = append(whole, part...)
	}
	if !bytes.HasSuffix(whole, []byte("line 19999 of the output, é and more of it to make it long\n\xffend")) || !bytes.HasPrefix(whole, []byte("line 0 of")) {
		t.Fatalf("%d bytes, ending %q", len(whole), whole[max(0, len(whole)-40):])
	}
	at := bytes.Index(whole, []byte("line 10000"))
	if got := th.ok(exec.Processes(), args{"id": "proc_1", "offset": at}); !strings.HasPrefix(got, "line 10000 of the output, é") ||
		!strings.Contains(got, fmt.Sprintf("[bytes %d to %d of %d]\nended (cancelled)", at, at+16<<10, len(whole))) {
		t.Errorf("got %.60q … %q", got, got[len(got)-80:])
	}
	th.let = map[belay.Digest]bool{}
	for _, f := range th.Sink.Facts() {
		if p, ok := f.(event.ProcessOutput); ok && p.Ref != nil {
			th.let[p.Ref.Digest] = true
		}
	}
	_, err := th.call(exec.Processes(), args{"id": "proc_1", "offset": at})
	if e := tooltest.Failure(err); e == nil || e.Code != exec.CodeExpired || e.Class != tool.NotFound {
		t.Errorf("got %v, want that the output is not kept any more", err)
	}
	th.let = nil
	th.Sink.Forget()
	_, err = th.call(exec.Processes(), args{"id": "proc_1", "offset": at})
	if e := tooltest.Failure(err); err == nil || e != nil && e.Code == exec.CodeExpired {
		t.Errorf("what is missing without a fact: %v", err)
	}
}

func TestProcessToolsRefuse(t *testing.T) {
	th := newThread(t)
	th.ok(exec.Exec(config()), args{"command": "exec sleep 300", "background_after": 0})
	for _, c := range []struct {
		tool tool.Tool
		args args
		code string
	}{
		{exec.Processes(), args{"id": "proc_9"}, exec.CodeNoProcess},
		{exec.Processes(), args{"id": "proc_1", "offset": -1}, tool.CodeBadArguments},
		{exec.Processes(), args{"wait_seconds": 1000}, tool.CodeBadArguments},
		{exec.Sender(), args{"id": "proc_9", "control": "kill"}, exec.CodeNoProcess},
		{exec.Sender(), args{"id": "proc_1"}, tool.CodeBadArguments},
		{exec.Sender(), args{"id": "proc_1", "control": "kill", "input": "x"}, tool.CodeBadArguments},
		{exec.Sender(), args{"id": "proc_1", "control": "10x10"}, exec.CodeNoTerminal},
		{exec.Sender(), args{"id": "proc_1", "control": "-1x10"}, tool.CodeBadArguments},
		{exec.Sender(), args{"id": "proc_1", "input": strings.Repeat("x", 1<<20)}, exec.CodeNoInput},
		{exec.Exec(config()), args{"command": "true", "background_after": 61}, tool.CodeBadArguments},
		{exec.Exec(config()), args{"command": "true", "background_after": 0, "timeout_seconds": 90000}, tool.CodeBadArguments},
	} {
		_, err := th.call(c.tool, c.args)
		if e := tooltest.Failure(err); e == nil || e.Code != c.code {
			t.Errorf("%.60v: got %v, want %s", c.args, err, c.code)
		}
	}
}

func TestSixteenProcessesAtMost(t *testing.T) {
	th := newThread(t)
	for range 16 {
		th.keep(idle{th.ctx})
	}
	_, err := th.call(exec.Exec(config()), args{"command": "true", "background_after": 0})
	if e := tooltest.Failure(err); e == nil || e.Code != exec.CodeTooMany {
		t.Errorf("got %v", err)
	}
	if got := th.ok(exec.Exec(config()), args{"command": "true"}); got != "exit 0" {
		t.Errorf("a call that waits: %q", got)
	}
}

// idle is something that runs.
type idle struct{ ctx context.Context }

func (idle) ID() belay.ProcessID            { return "proc_idle" }
func (idle) Send(string, bool) (int, error) { return 0, process.ErrNoInput }
func (i idle) Keep(ctx context.Context, _ func() string) event.Payload {
	<-i.ctx.Done()
	return event.ProcessCompleted{}
}

// Guarantee: T67.
func TestOutputIsShownAsATerminalWould(t *testing.T) {
	b := tooltest.NewBench(t)
	r, err := b.Run(t.Context(), exec.Exec(config()), args{"command": `printf '\033[32mok\033[0m\n1%%\r50%%\r100%%\n'`})
	if err != nil || r.Text != "ok\n100%\nexit 0" {
		t.Errorf("got %q, %v", r.Text, err)
	}
	// A progress bar of a megabyte doesn't push out what is worth reading.
	r, err = b.Run(t.Context(), exec.Exec(config()), args{"command": `echo first; i=0; while [ $i -lt 20000 ]; do printf 'progress %d of 20000, and a long bar ------------------\r' $i; i=$((i+1)); done; echo; echo last`})
	if err != nil || r.Text != "first\nprogress 19999 of 20000, and a long bar ------------------\nlast\nexit 0" {
		t.Errorf("got %q, %v", r.Text, err)
	}
}

// Guarantee: T67.
func TestBinaryOutputIsNamedNotShown(t *testing.T) {
	b := tooltest.NewBench(t)
	png := append([]byte("\x89PNG\r\n\x1a\n"), bytes.Repeat([]byte{0, 1, 2, 0xff}, 500)...)
	if err := os.WriteFile(filepath.Join(b.Dir, "a.png"), png, 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := b.Run(t.Context(), exec.Exec(config()), args{"argv": []string{"cat", "a.png"}})
	if err != nil || r.Output == nil || !strings.HasPrefix(r.Text, "[a PNG image, not shown: 2008 bytes, the whole output of 2008 bytes is sha256:") || !strings.HasSuffix(r.Text, "]\nexit 0") {
		t.Fatalf("got %q, %v", r.Text, err)
	}
	if kept, err := b.Sink.Kept(r.Output.Digest); err != nil || !bytes.Equal(kept, png) || r.Output.Media != "application/octet-stream" {
		t.Errorf("kept %d bytes as %s, %v", len(kept), r.Output.Media, err)
	}
}
