// Package browser uses the console as a person does: a real browser, a real server, a
// model that plays a script.
package browser

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/belay-run/belay/internal/testkit/needs"
)

const (
	repository = "../../.."
	patience   = 2 * time.Minute
)

var (
	belay string // the program
	makes string // the program that makes long sessions, and many
	axe   string // what looks for what not everybody can use
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == asServer {
		serveForms()
		return
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "belay-browser-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir) //nolint:errcheck // it is temporary
		belay, makes = filepath.Join(dir, "belay"), filepath.Join(dir, "many")
		build := exec.Command("go", "build", "-o", dir+"/", "./cmd/belay", "./internal/testkit/many")
		build.Dir = repository
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%s%v\n", out, err)
			return 1
		}
		return m.Run()
	}())
}

// server is belay serve with a workspace and a script.
type server struct {
	t               *testing.T
	dir, url, token string
	flags           []string // of serve, besides
	program         string   // another one than belay
	cmd             *exec.Cmd
	errs            bytes.Buffer
}

func serve(t *testing.T, script string) *server {
	t.Helper()
	s := &server{t: t, dir: t.TempDir()}
	for name, text := range map[string]string{"script.yaml": script, "ws/queue.go": "package queue\n\nfunc (q *Q) pop() int {\n\treturn q.items[0]\n}\n"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(s.dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s.start("127.0.0.1:0")
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			t.Logf("the server's log:\n%s", s.errs.String())
		}
	})
	return s
}

func (s *server) command(args ...string) *exec.Cmd {
	cmd := exec.Command(cmp.Or(s.program, belay), args...)
	cmd.Dir = filepath.Join(s.dir, "ws")
	cmd.Env = append(os.Environ(), "HOME="+s.dir, "BELAY_SCRIPT="+filepath.Join(s.dir, "script.yaml"), "BELAY_STORE=", "XDG_STATE_HOME=", "XDG_CONFIG_HOME=")
	return cmd
}

func (s *server) start(listen string) {
	s.t.Helper()
	s.cmd = s.command(append([]string{"serve", "--json", "--listen", listen, "--rate", "10000"}, s.flags...)...)
	s.cmd.Stderr = &s.errs
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	var served struct{ URL, Token string }
	if err != nil || json.Unmarshal([]byte(line), &served) != nil {
		s.t.Fatalf("%q %v\n%s", line, err, s.errs.String())
	}
	s.url = served.URL
	if served.Token != "" {
		s.token = served.Token
	}
}

// kill ends the server at once.
func (s *server) kill() {
	if s.cmd.Process == nil {
		return // it never began
	}
	s.cmd.Process.Signal(syscall.SIGKILL) //nolint:errcheck // it may have ended
	s.cmd.Wait()                          //nolint:errcheck // it was killed
}

// run runs belay and returns what it printed.
func (s *server) run(args ...string) string {
	s.t.Helper()
	var errs bytes.Buffer
	cmd := s.command(args...)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("belay %v: %v\n%s%s", args, err, out, errs.String())
	}
	return strings.TrimSpace(string(out))
}

// fails runs belay, which must exit with a code.
func (s *server) fails(code int, args ...string) {
	s.t.Helper()
	out, err := s.command(args...).CombinedOutput()
	if have, is := errors.AsType[*exec.ExitError](err); !is || have.ExitCode() != code {
		s.t.Fatalf("belay %v: %v, not %d\n%s", args, err, code, out)
	}
}

