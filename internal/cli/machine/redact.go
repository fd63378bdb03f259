package machine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/secret"
)

// RedactCmd is the command "belay redact".
type RedactCmd struct {
	Files []string `arg:"" optional:"" name:"file" help:"Files to read instead of standard input."`
	Check bool     `help:"Only say what is found, and where; exit 1 if something is."`
}

// Run copies texts without secrets, or says where some are.
func (c *RedactCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	if _, err := a.PlaceHere(ctx); err != nil { // the settings say what stays
		return 0, err
	}
	if err := c.sign(a); err != nil {
		return 0, err
	}
	if len(c.Files) == 0 && (a.In == nil || a.IsTerminal(a.In)) {
		return 0, belay.Errorf(belay.CodeUsage, "belay redact reads standard input").WithHint("belay redact FILE")
	}
	var out redacted
	for _, name := range append(c.Files, "-")[:max(1, len(c.Files))] {
		if err := c.one(a, name, &out); err != nil {
			return 0, err
		}
	}
	exit := belay.ExitOK
	if c.Check && out.Count > 0 {
		exit = belay.ExitFailed
	}
	switch {
	case a.JSON:
		out.Rules = append([]string{}, out.Taken.Rules...)
		a.PrintJSON(out)
	case c.Check:
		for _, f := range out.Found {
			fmt.Fprintf(a.Out, "%s:%d: %s\n", f.File, f.Line, f.Rule)
		}
		fmt.Fprintf(a.Out, "%d found\n", out.Count)
	}
	return exit, nil
}

// one copies a text without its secrets, or looks for them.
func (c *RedactCmd) one(a *command.Program, name string, out *redacted) error {
	in := a.In
	if name != "-" {
		f, err := os.Open(a.Environment().Abs(name))
		if err != nil {
			return belay.Errorf(belay.CodeUsage, "%v", errors.Unwrap(err)).At(name)
		}
		defer f.Close()
		in = f
	}
	if c.Check {
		text, err := io.ReadAll(in)
		if err != nil {
			return belay.Errorf(belay.CodeUsage, "%v", err).At(name)
		}
		line, at := 1, 0
		for _, f := range a.Secrets().Find(text) {
			line += bytes.Count(text[at:f.From], []byte("\n"))
			at = f.From
			out.Found = append(out.Found, foundSecret{name, line, f.Rule})
			out.Taken.Add(secret.Taken{Count: 1, Rules: []string{f.Rule}})
		}
		out.Count = out.Taken.Count
		return nil
	}
	var text strings.Builder
	dst := a.Out
	if a.JSON {
		dst = &text
	}
	w := a.Secrets().Writer(dst)
	if _, err := io.Copy(w, in); err != nil {
		return belay.Errorf(belay.CodeUsage, "%v", err).At(name)
	}
	err := w.Close()
	out.Taken.Add(w.Taken())
	out.Count, out.Text = out.Taken.Count, out.Text+text.String()
	return err
}

// redacted is what is printed with --json.
type redacted struct {
	Count int           `json:"count"`
	Rules []string      `json:"rules"`
	Text  string        `json:"text,omitempty"`
	Found []foundSecret `json:"found,omitempty"` // with --check

	Taken secret.Taken `json:"-"`
}

// foundSecret is where a secret is.
type foundSecret struct {
	File string `json:"file"` // - is standard input
	Line int    `json:"line"` // from 1
	Rule string `json:"rule"` // the name of its form
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
