package sandbox

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// countsByNamespace reports whether the kernel counts the processes of a user in
// each user namespace apart, as it does since 5.14. Before, those of all the
// machine count.
var countsByNamespace = sync.OnceValue(func() bool {
	var name unix.Utsname
	return unix.Uname(&name) == nil && atLeast(unix.ByteSliceToString(name.Release[:]), 5, 14)
})

// atLeast holds the release of a kernel, as 6.1.0-rc3, against a version.
func atLeast(release string, major, minor int) bool {
	var a, b int
	n, _ := fmt.Sscanf(release, "%d.%d", &a, &b)
	return n == 2 && (a > major || a == major && b >= minor)
}

// tasksOf counts the processes and threads of a user, as far as they can be seen.
func tasksOf(uid int) (n int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue // it has ended
		}
		if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != uid {
			continue
		}
		threads, _ := os.ReadDir("/proc/" + e.Name() + "/task")
		n += len(threads)
	}
	return n
}
