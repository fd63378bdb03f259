package machine

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/secret"
)

// RedactCmd is the command "belay redact".
type RedactCmd struct {
	Check bool `help:"Only say what is found; exit 1 if something is."`
}

// Run copies standard input without secrets.
func (c *RedactCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	if _, err := a.PlaceHere(ctx); err != nil { // the settings say what stays
		return 0, err
	}
	if err := c.sign(a); err != nil {
		return 0, err
	}
	if a.In == nil || a.IsTerminal(a.In) {
		return 0, belay.Errorf(belay.CodeUsage, "belay redact reads standard input").WithHint("belay redact <FILE")
	}
	var text strings.Builder
	out := a.Out
	switch {
	case c.Check:
		out = io.Discard
	case a.JSON:
		out = &text
	}
	w := a.Secrets().Writer(out)
	if _, err := io.Copy(w, a.In); err != nil {
		return 0, err
	}
	if err := w.Close(); err != nil {
		return 0, err
	}
	taken := w.Taken()
	exit := belay.ExitOK
	if c.Check && taken.Count > 0 {
		exit = belay.ExitFailed
	}
	switch {
	case a.JSON:
		a.PrintJSON(redacted{taken.Count, append([]string{}, taken.Rules...), text.String()})
	case c.Check:
		fmt.Fprintf(a.Out, "%d found", taken.Count)
		if taken.Count > 0 {
			fmt.Fprintf(a.Out, ": %s", strings.Join(taken.Rules, ", "))
		}
		fmt.Fprintln(a.Out)
	}
	return exit, nil
}

// redacted is what is printed with --json.
type redacted struct {
	Count int      `json:"count"`
	Rules []string `json:"rules"`
	Text  string   `json:"text,omitempty"`
}

// sign has marks made under the key of the store that is there.
func (c *RedactCmd) sign(a *command.Program) error {
	dir, err := a.StoreDir()
	if err != nil || !a.Build.HasStore(dir) {
		return err
	}
	key, err := secret.StoreKey(dir)
	if err == nil {
		a.Secrets().Sign(key)
	}
	return err
}
