package git

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// pathOnly opens a folder to go on from there.
const pathOnly = unix.O_PATH

// How soon a file is moved aside while programs run: once nobody has changed it for
// as long as it takes to be done with one, or else after twice that. Most programs
// end sooner and cost nothing.
const (
	quiet = time.Second
	late  = 2 * time.Second
	pause = 300 * time.Millisecond // between two looks
)

// maxFollowed is how many folders are followed, those nearest to the workspace's root
// first: each takes memory of the kernel's. What the others have is found at the end.
const maxFollowed = 4096

// live follows folders while programs run: the system tells which of them changed, and
// only those are looked at again. What it moves aside the end couldn't allow.
type live struct {
	w     *Watch
	stop  context.CancelFunc
	done  chan struct{}
	file  *os.File // inotify's
	conn  syscall.RawConn
	spots map[int]*spots
	known map[*folder]*spot
	again map[*spot]bool       // to be looked at
	since map[string]time.Time // files that are there and may not stay, and since when
	had   map[string]time.Time // the same of the look before
	at    *spot                // that is looked at
}

// spot is a folder that is followed.
type spot struct {
	path   string
	folder *folder // nil: it is, or is in, the git folder repo
	root   string
	repo   string
}

// spots are what one folder is: of the workspace, of a repository, or both.
type spots [2]*spot

// as is which of them a spot is.
func (s *spot) as() int {
	if s.folder == nil {
		return 1
	}
	return 0
}

// follow begins to look after what programs make while they run.
func (w *Watch) follow() *live {
	ctx, stop := context.WithCancel(context.Background())
	v := &live{w: w, stop: stop, done: make(chan struct{}), spots: map[int]*spots{}, known: map[*folder]*spot{}, again: map[*spot]bool{}}
	go v.run(ctx)
	return v
}

// end ends it, when no program runs any more.
func (v *live) end() {
	if v != nil {
		v.stop()
		<-v.done
	}
}

func (v *live) run(ctx context.Context) {
	defer close(v.done)
	defer v.stop()
	select {
	case <-ctx.Done():
		return
	case <-time.After(quiet):
	}
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return // the end finds it
	}
	v.file = os.NewFile(uintptr(fd), "inotify")
	defer v.file.Close()
	if v.conn, err = v.file.SyscallConn(); err != nil {
		return
	}
	defer context.AfterFunc(ctx, func() { v.file.Close() })() // ends the reading
	v.begin(ctx)
	b := make([]byte, 64<<10)
	for next := time.Now().Add(pause); ; {
		v.file.SetReadDeadline(next) //nolint:errcheck // it has deadlines
		switch n, err := v.file.Read(b); {
		case errors.Is(err, os.ErrDeadlineExceeded):
			if next = time.Now().Add(pause); !v.look(ctx) {
				next = time.Time{} // until something happens
			}
		case err != nil:
			return
		case v.hear(b[:n]) && next.IsZero():
			next = time.Now().Add(pause)
		}
	}
}

// begin follows what is there, and looks at it.
func (v *live) begin(ctx context.Context) {
	v.looks(ctx, func(l *looking) {
		if s := (&spot{path: v.w.root, folder: v.w.tree}); v.add(s) {
			v.see(l, s)
		}
	})
}

// look looks at what changed, and reports whether to look again though nothing does.
func (v *live) look(ctx context.Context) bool {
	again := v.again
	v.again = map[*spot]bool{}
	v.looks(ctx, func(l *looking) {
		for s := range again {
			if s.folder == nil {
				l.found(s.repo)
			} else {
				v.see(l, s)
			}
		}
	})
	return len(v.again) > 0
}

// looks makes one look, if programs still run.
func (v *live) looks(ctx context.Context, at func(l *looking)) {
	v.w.mu.Lock()
	defer v.w.mu.Unlock()
	if v.w.live != v {
		return
	}
	l := v.w.looking(ctx)
	l.live = v
	v.had, v.since = v.since, map[string]time.Time{}
	at(l)
	l.settle()
	v.w.left = append(v.w.left, l.moved...)
}

