package script

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// servers are the servers of running stories, by the folder of the story.
var servers sync.Map

// startServer is the command startServer [ARG…]: it starts belay serve, and puts
// its address into URL and, at a store's first start, the owner's token into
// TOKEN. The log goes to the file serve.log.
func startServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: startServer [ARG…]")
	}
	log, err := os.OpenFile(ts.MkAbs("serve.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	ts.Check(err)
	program, err := exec.LookPath("belay")
	ts.Check(err)
	cmd := exec.Command(program, append([]string{"--json", "serve", "--listen", "127.0.0.1:0"}, args...)...)
	cmd.Dir, cmd.Stderr = ts.MkAbs("."), log
	for _, name := range []string{"HOME", "PATH", "USER", "GORACE", "BELAY_STORE", "BELAY_SCRIPT", "BELAY_PROVIDER", "BELAY_MODEL", "OPENAI_API_KEY", "TMPDIR"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	servers.Store(ts.Getenv("WORK"), cmd)
	ts.Defer(func() {
		cmd.Process.Kill() //nolint:errcheck // it has ended already, mostly
		cmd.Wait()         //nolint:errcheck // as above
		log.Close()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b, _ := os.ReadFile(log.Name())
		ts.Fatalf("the server doesn't come up: %v\n%s", err, b)
	}
	var said struct{ URL, Token, Model string }
	ts.Check(json.Unmarshal([]byte(line), &said))
	ts.Setenv("URL", said.URL)
	ts.Setenv("MODEL", said.Model)
	if said.Token != "" {
		ts.Setenv("TOKEN", said.Token)
	}
}

// stopServer is the command stopServer TERM|KILL: it sends the signal and waits
// until the server is gone. After TERM it must end well.
func stopServer(ts *testscript.TestScript, neg bool, args []string) {
	v, ok := servers.LoadAndDelete(ts.Getenv("WORK"))
	if neg || !ok || len(args) != 1 {
		ts.Fatalf("usage: stopServer TERM|KILL, with a server")
	}
	cmd := v.(*exec.Cmd)
	sig := syscall.SIGTERM
	if args[0] == "KILL" {
		sig = syscall.SIGKILL
	}
	ts.Check(cmd.Process.Signal(sig))
	if err := cmd.Wait(); err != nil && sig == syscall.SIGTERM {
		ts.Fatalf("the server ended badly: %v", err)
	}
}

// signalServer is the command signalServer HUP: it sends the signal to the server
// and doesn't wait.
func signalServer(ts *testscript.TestScript, neg bool, args []string) {
	v, ok := servers.Load(ts.Getenv("WORK"))
	if neg || !ok || len(args) != 1 || args[0] != "HUP" {
		ts.Fatalf("usage: signalServer HUP, with a server")
	}
	ts.Check(v.(*exec.Cmd).Process.Signal(syscall.SIGHUP))
}

// httpMain is the program http METHOD PATH [BODY] [NAME:VALUE…]: it asks the
// server at URL with the token in TOKEN and prints the status and the answer. It
// exits with 0 for a success, else with the first digit of the status. UNTIL
// makes it ask again, for a minute, until the answer contains that text, MATCHES until a
// pattern is in it.
func httpMain() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: http METHOD PATH [BODY] [NAME:VALUE…]")
		os.Exit(2)
	}
	until, pattern := os.Getenv("UNTIL"), regexp.MustCompile(os.Getenv("MATCHES"))
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		status, body, err := ask(os.Args[1], os.Args[2], os.Args[3:])
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if !strings.Contains(body, until) || !pattern.MatchString(body) {
			if time.Since(begun) < time.Minute {
				continue
			}
			fmt.Fprintf(os.Stderr, "after a minute it still isn't there: %s%s\nbut: %s\n", until, pattern, body)
			os.Exit(1)
		}
		fmt.Printf("%d\n%s", status, body)
		if status/100 != 2 {
			os.Exit(status / 100)
		}
		return
	}
}

func ask(method, path string, args []string) (int, string, error) {
	return asked(method, os.Getenv("URL")+path, os.Getenv("TOKEN"), args)
}

// asked is what an address answers to a request with a token.
func asked(method, address, token string, args []string) (int, string, error) {
	var body io.Reader
	if len(args) > 0 {
		body, args = strings.NewReader(args[0]), args[1:]
	}
	req, err := http.NewRequest(method, address, body)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range args {
		name, value, _ := strings.Cut(h, ":")
		req.Header.Set(name, value)
		if name == "Host" {
			req.Host = value
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}
