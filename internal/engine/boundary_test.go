package engine_test

import (
	"bufio"
	"context"
	"fmt"
	"github.com/belay-run/belay/internal/effect"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/policy"
	proc "github.com/belay-run/belay/internal/process"
	"github.com/belay-run/belay/internal/tool"
	toolexec "github.com/belay-run/belay/internal/tool/exec"
)

// shellBox is a boundary whose helper is a shell: it reports, waits for a line
// and runs the program, unless its command line writes to a place that isn't
// allowed. Then it says what the system would say.
type shellBox struct {
	b     belay.Boundary
	level belay.Level // that it reports to have applied
	saw   proc.Evidence
}

type shellHold struct {
	box      *shellBox
	say, let *os.File
	far      []*os.File
}

const shellHelper = `allowed=$1; shift
echo ready >&3; read -r go <&4 || exit 9
exec 3>&- 4<&-
for word; do
  case $word in *'>'*) place=${word#*>}; place=${place%%[; ]*}
    case $place in /*) dir=${place%/*}; case ":$allowed:" in *":$dir:"*) ;; *) echo "sh: 1: cannot create $place: Read-only file system" >&2; exit 2;; esac;; esac;;
  esac
done
exec "$@"`

func (x *shellBox) Prepare(cmd *exec.Cmd) (proc.Hold, error) {
	say, tell, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	hear, let, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.ExtraFiles = append(cmd.ExtraFiles, tell, hear)
	cmd.Args = append([]string{"helper", "-c", shellHelper, "helper", strings.Join(x.b.Write, ":"), cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	return &shellHold{box: x, say: say, let: let, far: []*os.File{tell, hear}}, nil
}

func (h *shellHold) Await(context.Context) error {
	for _, f := range h.far {
		f.Close()
	}
	_, err := bufio.NewReader(h.say).ReadString('\n')
	return err
}

func (h *shellHold) Applied() belay.Applied {
	return belay.Applied{Level: h.box.level, Network: h.box.b.Network, Layers: []belay.Layer{{Name: "shell", State: belay.LayerApplied}}}
}

func (h *shellHold) Evidence() proc.Evidence { return h.box.saw }

func (h *shellHold) Release() error { _, err := io.WriteString(h.let, "go\n"); return err }

func (h *shellHold) Close() error {
	for _, f := range append(h.far, h.say, h.let) {
		f.Close()
	}
	return nil
}

// boxed is a bench whose programs are confined, on a machine of a level.
func boxed(t *testing.T, script string, mode belay.Mode, applies belay.Level) *bench {
	b := newBench(t, script, func(s *belay.Settings) { s.Mode, s.Approvals = mode, belay.ApprovalsWait }, toolexec.Exec(toolexec.Config{}))
	b.c.Confine = func(is belay.Boundary, _ string) (proc.Box, error) { return &shellBox{b: is, level: applies}, nil }
	var err error
	if b.e, err = newEngine(b.c); err != nil {
		t.Fatal(err)
	}
	// A user's rule lets everything run: what the text of a command says is no matter here.
	set, err := policy.Compile(policy.Document{Version: 1, Rules: append(policy.BuiltinRules(), policy.Rule{ID: "all", Tier: policy.TierUser, Verdict: policy.Allow,
		Match: policy.Match{Tool: []string{"exec"}, Command: &policy.CommandMatch{Class: []string{"write-workspace", "destructive", "escape-attempt"}}}})})
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := set.Encode()
	ref, err := b.h.Put(t.Context(), raw, "")
	if err != nil {
		t.Fatal(err)
	}
	b.changeRules(func(r *thread.Rules) {
		r.Policy, r.Boundary = &ref, thread.Boundary{Level: "L3", Network: "full", Decides: true}
	})
	return b
}

// told is what happened in a log, in a few words.
func told(log []event.Envelope) (out []string) {
	for _, e := range log {
		switch p := e.Data.(type) {
		case event.PermissionEvaluated:
			out = append(out, p.Decision+" in "+p.Boundary)
		case event.ToolStarted:
			out = append(out, fmt.Sprintf("attempt %d", p.Attempt))
		case event.SandboxApplied:
			out = append(out, fmt.Sprintf("applied %s of %s", p.Level, p.Boundary))
		case event.ProcessStarted:
			out = append(out, "process")
		case event.SandboxViolation:
			out = append(out, "stopped "+p.Op)
		case event.ToolFailed:
			out = append(out, fmt.Sprintf("failed %s %s final=%v", p.Problem.Class, p.Problem.Code, p.Final))
		case event.ToolResult:
			out = append(out, "result")
		}
	}
	return out
}

// Guarantee: T11.
func TestWhatABoundaryStoppedRunsAgainInAWiderOne(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "out")
	if err := os.Mkdir(outside, 0o755); err != nil {
		t.Fatal(err)
	}
	b := boxed(t, "steps:\n  - calls: [{tool: exec, args: {command: 'echo hi >"+outside+"/a'}}]\n"+done, belay.ModeDefault, "L3")
	log := b.run()
	want := []string{"allow in workspace-write", "attempt 1", "applied L3 of workspace-write", "process", "stopped write", "failed denied BOUNDARY_VIOLATION final=false", "ask in workspace-write, write " + outside}
	if got := told(log); !slices.Equal(got, want) {
		t.Fatalf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if _, err := os.Stat(outside + "/a"); err == nil {
		t.Fatal("the boundary stopped nothing")
	}
	asks := find[event.ActionRequired](log)
	if len(asks) != 1 || asks[0].Stopped == nil || asks[0].Stopped.Target != outside+"/a" || asks[0].Bounds == nil {
		t.Fatalf("asked is %+v", asks)
	}
	b.answer(log, belay.RespondAction{Decision: "allow"})
	want = append(want, "attempt 2", "applied L3 of workspace-write, write "+outside, "process", "result")
	if got := told(b.log()); !slices.Equal(got[:min(len(got), len(want))], want) {
		t.Fatalf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if said, err := os.ReadFile(outside + "/a"); err != nil || string(said) != "hi\n" {
		t.Errorf("it wrote %q, %v", said, err)
	}
}

// answer answers the question that is open, and lets the session go on.
func (b *bench) answer(log []event.Envelope, c belay.RespondAction) {
	b.t.Helper()
	for _, e := range log {
		if _, ok := e.Data.(event.ActionRequired); ok {
			c.Action = e.IDs.Action
		}
	}
	o := belay.Order{ID: belay.CommandID("cmd_" + string(c.Action)), Principal: "user:ann", Session: sess, Stream: thr.Stream(), Command: c}
	if err := b.h.Enqueue(b.t.Context(), o); err != nil {
		b.t.Fatal(err)
	}
	if err := b.e.Session(b.t.Context(), sess, nil); err != nil {
		b.t.Fatal(err)
	}
}

// TestACountIsBelievedOverWhatAProgramSays: where the system counts processes that
// were refused, a program that only says so failed like any other.
// Guarantee: T70.
func TestACountIsBelievedOverWhatAProgramSays(t *testing.T) {
	for counted, want := range map[bool]int{true: 0, false: 1} {
		b := boxed(t, "steps:\n  - calls: [{tool: exec, args: {command: 'echo sh: 1: Cannot fork; exit 2'}}]\n"+done, belay.ModeDefault, "L3")
		b.c.Confine = func(is belay.Boundary, _ string) (proc.Box, error) {
			return &shellBox{b: is, level: "L3", saw: proc.Evidence{Counted: counted}}, nil
		}
		var err error
		if b.e, err = newEngine(b.c); err != nil {
			t.Fatal(err)
		}
		log := b.run()
		if stopped, ran := find[event.SandboxViolation](log), find[event.ProcessCompleted](log); len(stopped) != want || len(ran) != 1 {
			t.Errorf("counted %v: %+v of %+v", counted, stopped, ran)
		}
	}
}

// TestAProgramThatGoesOnWasStoppedToo: what a boundary stopped is on record also of
// a program that ended well, whose result stands. What it prints of limits may be
// any text.
// Guarantee: G70.
func TestAProgramThatGoesOnWasStoppedToo(t *testing.T) {
	for said, want := range map[string]int{
		"sh: 1: cannot create /srv/out/a: Read-only file system": 1,
		"sh: 1: Cannot fork": 0,
		"all is well":        0,
	} {
		b := boxed(t, "steps:\n  - calls: [{tool: exec, args: {command: 'echo "+said+"'}}]\n"+done, belay.ModeDefault, "L3")
		log := b.run()
		stopped, results := find[event.SandboxViolation](log), find[event.ToolResult](log)
		if len(stopped) != want || len(find[event.ToolFailed](log)) != 0 || len(results) == 0 {
			t.Errorf("%s: %+v, results %+v", said, stopped, results)
		}
		if want > 0 && len(stopped) > 0 && (stopped[0].Op != policy.OpWrite || stopped[0].Target != "/srv/out/a") {
			t.Errorf("%s: stopped is %+v", said, stopped)
		}
	}
}

// TestAnUnverifiedBoundaryIsTriedWithoutALevel: programs run in it where
// somebody wants that, and what was applied is as little as the machine promises.
// Guarantee: T71.
func TestAnUnverifiedBoundaryIsTriedWithoutALevel(t *testing.T) {
	for tries, want := range map[bool][]string{
		false: {"allow in read-only", "applied L0 of read-only", "attempt 1", "process", "result"}, // nobody is asked for a box
		true:  {"allow in read-only", "attempt 1", "applied L0 of read-only", "process", "result"},
	} {
		b := boxed(t, "steps:\n  - calls: [{tool: exec, args: {command: 'echo hi'}}]\n"+done, belay.ModeDefault, "L0")
		b.changeRules(func(r *thread.Rules) {
			r.Boundary = thread.Boundary{Level: "L0", Why: "nobody knows", Network: "full", Decides: true, Tries: tries}
		})
		if got := told(b.run()); !slices.Equal(got[:min(len(got), len(want))], want) {
			t.Errorf("tries %v: got\n%s\nwant\n%s", tries, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// Guarantee: G53.
func TestTheModelLearnsOfADeniedWiderBoundary(t *testing.T) {
	b := boxed(t, "steps:\n  - calls: [{tool: exec, args: {command: 'echo hi >/srv/out/a'}}]\n"+done, belay.ModeDefault, "L3")
	b.answer(b.run(), belay.RespondAction{Decision: "deny", Message: "use the workspace"})
	ends := find[event.ToolFailed](b.log())
	if len(ends) != 2 || !ends[1].Final || ends[1].Problem.Class != tool.Denied || ends[1].Problem.Code != tool.CodeViolation {
		t.Fatalf("it ended with %+v", ends)
	}
	last := b.asked[len(b.asked)-1]
	for _, w := range []string{"use the workspace", "Read-only file system"} {
		if !strings.Contains(last, w) {
			t.Errorf("the model isn't told %q: %s", w, last)
		}
	}
	if started := find[event.ProcessStarted](b.log()); len(started) != 1 {
		t.Errorf("%d programs ran", len(started))
	}
}

func TestABoundaryThatCameOutWeakerRunsNothing(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "ran")
	for name, confine := range map[string]effect.Confine{
		"less was applied":   func(is belay.Boundary, _ string) (proc.Box, error) { return &shellBox{b: is, level: "L1"}, nil },
		"nobody can":         nil,
		"it can't be made":   func(belay.Boundary, string) (proc.Box, error) { return nil, os.ErrPermission },
		"nobody says":        func(is belay.Boundary, _ string) (proc.Box, error) { return mute{&shellBox{b: is, level: "L3"}}, nil },
		"it can't be set up": func(is belay.Boundary, _ string) (proc.Box, error) { return broken{}, nil },
	} {
		t.Run(name, func(t *testing.T) {
			b := boxed(t, "steps:\n  - calls: [{tool: exec, args: {command: 'touch "+mark+"'}}]\n"+done, belay.ModeAuto, "L3")
			b.c.Confine = confine
			var err error
			if b.e, err = newEngine(b.c); err != nil {
				t.Fatal(err)
			}
			log := b.run()
			ends := find[event.ToolFailed](log)
			if len(ends) != 1 || ends[0].Problem.Code != effect.CodeNotApplied || ends[0].Problem.Class != tool.Denied || !ends[0].Final {
				t.Errorf("it ended with %+v", ends)
			}
			if n := len(find[event.ProcessStarted](log)) + len(find[event.SandboxApplied](log)); n != 0 {
				t.Errorf("%d facts announce a program", n)
			}
			if _, err := os.Stat(mark); err == nil {
				t.Error("it ran")
			}
		})
	}
}

// mute is a boundary that doesn't say what it applied.
type mute struct{ *shellBox }

func (m mute) Prepare(cmd *exec.Cmd) (proc.Hold, error) {
	h, err := m.shellBox.Prepare(cmd)
	return struct{ proc.Hold }{h}, err
}

type broken struct{}

func (broken) Prepare(*exec.Cmd) (proc.Hold, error) { return nil, os.ErrPermission }
