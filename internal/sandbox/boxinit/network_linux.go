package boxinit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// network brings up the loopback of the new network namespace, where nothing
// else is, and opens the proxy's socket there if one is wanted.
func (h *helper) network() (string, error) {
	if _, err := h.newNamespace("net")(); err != nil {
		return "", err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", fmt.Errorf("socket for the loopback: %w", err)
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return "", err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		return "", fmt.Errorf("bring up the loopback: %w", err)
	}
	if h.p.Network == networkHosts {
		return "", h.listen()
	}
	return "", nil
}

// listen opens the socket of the runtime's proxy in the new namespace, and tells
// the program where it is. The runtime accepts what comes: a socket stays in the
// namespace it was made in, which has only the programs of this boundary, so no
// secret is needed to identify a client.
func (h *helper) listen() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("socket for the proxy: %w", err)
	}
	h.proxy = []int{fd}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return fmt.Errorf("address for the proxy: %w", err)
	}
	if err := unix.Listen(fd, unix.SOMAXCONN); err != nil {
		return fmt.Errorf("listen for the proxy: %w", err)
	}
	at, err := unix.Getsockname(fd)
	if err != nil {
		return fmt.Errorf("address of the proxy: %w", err)
	}
	h.p.Env = proxied(h.p.Env, "http://127.0.0.1:"+strconv.Itoa(at.(*unix.SockaddrInet4).Port))
	return nil
}

// proxied is an environment that names the proxy in every way that programs
// read, and no other.
func proxied(env []string, url string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return strings.HasSuffix(strings.ToLower(name), "_proxy")
	})
	for _, name := range []string{"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"} {
		env = append(env, name+"="+url)
	}
	const own = "localhost,127.0.0.1,::1"
	return append(env, "no_proxy="+own, "NO_PROXY="+own, "NODE_USE_ENV_PROXY=1")
}
