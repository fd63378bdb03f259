// Package sandbox confines a program of the operating system. It promises: what
// a boundary asks for is applied before the program's first instruction and
// read back, not believed; when it can't be had the program doesn't run; and
// the result lists layer by layer what is enforced, what the machine lacks and what
// a setting disables. It decides nothing: which boundary a call gets is the gate's
// business.
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
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/sandbox/boxinit"
)

// Layers lists the layers, in the order they are applied.
var Layers = []string{boxinit.Cgroup, boxinit.User, boxinit.PID, boxinit.IPC, boxinit.Net, boxinit.Mounts, boxinit.Proc, boxinit.Protected, boxinit.Landlock, boxinit.Caps, boxinit.Privileges, boxinit.Seccomp, boxinit.Rlimits}

// Options say where and around what a boundary stands.
type Options struct {
	Workspace string                              // absolute
	Home      string                              // of the person; hidden, but for its tool chains
	Cache     string                              // a folder that stands for the home's .cache, so that builds stay fast; empty is none that lasts
	Hidden    []string                            // absolute paths that are shown empty whatever else holds: the store, keys
	Protected func(path string) bool              // reports whether a path in the workspace, from its root, is one that can't be changed; nil is none
	Secret    func(path string, folder bool) bool // reports whether a path in a folder, from its root, usually holds a secret, or is a folder of them: programs can't read those that no boundary names; nil is none
	Tracked   Tracked                             // nil is none
	Disabled  []string                            // layers that a setting disables
	Linger    time.Duration                       // what the program left may finish after it; 0 is half a second
	Seatbelt  bool                                // try macOS's sandbox, which is unverified; elsewhere it means nothing
	Grace     time.Duration                       // from TERM to KILL when Limits.Wall is over; 0 is five seconds
}

// Tracked lists the files among some paths, and in the folders among those, that
// version control knows, and gives attributes that keep git from reading them.
type Tracked func(paths []string) (files []string, attributes string)

// Machine is what this machine can do, layer by layer: applied means that a
// trial had it, and that it had an effect.
type Machine struct {
	Layers []belay.Layer
	Root   bool // the runtime has the rights that namespaces want
	Level  belay.Level
	Why    string // what keeps it from a higher one
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

// checked are the options for a boundary, with the workspace by its path without
// links; or what is wrong with the two.
func (o Options) checked(b belay.Boundary) (Options, error) {
	if err := errors.Join(b.Check(), o.check()); err != nil {
		return o, err
	}
	real, err := filepath.EvalSymlinks(o.Workspace)
	if err != nil {
		return o, belay.Errorf(belay.CodeBadBoundary, "the workspace can't be confined").At(o.Workspace).Wrap(err)
	}
	o.Workspace = real
	return o, nil
}

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
				return n + " " + cmp.Or(state[n], "unknown")
			}
		}
		return ""
	}
	if why = lacks(boxinit.Privileges, boxinit.Rlimits); why != "" {
		return belay.L0, why
	}
	if why = lacks(boxinit.Seccomp, boxinit.Caps); why != "" {
		return belay.L1, why
	}
	if why = lacks(boxinit.Landlock); why != "" && !has[boxinit.Mounts] {
		return belay.L1, why
	}
	if why = lacks(boxinit.Mounts, boxinit.Proc, boxinit.Protected, boxinit.Landlock, boxinit.PID, boxinit.IPC, boxinit.Net); why != "" {
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

// makeScratch makes a folder for a program's temporary files.
func makeScratch() (string, error) {
	dir, err := os.MkdirTemp("", "belay-scratch-*")
	if err != nil {
		return "", fmt.Errorf("folder for temporary files: %w", err)
	}
	return filepath.EvalSymlinks(dir)
}

// writable are the folders that a boundary lets write besides the workspace.
func writable(b belay.Boundary) (all []string, err error) {
	for _, w := range b.Write {
		real, err := filepath.EvalSymlinks(w)
		if err != nil {
			return nil, belay.Errorf(belay.CodeBadBoundary, "boundary %q lets write what isn't there", b.Name).At(w).Wrap(err)
		}
		if real == "/" {
			return nil, belay.Errorf(belay.CodeBadBoundary, "boundary %q lets write everything", b.Name).At(w).WithHint("boundary full is the one without walls")
		}
		all = append(all, real)
	}
	return all, nil
}

// childEnds are a helper's ends of what connects it, until it has them.
type childEnds []*os.File

// close closes them, so that the helper's end is heard.
func (c *childEnds) close() {
	for _, f := range *c {
		f.Close()
	}
	*c = nil
}
