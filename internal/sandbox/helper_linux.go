package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"

	"github.com/belay-run/belay"
	"golang.org/x/sys/unix"
)

// helperName is the first argument that makes the binary a helper.
const helperName = "belay-sandbox"

// helperFailed is the exit code of a helper that ran nothing.
const helperFailed = 125

// Main runs the helper and doesn't return, if the process was started as one.
// It must be the first statement of main, and of TestMain where tests start
// programs in a sandbox.
func Main() {
	if len(os.Args) != 2 || os.Args[0] != helperName {
		return
	}
	// What is applied to this thread is what the program inherits, for the
	// thread is the one that starts it.
	runtime.LockOSThread()
	debug.SetGCPercent(-1)
	first, err := strconv.Atoi(os.Args[1])
	if err != nil {
		os.Exit(helperFailed)
	}
	os.Exit(help(first, first+1))
}

// help is the helper: profile and line are its descriptors.
func help(profileFD, lineFD int) int {
	if err := unix.CloseRange(3, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return helperFailed
	}
	l := &line{fd: lineFD}
	p, err := unsealed(profileFD)
	if err != nil {
		return l.broken("read the profile", err)
	}
	h := &helper{p: p, line: l}
	layers := h.apply()
	if err := h.move(); err != nil {
		return l.broken("enter "+p.Dir, err)
	}
	if err := l.send(message{Layers: layers}, h.proxy...); err != nil {
		return helperFailed
	}
	if !l.released() {
		return helperFailed // nothing was executed
	}
	return h.run()
}

// line is the helper's end of the connection to the runtime.
type line struct{ fd int }

func (l *line) send(m message, fds ...int) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	return unix.Sendmsg(l.fd, b, rights, nil, unix.MSG_NOSIGNAL)
}

// released waits for the byte. The end of the runtime, or a change of its mind,
// is the end of the line.
func (l *line) released() bool {
	b := make([]byte, 1)
	for {
		n, err := unix.Read(l.fd, b)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return err == nil && n == 1 && b[0] == release
	}
}

func (l *line) broken(what string, err error) int {
	l.send(message{Broken: what + ": " + err.Error()}) //nolint:errcheck // nobody else can be told
	return helperFailed
}

// helper applies a profile to itself.
type helper struct {
	p      *profile
	line   *line
	proxy  []int    // the socket of the runtime's proxy, if there is one
	mine   []string // what is the program's own to write, besides the profile's
	denied string   // a file of this helper's that only Landlock denies
}

// apply applies what the profile says to try, in an order that no later layer
// undoes, and says of each how it came out.
func (h *helper) apply() []belay.Layer {
	steps := []struct {
		name string
		do   func() (detail string, err error)
	}{
		{LayerCgroup, h.joinCgroups},
		{LayerUser, h.newNamespace("user")},
		{LayerPID, h.newNamespace("pid")},
		{LayerIPC, h.newNamespace("ipc")},
		{LayerNet, h.network},
		{LayerMounts, h.mountView},
		{LayerProc, h.freshProc},
		{LayerProtected, h.protect},
		{LayerLandlock, h.landlock},
		{LayerCaps, h.dropCaps},
		{LayerPrivileges, h.noNewPrivs},
		{LayerSeccomp, h.filterCalls},
		{LayerRlimits, h.rlimits},
	}
	var layers []belay.Layer
	for _, s := range steps {
		if !h.p.Try[s.name] {
			continue
		}
		layers = append(layers, outcome(s.name, s.do))
	}
	return h.readBack(layers)
}

func outcome(name string, do func() (string, error)) belay.Layer {
	detail, err := do()
	if err != nil {
		return belay.Layer{Name: name, State: belay.LayerUnavailable, Detail: reason(err)}
	}
	return belay.Layer{Name: name, State: belay.LayerApplied, Detail: detail}
}

// reason is an error as a layer's detail: the system's name of it, and what was
// tried.
func reason(err error) string {
	if e, ok := errors.AsType[unix.Errno](err); ok {
		name := unix.ErrnoName(e)
		if err == error(e) {
			return name
		}
		return name + ": " + err.Error()
	}
	return err.Error()
}

// newNamespace is the check of a namespace that the runtime made with the
// process: its number differs from the runtime's.
func (h *helper) newNamespace(kind string) func() (string, error) {
	return func() (string, error) {
		at, err := namespace(kind)
		if err != nil {
			return "", fmt.Errorf("read the %s namespace: %w", kind, err)
		}
		if outside := h.p.Outside[kind]; at == outside || outside == 0 {
			return "", fmt.Errorf("the %s namespace is the runtime's", kind)
		}
		return "", nil
	}
}

// namespace is the number of the namespace that the calling thread is in.
func namespace(kind string) (uint64, error) {
	at, err := placeOf("/proc/thread-self/ns/" + kind)
	return at.Ino, err
}

func (h *helper) joinCgroups() (string, error) {
	for _, f := range h.p.Cgroups {
		if err := os.WriteFile(f, []byte("0"), 0); err != nil {
			return "", err
		}
	}
	return cgroupNames(h.p.Cgroups), nil
}

func (h *helper) noNewPrivs() (string, error) {
	return "", unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

// move enters the program's folder in the view that it will have.
func (h *helper) move() error { return os.Chdir(h.p.Dir) }
