package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/sandbox/boxinit"
	"github.com/belay-run/belay/internal/testkit/golden"
	"github.com/belay-run/belay/internal/workspace/protected"
)

// Guarantee: T71.
func TestProfilesOfSeatbelt(t *testing.T) {
	places := seatbelt{
		write: []string{"/private/tmp/s", "/Users/ann/my \"work\"", "/Users/ann/back\\slash"}, private: []string{"/Users"}, read: []string{"/Users/ann/my \"work\"", "/Users/ann/.cargo"},
		guarded: []string{"/Users/ann/my \"work\"/.git/hooks", "/Users/ann/my \"work\"/a/.vscode"}, pinned: []string{"/Users/ann/my \"work\"/.git", "/Users/ann/my \"work\"/a"}, hidden: []string{"/Users/ann/.belay"},
	}
	for name, c := range map[string]struct {
		s seatbelt
		b belay.Boundary
	}{
		"workspace": {places, belay.Boundary{Name: belay.BoundaryWorkspace, Limits: belay.DefaultProcessLimits}},
		"network":   {seatbelt{private: []string{"/Users"}}, belay.Boundary{Name: belay.BoundaryReadOnly, Network: belay.NetworkFull}},
	} {
		got, err := c.s.profile(c.b)
		if err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, "testdata/seatbelt_"+name+".sb", got)
	}
}

// Guarantee: T71.
func TestWhatSeatbeltCannotHoldIsRefused(t *testing.T) {
	work := func(paths ...string) seatbelt { return seatbelt{write: paths} }
	for name, c := range map[string]struct {
		s    seatbelt
		b    belay.Boundary
		code belay.Code
	}{
		"full":       {work("/w"), belay.Boundary{Name: belay.BoundaryFull}, belay.CodeBadBoundary},
		"hosts":      {work("/w"), belay.Boundary{Network: belay.NetworkHosts, Hosts: []string{"a:1"}}, belay.CodeNotConfined},
		"memory":     {work("/w"), belay.Boundary{Limits: belay.ProcessLimits{Memory: 1 << 30}}, belay.CodeNotConfined},
		"wall":       {work("/w"), belay.Boundary{Limits: belay.ProcessLimits{Wall: 1}}, belay.CodeNotConfined},
		"all":        {work("/"), belay.Boundary{}, belay.CodeBadBoundary},
		"no root":    {work("w"), belay.Boundary{}, belay.CodeBadBoundary},
		"dots":       {work("/w/../x"), belay.Boundary{}, belay.CodeBadBoundary},
		"slash":      {work("/w/"), belay.Boundary{}, belay.CodeBadBoundary},
		"line":       {work("/w\n(allow default)"), belay.Boundary{}, belay.CodeBadBoundary},
		"zero":       {work("/w\x00"), belay.Boundary{}, belay.CodeBadBoundary},
		"no text":    {work("/w\xff"), belay.Boundary{}, belay.CodeBadBoundary},
		"a guard":    {seatbelt{guarded: []string{"/w\t"}}, belay.Boundary{}, belay.CodeBadBoundary},
		"a hidden":   {seatbelt{hidden: []string{"/w\x7f"}}, belay.Boundary{}, belay.CodeBadBoundary},
		"a pin":      {seatbelt{pinned: []string{""}}, belay.Boundary{}, belay.CodeBadBoundary},
		"to be read": {seatbelt{read: []string{"/w\u0085"}}, belay.Boundary{}, belay.CodeBadBoundary},
	} {
		if _, err := c.s.profile(c.b); belay.CodeOf(err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
	counted := belay.ProcessLimits{Output: 1, TotalCPU: 1, TotalWritten: 1}
	if _, err := work("/w").profile(belay.Boundary{Limits: counted}); err != nil {
		t.Errorf("limits that the runtime counts: %v", err)
	}
}

// TestProfilesMeanWhatTheBoundarySays reads profiles of random places back, as
// their language is read, and asks them about random paths.
// Guarantee: T71.
func TestProfilesMeanWhatTheBoundarySays(t *testing.T) {
	part := rapid.StringMatching(`[a-b "\\();#|']{1,3}`).Filter(func(s string) bool { return s != "." && s != ".." })
	place := rapid.Custom(func(t *rapid.T) string {
		return "/" + strings.Join(rapid.SliceOfN(part, 1, 3).Draw(t, "parts"), "/")
	})
	some := rapid.SliceOfN(place, 0, 3)
	rapid.Check(t, func(t *rapid.T) {
		s := seatbelt{write: some.Draw(t, "write"), private: some.Draw(t, "private"), read: some.Draw(t, "read"), guarded: some.Draw(t, "guarded"), hidden: some.Draw(t, "hidden"), pinned: some.Draw(t, "pinned")}
		text, err := s.profile(belay.Boundary{Name: belay.BoundaryWorkspace, Network: belay.NetworkNone})
		if err != nil {
			t.Fatal(err)
		}
		rules := rulesIn(t, text)
		for _, p := range append(some.Draw(t, "paths"), slices.Concat(s.write, s.guarded, s.hidden, s.private)...) {
			in := func(places []string) bool {
				return slices.ContainsFunc(places, func(q string) bool { return boxinit.Within(p, q) })
			}
			if got, want := allowed(rules, "file-write-data", p), in(s.write) && !in(s.guarded) && !in(s.hidden); got != want {
				t.Fatalf("write %q: %v\n%s", p, got, text)
			}
			if got, want := allowed(rules, "file-read-data", p), !in(s.hidden) && (!in(s.private) || in(s.read) || in(s.write)); got != want {
				t.Fatalf("read %q: %v\n%s", p, got, text)
			}
			if slices.Contains(slices.Concat(s.pinned, s.write), p) && allowed(rules, "file-write-unlink", p) {
				t.Fatalf("move %q\n%s", p, text)
			}
		}
		for _, op := range []string{"network-outbound", "network-bind", "system-socket", "mach-register", "iokit-open", "sysctl-write"} {
			if allowed(rules, op, "/x") {
				t.Fatalf("%s is allowed\n%s", op, text)
			}
		}
	})
}

// expr is a word, a string, or a list of expressions.
type expr struct {
	text string
	list []expr
}

// rulesIn reads a profile as Scheme reads it.
func rulesIn(t interface{ Fatalf(string, ...any) }, text string) []expr {
	stack := [][]expr{nil}
	add := func(e expr) { stack[len(stack)-1] = append(stack[len(stack)-1], e) }
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '(':
			stack = append(stack, nil)
			i++
		case c == ')':
			done := stack[len(stack)-1]
			if stack = stack[:len(stack)-1]; len(stack) == 0 {
				t.Fatalf("a parenthesis too many: %s", text)
			}
			add(expr{list: done})
			i++
		case c == '"':
			var b strings.Builder
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
				b.WriteByte(text[i])
			}
			add(expr{text: b.String()})
			i++
		case c == ' ' || c == '\n':
			i++
		default:
			end := i + strings.IndexAny(text[i:], " \n()\"")
			add(expr{text: text[i:end]})
			i = end
		}
	}
	if len(stack) != 1 {
		t.Fatalf("a parenthesis is missing: %s", text)
	}
	return stack[0]
}

