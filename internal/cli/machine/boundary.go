package machine

import (
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/sandbox"
)

// sandboxFindings are the doctor's lines about the sandbox: the level, each
// layer, and what each mode makes of it.
func sandboxFindings(a *command.Program) []app.Finding {
	c := a.Build.Confined(a)
	if c.Off() == "" {
		sandbox.Probe() // the doctor believes no file
	}
	b := c.Boundary()
	f := app.Finding{Name: "sandbox", State: "ok", What: "level " + b.Level}
	if b.Why != "" {
		f.What += ": " + b.Why
	}
	var weak []string
	for _, m := range belay.Modes {
		if !belay.Level(b.Level).AtLeast(app.ModeLeast(m)) {
			weak = append(weak, string(m))
		}
	}
	if len(weak) > 0 {
		f.State = "note"
		f.Try = "modes " + strings.Join(weak, ", ") + " want level " + string(belay.L2) + ": what they would run unasked is asked about here, or denied; --boundary full runs it unconfined"
	}
	if !belay.Level(b.Level).AtLeast(belay.L2) {
		f.Try += "; " + app.PlainOnly
	}
	all := []app.Finding{f}
	if c.Off() != "" {
		return all
	}
	if c.Tries() {
		all = append(all, app.Finding{Name: "  seatbelt", State: "note", What: "tried because of BELAY_SANDBOX=seatbelt; it is unverified, so it counts for no level"})
	}
	for _, l := range sandbox.Probe().Layers {
		lf := app.Finding{Name: "  " + l.Name, State: "ok", What: l.String()}
		if l.State != belay.LayerApplied {
			lf.State = "note"
		}
		all = append(all, lf)
	}
	return all
}
