package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/sandbox/boxinit"
)

// Hold is the helper of one program. It is a process.Hold.
type Hold struct {
	box     *Box
	conn    *net.UnixConn
	far     childEnds // the helper's
	intends []belay.Layer
	applied belay.Applied
	stands  bool // the boundary is what was intended
	group   *cgroup
	scratch string   // a folder that was lent
	socket  *os.File // the proxy's
	proxy   *proxy
	ending  *Ending
	private []string // folders that are kept from the program
	covered []string // secrets that are
}

// connect makes the helper's descriptors.
func (h *Hold) connect(p *boxinit.Profile) error {
	f, err := boxinit.Sealed(p)
	if err != nil {
		return err
	}
	h.far = append(h.far, f)
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("line to the helper: %w", err)
	}
	h.far = append(h.far, os.NewFile(uintptr(pair[1]), "line"))
	near := os.NewFile(uintptr(pair[0]), "line")
	defer near.Close()
	c, err := net.FileConn(near)
	if err != nil {
		return fmt.Errorf("line to the helper: %w", err)
	}
	h.conn = c.(*net.UnixConn)
	return nil
}

// Await waits for the helper's report and holds it against what was intended.
func (h *Hold) Await(ctx context.Context) error {
	m, err := h.report(ctx)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return belay.Errorf(belay.CodeNotConfined, "the sandbox's helper ended before it reported").Wrap(err)
	case m.Broken != "":
		return belay.Errorf(belay.CodeNotConfined, "the sandbox's helper can't go on: %s", m.Broken)
	}
	h.applied = belay.Applied{Layers: reported(h.intends, layersOf(m.Layers))}
	if err := errors.Join(h.mismatch(), h.box.rate(&h.applied)); err != nil {
		return err
	}
	h.stands = true
	return h.serve()
}

// serve starts the proxy on the socket that the helper sent.
func (h *Hold) serve() error {
	if h.applied.Network != belay.NetworkHosts {
		return nil
	}
	if h.socket == nil {
		return belay.Errorf(belay.CodeNotConfined, "the sandbox's helper sent no socket for the proxy")
	}
	l, err := net.FileListener(h.socket)
	if err != nil {
		return belay.Errorf(belay.CodeNotConfined, "the proxy can't listen").Wrap(err)
	}
	h.proxy = newProxy(l, h.box.hosts)
	return nil
}

// layersOf are layers as the rest of the program knows them.
func layersOf(said []boxinit.Layer) []belay.Layer {
	var all []belay.Layer
	for _, l := range said {
		all = append(all, belay.Layer(l))
	}
	return all
}

// reported puts what the helper said in the place of what was intended.
func reported(intends, said []belay.Layer) []belay.Layer {
	all := slices.Clone(intends)
	for i, l := range all {
		if l.State != belay.LayerApplied {
			continue
		}
		at := slices.IndexFunc(said, func(s belay.Layer) bool { return s.Name == l.Name })
		if at < 0 {
			all[i].State, all[i].Detail = belay.LayerUnavailable, "not reported"
			continue
		}
		all[i] = said[at]
	}
	return all
}

// mismatch is the error that names the layers which were intended and aren't
// there.
func (h *Hold) mismatch() error {
	var lost []string
	for i, l := range h.applied.Layers {
		if h.intends[i].State == belay.LayerApplied && l.State != belay.LayerApplied {
			lost = append(lost, l.Name+" "+l.String())
		}
	}
	if len(lost) == 0 {
		return nil
	}
	return belay.Errorf(belay.CodeNotConfined, "the sandbox isn't what was intended: %s", strings.Join(lost, "; ")).
		WithHint("nothing ran; belay doctor lists what this machine can do")
}

// Applied is what the program got, after Await.
func (h *Hold) Applied() belay.Applied { return h.applied }

// Release lets the helper start the program.
func (h *Hold) Release() error {
	_, err := h.conn.Write([]byte{boxinit.Release})
	return err
}

// Extend lets the program run for d from now. A helper that hears nothing more
// until then ends it.
func (h *Hold) Extend(d time.Duration) error {
	if err := h.conn.SetWriteDeadline(time.Now().Add(extendTime)); err != nil {
		return err
	}
	_, err := h.conn.Write(boxinit.Extend(d))
	return err
}

// extendTime is how long sending the new end may take: a helper that doesn't listen
// must not delay the runtime.
const extendTime = 100 * time.Millisecond

// report waits for what the helper says first, once it has its ends.
func (h *Hold) report(ctx context.Context) (boxinit.Message, error) {
	h.far.close()
	stop := context.AfterFunc(ctx, func() { h.conn.SetReadDeadline(past) }) //nolint:errcheck // a socket has deadlines
	defer stop()
	return h.receive()
}

// endTime is how long to wait for what a helper says at its end: it has said it
// already, or never will.
const endTime = 50 * time.Millisecond

// receive takes one message.
func (h *Hold) receive() (m boxinit.Message, err error) {
	b, rights := make([]byte, 64<<10), make([]byte, unix.CmsgSpace(4))
	n, rn, _, _, err := h.conn.ReadMsgUnix(b, rights)
	if err == nil && n == 0 {
		err = io.EOF
	}
	if err == nil {
		err = json.Unmarshal(b[:n], &m)
	}
	if msgs, perr := unix.ParseSocketControlMessage(rights[:rn]); perr == nil && len(msgs) == 1 {
		if fds, perr := unix.ParseUnixRights(&msgs[0]); perr == nil && len(fds) == 1 {
			unix.CloseOnExec(fds[0])
			h.socket = os.NewFile(uintptr(fds[0]), "proxy")
		}
	}
	return m, err
}

// Ended is how the program ended, once its helper has. False means that the
// helper didn't say: it was killed, or never released.
func (h *Hold) Ended() (Ending, bool) {
	if h.ending == nil && h.conn != nil {
		h.conn.SetReadDeadline(time.Now().Add(endTime)) //nolint:errcheck // a socket has deadlines
		m, err := h.receive()
		if errors.Is(err, unix.ECONNRESET) { // it ended without reading all it was told; that comes before what it said
			m, err = h.receive()
		}
		if err == nil {
			h.ending = m.End
		}
	}
	if h.ending == nil {
		return Ending{}, false
	}
	return *h.ending, true
}

// Refused are the hosts, with their ports, that the program asked the proxy for
// and its boundary doesn't name.
func (h *Hold) Refused() []string { return h.proxy.hosts() }

// Close gives back what the hold has. A helper that still runs ends, and all
// that it started.
func (h *Hold) Close() error {
	h.far.close()
	if !h.stands && h.box != nil {
		found.invalidate()
	}
	h.Ended()
	if h.conn != nil {
		h.conn.Close()
	}
	if h.socket != nil {
		h.socket.Close()
	}
	h.proxy.close()
	leaving.Go(h.group.remove)
	if h.scratch != "" {
		return os.RemoveAll(h.scratch)
	}
	return nil
}
