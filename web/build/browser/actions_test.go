package browser

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	devpage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// acting is a model that does what it is asked for: work on files, a program that goes on,
// a push, a question, a failure.
const acting = `
steps:
  - when: {contains: Work}
    reasoning: First the numbers.
    text: I count, and lock the queue.
    calls:
      - {tool: exec, args: {command: 'seq 1 40000; echo the very end; exit 3'}}
      - {tool: read, args: {path: queue.go}}
      - {tool: edit, args: {path: queue.go, old: "return q.items[0]", new: "q.mu.Lock()\n\treturn q.items[0]"}}
  - when: {contains: Serve}
    calls:
      - {tool: exec, args: {command: 'seq 1 40000; echo up; while read x; do echo heard $x; done', background_after: 0}}
      - {tool: exec, args: {command: 'echo it waits; sleep 1000', background_after: 0}}
      - {tool: exec, args: {command: 'until test -e go.txt; do sleep 0.1; done', timeout_seconds: 600}}
  - when: {contains: Push}
    calls:
      - {tool: exec, args: {command: git push origin main}}
  - when: {contains: Write}
    calls:
      - {tool: write, args: {path: new.txt, content: "one\n"}}
  - when: {contains: Which}
    calls:
      - {tool: ask_user, args: {question: Which database?, options: [staging, none]}}
  - when: {contains: Break}
    text: It breaks.
    fault: {kind: bad_request, message: no such model}
  - text: So much for that.
    repeat: 1000
    calls:
      - {tool: complete_task, args: {summary: That was it.}}
`

// acted is a server with a session of each kind.
func acted(t *testing.T) *player {
	t.Helper()
	s := serve(t, acting)
	names := map[string]string{"TOKEN": s.run("token", "create", "--role", "owner", "--name", "pasted"), "WS": filepath.Join(s.dir, "ws")}
	begin := func(name, text, settings string, there func(id string) bool) {
		dir := s.folder(strings.ToLower(name))
		id := s.submit(fmt.Sprintf(`{"text":%q,"settings":%s,"workspace":%q}`, text, settings, dir))
		eventually(t, func() bool { return there(id) }, func() string { return s.run("events", id) })
		names[name] = id
	}
	asks := func(string) bool { return s.open() == 1 }
	for _, name := range []string{"one", "two"} { // a rule would spare these
		begin(name, "Push it.", "{}", asks)
		s.run("approve", s.waiting().ActionID)
	}
	begin("WORKED", "Work on the queue.", `{"allow":["exec","edit"]}`, s.ended)
	begin("BROKE", "Break it.", "{}", s.ended)
	begin("ASKS", "Push it all.", "{}", asks)
	names["QUESTION"] = s.waiting().ActionID
	var programs struct{ Programs []struct{ ProcessID string } }
	begin("SERVES", "Serve the page.", `{"allow":["exec"]}`, func(id string) bool {
		s.do("/v1/programs?status=running&sessionId="+id, "", &programs)
		return len(programs.Programs) == 3
	})
	return plays(s, names)
}

