package boxinit

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// failed is the exit code of a helper that ran nothing.
const failed = 125

// It is decided while packages are initialized, by a variable, whether the
// process is a helper. As the first statement of main it would come after all
// packages of the program, which take several times as long as the helper.
var _ = begin()

// begin runs the helper and doesn't return, if the process was started as one.
func begin() bool {
	if len(os.Args) != 2 || os.Args[0] != Name {
		return false
	}
	// What is applied to this thread is what the program inherits, for the
	// thread is the one that starts it.
	runtime.LockOSThread()
	first, err := strconv.Atoi(os.Args[1])
	if err != nil {
		os.Exit(failed)
	}
	os.Exit(help(first, first+1))
	return true
}

// help is the helper: profile and line are its descriptors.
func help(profileFD, lineFD int) int {
	if err := unix.CloseRange(3, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return failed
	}
	l := &line{fd: lineFD}
	if err := unreadable(); err != nil {
		return l.broken("keep itself to itself", err)
	}
	p, err := unsealed(profileFD)
	if err != nil {
		return l.broken("read the profile", err)
	}
	h := &helper{p: p, line: l}
	layers := h.apply()
	if err := os.Chdir(p.Dir); err != nil { // in the view that the program will have
		return l.broken("enter "+p.Dir, err)
	}
	if err := l.send(Message{Layers: layers}, h.proxy...); err != nil {
		return failed
	}
	if !l.released() {
		return failed // nothing was executed
	}
	return h.run()
}

// unreadable takes the helper out of the program's reach: of a process that can't
// be dumped, only one with capabilities can read or follow the descriptors, the
// memory and the environment, even as the same user. The program starts anew
// with its own execution.
func unreadable() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return err
	}
	if is, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); err != nil || is != 0 {
		return errors.New("it can be dumped still")
	}
	return nil
}

// line is the helper's end of the connection to the runtime.
type line struct{ fd int }

func (l *line) send(m Message, fds ...int) error {
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
	n, err := l.read(b)
	return err == nil && n == 1 && b[0] == Release
}

// read reads what the runtime says next.
func (l *line) read(b []byte) (int, error) {
	for {
		n, err := unix.Read(l.fd, b)
		if err != unix.EINTR {
			return n, err
		}
	}
}

func (l *line) broken(what string, err error) int {
	l.send(Message{Broken: what + ": " + err.Error()}) //nolint:errcheck // there is no other place to report it
	return failed
}

// helper applies a profile to itself.
type helper struct {
	p      *Profile
	line   *line
	proxy  []int    // the socket of the runtime's proxy, if there is one
	mine   []string // what is the program's own to write, besides the profile's
	denied string   // a file of this helper's that only Landlock denies

	layered *tree // the cache, where it is seen under a layer; nil: it isn't
	memory  int   // the file system in memory that private folders lie in, while there is a layer to be made
}

// apply applies what the profile says to try, in an order that no later layer
// undoes, and says of each how it came out.
func (h *helper) apply() []Layer {
	steps := []struct {
		name string
		do   func() (detail string, err error)
	}{
		{Cgroup, h.joinCgroups},
		{User, h.newNamespace("user")},
		{PID, h.newNamespace("pid")},
		{IPC, h.newNamespace("ipc")},
		{Net, h.network},
		{Mounts, h.mountView},
		{Proc, h.freshProc},
		{Protected, h.protect},
		{Landlock, h.landlock},
		{Caps, h.dropCaps},
		{Privileges, h.noNewPrivs},
		{Seccomp, h.filterCalls},
		{Rlimits, h.rlimits},
	}
	var layers []Layer
	for _, s := range steps {
		if !h.p.Try[s.name] {
			continue
		}
		l := Layer{Name: s.name, State: applied}
		var err error
		if l.Detail, err = s.do(); err != nil {
			l.State, l.Detail = unavailable, Reason(err)
		}
		layers = append(layers, l)
	}
	return h.readBack(layers)
}

// Reason is an error as a layer's detail: the system's name of it, and what was
// tried.
func Reason(err error) string {
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
	at, err := PlaceOf("/proc/thread-self/ns/" + kind)
	return at.Ino, err
}

func (h *helper) joinCgroups() (string, error) {
	for _, f := range h.p.Cgroups {
		if err := os.WriteFile(f, []byte("0"), 0); err != nil {
			return "", err
		}
	}
	return h.p.Groups, nil
}

func (h *helper) noNewPrivs() (string, error) {
	return "", unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}
