package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	xterm "golang.org/x/term"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/lib/readfile"
	"github.com/belay-run/belay/internal/secret/vault"
)

type secretCmd struct {
	Set  secretSetCmd  `cmd:"" help:"Keep a secret, read from the terminal without showing it, or from standard input."`
	List secretListCmd `cmd:"" default:"withargs" help:"List the secrets that are kept, without their values."`
	Rm   secretRmCmd   `cmd:"" help:"Forget a secret."`
}

// Identity names the file that opens the secrets.
type Identity struct {
	Identity string `placeholder:"FILE" help:"The age identity that opens the secrets; secrets.key beside them. [$$BELAY_IDENTITY; $$BELAY_SECRET_KEY holds one itself]"`
}

type secretSetCmd struct {
	Identity
	Name string `arg:"" help:"What it is called, such as OPENAI_API_KEY."`
}

func (c *secretSetCmd) run(ctx context.Context, a *app) (int, error) {
	v, err := a.environment().Vault(c.Identity.Identity, a.secrets())
	if err != nil {
		return 0, err
	}
	if err := vault.CheckName(c.Name); err != nil {
		return 0, err
	}
	if _, err := v.List(); err != nil { // before a key is typed in vain
		return 0, err
	}
	value, err := a.readSecret(ctx, c.Name, vault.MaxValue)
	if errors.Is(err, errInterrupted) {
		return belay.ExitCancelled, nil
	}
	if err != nil {
		return 0, err
	}
	if err := v.Set(ctx, c.Name, value, a.Now()); err != nil {
		return 0, err
	}
	if a.JSON {
		a.PrintJSON(vault.Entry{Name: c.Name, At: a.Now().UTC()})
		return belay.ExitOK, nil
	}
	fmt.Fprintf(a.Err, "%s is kept; in belay.yaml it is secret:%s\n", term.Line(c.Name), term.Line(c.Name))
	return belay.ExitOK, nil
}

// readSecret reads one value: without echo from a terminal, else all of
// standard input but the end of its line. Of one that is longer than a value may
// be, a part is returned that is too long, too.
func (a *app) readSecret(ctx context.Context, name string, longest int64) (string, error) {
	if a.In == nil {
		return "", belay.Errorf(belay.CodeUsage, "there is no standard input to read the value from").WithHint("belay secret set %s <FILE", name)
	}
	if f, ok := a.In.(*os.File); ok && a.IsTerminal(f) {
		return a.typeSecret(ctx, f, name)
	}
	b, err := io.ReadAll(io.LimitReader(a.In, longest+3))
	if err != nil {
		return "", belay.Errorf(belay.CodeUsage, "standard input can't be read: %s", readfile.Reason(err)).WithHint("belay secret set %s <FILE", name)
	}
	return string(bytes.TrimSuffix(bytes.TrimSuffix(b, []byte("\n")), []byte("\r"))), nil
}

// errInterrupted means that typing a secret was cancelled.
var errInterrupted = errors.New("interrupted at the terminal")

// typeSecret reads a line that the terminal doesn't show. An interrupt gives
// the terminal back as it was.
func (a *app) typeSecret(ctx context.Context, f *os.File, name string) (string, error) {
	fd := int(f.Fd())
	was, err := xterm.GetState(fd)
	if err == nil { // before the prompt: who sees it may type at once
		err = term.NoEcho(fd)
	}
	if err != nil {
		return "", belay.Errorf(belay.CodeUsage, "the terminal can't be asked: %s", readfile.Reason(err)).WithHint("belay secret set %s <FILE", name)
	}
	defer xterm.Restore(fd, was) //nolint:errcheck // there is nobody to tell
	fmt.Fprintf(a.Err, "value of %s (not shown): ", term.Line(name))
	type typed struct {
		value []byte
		err   error
	}
	got := make(chan typed, 1)
	go func() { // a read from a terminal can't be taken back: it ends with the process
		b, err := xterm.ReadPassword(fd)
		got <- typed{b, err}
	}()
	select {
	case t := <-got:
		fmt.Fprintln(a.Err)
		if t.err != nil {
			return "", belay.Errorf(belay.CodeUsage, "nothing was typed").WithHint("belay secret set %s <FILE", name)
		}
		return string(t.value), nil
	case <-a.Signals:
	case <-ctx.Done():
	}
	fmt.Fprintln(a.Err)
	return "", errInterrupted
}

type secretListCmd struct{ Identity }

func (c *secretListCmd) run(_ context.Context, a *app) (int, error) {
	v, err := a.environment().Vault(c.Identity.Identity, a.secrets())
	if err != nil {
		return 0, err
	}
	list, err := v.List()
	if err != nil {
		return 0, err
	}
	if len(list) == 0 && !a.JSON {
		fmt.Fprintln(a.Err, "no secret is kept; belay secret set NAME keeps one")
	}
	return term.PrintRows(&a.Env, list, "", "", func(e vault.Entry) []any {
		return []any{term.Line(e.Name), "set " + e.At.Local().Format("2 Jan 2006 15:04")}
	})
}

type secretRmCmd struct {
	Identity
	Name string `arg:"" help:"The secret."`
}

func (c *secretRmCmd) run(ctx context.Context, a *app) (int, error) {
	v, err := a.environment().Vault(c.Identity.Identity, a.secrets())
	if err != nil {
		return 0, err
	}
	if err := v.Remove(ctx, c.Name); err != nil {
		return 0, err
	}
	if a.JSON {
		a.PrintJSON(struct {
			Name    string `json:"name"`
			Removed bool   `json:"removed"`
		}{c.Name, true})
		return belay.ExitOK, nil
	}
	fmt.Fprintf(a.Err, "%s is forgotten\n", term.Line(c.Name))
	return belay.ExitOK, nil
}
