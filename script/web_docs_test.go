package script

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheExamplesOfTheWebDocumentWork: its rules are those that docs/web.md says.
func TestTheExamplesOfTheWebDocumentWork(t *testing.T) {
	doc, err := os.ReadFile("../docs/web.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(doc), "or a rule in your `policy.yaml`:\n")
	if section, _, _ = strings.Cut(section, "\n## "); !found || newDocsRun(t).follow(section) < 2 {
		t.Error("the section is not where it was, or shows too little")
	}
}

// TestAnAgentReadsTheWeb from its question to the engine and the page: what the person's
// own file allows to be reached, the taint by host, and the ask that follows it.
func TestAnAgentReadsTheWeb(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/search" {
			fmt.Fprintf(w, `{"results":[{"title":"Found","url":"http://%s/page"}]}`, r.Host)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, "<h1>Heading</h1>") //nolint:errcheck // the run tells
	}))
	defer srv.Close()
	r := newDocsRun(t)
	own := func(name, text string) {
		t.Helper()
		dir := filepath.Join(filepath.Dir(r.dir), "config", "belay")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r.write("script.yaml", `steps:
  - calls: [{tool: web_search, args: {query: x}}]
  - calls: [{tool: web_fetch, args: {url: "`+srv.URL+`/page"}}]
  - calls: [{tool: complete_task, args: {summary: done}}]
`)
	run := func(args ...string) string {
		out, _ := r.belay(append([]string{"run", "--json", "--script", "script.yaml", "look"}, args...)...)
		return out
	}
	expect := func(what, out string, want ...string) {
		t.Helper()
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("%s: there is no %s in\n%s", what, w, out)
			}
		}
	}
	expect("without an engine and a rule", run(), `UNKNOWN_TOOL`, `"rule":"builtin/ask-web"`, `"code":"DENIED"`)
	own("policy.yaml", "version: 1\nrules:\n  - {id: web, verdict: allow, when: {tool: 'group:web', taint: [none, any]}}\n")
	expect("this machine", run(), `"code":"ADDRESS_REFUSED"`)
	own("belay.yaml", "web-reach: loopback\nweb-search: searxng\nweb-search-url: "+srv.URL+"\n")
	expect("allowed", run(), `1. Found\n   `+srv.URL+`/page`, `"taint":["web:web_search"]`, `# Heading`, `"taint":["web:127.0.0.1"]`)
	own("policy.yaml", "version: 1\nrules: []\n")
	expect("the whole tools allowed", run("--allow", "group:web"), `1. Found`, `"rule":"builtin/tainted-egress"`)
}
