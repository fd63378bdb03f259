package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/lib/files"
)

// ConsoleCmd is the command "belay console".
type ConsoleCmd struct {
	Role string `default:"owner" placeholder:"ROLE" help:"What the page may do: owner (everything, for 12 hours), operator (give work), approver (answer asks), viewer (default owner)."`
	Open bool   `help:"Open it in the browser."`
}

// Help describes the command, with what its flags don't say.
func (*ConsoleCmd) Help() string {
	return "The address has a code that counts once, within five minutes. The page trades it for a token that is good for 12 hours, or 30 days if it isn't an owner's; belay token list shows it, and signing out revokes it."
}

// consoleShown is where the page is, as JSON.
type consoleShown struct {
	URL   string    `json:"url"` // with the code
	Role  auth.Role `json:"role"`
	Until time.Time `json:"until"` // of the code
}

// Run implements command.Command.
func (c *ConsoleCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	dir, err := a.StoreDir()
	if err != nil {
		return 0, err
	}
	at := command.ServerOf(dir)
	if at == nil {
		return 0, belay.Errorf(belay.CodeBadState, "no server runs that would show the page").At(dir).WithHint("belay serve%s", a.StoreFlag)
	}
	tokens, err := a.ServerTokens(false)
	if err != nil {
		return 0, err
	}
	code, made, err := codeFor(tokens, auth.Role(c.Role))
	if err != nil {
		return 0, command.Flagged(err)
	}
	url := at.URL + "/#code=" + code
	if c.Open {
		if err := open(ctx, dir, url, func() (bool, error) { return tokens.Untraded(made.ID) }); err != nil {
			return 0, err
		}
	}
	return a.Show(consoleShown{url, made.Role, made.Until}, func() {
		if c.Open {
			fmt.Fprintln(a.Out, "the browser shows "+at.URL)
			return
		}
		fmt.Fprintln(a.Out, url)
		fmt.Fprintf(a.Err, "it counts once, within five minutes, and makes a token of role %s\n", made.Role)
	})
}

// sayConsole tells a person at the server's terminal where the page is: one who may
// give work and answer there, too.
func sayConsole(a *command.Program, tokens *auth.Tokens, url string) {
	code, _, err := codeFor(tokens, auth.Owner)
	if err != nil {
		fmt.Fprintln(a.Err, "belay console shows the page: "+err.Error())
		return
	}
	fmt.Fprintf(a.Out, "the page, for five minutes: %s/#code=%s\n", url, code)
}

// codeFor makes a code for a page that is shown on this machine, or elsewhere.
func codeFor(tokens *auth.Tokens, role auth.Role) (string, auth.Token, error) {
	name, err := os.Hostname()
	if err != nil {
		name = "this machine"
	}
	return tokens.CreateCode("console on "+name[:min(len(name), 60)], role)
}

// openWithin is how long a browser may take to come for the page.
const openWithin = time.Minute

// open has a browser show an address that no list of processes may show: it is told of
// a file that leads there. The file is there until the code was traded.
func open(ctx context.Context, dir, url string, waits func() (bool, error)) error {
	file := filepath.Join(dir, "console.html")
	page := "<!doctype html><meta charset=utf-8><title>Belay</title><meta http-equiv=refresh content=\"0; url=" + html.EscapeString(url) + "\">"
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		return belay.Errorf(belay.CodeNotWritten, "the page can't be opened: %s", files.Reason(err)).At(file).WithHint("belay console prints the address")
	}
	defer os.Remove(file) //nolint:errcheck // what it leads to counts for five minutes
	ctx, stop := context.WithTimeout(ctx, openWithin)
	defer stop()
	browser := command.Browse(file)
	for tick := time.NewTicker(200 * time.Millisecond); ; {
		if left, err := waits(); err != nil || !left {
			tick.Stop()
			return err
		}
		select {
		case <-tick.C:
		case end := <-browser.Ended:
			if err := browser.Failure(end); err != nil {
				tick.Stop()
				return err
			}
		case <-ctx.Done():
			tick.Stop()
			return belay.Errorf(belay.CodeUnreachable, "no browser came for the page").WithHint("belay console prints the address")
		}
	}
}

// bundled returns what bundles the page of sources in a folder.
func bundled(dir string) func(context.Context) (fs.FS, error) {
	return func(ctx context.Context) (fs.FS, error) {
		cmd := exec.CommandContext(ctx, "go", "generate", ".")
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, belay.Errorf(belay.CodeUsage, "the page can't be bundled: %v\n%s", err, bytes.TrimSpace(out)).At("--web " + dir).WithHint("name the folder web of Belay's sources")
		}
		return os.DirFS(filepath.Join(dir, "dist")), nil
	}
}
