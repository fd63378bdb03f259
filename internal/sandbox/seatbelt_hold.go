package sandbox

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/belay-run/belay"
)

// layerSeatbelt is the layer of macOS. It isn't one of Layers, which levels are
// made of: it is untested.
const layerSeatbelt = "seatbelt"

// unverified is the remark beside the state of an untested layer.
const unverified = "unverified: a file that is to be closed is, and nothing else was tried"

// gate is the shell's part, within the profile: it tries a file that is to be
// closed, says how that went, and executes the program after a word. Without the
// word nothing is executed.
const gate = `closed=$1 say=$2 hear=$3; shift 3
if (: >>"$closed") 2>/dev/null; then echo open >&"$say"; exit 125; fi
echo stands >&"$say"
read -r word <&"$hear" || exit 125
eval "exec $say>&- $hear<&-"
exec "$@"`

// seatbeltHold is the hold of one program under a profile of macOS. It is a
// process.Hold.
type seatbeltHold struct {
	say, let *os.File
	far      childEnds // the gate's
	closed   string    // the file that the gate tries
	scratch  string    // the program's own folder for temporary files
	layers   []belay.Layer
}

// strap makes cmd start its program with exe under a profile, held at the gate.
func (h *seatbeltHold) strap(cmd *exec.Cmd, exe, profile string) error {
	f, err := os.CreateTemp("", "belay-closed-*")
	if err != nil {
		return err
	}
	h.closed = f.Name()
	f.Close()
	say, tell, err := os.Pipe()
	if err != nil {
		return err
	}
	h.say, h.far = say, append(h.far, tell)
	hear, let, err := os.Pipe()
	if err != nil {
		return err
	}
	h.let, h.far = let, append(h.far, hear)
	first := 3 + len(cmd.ExtraFiles)
	cmd.ExtraFiles = append(cmd.ExtraFiles, tell, hear)
	args := []string{exe, "-p", profile, "/bin/sh", "-p", "-c", gate, "sh", h.closed, strconv.Itoa(first), strconv.Itoa(first + 1), cmd.Path}
	cmd.Args, cmd.Path, cmd.Err = append(args, cmd.Args[1:]...), exe, nil
	return nil
}

// Await waits until the gate says that the profile stands.
func (h *seatbeltHold) Await(ctx context.Context) error {
	h.far.close()
	stop := context.AfterFunc(ctx, func() { h.say.SetReadDeadline(past) }) //nolint:errcheck // a pipe has deadlines
	defer stop()
	said, err := bufio.NewReader(io.LimitReader(h.say, 64)).ReadString('\n')
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return belay.Errorf(belay.CodeNotConfined, "seatbelt didn't take the profile").Wrap(err).WithHint("what the program printed says why")
	case strings.TrimSpace(said) != "stands":
		return belay.Errorf(belay.CodeNotConfined, "the profile of seatbelt is without effect: %s can be written", h.closed)
	}
	return nil
}

// Applied is what the program got: nothing that anybody could promise.
func (h *seatbeltHold) Applied() belay.Applied {
	a := belay.Applied{Network: belay.NetworkFull, Layers: h.layers}
	a.Level, a.Why = levelOf(a.Layers)
	return a
}

// Release lets the program begin.
func (h *seatbeltHold) Release() error {
	_, err := h.let.WriteString("go\n")
	return err
}

// Close gives back what the hold has.
func (h *seatbeltHold) Close() error {
	h.far.close()
	for _, f := range []*os.File{h.say, h.let} {
		if f != nil {
			f.Close()
		}
	}
	var gone, closed error
	if h.scratch != "" {
		gone = os.RemoveAll(h.scratch)
	}
	if h.closed != "" {
		closed = os.Remove(h.closed)
	}
	return errors.Join(gone, closed)
}