// many makes facts, or sessions, of one that has ended, while no server drives it.
func (s *server) many(session string, what ...string) int {
	s.t.Helper()
	cmd := exec.Command(makes, append([]string{s.dir + "/.local/state/belay", session}, what...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("many %v: %v", what, err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

// do sends a request with the owner's token, or with none; body "" is GET.
func (s *server) do(path, body string, out any) int {
	s.t.Helper()
	method, in := "GET", io.Reader(nil)
	if body != "" {
		method, in = "POST", strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, in)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if path != "/v1/login" {
		req.Header.Set("Authorization", "Bearer "+s.token)
	}
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Body.Close() //nolint:errcheck // it was read
	b, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	if out != nil {
		if err := json.Unmarshal(b, out); err != nil {
			s.t.Fatalf("%s: %d %s", path, r.StatusCode, b)
		}
	}
	return r.StatusCode
}

// submit gives a session a turn and returns the session.
func (s *server) submit(body string) string {
	s.t.Helper()
	var told struct{ SessionID string }
	if status := s.do("/v1/commands/submit_turn", body, &told); status != http.StatusOK {
		s.t.Fatalf("submit_turn: %d", status)
	}
	return told.SessionID
}

// open is how many questions wait.
func (s *server) open() int {
	var all struct{ Actions []any }
	s.do("/v1/actions", "", &all)
	return len(all.Actions)
}

// page is a tab of a browser with nothing in it.
type page struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	bad      []string // what the console or the policy complained about
	requests []string // a method and an address each

	seed, shots int
}

func browse(t *testing.T, more ...chromedp.ExecAllocatorOption) *page {
	t.Helper()
	needs.Program(t, "chromium")
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal(err)
	}
	options := slices.Concat(chromedp.DefaultExecAllocatorOptions[:], []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("no-proxy-server", true), chromedp.UserDataDir(t.TempDir()),
	}, more)
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	p := &page{t: t, ctx: ctx, seed: rand.IntN(6)}
	t.Logf("seed %d", p.seed)
	p.hears(ctx)
	err = chromedp.Do(ctx, chromedp.EmulateViewport(1600, 900))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// hears takes what the browser says of a tab.
func (p *page) hears(ctx context.Context) {
	p.t.Helper()
	err := chromedp.Listen(ctx, func(e any) {
		p.mu.Lock()
		defer p.mu.Unlock()
		switch e := e.(type) {
		case *network.EventRequestWillBeSent:
			p.requests = append(p.requests, e.Request.Method+" "+e.Request.URL)
		case *network.EventResponseReceived:
			if e.Response.Status == http.StatusForbidden { // what a role may not do can't be pressed
				p.bad = append(p.bad, "refused: "+e.Response.URL)
			}
		case *log.EventEntryAdded:
			if e.Entry.Source != "network" { // a server that ends is the tests' doing
				p.bad = append(p.bad, e.Entry.Text)
			}
		case *runtime.EventExceptionThrown:
			b, _ := json.Marshal(e.ExceptionDetails)
			p.bad = append(p.bad, string(b))
		case *runtime.EventConsoleAPICalled:
			if e.Type == "error" || e.Type == "warning" {
				p.bad = append(p.bad, string(e.Type)+" on the console")
			}
		}
	})
	if err == nil {
		_, err = chromedp.Run(ctx, func(ctx context.Context, t *chromedp.Target) (cdp.Empty, error) {
			return cdp.Call(ctx, t, network.Enable, network.EnableParams{})
		})
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// beside opens an address in another tab, whose requests and complaints are the page's.
func (p *page) beside(address string) *page {
	p.t.Helper()
	ctx, cancel := chromedp.NewContext(p.ctx)
	p.t.Cleanup(cancel)
	p.hears(ctx)
	tab := &page{t: p.t, ctx: ctx}
	tab.open(address)
	return tab
}

// clean fails the test if the page complained, or asked for what isn't described.
func (p *page) clean(s *server) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, text := range p.bad {
		p.t.Errorf("the page: %s", text)
	}
	if len(p.requests) < 5 {
		p.t.Errorf("%d requests; are they seen?", len(p.requests))
	}
	for _, r := range slices.Compact(slices.Sorted(slices.Values(p.requests))) {
		method, address, _ := strings.Cut(r, " ")
		path, own := strings.CutPrefix(address, s.url)
		for _, f := range s.flags { // the same server by another name
			if rest, is := strings.CutPrefix(address, f); is {
				path, own = rest, true
			}
		}
		switch {
		case strings.HasPrefix(address, "data:") || strings.HasPrefix(address, "blob:"):
		case !own:
			p.t.Errorf("it asks elsewhere: %s", r)
		case strings.HasPrefix(path, "/v1/") && !s.describes(method, address):
			p.t.Errorf("the description lacks %s", r)
		}
	}
}

// at shows the page as a screen of a size shows it, in light or dark.
func (p *page) at(width, height int64, theme string) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, chromedp.EmulateViewport(width, height)); err != nil {
		p.t.Fatal(err)
	}
	p.js(fmt.Sprintf("document.documentElement.dataset.theme = %q", theme))
}

// whole reports whether every page is looked at in both themes and in all widths; else
// each is in one of the six, by a seed.
func whole() bool { return os.Getenv("BELAY_CONSOLE") == "full" || os.Getenv("BELAY_SHOTS") != "" }

// pictures are those of the documents, which BELAY_SHOTS=docs makes.
var pictures = map[string]string{
	"overview-1600-light": "overview", "session-1600-dark": "session-dark", "inspector-1600-light": "inspector", "rules-1600-light": "rules",
	"approval-session-390-dark": "approval-phone", "overview-390-light": "overview-phone", "timeline-1600-dark": "timeline-dark",
}

// shoot keeps pictures of the page in the folder that BELAY_SHOTS names, in both
// themes, wide and narrow; nothing of it may be wider than the screen.
func (p *page) shoot(name string) {
	p.t.Helper()
	p.shots++
	for i, width := range []int64{1600, 1024, 390} {
		for j, theme := range []string{"light", "dark"} {
			if !whole() && (p.seed+5*p.shots)%6 != 2*i+j {
				continue
			}
			p.at(width, map[bool]int64{true: 844, false: 900}[width == 390], theme)
			p.expect("document.documentElement.scrollWidth <= innerWidth")
			p.accessible(fmt.Sprintf("%s, %d wide, %s", name, width, theme))
			shot := fmt.Sprintf("%s-%d-%s", name, width, theme)
			dir := os.Getenv("BELAY_SHOTS")
			if dir == "docs" {
				dir, shot = filepath.Join(repository, "docs", "console"), pictures[shot]
			}
			if dir == "" || shot == "" {
				continue
			}
			b, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, shot+".png"), b, 0o644)
			}
			if err != nil {
				p.t.Fatal(err)
			}
		}
	}
	p.at(1600, 900, "light")
}

