package sandbox

import (
	"cmp"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/process"
	"github.com/belay-run/belay/internal/sandbox/boxinit"
)

// Box starts programs within one boundary.
type Box struct {
	b     belay.Boundary
	o     Options
	hosts []hostRule
	group func(belay.ProcessLimits) (*cgroup, error) // makes the groups of one program
}

// New makes a box. The workspace must exist; what the boundary says is checked,
// what the machine can do isn't: Prepare finds out.
func New(b belay.Boundary, o Options) (*Box, error) {
	o, err := o.checked(b)
	if err != nil {
		return nil, err
	}
	hosts, err := hostRules(b)
	if err != nil {
		return nil, err
	}
	if o.Linger <= 0 {
		o.Linger = defaultLinger
	}
	if o.Grace <= 0 {
		o.Grace = defaultGrace
	}
	return &Box{b: b, o: o, hosts: hosts, group: newCgroup}, nil
}

// Seatbelt is false: that is macOS's sandbox.
func Seatbelt() bool { return false }

// Plan is what the boundary will be on this machine, before anything starts:
// each layer as applied where it is intended, with the level that makes. An
// error is a level below the boundary's least.
func (b *Box) Plan() (belay.Applied, error) {
	a := belay.Applied{Layers: b.intended(Probe())}
	return a, b.rate(&a)
}

// rate sets the level of what was applied, and refuses one that is too low.
func (b *Box) rate(a *belay.Applied) error {
	a.Level, a.Why = levelOf(a.Layers)
	a.Network = reaches(b.network(), a.Layers)
	if a.Level.AtLeast(b.b.Least) {
		return nil
	}
	return belay.Errorf(belay.CodeNotConfined, "boundary %q wants level %s and this machine gives %s: %s", b.b.Name, b.b.Least, a.Level, a.Why).
		WithHint("belay doctor lists the layers; a boundary with a lower level, or a person's yes, lets it run")
}

func (b *Box) network() string { return cmp.Or(b.b.Network, belay.NetworkNone) }

// reaches is what of a network a program with these layers can reach. Hosts are
// reached through a socket in a network of its own; without one the filter of
// system calls leaves nothing, and without that there is no wall.
func reaches(want string, layers []belay.Layer) string {
	has := func(name string) bool {
		return slices.ContainsFunc(layers, func(l belay.Layer) bool { return l.Name == name && l.State == belay.LayerApplied })
	}
	switch {
	case want == belay.NetworkFull:
		return belay.NetworkFull
	case has(boxinit.Net):
		return want
	case has(boxinit.Seccomp):
		return belay.NetworkNone
	}
	return belay.NetworkFull
}

func (b *Box) full() bool { return b.b.Name == belay.BoundaryFull }

// writes reports whether the workspace can be written.
func (b *Box) writes() bool { return b.b.Name != belay.BoundaryReadOnly && b.b.Name != "" }

// intended lists every layer: applied if it is to be tried.
func (b *Box) intended(m Machine) []belay.Layer {
	var all []belay.Layer
	for _, l := range m.Layers {
		why := ""
		switch {
		case b.full() && l.Name != boxinit.Rlimits && l.Name != boxinit.Cgroup:
			why = byFull
		case slices.Contains(b.o.Disabled, l.Name) && l.Detail != notNeeded:
			why = byOptions
		case l.Name == boxinit.Net && b.network() == belay.NetworkFull:
			why = byNetwork
		case l.Name == boxinit.Cgroup && !grouped(b.b.Limits):
			why = noLimit
		}
		if why != "" {
			l.State, l.Detail = belay.LayerDisabled, why
		}
		all = append(all, l)
	}
	return without(all)
}

// needs are the layers that a layer can't do without.
var needs = map[string][]string{
	boxinit.Proc:      {boxinit.PID, boxinit.Mounts}, // else it would show the runtime's processes, or nothing
	boxinit.Protected: {boxinit.Mounts},
	boxinit.PID:       {boxinit.User, boxinit.Mounts}, // else /proc tells the program of processes that it can't name
	boxinit.IPC:       {boxinit.User},
	boxinit.Net:       {boxinit.User},
	boxinit.Mounts:    {boxinit.User},
}

