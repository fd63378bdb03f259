package boxinit

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// readBack holds what the layers say of themselves against what the system
// says now: a layer that was applied without effect is none.
func (h *helper) readBack(layers []Layer) []Layer {
	checks := map[string]func() error{
		Net:      h.unreachable,
		Mounts:   h.covered,
		Landlock: h.refused,
		Caps: func() error {
			return statusLines(map[string]string{"CapEff": zeros, "CapPrm": zeros, "CapAmb": zeros, "CapInh": zeros})
		},
		Privileges: func() error { return statusLines(map[string]string{"NoNewPrivs": "1"}) },
		Seccomp:    func() error { return errors.Join(statusLines(map[string]string{"Seccomp": "2"}), h.filtered()) },
	}
	for i, l := range layers {
		check := checks[l.Name]
		if check == nil || l.State != applied {
			continue
		}
		if err := check(); err != nil {
			layers[i].State, layers[i].Detail = unavailable, "without effect: "+err.Error()
		}
	}
	return layers
}

const zeros = "0000000000000000"

// statusLines are lines of the status of the calling thread.
func statusLines(want map[string]string) error {
	b, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		return err
	}
	found := 0
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(line, ":")
		w, ok := want[name]
		if !ok {
			continue
		}
		found++
		if v := strings.TrimSpace(value); v != w {
			return fmt.Errorf("%s is %s", name, v)
		}
	}
	if found != len(want) {
		return fmt.Errorf("the status has %d of %d lines", found, len(want))
	}
	return nil
}

// covered holds the view against what the runtime saw: what is outside is
// read-only, and every private folder is another one.
func (h *helper) covered() error {
	for _, p := range []string{"/", "/etc", "/usr", "/var"} {
		if h.mayWrite(p) {
			continue
		}
		fd, err := unix.Open(p, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600) // a file without a name: nothing would stay
		if err == nil {
			unix.Close(fd)
			return fmt.Errorf("a file can be made in %s", p)
		}
		var fs unix.Statfs_t
		if unix.Statfs(p, &fs) == nil && fs.Flags&unix.ST_RDONLY == 0 {
			return fmt.Errorf("%s isn't read-only", p)
		}
	}
	for _, p := range h.p.Private {
		at, err := PlaceOf(p)
		if err != nil {
			return err
		}
		if at == h.p.Seen[p] {
			return fmt.Errorf("%s is the one of outside", p)
		}
	}
	return nil
}

// mayWrite reports whether a path is the program's to write.
func (h *helper) mayWrite(path string) bool {
	return slices.ContainsFunc(slices.Concat(h.p.Writable, h.mine), func(w string) bool { return Within(path, w) })
}

// refused tries what only Landlock refuses.
func (h *helper) refused() error {
	canary, how := h.denied, unix.O_WRONLY
	if canary == "" {
		canary, how = "/", unix.O_RDONLY|unix.O_DIRECTORY
	}
	fd, err := unix.Open(canary, how|unix.O_CLOEXEC, 0)
	if err == nil {
		unix.Close(fd)
		return fmt.Errorf("%s can be opened", canary)
	}
	if err != unix.EACCES {
		return fmt.Errorf("%s gives %s", canary, unix.ErrnoName(err.(unix.Errno)))
	}
	return nil
}

// unreachable tries an address that no host has: with a network it would be
// waited for, without one nothing leads there.
func (h *helper) unreachable() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil // no sockets at all
	}
	defer unix.Close(fd)
	err = unix.Connect(fd, &unix.SockaddrInet4{Addr: [4]byte{192, 0, 2, 1}, Port: 9})
	if err == nil || err == unix.EINPROGRESS {
		return fmt.Errorf("there is a way to 192.0.2.1")
	}
	return nil
}

// filtered tries a call that the filter refuses and that changes nothing.
func (h *helper) filtered() error {
	if err := unix.Unshare(0); err != unix.EPERM {
		return fmt.Errorf("unshare isn't refused")
	}
	return nil
}
