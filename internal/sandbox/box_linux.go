package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/process"
	"github.com/belay-run/belay/internal/sandbox/inside"
	"golang.org/x/sys/unix"
)

// Box starts programs within one boundary.
type Box struct {
	b     belay.Boundary
	o     Options
	hosts []hostRule
	group func(belay.ProcessLimits) (*cgroup, error) // makes the groups of one program
}

// New makes a box. The workspace must exist; what the boundary says is checked,
// what the machine can do isn't: Prepare finds out.
func New(b belay.Boundary, o Options) (*Box, error) {
	if err := errors.Join(b.Check(), o.check()); err != nil {
		return nil, err
	}
	hosts, err := hostRules(b)
	if err != nil {
		return nil, err
	}
	real, err := filepath.EvalSymlinks(o.Workspace)
	if err != nil {
		return nil, belay.Errorf(belay.CodeBadBoundary, "the workspace can't be confined").At(o.Workspace).Wrap(err)
	}
	o.Workspace = real
	if o.Linger <= 0 {
		o.Linger = defaultLinger
	}
	if o.Grace <= 0 {
		o.Grace = defaultGrace
	}
	return &Box{b: b, o: o, hosts: hosts, group: newCgroup}, nil
}

// Seatbelt is false: that is macOS's sandbox.
func Seatbelt() bool { return false }

// Plan is what the boundary will be on this machine, before anything starts:
// each layer as applied where it is intended, with the level that makes. An
// error is a level below the boundary's least.
func (b *Box) Plan() (belay.Applied, error) {
	a := belay.Applied{Layers: b.intended(Probe())}
	return a, b.rate(&a)
}

// rate sets the level of what was applied, and refuses one that is too low.
func (b *Box) rate(a *belay.Applied) error {
	a.Level, a.Why = LevelOf(a.Layers)
	a.Network = reaches(b.network(), a.Layers)
	if a.Level.AtLeast(b.b.Least) {
		return nil
	}
	return belay.Errorf(belay.CodeNotConfined, "boundary %q wants level %s and this machine gives %s: %s", b.b.Name, b.b.Least, a.Level, a.Why).
		WithHint("belay doctor lists the layers; a boundary with a lower level, or a person's yes, lets it run")
}

func (b *Box) network() string { return orElse(b.b.Network, belay.NetworkNone) }

// reaches is what of a network a program with these layers can reach. Hosts are
// reached through a socket in a network of its own; without one the filter of
// system calls leaves nothing, and without that there is no wall.
func reaches(want string, layers []belay.Layer) string {
	has := func(name string) bool {
		return slices.ContainsFunc(layers, func(l belay.Layer) bool { return l.Name == name && l.State == belay.LayerApplied })
	}
	switch {
	case want == belay.NetworkFull:
		return belay.NetworkFull
	case has(LayerNet):
		return want
	case has(LayerSeccomp):
		return belay.NetworkNone
	}
	return belay.NetworkFull
}

func (b *Box) full() bool { return b.b.Name == belay.BoundaryFull }

// writes tells whether the workspace can be written.
func (b *Box) writes() bool { return b.b.Name != belay.BoundaryReadOnly && b.b.Name != "" }

// intended lists every layer: applied if it is to be tried.
func (b *Box) intended(m Machine) []belay.Layer {
	var all []belay.Layer
	for _, l := range m.Layers {
		why := ""
		switch {
		case b.full() && l.Name != LayerRlimits && l.Name != LayerCgroup:
			why = byFull
		case slices.Contains(b.o.Disabled, l.Name) && l.Detail != notNeeded:
			why = byOptions
		case l.Name == LayerNet && b.network() == belay.NetworkFull:
			why = byNetwork
		case l.Name == LayerCgroup && !grouped(b.b.Limits):
			why = noLimit
		}
		if why != "" {
			l.State, l.Detail = belay.LayerDisabled, why
		}
		all = append(all, l)
	}
	return without(all)
}

// needs are the layers that a layer can't do without.
var needs = map[string][]string{
	LayerProc:      {LayerPID, LayerMounts}, // else it would show the runtime's processes, or nothing
	LayerProtected: {LayerMounts},
	LayerPID:       {LayerUser, LayerMounts}, // else /proc tells the program of processes that it can't name
	LayerIPC:       {LayerUser},
	LayerNet:       {LayerUser},
	LayerMounts:    {LayerUser},
}

// without leaves out what lacks a layer that it needs.
func without(all []belay.Layer) []belay.Layer {
	has := func(name string) bool {
		return slices.ContainsFunc(all, func(l belay.Layer) bool {
			return l.Name == name && (l.State == belay.LayerApplied || l.Detail == notNeeded)
		})
	}
	for range needs { // one that is left out may be what another needs
		for i, l := range all {
			for _, n := range needs[l.Name] {
				if l.State == belay.LayerApplied && !has(n) {
					all[i].State, all[i].Detail = belay.LayerUnavailable, "without "+n
				}
			}
		}
	}
	return all
}

// Hold is the helper of one program. It is a process.Hold.
type Hold struct {
	box     *Box
	conn    *net.UnixConn
	far     []*os.File // the helper's ends, until it has them
	intends []belay.Layer
	applied belay.Applied
	stands  bool // the boundary is what was intended
	group   *cgroup
	stubs   *stubs
	scratch string   // a folder that was lent
	socket  *os.File // the proxy's
	proxy   *proxy
	ending  *Ending
}

