// Package sandbox confines a program of the operating system. It promises: what
// a boundary asks for is applied before the program's first instruction and
// read back, not believed; when it can't be had the program doesn't run; and
// whoever asked is told layer by layer what holds, what the machine lacks and
// what somebody decided against. It decides nothing: which boundary a call gets
// is the gate's business.
//
// On Linux the runtime starts its own binary again as a helper, in namespaces
// of its own. The helper reads its profile, applies the layers in an order that
// no later one undoes, reads back what came of it, reports, and waits for one
// byte. Without the byte it ends and nothing ran. With it, it starts the
// program as its child, stays the first process of the namespace, reaps and
// passes on signals, and ends everything when the runtime is gone. Elsewhere
// there is no such helper: see docs/sandbox.md.
package sandbox

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/sandbox/boxinit"
)

// Layers, in the order they are applied.
const (
	LayerCgroup     = boxinit.Cgroup    // limits of all processes together
	LayerUser       = boxinit.User      // a user namespace, where the runtime isn't root
	LayerPID        = boxinit.PID       // sees and reaches its own processes only; all end with the first
	LayerIPC        = boxinit.IPC       // its own shared memory, queues and host name
	LayerNet        = boxinit.Net       // its own network: a loopback and nothing else
	LayerMounts     = boxinit.Mounts    // its own view of the files, read-only but for what is listed
	LayerProc       = boxinit.Proc      // /proc shows its own processes, read-only
	LayerProtected  = boxinit.Protected // protected names of the workspace are read-only, the missing ones too
	LayerLandlock   = boxinit.Landlock  // file access by a list, as a second wall
	LayerCaps       = boxinit.Caps      // no capability, and none to be had
	LayerPrivileges = boxinit.Privileges
	LayerSeccomp    = boxinit.Seccomp // system calls that lead out
	LayerRlimits    = boxinit.Rlimits // limits of each process
)

// Layers lists the layers, in the order they are applied.
var Layers = []string{LayerCgroup, LayerUser, LayerPID, LayerIPC, LayerNet, LayerMounts, LayerProc, LayerProtected, LayerLandlock, LayerCaps, LayerPrivileges, LayerSeccomp, LayerRlimits}

// Options say where and around what a boundary stands.
type Options struct {
	Workspace string                              // absolute
	Home      string                              // of the person; hidden, but for its tool chains
	Cache     string                              // a folder that stands for the home's .cache, so that builds stay fast; empty is none that lasts
	Hidden    []string                            // absolute paths that are shown empty whatever else holds: the store, keys
	Protected func(path string) bool              // reports whether a path in the workspace, from its root, is one that can't be changed; nil is none
	Secret    func(path string, folder bool) bool // reports whether a path in a folder, from its root, usually holds a secret, or is a folder of them: programs can't read those that no boundary names; nil is none
	Disabled  []string                            // layers that somebody decided against
	Linger    time.Duration                       // what the program left may finish after it; 0 is half a second
	Seatbelt  bool                                // try macOS's sandbox, which nobody has verified; elsewhere it means nothing
	Grace     time.Duration                       // from TERM to KILL when Limits.Wall is over; 0 is five seconds
}

// Ending is how a program ended, as its helper saw it.
type Ending = boxinit.Ending

// Defaults of Options.
const (
	defaultLinger = 500 * time.Millisecond
	defaultGrace  = 5 * time.Second
)

// past is a deadline that is over.
var past = time.Unix(1, 0)

// check tells what is wrong with the options, if anything.
func (o Options) check() error {
	if !filepath.IsAbs(o.Workspace) || filepath.Clean(o.Workspace) == "/" {
		return belay.Errorf(belay.CodeBadBoundary, "%q can't be a confined workspace", o.Workspace).WithHint("name a folder from the root: /home/you/project")
	}
	for _, p := range slices.Concat(o.Hidden, []string{o.Home, o.Cache}) {
		if p != "" && !filepath.IsAbs(p) {
			return belay.Errorf(belay.CodeBadBoundary, "%q of the sandbox isn't an absolute path", p).WithHint("write it from the root")
		}
	}
	for _, l := range o.Disabled {
		if !slices.Contains(Layers, l) {
			return belay.Errorf(belay.CodeBadBoundary, "layer %q doesn't exist", l).WithHint("one of %s", strings.Join(Layers, ", "))
		}
	}
	return nil
}

// levelOf is the level that applied layers amount to, and what keeps it from
// the next one. A network of its own counts as there where the boundary grants
// the runtime's.
func levelOf(layers []belay.Layer) (level belay.Level, why string) {
	has := map[string]bool{}
	state := map[string]string{}
	for _, l := range layers {
		has[l.Name] = l.State == belay.LayerApplied || l.State == belay.LayerDisabled && l.Detail == byNetwork
		state[l.Name] = l.String()
	}
	lacks := func(names ...string) string {
		for _, n := range names {
			if !has[n] {
				return n + " " + orElse(state[n], "unknown")
			}
		}
		return ""
	}
	if why = lacks(LayerPrivileges, LayerRlimits); why != "" {
		return belay.L0, why
	}
	if why = lacks(LayerSeccomp, LayerCaps); why != "" {
		return belay.L1, why
	}
	if why = lacks(LayerLandlock); why != "" && !has[LayerMounts] {
		return belay.L1, why
	}
	if why = lacks(LayerMounts, LayerProc, LayerProtected, LayerLandlock, LayerPID, LayerIPC, LayerNet); why != "" {
		return belay.L2, why
	}
	return belay.L3, ""
}

// Why layers are disabled, besides by a person.
const (
	byNetwork = "network full"
	byFull    = "boundary full"
	noLimit   = "no limit asks for it"
	byOptions = "settings"
	notNeeded = "not needed: root"
)

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// within reports whether a path is a folder or below it.
func within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir) && path[len(dir)] == '/'
}
