package sandbox

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/sandbox/boxinit"
	"golang.org/x/sys/unix"
)

// guard fills in which names are read-only, and makes the stubs.
func (b *Box) guard(p *boxinit.Profile) (*placeholders, error) {
	if b.o.Protected == nil {
		return nil, nil
	}
	var s *placeholders
	left := leftBy(b.b)
	if b.writes() {
		var names, open []string
		for _, n := range stubNames {
			switch {
			case left(filepath.Join(b.o.Workspace, n)):
				open = append(open, n)
			case b.o.Protected("/" + n):
				names = append(names, n)
			}
		}
		var err error
		if s, err = makeStubs(b.o.Workspace, names, open); err != nil {
			return s, belay.Errorf(belay.CodeNotConfined, "protected names that are missing can't be kept so").At(b.o.Workspace).Wrap(err)
		}
	}
	for _, w := range p.Writable {
		guarded, err := protectedIn(w, b.o.Protected, left)
		if err != nil {
			return s, fmt.Errorf("look for protected names: %w", err)
		}
		p.Guarded = append(p.Guarded, guarded...)
	}
	p.Guarded = topmost(p.Guarded)
	p.Pinned = pins(slices.Concat(p.Guarded, p.Sealed), p.Writable)
	return s, nil
}

// placeholders are empty folders in the place of missing names. Every process that
// needs them shares a lock on a file that names the workspace, and who can have
// it alone removes them: the last of these processes, or after a crash whichever
// comes next, wherever it works. Within a process they stay for a moment after
// the last program: removing them takes longer than all else that a boundary
// costs.
type placeholders struct {
	root  string
	lock  *os.File
	users int
	over  *time.Timer // removes them
}

// stubMode marks a stub, with its emptiness: empty folders that can't be written don't
// occur otherwise.
const stubMode = 0o555

// isStub reports whether a file may be a stub. A mask of the person's may have
// taken more rights away.
func isStub(info fs.FileInfo) bool { return info.IsDir() && info.Mode().Perm()&0o222 == 0 }

// stubLinger is how long stubs stay after the last program.
const stubLinger = 3 * time.Second

// kept are the stubs of this process, by the root of their workspace.
var kept = struct {
	sync.Mutex
	at map[string]*placeholders
}{at: map[string]*placeholders{}}

// Cleanup removes at once what would be removed in a moment, and waits for what
// is being removed. Whoever ends the process calls it.
func Cleanup() {
	kept.Lock()
	for _, s := range kept.at {
		s.settle()
	}
	kept.Unlock()
	leaving.Wait()
}

// leaving counts the groups that are being given back.
var leaving sync.WaitGroup

// Clear removes the stubs that processes left which were killed, in every
// workspace. Whoever begins calls it.
func Clear() {
	dir := lockFolder()
	entries, _ := os.ReadDir(dir) // it isn't there before the first program
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
				removeStubs(string(root), f)
			}
		}
		f.Close()
	}
}

func makeStubs(root string, names, open []string) (*placeholders, error) {
	kept.Lock()
	defer kept.Unlock()
	s := kept.at[root]
	if s == nil {
		s = &placeholders{root: root}
		var err error
		if s.lock, err = lockFor(root); err != nil {
			return nil, err
		}
		if err := unix.Flock(int(s.lock.Fd()), unix.LOCK_SH); err != nil {
			s.lock.Close()
			return nil, fmt.Errorf("share the lock: %w", err)
		}
		kept.at[root] = s
	}
	s.users++
	if s.over != nil {
		s.over.Stop()
	}
	return s, s.stand(names, open)
}

// stand makes the folders that aren't there, once it is written down where. What
// is to be open stands for none: a program may make it. Others that run can then,
// too, and what they leave there is found.
func (s *placeholders) stand(names, open []string) error {
	if _, err := s.lock.WriteAt([]byte(s.root), 0); err != nil {
		return fmt.Errorf("write down which workspace it is: %w", err)
	}
	dir, err := os.OpenRoot(s.root)
	if err != nil {
		return err
	}
	defer dir.Close()
	removeFrom(dir, open)
	for _, n := range names {
		if up := filepath.Dir(n); up != "." {
			if info, err := dir.Lstat(up); err != nil || !info.IsDir() || isStub(info) {
				continue // the stub above covers it
			}
		}
		if err := dir.Mkdir(n, stubMode); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// lockFolder has a file for each workspace in which programs ran.
func lockFolder() string {
	base, err := os.UserCacheDir()
	if err != nil {
		base = filepath.Join(os.TempDir(), fmt.Sprintf("belay-%d", os.Geteuid()))
	}
	return filepath.Join(base, "belay", "sandbox-locks")
}

// lockFor opens the file that processes lock for a workspace. It names the
// workspace while stubs may stand there.
func lockFor(root string) (*os.File, error) {
	dir := lockFolder()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	h := fnv.New64a()
	h.Write([]byte(root)) //nolint:errcheck // it never fails
	return os.OpenFile(filepath.Join(dir, fmt.Sprintf("%016x", h.Sum64())), os.O_RDWR|os.O_CREATE, 0o600)
}

// release says that one program less needs the stubs.
func (s *placeholders) release() {
	if s == nil {
		return
	}
	kept.Lock()
	defer kept.Unlock()
	if s.users--; s.users == 0 {
		s.over = time.AfterFunc(stubLinger, func() {
			kept.Lock()
			defer kept.Unlock()
			s.settle()
		})
	}
}

// settle removes the stubs if no program needs them, in this process or another.
func (s *placeholders) settle() {
	if s.users > 0 || kept.at[s.root] != s {
		return
	}
	delete(kept.at, s.root)
	defer s.lock.Close()
	if unix.Flock(int(s.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
		removeStubs(s.root, s.lock)
	}
}

// removeStubs removes the stubs of a workspace, and then the note that they
// stand there, in a file that is locked alone. What isn't empty is no stub.
func removeStubs(root string, note *os.File) {
	dir, err := os.OpenRoot(root)
	if err == nil {
		defer dir.Close()
		removeFrom(dir, stubNames)
	}
	note.Truncate(0) //nolint:errcheck // the next one looks once more
}

func removeFrom(dir *os.Root, names []string) {
	for _, n := range slices.Backward(names) { // what lies in another one first
		if info, err := dir.Lstat(n); err == nil && isStub(info) {
			dir.Remove(n) //nolint:errcheck // it isn't empty
		}
	}
}
