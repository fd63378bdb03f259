package boxinit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// devices are the ones that a program gets.
var devices = []string{"null", "zero", "full", "random", "urandom", "tty"}

func devicePaths() []string {
	var all []string
	for _, d := range devices {
		all = append(all, "/dev/"+d)
	}
	return all
}

// privateSize is how large the private folders become together, when no limit
// says otherwise.
const privateSize = 1 << 30

// tree is a part of the file system that is taken out of the view before it
// changes, to be put back where it was.
type tree struct {
	fd   int
	path string
	set  uint64 // attributes it gets
}

// mountView makes the view of the files: everything read-only, the private
// folders empty, the workspace and what else is listed put back.
func (h *helper) mountView() (string, error) {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return "", fmt.Errorf("keep mounts to itself: %w", err)
	}
	kept, err := h.take()
	if err != nil {
		return "", err
	}
	all := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if err := unix.MountSetattr(-1, "/", unix.AT_RECURSIVE, &all); err != nil {
		return "", fmt.Errorf("make everything read-only: %w", err)
	}
	steps := []func() error{h.privateFolders, h.layer, h.ownDevices}
	for _, t := range kept {
		steps = append(steps, t.put)
	}
	for _, step := range append(steps, h.hide) {
		if err := step(); err != nil {
			return "", err
		}
	}
	return h.seal()
}

// take takes out what must be seen as it is, before the rest is covered.
func (h *helper) take() ([]tree, error) {
	var kept []tree
	add := func(from, to string, set uint64) error {
		t, err := treeOf(from, to, unix.AT_RECURSIVE)
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) && set&unix.MOUNT_ATTR_RDONLY != 0 {
			return nil // nothing to be seen
		}
		t.set |= set
		kept = append(kept, t)
		return err
	}
	shown := slices.Clone(h.p.Readable)
	if !slices.Contains(h.p.Writable, h.p.Workspace) {
		shown = append(shown, h.p.Workspace)
	}
	slices.Sort(shown)
	for _, p := range shown {
		if err := add(p, p, unix.MOUNT_ATTR_RDONLY); err != nil {
			return nil, err
		}
	}
	switch at := h.p.Home + "/.cache"; {
	case h.p.Cache == "" || h.p.Home == "" || len(h.p.Private) == 0:
	case h.p.Reads:
		fd, err := unix.Open(h.p.Cache, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, fmt.Errorf("take %s: %w", h.p.Cache, err)
		}
		h.layered = &tree{fd: fd, path: at}
	default:
		if err := add(h.p.Cache, at, 0); err != nil {
			return nil, err
		}
	}
	for _, p := range h.p.Writable { // sorted: what is above comes first
		if err := add(p, p, 0); err != nil {
			return nil, err
		}
	}
	return kept, nil
}

// treeOf takes a tree out, for a place, without the rights of devices and of other
// users in it.
func treeOf(from, to string, flags uint) (tree, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, from, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|flags)
	if err != nil {
		return tree{}, fmt.Errorf("take %s: %w", from, err)
	}
	return tree{fd, to, unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}, nil
}

