package sandbox

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/belay-run/belay/internal/lib/files"
	"golang.org/x/sys/unix"
)

// Clear removes the stand-ins for missing names that processes of earlier versions
// left which were killed, in every workspace: empty folders that nobody may write. Each
// such process shared a lock on a file that names the workspace. Whoever begins calls it.
func Clear() {
	dir := standInLocks()
	entries, _ := os.ReadDir(dir) // it is there only where such a version ran
	for _, e := range entries {
		if info, err := e.Info(); err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
			continue // nothing stands there
		}
		f, err := os.OpenFile(filepath.Join(dir, e.Name()), os.O_RDWR|unix.O_NOFOLLOW, 0)
		if err != nil {
			continue
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil { // else a living process sees to them
			if root, err := io.ReadAll(io.LimitReader(f, unix.PathMax)); err == nil {
				removeStandIns(string(root))
				f.Truncate(0) //nolint:errcheck // the next one looks once more
			}
		}
		f.Close()
	}
}

// standInLocks has a file for each workspace in which such a version ran programs.
func standInLocks() string {
	base, err := os.UserCacheDir()
	if err != nil {
		base = filepath.Join(os.TempDir(), fmt.Sprintf("belay-%d", os.Geteuid()))
	}
	return filepath.Join(base, "belay", "sandbox-locks")
}

func removeStandIns(root string) {
	dir, err := files.OpenRoot(root)
	if err != nil {
		return
	}
	defer dir.Close()
	for _, n := range slices.Backward(rootNames) { // what lies in another one first
		if info, err := dir.Lstat(n); err == nil && info.IsDir() && info.Mode().Perm()&0o222 == 0 {
			dir.Remove(n) //nolint:errcheck // it isn't empty
		}
	}
}
