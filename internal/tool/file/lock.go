//go:build unix

package file

import (
	"errors"
	"syscall"
	"time"

	"github.com/belay-run/belay/internal/tool"
)

// How long a change waits for another one in the same folder. Each holds the
// folder for a look and a rename.
const (
	lockTries = 400
	lockPause = 5 * time.Millisecond
)

// locked runs f while no other file tool of this machine changes a name in the
// place's folder, so that nothing lies between the look whether a file is still
// as it was read and the change of its name. The lock is the folder's own: it
// leaves nothing behind and ends with its process. A file system without such
// locks is used without.
func (p *place) locked(f func() error) error {
	dir, err := p.dir.Open(".")
	if err != nil {
		return changed(err)
	}
	defer dir.Close()
	for try := 0; ; {
		err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case !errors.Is(err, syscall.EWOULDBLOCK):
			return f()
		}
		if try++; try > lockTries {
			return tool.Failf(tool.Transient, CodeKeepsChanging, "the folder of %s is locked by another process", show(p.name))
		}
		time.Sleep(lockPause)
	}
}
