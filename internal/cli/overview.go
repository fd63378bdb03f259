package cli

import (
	"context"
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/machine"
	"github.com/belay-run/belay/internal/cli/term"
)

// overview is belay without arguments: what is there, and what to do next.
func overview(ctx context.Context, a *command.Program) (int, error) {
	w := a.Err
	v := command.BuildVersions()
	fmt.Fprintf(w, "belay %s runs agents: every step is recorded before it happens.\n\n", v.Version)
	for _, f := range machine.ProviderFindings(ctx, a, nil) {
		fmt.Fprintf(w, "provider   %s\n", f.What)
	}
	dir, err := a.StoreDir()
	switch {
	case err != nil:
		fmt.Fprintln(w, "store      no place for it: there is no home directory (--store DIR)")
	case a.Build.HasStore(dir):
		fmt.Fprintf(w, "store      %s\n", term.Line(dir))
	default:
		fmt.Fprintf(w, "store      none yet; it will be %s\n", term.Line(dir))
	}
	fmt.Fprint(w, "\ntry:\n"+
		"  belay demo                         see it killed and go on, without a key\n"+
		"  belay login                        keep a vendor's key; then belay begins a conversation\n"+
		"  belay run TEXT                     give an agent something to do in this directory\n"+
		"  belay run --script FILE TEXT       the same with a scripted model\n")
	if err == nil && a.Build.HasStore(dir) {
		fmt.Fprint(w, "  belay sessions list                what was run here\n")
	}
	fmt.Fprint(w, "  belay doctor                       what this machine gives\n  belay --help                       every command\n")
	return belay.ExitUsage, nil
}
