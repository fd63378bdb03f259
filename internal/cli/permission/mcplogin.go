package permission

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/servers"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/lib/files"
)

type mcpLoginCmd struct {
	Name         string   `arg:"" help:"The server."`
	NoBrowser    bool     `help:"Start no browser: open the address yourself, and where it can't come back to this machine, paste the one that it ends at."`
	Scope        []string `sep:"none" placeholder:"SCOPE" help:"A scope to request besides those that the server names."`
	ClientID     string   `placeholder:"ID" help:"A client that you registered with the issuer, or the https address of its description; one is registered when it is left out."`
	ClientSecret string   `placeholder:"REF" help:"Where the secret of that client is: secret:NAME or env:NAME."`
	Port         uint16   `help:"Where the browser comes back to this machine, if the client is registered with one port."`
}

// Help describes the command, with what its flags don't say.
func (*mcpLoginCmd) Help() string {
	return "The server names the issuer that lets you in. What that gives is kept with your secrets, goes to this server's address alone, and is renewed when it expires."
}

// Run implements command.Command.
func (c *mcpLoginCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	ws, _, err := a.EnterChecked(ctx)
	if err != nil {
		return 0, err
	}
	st, err := a.Open(ctx, true)
	if err != nil {
		return 0, err
	}
	defer st.Close()
	ctx, release := a.UntilSignal(ctx)
	defer release()
	back, err := comeBack(c.Port, a.Err)
	if err != nil {
		return 0, err
	}
	defer back.Close()
	l, err := servers.Login(ctx, a.Reader(st).Call("login_mcp_server"), &app.LoginAsked{Workspace: ws, Server: c.Name, Redirect: back.address(), Scopes: c.Scope, Client: c.ClientID, Secret: c.ClientSecret})
	if err != nil {
		return 0, err
	}
	finish := func(address string) (*app.ServerTest, error) {
		return servers.Finish(ctx, a.Reader(st).Call("finish_mcp_login"), &servers.Finished{Login: l.Login, Address: address})
	}
	fmt.Fprintf(a.Err, "log in at\n%s\n", term.Line(l.Address))
	var typed <-chan string
	var browser command.Browser
	if c.NoBrowser && a.In != nil {
		fmt.Fprintln(a.Err, "it ends at an address of this machine; where the browser can't reach that, paste it here")
		typed = pasted(ctx, a.In)
	} else {
		browser = command.Browse(l.Address)
	}
	t, err := back.wait(ctx, finish, typed, browser)
	if errors.Is(err, context.Canceled) {
		return belay.ExitCancelled, nil
	}
	if err != nil {
		return 0, err
	}
	code, err := a.Show(t, func() {
		fmt.Fprintf(a.Out, "%s: logged in\n", term.Line(c.Name))
		printTest(a, t, false)
	})
	if err == nil && t.Problem != "" {
		code = belay.ExitFailed
	}
	return code, err
}

// pasted are the lines that a person gives: addresses that browsers were sent to.
func pasted(ctx context.Context, in io.Reader) <-chan string {
	lines := make(chan string)
	go func() { // a read from a terminal can't be taken back: it ends with the process
		for all := bufio.NewScanner(in); all.Scan(); {
			select {
			case lines <- all.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	return lines
}

// back is where browsers come back to.
type back struct {
	net.Listener
	came chan came
	srv  *http.Server
	errs io.Writer
}

// came is a browser that came back, and waits for a page.
type came struct {
	address string
	told    chan<- error
}

func comeBack(port uint16, errs io.Writer) (*back, error) {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", fmt.Sprint(port)))
	if err != nil {
		return nil, belay.Errorf(belay.CodeBusy, "no browser could come back to this machine: %s", files.Reason(err)).At("--port").WithHint("leave it out, or name a port that is free")
	}
	b := &back{Listener: l, came: make(chan came), errs: errs}
	b.srv = &http.Server{Handler: b, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10}
	go b.srv.Serve(l) //nolint:errcheck // it ends when it is closed
	return b, nil
}

func (b *back) address() string { return "http://" + b.Addr().String() + "/callback" }

// Close implements io.Closer. A page that is on its way arrives.
func (b *back) Close() error {
	ctx, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	return b.srv.Shutdown(ctx)
}

// ServeHTTP implements http.Handler.
func (b *back) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/callback" || r.Host != b.Addr().String() {
		http.NotFound(w, r)
		return
	}
	told := make(chan error, 1)
	var err error
	select {
	case b.came <- came{b.address() + "?" + r.URL.RawQuery, told}:
		select {
		case err = <-told:
		case <-r.Context().Done():
			return
		}
	case <-r.Context().Done():
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Referrer-Policy", "no-referrer")
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, "Belay isn't logged in. Its terminal says why.\n") //nolint:errcheck // the terminal says it too
		return
	}
	io.WriteString(w, "Belay is logged in. You can close this page.\n") //nolint:errcheck // the terminal says it too
}

// wait ends a login with the address that comes first: a browser's, or one that was
// pasted. What a browser brings may be another page's doing, so a wrong one is told and
// the right one waited for.
func (b *back) wait(ctx context.Context, finish func(string) (*app.ServerTest, error), typed <-chan string, browser command.Browser) (*app.ServerTest, error) {
	for {
		select {
		case c := <-b.came:
			t, err := finish(c.address)
			c.told <- err
			if belay.CodeOf(err) != belay.CodeLoginState {
				return t, err
			}
			fmt.Fprintln(b.errs, err)
		case text := <-typed:
			return finish(text)
		case end := <-browser.Ended:
			if err := browser.Failure(end); err != nil {
				fmt.Fprintf(b.errs, "%v; open it yourself\n", err)
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

type mcpLogoutCmd struct {
	Name string `arg:"" help:"The server."`
}

// Run implements command.Command.
func (c *mcpLogoutCmd) Run(ctx context.Context, a *command.Program) (int, error) {
	ws, _, err := a.EnterChecked(ctx)
	if err != nil {
		return 0, err
	}
	st, err := a.Open(ctx, true)
	if err != nil {
		return 0, err
	}
	defer st.Close()
	out, err := servers.Logout(ctx, a.Reader(st).Call("logout_mcp_server"), &servers.Named{Workspace: ws, Name: c.Name})
	if err != nil {
		return 0, err
	}
	if !out.Removed {
		return 0, belay.Errorf(belay.CodeNotFound, "there is no login to MCP server %s", c.Name).WithHint("belay mcp list")
	}
	return a.SayBeside(out, "%s: the login is forgotten", term.Line(c.Name))
}
