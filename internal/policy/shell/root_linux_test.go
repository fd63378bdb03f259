package shell

import (
	"bufio"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// root is a helper in namespaces of its own.
type root struct {
	in      *json.Encoder
	out     *bufio.Reader
	trouble *strings.Builder // what the helper says before it ends
	wait    func() error
}

func newRoot(t *testing.T, shell, argv0 string) (*root, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Args = []string{helperName, t.TempDir()}
	cmd.Env = []string{"BELAY_SHELL=" + shell, "BELAY_SHELL_NAME=" + argv0, "PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
		Setsid:      true, // a group reaches across namespaces: "kill 0" would end this test
	}
	var trouble strings.Builder
	cmd.Stderr = &trouble
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	r := &root{json.NewEncoder(in), bufio.NewReader(out), &trouble, sync.OnceValue(cmd.Wait)}
	t.Cleanup(func() { in.Close(); r.wait() }) //nolint:errcheck // it has answered all that was asked
	_, err = r.run(":")                        // the mounts are made before the first answer
	return r, err
}

// run gives the helper one source.
func (r *root) run(src string) (started, error) {
	var s started
	if err := r.in.Encode(src); err != nil {
		return s, err
	}
	line, err := r.out.ReadBytes('\n')
	if err != nil {
		return s, fmt.Errorf("%w: the helper has ended: %v: %s", err, r.wait(), r.trouble)
	}
	return s, json.Unmarshal(line, &s)
}

// helper is the first process of the new root. It answers sources until its
// input ends; with it everything in its process namespace ends.
func helper(dir string) error {
	if err := enter(dir); err != nil {
		return err
	}
	signal.Notify(make(chan os.Signal, 1))                                      // sources may send any to the first process
	unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 1 << 20, Max: 1 << 20}) //nolint:errcheck // the file system is bounded too
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	before, err := furnish()
	if err != nil {
		return err
	}
	for {
		var src string
		if err := in.Decode(&src); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		s, err := shellRun(src)
		if err != nil {
			return err
		}
		if s.Changed = changed(before); len(s.Changed) > 0 {
			if before, err = furnish(); err != nil {
				return err
			}
		}
		if err := out.Encode(s); err != nil {
			return err
		}
	}
}

// furnish makes the folder that sources run in as it is at first.
func furnish() (map[string]string, error) {
	entries, err := os.ReadDir("/w")
	for _, e := range entries {
		if err == nil {
			err = os.RemoveAll("/w/" + e.Name())
		}
	}
	for _, name := range []string{"a", "b", "1", "2", "file", "home/x"} {
		if err == nil {
			err = errors.Join(os.MkdirAll(filepath.Dir("/w/"+name), 0o755), os.WriteFile("/w/"+name, []byte("evil\n"), 0o644))
		}
	}
	return contents(), err
}

// contents are the files of the folder that sources run in.
func contents() map[string]string {
	files := map[string]string{}
	filepath.WalkDir("/w", func(name string, d fs.DirEntry, err error) error { //nolint:errcheck // what can't be read is another content
		text := "folder"
		if d == nil || !d.IsDir() {
			b, err := os.ReadFile(name)
			text = fmt.Sprintf("%q %v", b, err)
		}
		files[name] = text
		return nil
	})
	return files
}

// changed are the files that aren't as they were.
func changed(before map[string]string) (names []string) {
	after := contents()
	for name, text := range after {
		if was, ok := before[name]; !ok || was != text {
			names = append(names, name)
		}
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			names = append(names, name)
		}
	}
	return names
}

// shellRun starts the shell with a source and waits until it and all that it started
// have ended.
func shellRun(src string) (started, error) {
	var s started
	r, w, err := os.Pipe()
	if err != nil {
		return s, err
	}
	defer r.Close()
	null, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	if err != nil {
		return s, err
	}
	defer null.Close()
	files := make([]*os.File, recordFd+1)
	files[0], files[1], files[2], files[recordFd] = null, null, null, w
	env := []string{"PATH=/usr/bin", "HOME=/w/home", "X=beta evil", "N=evil", "Z=a[$(evil)]", "x=$(evil)", "n=a[$(evil)]", "i=a[$(evil)]", "v=evil", "LC_ALL=C"}
	p, err := os.StartProcess(shellInRoot, []string{os.Getenv("BELAY_SHELL_NAME"), "-c", src}, &os.ProcAttr{Dir: "/w", Env: env, Files: files, Sys: &syscall.SysProcAttr{Setsid: true}})
	w.Close()
	if err != nil {
		return s, err
	}
	defer p.Release() //nolint:errcheck // it is reaped below
	late := time.AfterFunc(time.Second, func() { syscall.Kill(-1, syscall.SIGKILL) })
	text, err := io.ReadAll(io.LimitReader(r, 1<<20))
	for {
		if _, werr := syscall.Wait4(-1, nil, 0, nil); werr == syscall.ECHILD {
			break
		}
	}
	s.Late = !late.Stop()
	for line := range strings.Lines(string(text)) {
		var p []string
		if json.Unmarshal([]byte(line), &p) == nil { // a shell may write there too
			s.Programs = append(s.Programs, p)
		}
	}
	return s, err
}