// plays opens the console of a server.
func plays(s *server, names map[string]string) *player {
	s.t.Helper()
	p := &player{page: browse(s.t), s: s, names: names}
	tell(p.page, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Tokyo"})
	// what the page keeps as a file, copies and notifies of
	tell(p.page, cdp.Command[devpage.AddScriptToEvaluateOnNewDocumentParams, cdp.Empty]{Method: devpage.CommandAddScriptToEvaluateOnNewDocument}, devpage.AddScriptToEvaluateOnNewDocumentParams{Source: `window.kept = []; window.copied = []; window.told = [];
		URL.createObjectURL = (real => (b) => (b.text().then(t => kept.push(t)), real(b)))(URL.createObjectURL.bind(URL));
		navigator.clipboard.writeText = async (t) => { copied.push(t) };
		window.Notification = class { static requestPermission = async () => 'granted'; constructor(title, options) { told.push(Object.assign(this, {title, options})) } close() { this.closed = true } }`})
	p.open(s.run("console", "--role", "owner"))
	p.shows("Needs you")
	return p
}

// tell tells the browser something.
func tell[P any](p *page, c cdp.Command[P, cdp.Empty], params P) {
	p.t.Helper()
	if _, err := chromedp.Run(p.ctx, func(ctx context.Context, t *chromedp.Target) (cdp.Empty, error) { return cdp.Call(ctx, t, c, params) }); err != nil {
		p.t.Fatal(err)
	}
}

// folder is a new one below the server's, with the file of the queue.
func (s *server) folder(name string) string {
	s.t.Helper()
	dir := filepath.Join(s.dir, "ws", name)
	b, err := os.ReadFile(filepath.Join(s.dir, "ws", "queue.go"))
	if err == nil {
		err = os.Mkdir(dir, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "queue.go"), b, 0o600)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return dir
}

// TestEachActionOfEachPage is pressed, by keys alone where there is room for a keyboard and
// by a pointer on a phone, in light or dark; what it does is seen, and everybody can use
// what is shown then.
// Guarantee: V46.
func TestEachActionOfEachPage(t *testing.T) {
	t.Parallel()
	files := []string{"lists.txt", "pages.txt"}
	if n := rand.IntN(2); !whole() {
		files = files[n : n+1]
	}
	for _, look := range some(1) {
		for _, file := range files {
			p := acted(t)
			p.pointer = look.width == 390
			p.looks(look)
			p.play(flows(t, file, p.pointer), func(f flow) {
				if whole() || rand.IntN(3) == 0 {
					p.accessible(fmt.Sprintf("%s, %s", f.name, look))
				}
			})
			p.clean(p.s)
		}
	}
}

// look is a screen, and what its owner likes.
type look struct {
	width int64
	theme string
}

var looks = []look{{1600, "light"}, {1600, "dark"}, {1024, "light"}, {1024, "dark"}, {390, "light"}, {390, "dark"}}

// some are so many of the looks, or all of them where the whole is tried.
func some(n int) (chosen []look) {
	for _, i := range rand.Perm(len(looks)) {
		if len(chosen) < n || whole() {
			chosen = append(chosen, looks[i])
		}
	}
	return chosen
}

func (l look) String() string { return fmt.Sprintf("%d wide, %s", l.width, l.theme) }

// looks shows the page so, whatever is opened in it.
func (p *page) looks(l look) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, chromedp.EmulateViewport(l.width, map[bool]int64{true: 844, false: 900}[l.width == 390])); err != nil {
		p.t.Fatal(err)
	}
	tell(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: l.theme}}})
}

// TestEachPageInEachLook is for everybody: by the rules of WCAG 2.2 AA, and no wider than its screen.
// Guarantee: V46.
func TestEachPageInEachLook(t *testing.T) {
	t.Parallel()
	p, chosen := acted(t), some(1)
	session := "/sessions/" + p.names["WORKED"]
	var programs struct{ Programs []struct{ ProcessID string } }
	p.s.do("/v1/programs", "", &programs)
	for _, at := range []string{
		"/", "/sessions", "/sessions?new=1", session, session + "?tab=timeline", session + "?tab=events", session + "?tab=changes", session + "?tab=context", session + "?tab=programs",
		"/sessions/" + p.names["ASKS"], "/sessions/sess_none", "/approvals", "/approvals/act_none", "/programs", "/programs/" + programs.Programs[0].ProcessID,
		"/policies", "/policies?view=log", "/policies?view=try", "/policies?view=edit", "/policies?view=suggest", "/costs", "/costs?by=session", "/health", "/access", "/settings",
	} {
		p.step("open", at)
		for _, l := range chosen {
			p.looks(l)
			p.expect("document.documentElement.scrollWidth <= innerWidth")
			p.accessible(fmt.Sprintf("%s, %s", at, l))
		}
	}
	p.clean(p.s)
}

// TestWindowsGoBackAndOn: of what is long a part is shown, the parts before it on demand,
// and what comes doesn't move what is read; all that match are named, and one can stop.
// Guarantee: V46, V50.
func TestWindowsGoBackAndOn(t *testing.T) {
	t.Parallel()
	s := serve(t, acting)
	one := s.submit(`{"text":"Push it."}`)
	s.run("approve", s.waiting().ActionID)
	eventually(t, func() bool { return s.ended(one) }, func() string { return s.run("events", one) })
	long := s.submit(`{"text":"Work on the queue.","settings":{"allow":["exec","edit"]}}`)
	eventually(t, func() bool { return s.ended(long) }, func() string { return s.run("events", long) })
	s.kill()
	s.many(one, "copies", "120")
	s.many(long, "long", "3000")
	s.start("127.0.0.1:0")
	p := plays(s, map[string]string{"LONG": long, "SESSION": long})
	p.pointer = true // behind a hundred rows
	p.play(flows(t, "windows.txt", false), func(f flow) { p.accessible(f.name) })
	p.clean(s)
}
