//go:build unix

package files

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/belay-run/belay"
)

// How long a process waits for another that has the lock.
const (
	pause = 10 * time.Millisecond
	tries = 1000
)

// Lock waits until no other process has the lock of a file, which it makes if there
// is none. The system takes the lock from a process that dies; the file itself
// stays.
func Lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, belay.Errorf(belay.CodeNotWritten, "it can't be opened").At(path).Wrap(err).WithHint("the folder must be yours and writable")
	}
	for try := 0; ; try++ {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil //nolint:errcheck // closing gives the lock back
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) || try == tries {
			f.Close() //nolint:errcheck // there is an error already
			return nil, belay.Errorf(belay.CodeBusy, "another process has the lock").At(path).Wrap(err).WithHint("try again")
		}
		select {
		case <-ctx.Done():
			f.Close() //nolint:errcheck // there is an error already
			return nil, context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}
