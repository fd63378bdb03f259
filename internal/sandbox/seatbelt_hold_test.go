package sandbox

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay"
)

// strapIn starts a program behind the gate, with a script in the place of the
// system's program. closes is what the script does to the file that is to be
// closed, which is its sixth argument after the profile.
func strapIn(t *testing.T, closes string, argv ...string) (*seatbeltHold, *exec.Cmd, *bytes.Buffer) {
	t.Helper()
	exe := filepath.Join(t.TempDir(), "sandbox-exec")
	if err := os.WriteFile(exe, []byte("#!/bin/sh\ntest \"$1 $2\" = '-p (version 1)' || exit 65\nshift 2\n"+closes+"\nexec \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	out := &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = out, out
	h := &seatbeltHold{layers: []belay.Layer{{Name: layerSeatbelt, State: belay.LayerApplied, Detail: unverified}}}
	if err := h.strap(cmd, exe, "(version 1)"); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return h, cmd, out
}

const closesIt = `rm "$6" && mkdir "$6"`

// Guarantee: T71.
func TestTheGateOfSeatbeltHoldsTheProgram(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "ran")
	for _, release := range []bool{false, true} {
		h, cmd, out := strapIn(t, closesIt, "/bin/sh", "-c", `echo "$1 and $2" >"$0"; for n in 3 4; do (: >&$n) 2>/dev/null && echo open $n; done; true`, mark, "a b", `"c"`)
		if err := h.Await(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(mark); err == nil {
			t.Fatal("it ran before it was released")
		}
		if a := h.Applied(); a.Level != belay.L0 || a.Network != belay.NetworkFull || a.Why == "" {
			t.Errorf("what nobody verified counts: %+v", a)
		}
		if release {
			if err := h.Release(); err != nil {
				t.Fatal(err)
			}
		} else if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		err := cmd.Wait()
		if said, rerr := os.ReadFile(mark); release != (rerr == nil) || release && string(said) != "a b and \"c\"\n" || release != (err == nil) {
			t.Errorf("released %v: it wrote %q, ended with %v: %s", release, said, err, out)
		}
		if !release {
			continue
		}
		if out.Len() > 0 {
			t.Errorf("the program has descriptors of the gate: %s", out)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(h.closed); err == nil {
			t.Errorf("%s is left", h.closed)
		}
	}
}

// Guarantee: T71.
func TestAProfileWithoutEffectRunsNothing(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "ran")
	for closes, want := range map[string]string{":": "without effect", "exit 65": "didn't take the profile"} {
		h, cmd, _ := strapIn(t, closes, "/bin/sh", "-c", ": >"+mark)
		if err := h.Await(t.Context()); belay.CodeOf(err) != belay.CodeNotConfined || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", closes, err)
		}
		h.Close()
		if err := cmd.Wait(); err == nil {
			t.Errorf("%q: it ended well", closes)
		}
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("it ran")
	}
	h, cmd, _ := strapIn(t, "read -r never", "/bin/true")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.Await(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody waits any more: %v", err)
	}
	h.Close()
	cmd.Wait() //nolint:errcheck // it never began
}
