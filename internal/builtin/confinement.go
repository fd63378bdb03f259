package builtin

import (
	"context"
	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/effect"
	"github.com/belay-run/belay/internal/process"
	"github.com/belay-run/belay/internal/sandbox"
	"github.com/belay-run/belay/internal/workspace/git"
	"github.com/belay-run/belay/internal/workspace/protected"
	"path/filepath"
	"strings"
	"time"
)

// SandboxEnv turns the sandbox off for a process. It only takes away: what must
// be confined is asked about then, or denied.
const SandboxEnv = "BELAY_SANDBOX"

// Confinement confines the programs of a process.
type Confinement struct {
	Env      config.Env
	StoreDir func() (string, error)
	Tracked  *git.Tracked // nil: covered files may look changed
}

// Off returns why this process doesn't confine programs; empty: it does.
func (c Confinement) Off() string {
	if v := c.Env.Get(SandboxEnv); v == "off" || v == "0" || v == "none" {
		return SandboxEnv + "=" + v
	}
	return ""
}

// Tries reports whether macOS's sandbox is to be tried. It isn't verified:
// programs run in it, but it claims no level.
func (c Confinement) Tries() bool { return c.Env.Get(SandboxEnv) == "seatbelt" && sandbox.Seatbelt() }

// Boundary is what this machine can confine a turn's processes with.
func (c Confinement) Boundary() thread.Boundary {
	b := thread.Boundary{Level: string(belay.L0), Network: belay.NetworkFull, Decides: true}
	if why := c.Off(); why != "" {
		b.Why = "the sandbox is turned off by " + why
		return b
	}
	m := c.machine()
	b.Level, b.Why = string(m.Level), m.Why
	if m.Level == belay.L0 && b.Why == "" {
		b.Why = "this machine has no sandbox"
	}
	b.Tries = c.Tries()
	return b
}

// machine is what the sandbox can do here, as an earlier process found it where
// nothing has changed since.
func (c Confinement) machine() sandbox.Machine {
	if dir := c.Env.CacheDir(); dir != "" {
		return sandbox.ProbeCached(filepath.Join(dir, machineFile))
	}
	return sandbox.Probe()
}

// machineFile is what was found out, in the cache's folder.
const machineFile = "machine.json"

// Confine makes a boundary ready for the programs of a workspace.
func (c Confinement) Confine(b belay.Boundary, ws string) (process.Box, error) {
	o := sandbox.Options{Workspace: ws, Home: c.Env.Get("HOME"), Cache: c.cacheFor(ws), Protected: func(p string) bool {
		_, is := protected.Of(p)
		return is
	}, Secret: func(p string, folder bool) bool {
		return folder && protected.SecretPlace(p) || !folder && protected.Secret(p) != ""
	}}
	if c.Tracked != nil {
		o.Tracked = func(paths []string) ([]string, string) {
			ctx, cancel := context.WithTimeout(context.Background(), trackedTime)
			defer cancel()
			return c.Tracked.Of(ctx, paths)
		}
	}
	store, err := c.StoreDir()
	if err != nil {
		return nil, err
	}
	for _, dir := range []string{store, c.Env.ConfigDir()} { // what the runtime keeps, and the person's keys
		if dir != "" {
			o.Hidden = append(o.Hidden, dir)
		}
	}
	o.Seatbelt = c.Tries()
	c.machine()
	return sandbox.New(b, o)
}

// trackedTime is how long git may take to say which covered files it knows.
const trackedTime = 5 * time.Second

var _ effect.Confine = Confinement{}.Confine

// cacheFor is the folder that replaces the user's cache in a boundary: one per
// workspace, so that nothing built in one is run in another. Empty is none.
func (c Confinement) cacheFor(ws string) string {
	base := c.Env.CacheDir()
	if base == "" {
		return ""
	}
	name := strings.TrimPrefix(string(belay.DigestOf([]byte(ws))), "sha256:")
	return filepath.Join(base, "sandbox", name[:16])
}