// accessible has axe look at the page, by the rules of WCAG 2.2 AA.
func (p *page) accessible(where string) {
	p.t.Helper()
	if axe == "" {
		b, err := os.ReadFile("testdata/axe/axe.min.js")
		if err != nil {
			p.t.Fatal(err)
		}
		axe = string(b)
	}
	p.js("if (!window.axe) { " + axe + " }; 0")
	found, err := chromedp.Run(p.ctx, chromedp.Evaluate[[]string](`axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"], resultTypes: ["violations"], selectors: false}).then(r => r.passes.length < 8 ? ["only " + r.passes.length + " rules looked at it"] :
		r.violations.flatMap(v => v.nodes.map(n => v.id + ": " + n.html.slice(0, 200) + " " + n.failureSummary)))`, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("axe: %v", err)
	}
	for _, f := range found {
		p.t.Errorf("%s: %s", where, f)
	}
}

// open goes to an address.
func (p *page) open(address string) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, chromedp.Navigate(address)); err != nil {
		p.t.Fatal(err)
	}
}

// expect waits until a JavaScript expression holds.
func (p *page) expect(what string) {
	p.t.Helper()
	p.when(what, "true")
}

// when waits until a JavaScript expression holds, and returns what another one is then.
func (p *page) when(what, then string) any {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	for {
		v, err := chromedp.Run(ctx, chromedp.Poll[[]any]("("+what+") ? ["+then+"] : false", chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(patience)))
		if err == nil {
			return v[0]
		}
		if ctx.Err() == nil && (strings.Contains(err.Error(), "Cannot find context") || strings.Contains(err.Error(), "navigated or closed")) { // a page went as it was asked
			continue
		}
		text, _ := chromedp.Run(p.ctx, chromedp.Evaluate[string]("document.body.innerText"))
		p.t.Fatalf("%s: %v; the page shows\n%s", what, err, text)
	}
}

// shows waits for a text.
func (p *page) shows(text string) {
	p.t.Helper()
	p.expect(fmt.Sprintf("document.body.innerText.includes(%q)", text))
}

// press clicks the button or link that has a text.
func (p *page) press(text string) {
	p.t.Helper()
	find := fmt.Sprintf("[...document.querySelectorAll('button, a')].find(x => (x.innerText.trim().startsWith(%q) || x.getAttribute('aria-label') === %q) && x.offsetParent && x.getAttribute('aria-disabled') !== 'true')", text, text)
	p.expect("(x => x && (x.click(), true))(" + find + ")") // at once: the page may be drawn again
}

// keys types, as a person without a mouse does.
func (p *page) keys(text string) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, chromedp.KeyEvent(text)); err != nil {
		p.t.Fatal(err)
	}
}

// letters types where no text field has the focus.
func (p *page) letters(text string) {
	p.t.Helper()
	p.js("document.activeElement.blur()")
	p.keys(text)
}

// js runs a script, and returns what its last expression is.
func (p *page) js(script string) any {
	p.t.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[any](script))
	if err != nil {
		p.t.Fatalf("%s: %v", script, err)
	}
	return v
}

var addresses = regexp.MustCompile(`\{[^}]*\}`)

// describes reports whether the description has a request.
func (s *server) describes(method, address string) bool {
	var doc struct{ Paths map[string]map[string]any }
	s.do("/v1/openapi.json", "", &doc)
	at, err := url.Parse(address)
	if err != nil {
		return false
	}
	for path, methods := range doc.Paths {
		pattern := "^" + addresses.ReplaceAllString(path, "[^/]+") + "$"
		if ok, _ := regexp.MatchString(pattern, at.Path); ok && methods[strings.ToLower(method)] != nil {
			return true
		}
	}
	return false
}
