package browser

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Flows are what a person does, and what comes of it, as text: "# NAME", or "# NAME, wide"
// if a phone has no room for it, or "# NAME, phone", and a line for each step.
//
//	open ADDRESS         a link of the server
//	press NAME           a button or a link whose label or text begins so; =NAME: is so, ~NAME: has it; NAME @ SELECTOR: in that
//	key KEYS             letters, Enter, Ctrl+K …
//	leave                a text field
//	read                 the question, until letters answer it
//	type TEXT            where the focus is
//	fill LABEL: TEXT     a text field
//	choose LABEL: TEXT   an option
//	check LABEL          a check box, the other way round
//	shows TEXT, hides TEXT
//	has SELECTOR, lacks SELECTOR
//	holds EXPRESSION     of JavaScript
//	at TEXT              the address has it
//	copied TEXT          the clipboard has it
//	look NAME            everybody can use it
//	fact TEXT            a fact of $SESSION
//	asks TEXT @ ADDRESS  the page of the address asks the server for what has it
//	ask TEXT             a turn of another session, until it asks: $SESSION, $ACTION; $WAITING is how many do
//	submit TEXT          another turn of $SESSION
//	run ARGUMENTS        belay at a terminal
//
// A name with a $ stands for what it was set to.
type flow struct {
	name  string
	steps []step
}

type step struct{ where, verb, what string }

// flows reads those of a file that a screen has room for.
func flows(t *testing.T, file string, phone bool) (all []flow) {
	t.Helper()
	b, err := os.ReadFile("testdata/flows/" + file)
	if err != nil {
		t.Fatal(err)
	}
	skip := false
	for n, line := range strings.Split(string(b), "\n") {
		name, is := strings.CutPrefix(line, "# ")
		switch verb, what, _ := strings.Cut(line, " "); {
		case is:
			if skip = strings.HasSuffix(name, ", wide") && phone || strings.HasSuffix(name, ", phone") && !phone; !skip {
				all = append(all, flow{name: name})
			}
		case line != "" && !skip:
			f := &all[len(all)-1]
			f.steps = append(f.steps, step{fmt.Sprintf("%s:%d", file, n+1), verb, what})
		}
	}
	return all
}

// player plays flows.
type player struct {
	*page
	s       *server
	names   map[string]string
	pointer bool // and not keys alone
	asked   int
}

// play plays them one after another; one that fails leaves the next ones to be played.
func (p *player) play(all []flow, after func(f flow)) {
	p.t.Helper()
	whole := p.t
	defer func() { p.t, p.s.t = whole, whole }()
	for _, f := range all {
		whole.Run(f.name, func(t *testing.T) {
			p.t, p.s.t = t, t
			doing := ""
			defer func() {
				if t.Failed() {
					t.Log(doing)
				}
			}()
			for _, st := range f.steps {
				what := os.Expand(st.what, func(name string) string {
					if v, is := p.names[name]; is {
						return v
					}
					return "$" + name
				})
				doing = st.where + " " + st.verb + " " + what
				p.step(st.verb, what)
			}
			after(f)
		})
	}
}

func (p *player) step(verb, what string) {
	p.t.Helper()
	label, text, _ := strings.Cut(what, ": ")
	switch verb {
	case "open":
		p.open(p.s.url + what)
		p.expect("document.querySelector('#page')?.innerText.length > 5 && !document.querySelector('#page [aria-busy=true]')")
	case "press":
		p.pressed(what)
	case "key":
		for k := range strings.FieldsSeq(what) {
			switch special, is := specials[k]; {
			case k == "Ctrl+K":
				if err := chromedp.Do(p.ctx, chromedp.KeyEvent("k", chromedp.KeyModifiers(chromedp.ModifierCtrl))); err != nil {
					p.t.Fatal(err)
				}
				p.expect("document.activeElement.role === 'combobox'")
			case is:
				p.keys(special)
			default:
				p.keys(k)
			}
		}
	case "leave":
		p.js("document.activeElement.blur()")
	case "read":
		p.read()
	case "type":
		p.keys(what)
	case "fill":
		if p.pointer {
			p.fill(label, text)
			break
		}
		p.tab(label)
		p.keys(text)
	case "choose":
		p.chosen(label, text)
	case "check":
		p.checked(what)
	case "shows":
		p.shows(what)
	case "hides":
		p.expect(fmt.Sprintf("!document.body.innerText.includes(%q)", what))
	case "has":
		p.expect(fmt.Sprintf("document.querySelector(%q)", what))
	case "lacks":
		p.expect(fmt.Sprintf("!document.querySelector(%q)", what))
	case "holds":
		p.expect(what)
	case "at":
		p.expect(fmt.Sprintf("decodeURIComponent(location.pathname + location.search).includes(%q)", what))
	case "copied":
		p.expect("(t => t.includes(" + fmt.Sprintf("%q", what) + "))(window.copied?.at(-1) ?? '')")
	case "look":
		p.accessible(what)
	case "fact":
		facts := func() string { return p.s.run("events", p.names["SESSION"], "--json") }
		eventually(p.t, func() bool { return strings.Contains(facts(), what) }, func() string { return what + ": no fact has it: " + facts() })
	case "asks":
		text, address, _ := strings.Cut(what, " @ ")
		p.mu.Lock()
		from := len(p.requests)
		p.mu.Unlock()
		p.step("open", address)
		eventually(p.t, func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			return slices.ContainsFunc(p.requests[from:], func(r string) bool { return strings.Contains(r, text) })
		}, func() string { return "nothing asks for it: " + what })
	case "ask":
		p.asks(what)
	case "submit":
		p.s.submit(fmt.Sprintf(`{"text":%q,"sessionId":%q}`, what, p.names["SESSION"]))
	case "run":
		p.s.run(strings.Fields(what)...)
	default:
		p.t.Fatalf("no step is called %s", verb)
	}
}

