package cli

import (
	"path/filepath"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/effect"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/process"
	"github.com/belay-run/belay/internal/sandbox"
	"github.com/belay-run/belay/internal/workspace/protected"
)

// sandboxEnv turns the sandbox off for a process. It only takes away: what must
// be confined is asked about then, or denied.
const sandboxEnv = "BELAY_SANDBOX"

// sandboxed reports whether this process confines programs, and why it doesn't.
func (a *app) sandboxed() (bool, string) {
	if v := a.Getenv(sandboxEnv); v == "off" || v == "0" || v == "none" {
		return false, sandboxEnv + "=" + v
	}
	return true, ""
}

// tries reports whether macOS's sandbox is to be tried. It isn't verified:
// programs run in it, but it claims no level.
func (a *app) tries() bool { return a.Getenv(sandboxEnv) == "seatbelt" && sandbox.Seatbelt() }

// boundary is what this machine can confine a turn's processes with.
func (a *app) boundary() thread.Boundary {
	b := thread.Boundary{Level: string(belay.L0), Network: belay.NetworkFull, Decides: true}
	if on, why := a.sandboxed(); !on {
		b.Why = "the sandbox is turned off by " + why
		return b
	}
	m := a.confinement()
	b.Level, b.Why = string(m.Level), m.Why
	if m.Level == belay.L0 && b.Why == "" {
		b.Why = "this machine has no sandbox"
	}
	b.Tries = a.tries()
	return b
}

// confinement is what the sandbox can do here, as an earlier process found it where
// nothing has changed since.
func (a *app) confinement() sandbox.Machine {
	if dir := a.environment().CacheDir(); dir != "" {
		return sandbox.ProbeCached(filepath.Join(dir, machineFile))
	}
	return sandbox.Probe()
}

// machineFile is what was found out, in the cache's folder.
const machineFile = "machine.json"

// confine makes a boundary ready for the programs of a workspace.
func (a *app) confine(b belay.Boundary, ws string) (process.Box, error) {
	o := sandbox.Options{Workspace: ws, Home: a.Getenv("HOME"), Cache: a.cacheFor(ws), Protected: func(p string) bool {
		_, is := protected.Of(p)
		return is
	}, Secret: func(p string, folder bool) bool {
		return folder && protected.SecretPlace(p) || !folder && protected.Secret(p) != ""
	}}
	store, err := a.storeDir()
	if err != nil {
		return nil, err
	}
	for _, dir := range []string{store, a.environment().ConfigDir()} { // what the runtime keeps, and the person's keys
		if dir != "" {
			o.Hidden = append(o.Hidden, dir)
		}
	}
	o.Seatbelt = a.tries()
	a.confinement()
	return sandbox.New(b, o)
}

var _ effect.Confine = (*app)(nil).confine

// cacheFor is the folder that replaces the user's cache in a boundary: one per
// workspace, so that nothing built in one is run in another. Empty is none.
func (a *app) cacheFor(ws string) string {
	base := a.environment().CacheDir()
	if base == "" {
		return ""
	}
	name := strings.TrimPrefix(string(belay.DigestOf([]byte(ws))), "sha256:")
	return filepath.Join(base, "sandbox", name[:16])
}

// sandboxFindings are the doctor's lines about the sandbox: the level, each
// layer, and what each mode makes of it.
func (a *app) sandboxFindings() []finding {
	if on, _ := a.sandboxed(); on {
		sandbox.Probe() // the doctor believes no file
	}
	b := a.boundary()
	f := finding{Name: "sandbox", State: "ok", What: "level " + b.Level}
	if b.Why != "" {
		f.What += ": " + b.Why
	}
	var weak []string
	for _, m := range belay.Modes {
		if !belay.Level(b.Level).AtLeast(policy.ModeLeast(m)) {
			weak = append(weak, string(m))
		}
	}
	if len(weak) > 0 {
		f.State = "note"
		f.Try = "modes " + strings.Join(weak, ", ") + " want level " + string(belay.L2) + ": what they would run unasked is asked about here, or denied; --boundary full runs it unconfined"
	}
	all := []finding{f}
	if on, _ := a.sandboxed(); !on {
		return all
	}
	if a.tries() {
		all = append(all, finding{Name: "  seatbelt", State: "note", What: "tried because of " + sandboxEnv + "=seatbelt; it is unverified, so it counts for no level"})
	}
	for _, l := range sandbox.Probe().Layers {
		lf := finding{Name: "  " + l.Name, State: "ok", What: l.String()}
		if l.State != belay.LayerApplied {
			lf.State = "note"
		}
		all = append(all, lf)
	}
	return all
}
