//go:build unix

package process_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/belay-run/belay/internal/process"
)

// gate is a boundary of nothing: its helper is a shell that says it is ready
// and executes the program when it is told to.
type gate struct {
	says    string // what the helper reports
	refuses error  // Prepare fails
	closed  int
}

type gateHold struct {
	g     *gate
	ready *os.File
	let   *os.File
	far   []*os.File // the helper's ends
}

func (g *gate) Prepare(cmd *exec.Cmd) (process.Hold, error) {
	if g.refuses != nil {
		return nil, g.refuses
	}
	ready, say, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	hear, let, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	h := &gateHold{g: g, ready: ready, let: let, far: []*os.File{say, hear}}
	fd := 3 + len(cmd.ExtraFiles)
	cmd.ExtraFiles = append(cmd.ExtraFiles, say, hear)
	helper := fmt.Sprintf(`echo %s >&%d; read -r x <&%d || exit 9; exec "$@" %d>&- %d<&-`, g.says, fd, fd+1, fd, fd+1)
	cmd.Args = append([]string{"helper", "-c", helper, "helper", cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	return h, nil
}

func (h *gateHold) Await(ctx context.Context) error {
	for _, f := range h.far {
		f.Close()
	}
	stop := context.AfterFunc(ctx, func() { h.ready.Close() })
	defer stop()
	line, err := bufio.NewReader(h.ready).ReadString('\n')
	if err == nil && line != "ready\n" {
		err = fmt.Errorf("the helper says %q", line)
	}
	return err
}

func (h *gateHold) Release() error {
	_, err := io.WriteString(h.let, "go\n")
	return err
}

func (h *gateHold) Close() error {
	h.g.closed++
	for _, f := range append(h.far, h.ready, h.let) {
		f.Close()
	}
	return nil
}

// Guarantee: T50.
func TestAHeldProgramBeginsWithItsRelease(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "ran")
	g := &gate{says: "ready"}
	var out bytes.Buffer
	cmd := sh(`echo ran >"` + mark + `"; echo out; exit 5`)
	cmd.Box, cmd.Output = g, &out
	p, err := process.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(mark); !os.IsNotExist(err) {
		t.Errorf("the program ran before it was released: %v", err)
	}
	if err := p.Release(); err != nil {
		t.Fatal(err)
	}
	if e := p.Wait(t.Context()); e.Code != 5 || e.How != process.Exited || out.String() != "out\n" {
		t.Errorf("got %+v with %q", e, out.String())
	}
	if _, err := os.Stat(mark); err != nil {
		t.Error(err)
	}
	if g.closed != 1 {
		t.Errorf("the hold was closed %d times, want once", g.closed)
	}
}

// Guarantee: T50.
func TestAProgramThatIsNotReleasedNeverRuns(t *testing.T) {
	for says, want := range map[string]bool{"ready": true, "less": false} {
		mark := filepath.Join(t.TempDir(), "ran")
		g := &gate{says: says}
		cmd := sh(`echo ran >"` + mark + `"`)
		cmd.Box = g
		p, err := process.Start(cmd)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Await(t.Context()); (err == nil) != want {
			t.Errorf("a helper that says %s: %v", says, err)
		}
		if e := p.Wait(t.Context()); e.Code != 9 {
			t.Errorf("the helper ended with %+v, want that it heard nothing", e)
		}
		if _, err := os.Stat(mark); !os.IsNotExist(err) {
			t.Errorf("the program ran: %v", err)
		}
		if g.closed != 1 {
			t.Errorf("the hold was closed %d times, want once", g.closed)
		}
	}
}

func TestABoundaryThatCannotBeStartsNothing(t *testing.T) {
	no := errors.New("no namespaces here")
	cmd := sh(`exit 0`)
	cmd.Box = &gate{refuses: no}
	if _, err := process.Start(cmd); !errors.Is(err, no) {
		t.Errorf("got %v", err)
	}
	g := &gate{says: "ready"}
	cmd.Box, cmd.Dir = g, "/nowhere"
	if _, err := process.Start(cmd); err == nil || g.closed != 1 {
		t.Errorf("started in a folder that isn't there: %v, the hold closed %d times", err, g.closed)
	}
}