// specials are keys that have no letter.
var specials = map[string]string{"Enter": kb.Enter, "Esc": kb.Escape, "Tab": kb.Tab, "Space": " ", "Down": kb.ArrowDown, "Up": kb.ArrowUp}

// reached is what has a name and can be reached, as JavaScript: of a dialog that is open, else of the page.
func reached(of, name string) string {
	name, in, _ := strings.Cut(name, " @ ")
	exact, is := strings.CutPrefix(name, "=")
	same := fmt.Sprintf("t?.trim().startsWith(%q)", name)
	if is {
		same = fmt.Sprintf("t?.trim() === %q", exact)
	}
	if part, is := strings.CutPrefix(name, "~"); is {
		same = fmt.Sprintf("t?.includes(%q)", part)
	}
	return fmt.Sprintf("[...(document.querySelector(%q) ?? document).querySelectorAll(%q)].find(x => x.checkVisibility() && x.getAttribute('aria-disabled') !== 'true' && [x.getAttribute('aria-label'), x.labels?.[0]?.innerText, x.innerText].some(t => %s))", cmp.Or(in, "dialog[open]"), of, same)
}

const pressable = "button, a[href], summary"

// pressed presses a button or follows a link: by Tab and Enter, or where it is on the
// screen, where nothing may cover it.
func (p *player) pressed(name string) {
	p.t.Helper()
	what := reached(pressable, name)
	if p.pointer {
		p.expect("(x => { x?.scrollIntoView({block: 'center'}); const r = x?.getBoundingClientRect(), on = r && document.elementFromPoint(r.left + r.width / 2, r.top + r.height / 2); return x?.contains(on) && (x.click(), true) })(" + what + ")")
		return
	}
	p.expect(what)
	p.tabs("x === " + what)
	p.keys(kb.Enter)
}

// chosen chooses the option that begins with a text.
func (p *player) chosen(label, text string) {
	p.t.Helper()
	what := reached("select", label)
	if p.pointer {
		p.choose(label, p.when(what, fmt.Sprintf("[...(%s).options].find(o => o.text.startsWith(%q)).value", what, text)).(string))
		return
	}
	p.expect(what)
	p.tabs("x === " + what)
	by := int(p.js(fmt.Sprintf("(x => [...x.options].findIndex(o => o.text.startsWith(%q)) - x.selectedIndex)(%s)", text, what)).(float64))
	p.keys(strings.Repeat(kb.ArrowDown, max(0, by)) + strings.Repeat(kb.ArrowUp, max(0, -by)))
}

func (p *player) checked(label string) {
	p.t.Helper()
	what := reached("input[type=checkbox]", label)
	if p.pointer {
		p.expect("(x => x && (x.click(), true))(" + what + ")")
		return
	}
	p.expect(what)
	p.tabs("x === " + what)
	p.keys(" ")
}

// asks begins a session, which asks.
func (p *player) asks(text string) {
	p.t.Helper()
	p.asked++
	session := p.s.submit(fmt.Sprintf(`{"text":%q,"workspace":%q}`, text, p.s.folder(fmt.Sprintf("asked-%d", p.asked))))
	var all struct{ Actions []struct{ ActionID string } }
	eventually(p.t, func() bool { p.s.do("/v1/actions?sessionId="+session, "", &all); return len(all.Actions) == 1 }, func() string { return "nothing is asked: " + p.s.run("events", session) })
	p.names["SESSION"], p.names["ACTION"] = session, all.Actions[0].ActionID
	p.names["WAITING"] = fmt.Sprint(p.s.open())
}
