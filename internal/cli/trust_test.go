package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/term"
)

// TestTrustWithoutAFileAsks: it shows each file and what it brings, trusts what is said yes
// to and nothing else, and nothing where nobody can be asked.
// Guarantee: T42, V56.
func TestTrustWithoutAFileAsks(t *testing.T) {
	p := newPlace(t)
	ws := t.TempDir()
	tool := func(name string) string {
		return "name: " + name + "\ndescription: It greets.\nargv: [printf, hello-" + name + "]\nargs: {type: object}\n"
	}
	for name, text := range map[string]string{"tools/one.yaml": tool("one"), "tools/two.yaml": tool("two"), "tools/three.yaml": "name: [", "policy.yaml": "version: 1\nrules:\n  - {id: any, verdict: allow, when: {tool: exec}}\n"} {
		at := filepath.Join(ws, ".belay", name)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	trust := func(terminal bool, typed string, args ...string) (said string, exit int) {
		var out bytes.Buffer
		env := term.Env{In: strings.NewReader(typed), Out: &out, Err: &out, Environ: p.env, IsTerminal: func(any) bool { return terminal }}
		exit = Main(t.Context(), append([]string{"trust", "--workspace", ws}, args...), command.Sys{Env: env, Dir: ws})
		return out.String(), exit
	}
	trusted := func() string {
		said, _ := trust(false, "", "--list")
		return said
	}
	said, exit := trust(false, "y\ny\ny\n")
	for _, want := range []string{".belay/policy.yaml", ".belay/tools/one.yaml", ".belay/tools/two.yaml", "hello-one", "hello-two", "rule any: it widens permissions", "three.yaml", "it can't be trusted", "no terminal"} {
		if !strings.Contains(said, want) {
			t.Errorf("it doesn't say %q: %s", want, said)
		}
	}
	if now := trusted(); exit != 2 || !strings.Contains(now, "nothing is trusted") {
		t.Errorf("without a terminal: exit %d, then %s", exit, now)
	}
	if said, exit = trust(true, "n\ny\nn\n"); exit != 0 || strings.Count(said, "trust it as it is?") != 3 {
		t.Errorf("at a terminal: exit %d: %s", exit, said)
	}
	if now := trusted(); !strings.Contains(now, "one.yaml") || strings.Contains(now, "two.yaml") || strings.Contains(now, "policy.yaml") {
		t.Errorf("trusted is %s", now)
	}
	if said, exit = trust(true, ""); exit != 130 || strings.Count(said, "trust it as it is?") != 1 {
		t.Errorf("at a terminal that was left: exit %d: %s", exit, said)
	}
}