// put puts the tree back. Where a private folder covers its place, the place is
// made.
func (t tree) put() error {
	defer unix.Close(t.fd)
	if err := unix.MountSetattr(t.fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: t.set}); err != nil {
		return fmt.Errorf("set what %s may be: %w", t.path, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(t.fd, &st); err != nil {
		return err
	}
	if err := standing(t.path, st.Mode&unix.S_IFMT == unix.S_IFDIR); err != nil {
		return fmt.Errorf("place for %s: %w", t.path, err)
	}
	if err := unix.MoveMount(t.fd, "", unix.AT_FDCWD, t.path, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("put %s back: %w", t.path, err)
	}
	return nil
}

// standing makes sure that there is something to mount on.
func standing(path string, dir bool) error {
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	if dir {
		return os.MkdirAll(path, 0o755)
	}
	if err := os.MkdirAll(folder(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

// folder is the one that a path lies in. Package filepath would be initialized
// late, and this package after it.
func folder(path string) string { return path[:max(1, strings.LastIndexByte(path, '/'))] }

// inodes is how many files private folders of a size may have: a file takes
// memory of the kernel's however small it is.
func inodes(size int64) int64 { return max(1<<10, size/(4<<10)) }

// privateFolders covers them with folders of one file system in memory, so
// that one size bounds all of them.
func (h *helper) privateFolders() error {
	if len(h.p.Private) == 0 {
		return nil
	}
	size := int64(privateSize)
	if d := h.p.Limits.Disk; d > 0 {
		size = max(d, 64<<10)
	}
	base := h.p.Private[0]
	if err := unix.Mount("tmpfs", base, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, fmt.Sprintf("mode=0755,nr_inodes=%d,size=%d", inodes(size), size)); err != nil {
		return fmt.Errorf("private folders: %w", err)
	}
	if h.layered != nil { // the private folders cover what it needs
		var err error
		if h.memory, err = unix.Open(base, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
			return err
		}
		if err := errors.Join(os.Mkdir(base+"/"+layerUpper, 0o755), os.Mkdir(base+"/"+layerWork, 0o755)); err != nil {
			return err
		}
	}
	mode := func(p string) os.FileMode {
		if strings.HasSuffix(p, "tmp") || p == "/dev/shm" {
			return 0o777 | os.ModeSticky
		}
		return 0o755
	}
	for i := len(h.p.Private) - 1; i >= 0; i-- { // the first one last: it covers the others
		p, own := h.p.Private[i], base+"/"+strconv.Itoa(i)
		if err := os.Mkdir(own, 0o755); err != nil {
			return err
		}
		if err := os.Chmod(own, mode(p)); err != nil {
			return err
		}
		if err := unix.Mount(own, p, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("private %s: %w", p, err)
		}
	}
	h.mine = append(h.mine, h.p.Private...)
	if h.p.Home != "" {
		return os.MkdirAll(h.p.Home, 0o755)
	}
	return nil
}

// layer covers the place of the cache with the cache under a layer that takes what
// is written, in the file system in memory that the private folders lie in.
// Where the kernel can't make one, the place stays empty: what would have been
// found there is made anew.
func (h *helper) layer() error {
	if h.layered == nil {
		return nil
	}
	defer unix.Close(h.layered.fd)
	defer unix.Close(h.memory)
	if err := os.MkdirAll(h.layered.path, 0o755); err != nil {
		return fmt.Errorf("place for %s: %w", h.layered.path, err)
	}
	memory := "/proc/self/fd/" + strconv.Itoa(h.memory)
	unix.Mount("overlay", h.layered.path, "overlay", unix.MS_NOSUID|unix.MS_NODEV, //nolint:errcheck // see above
		fmt.Sprintf("userxattr,lowerdir=/proc/self/fd/%d,upperdir=%s/%s,workdir=%s/%s", h.layered.fd, memory, layerUpper, memory, layerWork))
	return nil
}

// Folders of the file system in memory, beside the private ones.
const (
	layerUpper = "upper"
	layerWork  = "work"
)

// ownDevices makes a /dev of the harmless devices, with terminals and shared
// memory of its own.
func (h *helper) ownDevices() error {
	var kept []tree
	for _, p := range devicePaths() {
		t, err := treeOf(p, p, 0)
		if err != nil {
			return err
		}
		t.set = 0
		kept = append(kept, t)
	}
	if err := unix.Mount("tmpfs", "/dev", "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, "mode=0755,size=64k,nr_inodes=64"); err != nil {
		return fmt.Errorf("own /dev: %w", err)
	}
	for _, t := range kept {
		clear := unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NODEV}
		if err := unix.MountSetattr(t.fd, "", unix.AT_EMPTY_PATH, &clear); err != nil {
			return fmt.Errorf("open %s: %w", t.path, err)
		}
		if err := t.put(); err != nil {
			return err
		}
	}
	for name, to := range map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2", "ptmx": "pts/ptmx"} {
		if err := os.Symlink(to, "/dev/"+name); err != nil {
			return err
		}
	}
	if err := mountAt("devpts", "/dev/pts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620"); err != nil {
		return err
	}
	if err := mountAt("tmpfs", "/dev/shm", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777,size=64m,nr_inodes=4096"); err != nil {
		return err
	}
	h.mine = append(h.mine, "/dev/shm")
	h.denied = "/dev/.canary"
	return os.WriteFile(h.denied, nil, 0o600)
}

func mountAt(kind, path string, flags uintptr, options string) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(kind, path, kind, flags, options); err != nil {
		return fmt.Errorf("own %s: %w", path, err)
	}
	return nil
}

// hide covers files and folders with nothing.
func (h *helper) hide() error {
	var empty string
	for _, p := range h.p.Hidden {
		info, err := os.Stat(p)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			continue
		}
		if err != nil {
			return err
		}
		if info.IsDir() {
			if err := unix.Mount("tmpfs", p, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC|unix.MS_RDONLY, "mode=0555,size=4k,nr_inodes=2"); err != nil {
				return fmt.Errorf("hide %s: %w", p, err)
			}
			continue
		}
		if empty == "" {
			if empty = "/dev/.empty"; os.WriteFile(empty, nil, 0o444) != nil {
				return fmt.Errorf("hide %s: no empty file to cover it with", p)
			}
		}
		if err := bindReadOnly(empty, p); err != nil {
			return fmt.Errorf("hide %s: %w", p, err)
		}
	}
	return nil
}