// Prepare makes cmd start the helper, which will start cmd's program.
func (b *Box) Prepare(cmd *exec.Cmd) (process.Hold, error) {
	a, err := b.Plan()
	if err != nil {
		return nil, err
	}
	h := &Hold{box: b, intends: a.Layers}
	p, err := b.profile(cmd, h)
	if err == nil {
		err = h.connect(p)
	}
	if err != nil {
		h.Close() //nolint:errcheck // the first error counts
		return nil, err
	}
	attr := cmd.SysProcAttr
	if attr == nil {
		attr = &syscall.SysProcAttr{}
	}
	enter(attr, p.Try)
	first := 3 + len(cmd.ExtraFiles)
	cmd.ExtraFiles = append(cmd.ExtraFiles, h.far...)
	cmd.SysProcAttr, cmd.Path, cmd.Dir = attr, "/proc/self/exe", "/"
	cmd.Args = []string{inside.Name, strconv.Itoa(first)}
	cmd.Env, cmd.Err = slices.Clone(helperEnv), nil
	if mark := marked(p); mark != "" {
		cmd.Env = append(cmd.Env, mark)
	}
	return h, nil
}

// markPrefix begins the line of the environment by which package process finds
// what a call started.
const markPrefix = "BELAY_PROCESS_MARK="

// marked takes the mark from the program, where the helper is the one to be
// found: a signal to it reaches everybody, once.
func marked(p *inside.Profile) (mark string) {
	p.Env = slices.Clone(p.Env)
	i := slices.IndexFunc(p.Env, func(e string) bool { return strings.HasPrefix(e, markPrefix) })
	if i < 0 {
		return ""
	}
	mark = p.Env[i]
	if p.Try[LayerPID] {
		p.Env = slices.Delete(p.Env, i, i+1)
	}
	return mark
}

// helperEnv is the helper's environment: nothing of the program's steers it.
var helperEnv = []string{"GOGC=off", "GOMAXPROCS=2", "GOTRACEBACK=none"}

// enter sets the namespaces that a helper starts in.
func enter(attr *syscall.SysProcAttr, try map[string]bool) {
	for layer, flag := range namespaceFlags {
		if try[layer] {
			attr.Cloneflags |= flag
		}
	}
	if try[LayerPID] && !attr.Setsid {
		// A process group of outside has no number in there. And of sessions each
		// gets its share of the processors, where the system shares them out so: a
		// thousand processes of one take no more than one of another.
		attr.Setsid, attr.Setpgid, attr.Pgid = true, false, 0
	}
	if try[LayerUser] {
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
		attr.AmbientCaps = inside.KeptCaps
	}
}

var namespaceFlags = map[string]uintptr{
	LayerUser: unix.CLONE_NEWUSER, LayerPID: unix.CLONE_NEWPID, LayerIPC: unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
	LayerNet: unix.CLONE_NEWNET, LayerMounts: unix.CLONE_NEWNS,
}

// connect makes the helper's descriptors.
func (h *Hold) connect(p *inside.Profile) error {
	f, err := inside.Sealed(p)
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

// letFar closes the helper's ends, so that its end is heard.
func (h *Hold) letFar() {
	for _, f := range h.far {
		f.Close()
	}
	h.far = nil
}

// Await waits for the helper's report and holds it against what was intended.
func (h *Hold) Await(ctx context.Context) error {
	h.letFar()
	stop := context.AfterFunc(ctx, func() { h.conn.SetReadDeadline(past) }) //nolint:errcheck // a socket has deadlines
	defer stop()
	m, err := h.receive()
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
func layersOf(said []inside.Layer) []belay.Layer {
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
	_, err := h.conn.Write([]byte{inside.Release})
	return err
}

// Extend lets the program run for d from now. A helper that hears nothing more
// until then ends it.
func (h *Hold) Extend(d time.Duration) error {
	if err := h.conn.SetWriteDeadline(time.Now().Add(extendTime)); err != nil {
		return err
	}
	_, err := h.conn.Write(inside.Extend(d))
	return err
}

// extendTime is how long it may take to say so: a helper that doesn't listen
// holds nobody up.
const extendTime = 100 * time.Millisecond

// receive takes one message.
func (h *Hold) receive() (m inside.Message, err error) {
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

// said takes a message that has come already.
func (h *Hold) said() (m inside.Message, err error) {
	h.conn.SetReadDeadline(time.Time{}) //nolint:errcheck // a socket has deadlines
	raw, err := h.conn.SyscallConn()
	if err != nil {
		return m, err
	}
	b := make([]byte, 64<<10)
	n, got := 0, error(nil)
	err = raw.Read(func(fd uintptr) bool {
		n, _, got = unix.Recvfrom(int(fd), b, unix.MSG_DONTWAIT)
		if got == unix.ECONNRESET { // it ended without reading all it was told; that comes before what it said
			n, _, got = unix.Recvfrom(int(fd), b, unix.MSG_DONTWAIT)
		}
		return true
	})
	if err = errors.Join(err, got); err != nil {
		return m, err
	}
	return m, json.Unmarshal(b[:max(n, 0)], &m)
}

// Ended is how the program ended, once its helper has. False means that the
// helper didn't say: it was killed, or never released.
func (h *Hold) Ended() (Ending, bool) {
	if h.ending == nil && h.conn != nil {
		if m, err := h.said(); err == nil {
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
	h.letFar()
	if !h.stands && h.box != nil {
		found.doubt()
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
	h.stubs.release()
	if h.scratch != "" {
		return os.RemoveAll(h.scratch)
	}
	return nil
}
