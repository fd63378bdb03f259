package story

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

const evil = "\x1b[31m\x00\a\b\r\n\t\x7f\u0085\u009b\u00ad\u200b\u200d\u200e\u202e\u2066\u2069\u2028\u2029\u3164\ufeff\U000e0041\U000e0101\xff\xc3"

// Guarantee: X4.
func TestCleanTextCanOnlyBeRead(t *testing.T) {
	for in, want := range map[string]string{
		"":                       "",
		"plain, žluť, 日本, 🚀":     "plain, žluť, 日本, 🚀",
		"a\nb\r\tc":              `a\nb\r\tc`,
		"\x1b[2J":                `\x1b[2J`,
		"\x1b]8;;http://x\x1b\\": `\x1b]8;;http://x\x1b\`,
		"\u009b31m":              `\x9b31m`,
		"\x9b31m":                `\x9b31m`,
		"a\u202eb\u2066c":        `a\u202eb\u2066c`,
		"zero\u200bwidth\ufeff":  `zero\u200bwidth\ufeff`,
		"tag\U000e0041":          `tag\U000e0041`,
		"filler\u3164":           `filler\u3164`,
		"half \xf0\x9f":          `half \xf0\x9f`,
		"\ufffd is a character":  "\ufffd is a character",
	} {
		if got := Clean(in); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
	if got := CleanLines("a\n\tb\r\x1b"); got != "a\n\tb"+`\r\x1b` {
		t.Errorf("got %q", got)
	}
}

func FuzzClean(f *testing.F) {
	f.Add(evil)
	f.Fuzz(func(t *testing.T, s string) {
		c := Clean(s)
		if bad := dangerous(c, ""); bad != "" {
			t.Errorf("Clean(%q) = %q has %s", s, c, bad)
		}
		if again := Clean(c); again != c {
			t.Errorf("clean text changed: %q became %q", c, again)
		}
		if bad := dangerous(CleanLines(s), "\n\t"); bad != "" {
			t.Errorf("CleanLines(%q) has %s", s, bad)
		}
	})
}

// dangerous names what of a text is more than characters. It is written from
// the Unicode tables and not from the function under test.
func dangerous(s, allowed string) string {
	if !utf8.ValidString(s) {
		return "broken bytes"
	}
	for _, r := range s {
		if strings.ContainsRune(allowed, r) {
			continue
		}
		if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Bidi_Control) || r == 0x3164 || r >= 0xe0100 && r <= 0xe01ef {
			return string(unicode.ToLower(r)) + " " + strings.ToUpper(strings.TrimPrefix(escape(r), `\`))
		}
	}
	return ""
}

// fill puts evil text wherever a value has room for text.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if v.CanSet() {
			v.SetString(evil)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Pointer:
		if v.CanSet() {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem())
		}
	case reflect.Slice:
		if v.CanSet() && v.Type().Elem().Kind() != reflect.Uint8 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(v.Index(0))
		}
	}
}

// evilFacts has a fact of every type, full of evil text.
func evilFacts(t *testing.T) []event.Envelope {
	t.Helper()
	var out []event.Envelope
	for i, ty := range event.Types() {
		p, err := event.Decode(ty.Name, ty.Version, []byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		v := reflect.New(reflect.TypeOf(p)).Elem()
		fill(v)
		e := event.Envelope{Stream: "thread/thr_1", Seq: int64(i + 1), Time: time.Unix(int64(i), 0), Data: v.Interface().(event.Payload)}
		if strings.HasPrefix(ty.Name, "task.") {
			e.Stream = "task/task_1"
		}
		fill(reflect.ValueOf(&e.IDs).Elem())
		out = append(out, e)
	}
	return append(out, event.Envelope{Stream: "thread/" + evil, Seq: 1, Data: event.Unknown{Type: "new." + evil, Raw: []byte(`{"x":"` + evil + `"}`)}})
}

// Guarantee: X4.
func TestNoPayloadReachesTheTextUnescaped(t *testing.T) {
	facts := evilFacts(t)
	var texts []string
	for _, e := range facts {
		texts = append(texts, Line(e))
		a, err := Why(facts, string(e.ID()))
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, strings.Split(a.String(), "\n")...)
	}
	for _, id := range []string{"", evil} {
		a, err := Why(facts, id)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, strings.Split(a.String(), "\n")...)
	}
	for _, r := range Timeline(facts) {
		texts = append(texts, r.String())
	}
	for _, s := range texts {
		if bad := dangerous(s, ""); bad != "" {
			t.Errorf("%q has %s", s, bad)
		}
	}
}

// A tool's name comes from a model, and people copy commands into a shell.
func TestACommandHasOnlyNamesForWords(t *testing.T) {
	for _, name := range []string{"exec; rm -rf ~", "$(id)", "`id`", "a b", "--store=/x", "\x1b[2J", ""} {
		l := newLog().turn(1, required).ask("normal", "").say("", name, `{}`).
			judge(1, name, "deny", "headless", "builtin/ask", "NO_PERSON", "no").broke(1, 0, name, "denied", "DENIED", "no", false)
		a, err := Why(l.events, "call_1")
		if err != nil {
			t.Fatal(err)
		}
		if got := a.Next[0].Command; got != "belay sessions resume sess_1 --allow NAME" {
			t.Errorf("for a tool called %q: %q", name, got)
		}
	}
}

// Every id of every log can be asked about, and the answer stands on facts that
// are in the log; also when the log is only a window of a longer one.
// Guarantee: G12.
func TestEveryAnswerStandsOnFacts(t *testing.T) {
	for _, c := range logs {
		events := c.log().events
		for from := range events {
			check(t, c.name, events[from:])
		}
		for to := range events {
			check(t, c.name, events[:to+1])
		}
	}
}

func check(t *testing.T, name string, window []event.Envelope) {
	t.Helper()
	Timeline(window)
	ids := []string{""}
	for _, x := range tell(window).subjects() {
		ids = append(ids, x.id)
	}
	for _, id := range ids {
		a, err := Why(window, id)
		if err != nil {
			t.Fatalf("%s, %d facts, %q: %v", name, len(window), id, err)
		}
		if a.Head == "" || len(a.Facts) == 0 || len(a.Next) == 0 {
			t.Errorf("%s, %d facts, %q: an answer without head, facts or command: %+v", name, len(window), id, a)
		}
		for _, f := range a.Facts {
			if !slices.ContainsFunc(window, func(e event.Envelope) bool { return e.ID() == f.Event && e.Seq == f.Seq && e.Stream == f.Stream }) {
				t.Errorf("%s: %q stands on %s, which is not there", name, id, f.Event)
			}
		}
	}
}

func TestIDsMayBeShort(t *testing.T) {
	l := newLog().turn(1, required).read(1, "a", "x").read(2, "b", "y")
	l.ids.Turn, l.ids.Step = "turn_01938a7c-0001-7000-8000-000000000000", ""
	l.thread(l.ids, event.TurnSubmitted{}).thread(l.ids, event.TurnStarted{})
	for _, c := range []struct{ id, kind, is, code string }{
		{"turn_1", "turn", "turn_1", ""},
		{"turn_0193", "turn", "turn_01938a7c-0001-7000-8000-000000000000", ""},
		{"01938a7c-0001", "turn", "turn_01938a7c-0001-7000-8000-000000000000", ""},
		{short("turn_01938a7c-0001-7000-8000-000000000000"), "turn", "turn_01938a7c-0001-7000-8000-000000000000", ""},
		{"sess", "session", "sess_1", ""},
		{"call_", "", "", "usage"},
		{"turn", "", "", "usage"},
		{"nothing", "", "", "not_found"},
		{"call_1x", "", "", "not_found"},
	} {
		a, err := Why(l.events, c.id)
		if a.Kind != c.kind || a.ID != c.is || (err != nil) != (c.code != "") || err != nil && string(belay.CodeOf(err)) != c.code {
			t.Errorf("%q: got %s %s, %v; want %s %s %s", c.id, a.Kind, a.ID, err, c.kind, c.is, c.code)
		}
		if e := (*belay.Error)(nil); err != nil {
			if e, _ = err.(*belay.Error); e == nil || e.Hint == "" {
				t.Errorf("%q: an error without a hint: %v", c.id, err)
			}
		}
	}
	if _, err := Why(nil, ""); belay.CodeOf(err) != belay.CodeNotFound {
		t.Errorf("no facts: got %v", err)
	}
}

func TestShortTellsNeighboursApart(t *testing.T) {
	for id, want := range map[string]string{
		"turn_01938a7c-1234-7abc-8def-0123456789ab": "turn_01938a7c-1234",
		"call_a1b2c3d4-1234-8abc-8def-0123456789ab": "call_a1b2c3d4",
		"mine":                                 "mine",
		"turn_of-the-night-of-the-long-knives": "turn_of-the-night-of-the…",
	} {
		if got := short(id); got != want {
			t.Errorf("Short(%s) = %s, want %s", id, got, want)
		}
	}
}