// seal covers files and folders with ones that can't be opened. They stay visible, with
// their size and time: a program that can't read its settings says so, and nothing takes
// them for changed.
func (h *helper) seal() (string, error) {
	if len(h.p.Sealed) == 0 {
		return "", nil
	}
	covers := "/dev/.sealed"
	if err := mountAt("tmpfs", covers, unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, fmt.Sprintf("mode=0700,size=64k,nr_inodes=%d", len(h.p.Sealed)+8)); err != nil {
		return "", fmt.Errorf("hide secrets: %w", err)
	}
	for i, p := range h.p.Sealed {
		info, err := os.Lstat(p)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		cover := covers + "/" + strconv.Itoa(i)
		if err == nil {
			err = coverOf(info, cover)
		}
		if err == nil {
			err = bindReadOnly(cover, p)
		}
		if err != nil {
			return "", fmt.Errorf("hide %s: %w", p, err)
		}
	}
	if h.p.Attributes != "" {
		if err := os.WriteFile(Attributes, []byte(h.p.Attributes), 0o444); err != nil {
			return "", fmt.Errorf("attributes for git: %w", err)
		}
	}
	if err := unix.Unmount(covers, unix.MNT_DETACH); err != nil { // where they are mounted they stay
		return "", fmt.Errorf("hide secrets: %w", err)
	}
	return strconv.Itoa(len(h.p.Sealed)) + " secrets hidden", nil
}

// coverOf makes what covers a file or folder.
func coverOf(info fs.FileInfo, at string) error {
	if info.IsDir() {
		return os.Mkdir(at, 0)
	}
	if err := os.WriteFile(at, nil, 0o600); err != nil {
		return err
	}
	return errors.Join(os.Truncate(at, info.Size()), os.Chmod(at, info.Mode()&0o100), os.Chtimes(at, info.ModTime(), info.ModTime()))
}

func bindReadOnly(from, to string) error {
	t, err := treeOf(from, to, 0)
	if err != nil {
		return err
	}
	t.set |= unix.MOUNT_ATTR_RDONLY
	return t.put()
}

// freshProc shows the processes of the new namespace, and nothing that could
// be written there reaches the kernel.
func (h *helper) freshProc() (string, error) {
	err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC|unix.MS_RDONLY, "")
	if err != nil {
		return "", fmt.Errorf("own /proc: %w", err)
	}
	return "", nil
}
