package boxinit

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/belay-run/belay/internal/testkit/needs"
)

// TestNothingCanBeRaisedAtTheStart looks at what a program inherits in the moment
// before its limits are made final. The process of the tests stands for helper and
// program; it keeps the limits, which are none that the other tests meet.
func TestNothingCanBeRaisedAtTheStart(t *testing.T) {
	const size = 1 << 40
	limits := map[string]struct {
		what int
		max  uint64
	}{"core": {unix.RLIMIT_CORE, 0}, "file size": {unix.RLIMIT_FSIZE, size}}
	for name, l := range limits {
		var now unix.Rlimit
		if err := unix.Getrlimit(l.what, &now); err != nil {
			t.Fatal(err)
		}
		needs.Facility(t, "a limit of "+name+" that can be lowered", now.Max > l.max, "it is as low already")
	}
	h := &helper{p: &Profile{Limits: Limits{FileSize: size}}}
	pid, err := h.limited(func() (int, error) {
		for name, l := range limits {
			var now unix.Rlimit
			if err := unix.Getrlimit(l.what, &now); err != nil {
				return 0, err
			}
			if now.Max != l.max {
				t.Errorf("a program that starts could raise its limit of %s to %d, want %d", name, now.Max, l.max)
			}
		}
		return os.Getpid(), nil
	})
	if err != nil || pid != os.Getpid() {
		t.Fatalf("got process %d, %v", pid, err)
	}
}