// without leaves out what lacks a layer that it needs.
func without(all []belay.Layer) []belay.Layer {
	has := func(name string) bool {
		return slices.ContainsFunc(all, func(l belay.Layer) bool {
			return l.Name == name && (l.State == belay.LayerApplied || l.Detail == notNeeded)
		})
	}
	for range needs { // one that is left out may be what another needs
		for i, l := range all {
			for _, n := range needs[l.Name] {
				if l.State == belay.LayerApplied && !has(n) {
					all[i].State, all[i].Detail = belay.LayerUnavailable, "without "+n
				}
			}
		}
	}
	return all
}

// Prepare makes cmd start the helper, which will start cmd's program.
func (b *Box) Prepare(cmd *exec.Cmd) (process.Hold, error) {
	a, err := b.Plan()
	if err != nil {
		return nil, err
	}
	h := &Hold{box: b, intends: a.Layers}
	p, err := b.profile(cmd, h)
	if err == nil {
		err = h.connect(p)
	}
	if err != nil {
		h.Close() //nolint:errcheck // the first error counts
		return nil, err
	}
	attr := cmd.SysProcAttr
	if attr == nil {
		attr = &syscall.SysProcAttr{}
	}
	enter(attr, p.Try)
	first := 3 + len(cmd.ExtraFiles)
	cmd.ExtraFiles = append(cmd.ExtraFiles, h.far...)
	cmd.SysProcAttr, cmd.Path, cmd.Dir = attr, "/proc/self/exe", "/"
	cmd.Args = []string{boxinit.Name, strconv.Itoa(first)}
	cmd.Env, cmd.Err = slices.Clone(helperEnv), nil
	if mark := marked(p); mark != "" {
		cmd.Env = append(cmd.Env, mark)
	}
	return h, nil
}

// markPrefix begins the line of the environment by which package process finds
// what a call started.
const markPrefix = "BELAY_PROCESS_MARK="

// marked is the mark of what a call started, for the helper. Where the helper
// ends everybody with it there is none, and the program has none either: a signal
// goes to the helper, whose environment not everybody can read, and reaches
// everybody, once.
func marked(p *boxinit.Profile) (mark string) {
	p.Env = slices.Clone(p.Env)
	i := slices.IndexFunc(p.Env, func(e string) bool { return strings.HasPrefix(e, markPrefix) })
	if i < 0 {
		return ""
	}
	if mark = p.Env[i]; !p.Try[boxinit.PID] {
		return mark
	}
	p.Env = slices.Delete(p.Env, i, i+1)
	return ""
}

// helperEnv is the helper's environment: nothing of the program's steers it.
var helperEnv = []string{"GOGC=off", "GOMAXPROCS=2", "GOTRACEBACK=none"}

// enter sets the namespaces that a helper starts in.
func enter(attr *syscall.SysProcAttr, try map[string]bool) {
	for layer, flag := range namespaceFlags {
		if try[layer] {
			attr.Cloneflags |= flag
		}
	}
	if try[boxinit.PID] && !attr.Setsid {
		// A process group of outside has no number in there. And of sessions each
		// gets its share of the processors, where the system shares them out so: a
		// thousand processes of one take no more than one of another.
		attr.Setsid, attr.Setpgid, attr.Pgid = true, false, 0
	}
	if try[boxinit.User] {
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
		attr.AmbientCaps = boxinit.KeptCaps
	}
}

var namespaceFlags = map[string]uintptr{
	boxinit.User: unix.CLONE_NEWUSER, boxinit.PID: unix.CLONE_NEWPID, boxinit.IPC: unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
	boxinit.Net: unix.CLONE_NEWNET, boxinit.Mounts: unix.CLONE_NEWNS,
}
