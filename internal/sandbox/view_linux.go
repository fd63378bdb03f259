package sandbox

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/sandbox/boxinit"
)

// places are folders that hold what is other people's, other programs' or
// secret, and where programs expect to write.
var places = []string{"/tmp", "/var/tmp", "/run", "/home", "/root", "/media"}

// privateFolders are the places that this machine has, and the person's home.
// None lies in another.
func privateFolders(home string) []string {
	var all []string
	for _, p := range append(slices.Clone(places), home) {
		real, err := filepath.EvalSymlinks(p)
		info, serr := os.Lstat(real)
		if p == "" || err != nil || serr != nil || !info.IsDir() || real == "/" {
			continue
		}
		if !slices.ContainsFunc(all, func(a string) bool { return boxinit.Within(real, a) }) {
			all = append(all, real)
		}
	}
	return all
}

// rootSecrets are files of the system that only root can read.
var rootSecrets = []string{"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssl/private", "/etc/security/opasswd", "/var/spool/cron", "/var/lib/private"}

// profile is what a helper is to do for cmd. What h holds belongs to it.
func (b *Box) profile(cmd *exec.Cmd, h *Hold) (*boxinit.Profile, error) {
	p := &boxinit.Profile{
		Path: cmd.Path, Argv: cmd.Args, Dir: cmp.Or(cmd.Dir, b.o.Workspace), Env: cmd.Env, Try: map[string]bool{}, Workspace: b.o.Workspace,
		Home: b.o.Home, Reads: b.b.Reads(), Network: b.network(), Limits: limitsOf(b.b.Limits), Outside: outside(), Seen: map[string]boxinit.Place{}, Linger: b.o.Linger, Grace: b.o.Grace,
	}
	if cmd.Env == nil {
		p.Env = os.Environ()
	}
	for _, l := range h.intends {
		p.Try[l.Name] = l.State == belay.LayerApplied
	}
	if err := b.files(p); err != nil {
		return nil, err
	}
	look(p)
	if !b.full() {
		h.private, h.covered = p.Private, p.Sealed
	}
	var err error
	if !p.Try[boxinit.Mounts] && !b.full() {
		if err := h.addTempDir(p); err != nil {
			return nil, err
		}
	}
	if p.Try[boxinit.Mounts] {
		p.Env = withTemp(p)
	}
	if p.Try[boxinit.Cgroup] {
		if err = b.gather(p, h); err != nil {
			return nil, err
		}
	}
	if p.Limits.Processes > 0 && !p.Try[boxinit.Cgroup] && !(p.Try[boxinit.User] && countsByNamespace()) {
		p.Others = tasksOf(os.Geteuid())
	}
	if p.Try[boxinit.Protected] {
		err = b.guard(p)
	}
	return p, err
}

// withTemp is an environment whose folder for temporary files can be written.
func withTemp(p *boxinit.Profile) []string {
	in := func(dir string, places []string) bool {
		return slices.ContainsFunc(places, func(p string) bool { return boxinit.Within(dir, p) })
	}
	out := slices.Clone(p.Env)
	for i, e := range out {
		if dir, is := strings.CutPrefix(e, "TMPDIR="); is {
			dir = filepath.Clean(dir)
			if !in(dir, p.Writable) && (!in(dir, p.Private) || boxinit.Within(dir, p.Workspace)) {
				out[i] = "TMPDIR=/tmp"
			}
		}
	}
	return out
}

// gather makes the group for the limits. If it can't be made and only default limits
// need it, the program runs without: the layer says why, and the limit of processes
// is the user's then.
func (b *Box) gather(p *boxinit.Profile, h *Hold) (err error) {
	if h.group, err = b.group(b.b.Limits); err == nil {
		p.Cgroups = h.group.joins()
		p.Groups = cgroupNames(p.Cgroups)
		return nil
	}
	if demanded(b.b.Limits) {
		return belay.Errorf(belay.CodeNotConfined, "the group for the limits can't be made").Wrap(err)
	}
	i := slices.IndexFunc(h.intends, func(l belay.Layer) bool { return l.Name == boxinit.Cgroup })
	h.intends[i].State, h.intends[i].Detail = belay.LayerUnavailable, boxinit.Reason(err)
	p.Try[boxinit.Cgroup] = false
	return nil
}