// allowed asks a profile: the last rule that matches counts.
func allowed(rules []expr, op, path string) (yes bool) {
	for _, r := range rules {
		verdict, ops, filters := r.list[0].text, false, []expr{}
		for _, e := range r.list[1:] {
			if e.list != nil {
				filters = append(filters, e)
			} else if base, all := strings.CutSuffix(e.text, "*"); e.text == "default" || e.text == op || all && strings.HasPrefix(op, base) {
				ops = true
			}
		}
		hits := len(filters) == 0 || slices.ContainsFunc(filters, func(f expr) bool {
			return f.list[0].text == "literal" && path == f.list[1].text || f.list[0].text == "subpath" && boxinit.Within(path, f.list[1].text)
		})
		if ops && hits && verdict != "version" {
			yes = verdict == "allow"
		}
	}
	return yes
}

func TestPlacesOfSeatbelt(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ws := filepath.Join(home, "project")
	for _, dir := range []string{ws + "/.git/hooks", ws + "/a/.vscode", home + "/.cargo", home + "/keys"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{ws + "/.git/HEAD", home + "/.cargo/credentials"} {
		if err := os.WriteFile(f, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := Options{Workspace: ws, Home: home, Hidden: []string{home + "/keys", home + "/missing"}, Protected: func(p string) bool { _, is := protected.Of(p); return is }}
	s, err := seatbeltOf(belay.Boundary{Name: belay.BoundaryWorkspace}, o, home+"/scratch")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{ws + "/.git/hooks", ws + "/a/.vscode", ws + "/.vscode", ws + "/AGENTS.md"} {
		if !slices.Contains(s.guarded, want) {
			t.Errorf("%s isn't guarded: %q", want, s.guarded)
		}
	}
	if slices.Contains(s.guarded, ws+"/.git") || !slices.Equal(s.pinned, []string{ws + "/.git", ws + "/.github", ws + "/a"}) {
		t.Errorf("guarded are %q, pinned %q", s.guarded, s.pinned)
	}
	if !slices.Contains(s.read, home+"/.cargo") || !slices.Equal(s.hidden, []string{home + "/keys", home + "/.cargo/credentials"}) || !slices.Contains(s.private, home) {
		t.Errorf("%+v", s)
	}
	if s, err = seatbeltOf(belay.Boundary{Name: belay.BoundaryReadOnly}, o, home+"/scratch"); err != nil || !slices.Equal(s.write, []string{home + "/scratch"}) {
		t.Errorf("read-only writes %q, %v", s.write, err)
	}
	if _, err = seatbeltOf(belay.Boundary{Write: []string{home + "/missing"}}, o, home); belay.CodeOf(err) != belay.CodeBadBoundary {
		t.Errorf("what isn't there: %v", err)
	}
}
