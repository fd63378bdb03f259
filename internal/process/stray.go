//go:build unix

package process

import (
	"os"
	"strconv"
	"strings"
	"sync"
)

// markName is the environment variable that marks everything a call started. Its
// value names the runtime whose call it is, and the call.
const markName = "BELAY_PROCESS_MARK"

// owner is the runtime that marks what it starts: its pid, its start time, and
// the namespace in which that is its pid.
type owner struct {
	namespace, start string
	pid              int
}

// thisOwner is this process as an owner.
var thisOwner = sync.OnceValue(func() owner {
	start, err := StartTime(os.Getpid())
	if err != nil {
		return owner{}
	}
	return owner{pidNamespace(), start, os.Getpid()}
})

// mark is the value for one call.
func (o owner) mark(call string) string {
	return strings.Join([]string{o.namespace, strconv.Itoa(o.pid), o.start, call}, "-")
}

// ownerOf reads the owner out of a mark; false: it names none.
func ownerOf(mark string) (o owner, ok bool) {
	f := strings.Split(mark, "-")
	if len(f) != 4 || f[0] == "" || f[2] == "" {
		return o, false
	}
	pid, err := strconv.Atoi(f[1])
	return owner{f[0], f[2], pid}, err == nil && pid > 0
}

// left reports whether a process with a mark was left by a runtime that was
// killed: one of this system, as far as that is visible. A process with the mark
// of the process that asks isn't left: the user works in what a call started.
func left(mark string) bool {
	o, ok := ownerOf(mark)
	return ok && o.namespace == thisOwner().namespace && mark != os.Getenv(markName) && !Alive(o.pid, o.start)
}

// EndStrays ends what calls of killed runtimes started and what left the group
// that ends with the runtime. It is found by its mark, among the processes of
// this user. It returns how many there were.
func EndStrays() (n int) {
	for range endRounds { // a tree may grow meanwhile
		found := strays()
		if n += len(found); len(found) == 0 {
			break
		}
	}
	return n
}

// endRounds is how often the tree is checked for new processes.
const endRounds = 16
