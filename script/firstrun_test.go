package script

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay/internal/testkit/modelserver"
	"github.com/belay-run/belay/internal/testkit/needs"
)

// TestTheFirstRunAtATerminal: what belay does at a terminal with no key, one, two, a
// server of this machine, and a choice that was kept and can't be used any more; and
// what the person's configuration is then.
// Guarantee: X71.
func TestTheFirstRunAtATerminal(t *testing.T) {
	needs.Program(t, "expect")
	far := httptest.NewServer(modelserver.New(func(a modelserver.Asked) modelserver.Scene {
		if a.Model == retired {
			return modelserver.Scene{Fault: modelserver.Fault{Status: 404, Class: "bad_request"}}
		}
		return quick(a)
	}))
	defer far.Close()
	local := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte(`{"data":[{"id":"qwen3:8b"}]}`)) //nolint:errcheck // the test sees that nothing came
	}))
	defer local.Close()
	bin := newcomer(t, far.URL)
	bin.install(t)
	talk := `expect "›"
send "what is in this folder?\r"
expect "It has one file, greet.sh."
send "\004"
expect eof
`
	const both, kept = "ANTHROPIC_API_KEY=sk-tester", "model: gpt-6.1-sol\nprovider: openai\n"
	old := "model: " + retired + "\nprovider: openai\n"
	for name, c := range map[string]struct {
		vars          []string
		before, after string // the configuration
		script        string
	}{
		"no key":                              {nil, "", "", "expect \"1  login\"\nexpect \"2  demo\"\nexpect \"from now on?\"\nsend \"\\r\"\nexpect \"none has a key\"\nexpect \"belay login VENDOR, or belay demo\"\nexpect eof\n"},
		"no key, login":                       {nil, "", "", "expect \"from now on?\"\nsend \"login\\r\"\nexpect \"hose key\"\nsend \"openai\\r\"\nexpect \"OPENAI_API_KEY\"\nsend \"sk-tester\\r\"\nexpect \"the key is kept\"\nexpect \"using openai, model gpt-6.1-sol: the secret OPENAI_API_KEY is kept\"\n" + talk},
		"no key, demo":                        {nil, "", "", "expect \"from now on?\"\nsend \"2\\r\"\nexpect \"Done in\"\nexpect eof\n"},
		"one key":                             {[]string{"OPENAI_API_KEY=sk-tester"}, "", "", "expect \"using openai, model gpt-6.1-sol: OPENAI_API_KEY is set\"\n" + talk},
		"two keys":                            {[]string{"OPENAI_API_KEY=sk-tester", both}, "", kept, "expect \"2  anthropic claude-sonnet-5-5\"\nexpect \"from now on?\"\nsend \"openai\\r\"\nexpect \"chosen just now\"\n" + talk},
		"a server":                            {[]string{"OLLAMA_HOST=" + strings.TrimPrefix(local.URL, "http://")}, "", "model: \"qwen3:8b\"\nprovider: ollama\n", "expect \"1  ollama qwen3:8b\"\nexpect \"2  login\"\nexpect \"from now on?\"\nsend \"1\\r\"\nexpect \"chosen just now\"\nexpect \"›\"\nsend \"\\004\"\nexpect eof\n"},
		"two keys, and the home is read-only": {[]string{"OPENAI_API_KEY=sk-tester", both, "XDG_CONFIG_HOME=/proc/belay"}, "", "", "expect \"from now on?\"\nsend \"openai\\r\"\nexpect \"chosen just now; it couldn't be kept: \"\n" + talk},
		"no choice":                           {[]string{"OPENAI_API_KEY=sk-tester", both}, "", "", "expect \"from now on?\"\nsend \"\\r\"\nexpect \"several providers could be used\"\nexpect eof\n"},
		"a key is gone":                       {[]string{both, "OPENAI_BASE_URL="}, kept, kept, "expect \"openai: it wants a key, and there is none\"\nexpect \"belay login openai\"\nexpect eof\n"},
		"a model is gone":                     {[]string{"OPENAI_API_KEY=sk-tester", both}, old, old, "expect \"›\"\nsend \"what is in this folder?\\r\"\nexpect \"" + retired + "\"\nexpect \"try: belay models list --provider openai\"\nsend \"\\004\"\nexpect eof\n"},
	} {
		t.Run(name, func(t *testing.T) {
			u := newcomer(t, far.URL)
			u.env = append(slices.DeleteFunc(u.env, func(kv string) bool { return strings.HasPrefix(kv, "PATH=") }), "PATH="+bin.bin+":"+os.Getenv("PATH"))
			file := filepath.Join(filepath.Dir(u.dir), "home", ".config", "belay", "belay.yaml")
			if c.before != "" {
				if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(c.before), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			const begin = "set stty_init {rows 24 cols 100}\nset timeout 120\nspawn belay\nexpect_after timeout { puts {-- nothing came}; exit 1 }\n"
			cmd := exec.CommandContext(t.Context(), "expect", "-c", begin+c.script)
			cmd.Dir, cmd.Env = u.dir, append(u.env, c.vars...)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%s\n%v\n%q", c.script, err, out)
			}
			after, err := os.ReadFile(file)
			if err != nil && !os.IsNotExist(err) || string(after) != c.after {
				t.Errorf("the configuration is %q (%v), want %q", after, err, c.after)
			}
		})
	}
}

// retired is a model that its vendor doesn't have any more.
const retired = "gpt-4.5-preview"
