package sandbox

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/sandbox/inside"
	"golang.org/x/sys/unix"
)

// guard fills in which names are read-only, and makes the stubs.
func (b *Box) guard(p *inside.Profile) (*stubs, error) {
	if b.o.Protected == nil {
		return nil, nil
	}
	var s *stubs
	if b.writes() {
		var names []string
		for _, n := range stubNames {
			if b.o.Protected("/" + n) {
				names = append(names, n)
			}
		}
		var err error
		if s, err = makeStubs(b.o.Workspace, names); err != nil {
			return s, belay.Errorf(belay.CodeNotConfined, "protected names that are missing can't be kept so").At(b.o.Workspace).Wrap(err)
		}
	}
	for _, w := range p.Writable {
		guarded, err := protectedIn(w, b.o.Protected)
		if err != nil {
			return s, fmt.Errorf("look for protected names: %w", err)
		}
		p.Guarded = append(p.Guarded, guarded...)
	}
	p.Guarded = topmost(p.Guarded)
	p.Pinned = pins(p.Guarded, p.Writable)
	return s, nil
}

// stubs are empty folders in the place of missing names. Every process that
// needs them shares a lock, and who can have it alone removes them. Within a
// process they stay for a moment after the last program: removing them takes
// longer than all else that a boundary costs.
type stubs struct {
	root  string
	list  []string // names that this or an earlier process made
	lock  *os.File
	users int
	over  *time.Timer // removes them
}

// stubMode marks a stub: nobody makes an empty folder that nobody may write.
const stubMode = 0o555

// stubLinger is how long stubs stay after the last program.
const stubLinger = 3 * time.Second

// kept are the stubs of this process, by the root of their workspace.
var kept = struct {
	sync.Mutex
	at map[string]*stubs
}{at: map[string]*stubs{}}

// Settle removes at once what would be removed in a moment, and waits for what
// is being removed. Whoever ends the process calls it.
func Settle() {
	kept.Lock()
	for _, s := range kept.at {
		s.settle()
	}
	kept.Unlock()
	leaving.Wait()
}

// leaving counts the groups that are being given back.
var leaving sync.WaitGroup

func makeStubs(root string, names []string) (*stubs, error) {
	kept.Lock()
	defer kept.Unlock()
	s := kept.at[root]
	if s == nil {
		s = &stubs{root: root}
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
	return s, s.stand(names)
}

// stand makes the folders that aren't there.
func (s *stubs) stand(names []string) error {
	dir, err := os.OpenRoot(s.root)
	if err != nil {
		return err
	}
	defer dir.Close()
	for _, n := range names {
		if up := filepath.Dir(n); up != "." {
			if info, err := dir.Lstat(up); err != nil || !info.IsDir() || info.Mode().Perm() == stubMode {
				continue // the stub above covers it
			}
		}
		err := dir.Mkdir(n, stubMode)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if info, serr := dir.Lstat(n); serr == nil && info.IsDir() && info.Mode().Perm() == stubMode && !slices.Contains(s.list, n) {
			s.list = append(s.list, n)
		}
	}
	return nil
}

// lockFor opens the file that processes lock for a workspace.
func lockFor(root string) (*os.File, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		base = filepath.Join(os.TempDir(), fmt.Sprintf("belay-%d", os.Geteuid()))
	}
	dir := filepath.Join(base, "belay", "sandbox-locks")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	h := fnv.New64a()
	h.Write([]byte(root)) //nolint:errcheck // it never fails
	return os.OpenFile(filepath.Join(dir, fmt.Sprintf("%016x", h.Sum64())), os.O_RDWR|os.O_CREATE, 0o600)
}

// release says that one program less needs the stubs.
func (s *stubs) release() {
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

// settle removes the stubs if nobody needs them, in this process or another. One
// that isn't empty stays: it isn't a stub.
func (s *stubs) settle() {
	if s.users > 0 || kept.at[s.root] != s {
		return
	}
	delete(kept.at, s.root)
	defer s.lock.Close()
	if unix.Flock(int(s.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return
	}
	dir, err := os.OpenRoot(s.root)
	if err != nil {
		return
	}
	defer dir.Close()
	for _, n := range s.list {
		if info, err := dir.Lstat(n); err == nil && info.IsDir() {
			dir.Remove(n) //nolint:errcheck // it isn't empty
		}
	}
}