// see looks at a folder, and follows what is new below, the nearest first.
func (v *live) see(l *looking, s *spot) {
	for queue := []*spot{s}; len(queue) > 0; queue = queue[1:] {
		v.at = queue[0]
		root := v.w.enter(l, v.at.folder, v.at.path, v.at.root)
		for name, kid := range v.at.folder.kids {
			if to := (&spot{path: v.at.path + "/" + name, folder: kid, root: root}); kid.place != packaged && v.known[kid] == nil && v.add(to) {
				v.known[kid] = to
				queue = append(queue, to)
			}
		}
	}
}

// repository follows a git folder. Its files are looked at after that.
func (v *live) repository(dir string) {
	if v == nil {
		return
	}
	v.at = &spot{path: dir, repo: dir}
	v.add(v.at)
	for _, name := range []string{"hooks", "info", "objects/info", "remotes", "branches"} {
		v.part(dir, filepath.Join(dir, name))
	}
}

// part follows a folder that is a part of a repository, or is named by its
// configuration.
func (v *live) part(repo, dir string) {
	if v != nil {
		v.add(&spot{path: dir, repo: repo})
	}
}

// add follows one folder.
func (v *live) add(s *spot) bool {
	const happens = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_CLOSE_WRITE | unix.IN_ATTRIB
	if len(v.spots) >= maxFollowed {
		return false
	}
	wd := -1
	v.conn.Control(func(fd uintptr) { //nolint:errcheck // it was closed: nothing is followed any more
		if n, err := unix.InotifyAddWatch(int(fd), s.path, happens|unix.IN_ONLYDIR|unix.IN_DONT_FOLLOW|unix.IN_EXCL_UNLINK); err == nil {
			if wd = n; v.spots[n] == nil {
				v.spots[n] = new(spots)
			}
			v.spots[n][s.as()] = s
		}
	})
	return wd >= 0
}

// hear takes note of the folders in which something happened that counts, and reports
// whether there are any.
func (v *live) hear(b []byte) bool {
	v.w.mu.Lock()
	defer v.w.mu.Unlock()
	for len(b) >= unix.SizeofInotifyEvent {
		wd, mask, n := int(int32(binary.NativeEndian.Uint32(b))), binary.NativeEndian.Uint32(b[4:]), int(binary.NativeEndian.Uint32(b[12:]))
		name := strings.TrimRight(string(b[unix.SizeofInotifyEvent:unix.SizeofInotifyEvent+n]), "\x00")
		b = b[unix.SizeofInotifyEvent+n:]
		at := v.spots[wd]
		switch {
		case mask&unix.IN_Q_OVERFLOW != 0:
			for _, at := range v.spots {
				v.heard(at, "", true)
			}
		case at == nil:
		case mask&unix.IN_IGNORED != 0: // it is gone
			if delete(v.spots, wd); at[0] != nil {
				delete(v.known, at[0].folder)
			}
		default:
			v.heard(at, name, mask&unix.IN_ISDIR != 0)
		}
	}
	return len(v.again) > 0
}

// heard takes note of what happened to a name in a folder.
func (v *live) heard(at *spots, name string, folder bool) {
	for _, s := range at {
		if s == nil || !s.counts(v.w, name, folder) {
			continue
		}
		if v.again[s] = true; s.folder != nil {
			delete(v.known, s.folder.kids[name]) // it may be another one
		}
	}
}

// counts reports whether a name in a folder is one to look at.
func (s *spot) counts(w *Watch, name string, folder bool) bool {
	switch {
	case name == "":
		return folder // some name: too much happened
	case s.folder == nil: // git makes files of other names all the time
		return s.path != s.repo || folder || name == "HEAD" || strings.HasPrefix(name, "config") || name == "commondir" || name == "gitdir"
	case folder, isGitName(name), ofBare(name):
		return true
	}
	return s.folder.place.of(w.base(s.folder, s.path), name) == guarded
}

// ripe reports whether a file that may not stay is to be moved aside now. Else it is
// looked at again.
func (v *live) ripe(path string, now stamp) bool {
	if v == nil {
		return true
	}
	began, ok := v.had[path]
	if !ok {
		began = time.Now()
	}
	if time.Since(time.Unix(now.sec, now.nsec)) >= quiet || time.Since(began) >= late {
		return true
	}
	v.since[path] = began
	if v.at != nil {
		v.again[v.at] = true
	}
	return false
}
