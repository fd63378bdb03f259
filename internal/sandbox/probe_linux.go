package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/sandbox/boxinit"
)

// Main ends a process that bears the helper's name and isn't one. Helpers
// themselves never get here: package inside takes them before main begins. It
// is the first statement of main, and of TestMain where tests start programs
// in a sandbox, so that the package is always part of the program.
func Main() {
	if len(os.Args) > 0 && os.Args[0] == boxinit.Name {
		fmt.Fprintln(os.Stderr, "belay: this name is for the sandbox's helper, which the runtime starts")
		os.Exit(belay.ExitUsage)
	}
}

// trialLimits are those that a trial's group has.
var trialLimits = belay.ProcessLimits{Memory: 1 << 40, Processes: 1 << 15, CPUQuota: 100}

// probeTime is how long a trial may take.
const probeTime = 10 * time.Second

func probe() Machine {
	ctx, cancel := context.WithTimeout(context.Background(), probeTime)
	defer cancel()
	m := Machine{Root: isAdmin()}
	found := map[string]belay.Layer{}
	try := map[string]bool{}
	for _, name := range Layers {
		try[name] = true
	}
	if m.Root {
		try[boxinit.User] = false
		found[boxinit.User] = belay.Layer{State: belay.LayerDisabled, Detail: notNeeded}
	}
	group, err := newCgroup(trialLimits)
	if err != nil {
		try[boxinit.Cgroup] = false
		found[boxinit.Cgroup] = belay.Layer{State: belay.LayerUnavailable, Detail: boxinit.Reason(err)}
	}
	defer group.remove()
	for _, l := range trial(ctx, try, found, group) {
		found[l.Name] = l
	}
	for _, name := range Layers {
		l, ok := found[name]
		if !ok {
			l = belay.Layer{State: belay.LayerUnavailable, Detail: "the trial said nothing"}
		}
		l.Name = name
		m.Layers = append(m.Layers, l)
	}
	m.Layers = without(m.Layers)
	m.Level, m.Why = levelOf(m.Layers)
	return m
}

// trial starts a helper with all that try has. When the system refuses the
// namespaces, each is tried alone, and the trial is made with those it grants.
func trial(ctx context.Context, try map[string]bool, found map[string]belay.Layer, group *cgroup) []belay.Layer {
	layers, err := attempt(ctx, try, group)
	if err == nil {
		return layers
	}
	for layer := range namespaceFlags {
		if !try[layer] {
			continue
		}
		alone := map[string]bool{layer: true, boxinit.User: try[boxinit.User]}
		if _, err := attempt(ctx, alone, nil); err != nil {
			try[layer] = false
			found[layer] = belay.Layer{State: belay.LayerUnavailable, Detail: boxinit.Reason(err)}
		}
	}
	if layers, err = attempt(ctx, try, group); err != nil {
		return nil
	}
	return layers
}

// attempt runs one helper up to its report.
func attempt(ctx context.Context, try map[string]bool, group *cgroup) ([]belay.Layer, error) {
	h := &Hold{}
	defer h.Close() //nolint:errcheck // it never fails
	p := &boxinit.Profile{Dir: "/", Try: try, Outside: outside(), Network: belay.NetworkNone, Private: privateFolders(""), Seen: map[string]boxinit.Place{}}
	if group != nil {
		p.Cgroups = group.joins()
		p.Groups = cgroupNames(p.Cgroups)
	}
	look(p)
	if err := h.connect(p); err != nil {
		return nil, err
	}
	attr := &syscall.SysProcAttr{Setpgid: true}
	enter(attr, try)
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Args, cmd.Env, cmd.Dir, cmd.ExtraFiles, cmd.SysProcAttr = []string{boxinit.Name, "3"}, helperEnv, "/", h.far, attr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	said, err := h.report(ctx)
	h.conn.Close()
	cmd.Wait() //nolint:errcheck // it was never released
	if err == nil && said.Broken != "" {
		err = errors.New(said.Broken)
	}
	return layersOf(said.Layers), err
}

// outside are the numbers of the namespaces that the runtime is in.
var outside = sync.OnceValue(func() map[string]uint64 {
	all := map[string]uint64{}
	for _, kind := range []string{"user", "pid", "ipc", "net", "mnt", "uts"} {
		if at, err := boxinit.PlaceOf("/proc/self/ns/" + kind); err == nil {
			all[kind] = at.Ino
		}
	}
	return all
})

// look notes what the private folders are outside.
func look(p *boxinit.Profile) {
	for _, f := range p.Private {
		if at, err := boxinit.PlaceOf(f); err == nil {
			p.Seen[f] = at
		}
	}
}

// isRoot reports whether files of user 0 are the runtime's own.
func isRoot() bool { return os.Geteuid() == 0 }