// enter makes a root on an empty file system and moves into it: a directory of
// shims, a shell with its libraries, one place to write.
func enter(dir string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private: %w", err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID, "size=8m"); err != nil {
		return fmt.Errorf("tmpfs: %w", err)
	}
	b := bind{dir: dir}
	b.make("/w/home", "/usr/bin", "/dev", "/old")
	b.file(os.Getenv("BELAY_SHELL"), shellInRoot)
	for _, lib := range libraries(os.Getenv("BELAY_SHELL")) {
		b.file(lib, lib)
	}
	for _, lib := range libraries(self) {
		b.file(lib, lib)
	}
	for _, name := range programPaths() {
		b.file(self, "/usr/bin/"+name)
	}
	for _, name := range []string{"/dev/null", "/dev/zero"} {
		b.file(name, name)
	}
	for _, link := range []string{"/bin", "/sbin", "/usr/sbin", "/usr/local"} {
		b.note(os.Symlink("/usr/bin", dir+link))
	}
	b.note(os.WriteFile(dir+shimMark, nil, 0o400))
	b.note(unix.Mount("tmpfs", dir+"/w", "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, "size=4m"))
	b.note(os.Mkdir(dir+"/w/home", 0o700))
	if b.err != nil {
		return b.err
	}
	if err := unix.PivotRoot(dir, dir+"/old"); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	if err := unix.Unmount("/old", unix.MNT_DETACH); err != nil {
		return err
	}
	return unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|unix.MS_NOSUID, "")
}

// bind makes a tree of bind mounts and keeps the first error.
type bind struct {
	dir string
	err error
}

func (b *bind) note(err error) {
	if b.err == nil {
		b.err = err
	}
}

func (b *bind) make(dirs ...string) {
	for _, d := range dirs {
		b.note(os.MkdirAll(b.dir+d, 0o755))
	}
}

// file mounts a file of the old root at a path of the new one.
func (b *bind) file(from, to string) {
	if b.err != nil {
		return
	}
	b.make(filepath.Dir(to))
	if _, err := os.Stat(b.dir + to); err == nil {
		return
	}
	b.note(os.WriteFile(b.dir+to, nil, 0o755))
	if err := unix.Mount(from, b.dir+to, "", unix.MS_BIND, ""); err != nil {
		b.note(fmt.Errorf("bind %s: %w", from, err))
	}
}

// programPaths are the names of all programs of this machine, and of those
// that the generator makes up.
func programPaths() []string {
	list := append(slices.Clone(programs), "evil", "x")
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), "/bin", "/usr/bin", "/sbin", "/usr/sbin") {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue // the PATH may name what isn't there
		}
		for _, e := range entries {
			list = append(list, e.Name())
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// libraries are the files that a program needs to be loaded.
func libraries(program string) []string {
	var out []string
	seen := map[string]bool{}
	var add func(file string)
	add = func(file string) {
		f, err := elf.Open(file)
		if err != nil {
			return
		}
		defer f.Close()
		for _, p := range f.Progs {
			if p.Type == elf.PT_INTERP {
				text, _ := io.ReadAll(p.Open())
				out = append(out, strings.TrimRight(string(text), "\x00"))
			}
		}
		names, _ := f.ImportedLibraries()
		for _, name := range names {
			for _, dir := range []string{"/lib64", "/usr/lib64", "/lib", "/usr/lib", "/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"} {
				lib := filepath.Join(dir, name)
				if _, err := os.Stat(lib); err == nil && !seen[lib] {
					seen[lib] = true
					out = append(out, lib)
					add(lib)
				}
			}
		}
	}
	add(program)
	return out
}