// addTempDir gives a program a folder to write temporary files in, where it has no
// view of its own. It is gone with the hold.
func (h *Hold) addTempDir(p *boxinit.Profile) (err error) {
	if h.scratch, err = makeScratch(); err != nil {
		return err
	}
	p.Writable = append(p.Writable, h.scratch)
	p.Env = slices.DeleteFunc(slices.Clone(p.Env), func(e string) bool { return strings.HasPrefix(e, "TMPDIR=") || strings.HasPrefix(e, "HOME=") })
	p.Env = append(p.Env, "TMPDIR="+h.scratch, "HOME="+h.scratch)
	return nil
}

// files fills in what can be seen and written.
func (b *Box) files(p *boxinit.Profile) error {
	p.Private = privateFolders(b.o.Home)
	if b.writes() {
		p.Writable = append(p.Writable, b.o.Workspace)
	}
	more, err := writable(b.b)
	if err != nil {
		return err
	}
	p.Writable = append(p.Writable, more...)
	slices.Sort(p.Writable)
	p.Writable = slices.Compact(p.Writable)
	for _, r := range b.b.Read {
		if real, err := filepath.EvalSymlinks(r); err == nil {
			p.Readable = append(p.Readable, real)
		}
	}
	if b.o.Secret != nil && p.Try[boxinit.Mounts] {
		p.Sealed = b.sealed(p)
		if b.o.Tracked != nil {
			b.unchanged(p)
		}
	}
	p.Hidden = slices.Clone(b.o.Hidden)
	if b.o.Home != "" {
		for _, t := range toolchains {
			if full := filepath.Join(b.o.Home, t); exists(full) {
				p.Readable = append(p.Readable, full)
			}
		}
		for _, s := range secrets {
			p.Hidden = append(p.Hidden, filepath.Join(b.o.Home, s))
		}
	}
	if isRoot() {
		p.Hidden = append(p.Hidden, rootSecrets...)
		keys, _ := filepath.Glob("/etc/ssh/ssh_host_*_key")
		p.Hidden = append(p.Hidden, keys...)
	}
	return b.cache(p)
}

// sealed are the secrets in what a program sees of other folders than its own,
// but for those that the boundary names.
func (b *Box) sealed(p *boxinit.Profile) []string {
	roots := topmost(slices.Concat([]string{b.o.Workspace}, p.Writable, p.Readable))
	shown := func(path string) bool {
		return slices.ContainsFunc(p.Readable, func(r string) bool {
			return boxinit.Within(path, r) && (b.o.Secret(r, false) || b.o.Secret(r, true))
		})
	}
	return secretsIn(roots, b.o.Secret, shown)
}

// unchanged has covered files look to version control as they are.
func (b *Box) unchanged(p *boxinit.Profile) {
	tracked, attributes := b.o.Tracked(p.Sealed)
	if len(tracked) > 0 {
		p.Sealed, p.Attributes, p.Env = apart(p.Sealed, tracked), attributes, toGit(p.Env)
	}
}

// cache makes the folder that stands for the home's .cache.
func (b *Box) cache(p *boxinit.Profile) error {
	if b.o.Cache == "" || b.o.Home == "" || slices.ContainsFunc(p.Writable, func(w string) bool { return boxinit.Within(b.o.Home, w) }) {
		return nil
	}
	if err := os.MkdirAll(b.o.Cache, 0o700); err != nil {
		return fmt.Errorf("folder for the sandbox's cache: %w", err)
	}
	p.Cache = b.o.Cache
	return nil
}

// limitsOf are the limits that a helper applies.
func limitsOf(l belay.ProcessLimits) boxinit.Limits {
	return boxinit.Limits{Memory: l.Memory, FileSize: l.FileSize, Disk: l.Disk, CPU: time.Duration(l.CPU), Wall: time.Duration(l.Wall), Processes: l.Processes, OpenFiles: l.OpenFiles}
}
