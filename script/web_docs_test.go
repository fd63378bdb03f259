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

// TestAModelsVendorSearchesTheWeb within an answer where the rules allow it whatever it is
// asked: what was found is recorded, shown, goes back to the vendor and taints the
// conversation. Where a person would be asked, and to another kind of server, it isn't offered.
func TestAModelsVendorSearchesTheWeb(t *testing.T) {
	var bodies []string
	say := func(w io.Writer, events ...string) {
		for _, e := range events {
			fmt.Fprintf(w, "data: %s\n\n", e)
		}
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		bodies = append(bodies, string(b))
		w.Header().Set("Content-Type", "text/event-stream")
		if strings.HasSuffix(r.URL.Path, "/chat/completions") {
			say(w, `{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"complete_task","arguments":"{\"summary\":\"done\"}"}}]},"finish_reason":"tool_calls"}]}`, "[DONE]")
			return
		}
		if strings.Contains(string(b), `"type":"web_search_20250305"`) && !strings.Contains(string(b), "srvtoolu_1") {
			say(w, `{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"high tide"}}}`, `{"type":"content_block_stop","index":0}`,
				`{"type":"content_block_start","index":1,"content_block":{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://tide.example/1","title":"Tides","encrypted_content":"EqgfCi=="}]}}`, `{"type":"content_block_stop","index":1}`,
				`{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_1","name":"list","input":{}}}`, `{"type":"content_block_stop","index":2}`)
		} else {
			say(w, `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_2","name":"complete_task","input":{"summary":"done"}}}`, `{"type":"content_block_stop","index":0}`)
		}
		say(w, `{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"input_tokens":9,"output_tokens":4}}`, `{"type":"message_stop"}`)
	}))
	defer srv.Close()
	r := newDocsRun(t)
	r.env = append(r.env, "ANTHROPIC_API_KEY=key-of-the-vendor-1", "ANTHROPIC_BASE_URL="+srv.URL)
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
	own("belay.yaml", "web-search: native\nproviders: {mine: {protocol: openai-chat, base-url: "+srv.URL+"/v1}}\n")
	run := func(args ...string) (string, string) {
		bodies = nil
		out, exit := r.belay(append([]string{"run", "when is high tide?"}, args...)...)
		if exit != 0 || len(bodies) == 0 {
			t.Fatalf("exit %d after %d requests: %s", exit, len(bodies), out)
		}
		return out, bodies[len(bodies)-1]
	}
	claude := []string{"--provider", "anthropic", "--model", "claude-opus-5-5"}
	if _, sent := run(claude...); strings.Contains(sent, "web_search") {
		t.Errorf("a person would be asked, and it is offered: %s", sent)
	}
	own("policy.yaml", "version: 1\nrules:\n  - {id: search, verdict: allow, when: {tool: web_search, taint: [none, any]}}\n")
	if _, sent := run("--provider", "mine", "--model", "m"); strings.Contains(sent, "web_search") {
		t.Errorf("offered to a server that doesn't do it: %s", sent)
	}
	out, sent := run(claude...)
	if want := `searched the web for "high tide": 1 page`; !strings.Contains(out, want) {
		t.Errorf("there is no %s in\n%s", want, out)
	}
	if want := `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"high tide"}},{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1"`; !strings.Contains(sent, want) {
		t.Errorf("there is no %s in\n%s", want, sent)
	}
	events, _ := r.belay("events", "--json")
	for _, want := range []string{`"search":"user/search"`, `"searches":[{"query":"high tide","found":1,"pages":{"text":"https://tide.example/1 Tides"`, `"taint":["web:web_search"]`} {
		if !strings.Contains(events, want) {
			t.Errorf("there is no %s in\n%s", want, events)
		}
	}
	step, _, _ := strings.Cut(events, `"searches":`)
	_, step, _ = strings.Cut(step[max(0, strings.LastIndex(step, `"stepId":"`)):], `:"`)
	step, _, _ = strings.Cut(step, `"`)
	if why, _ := r.belay("why", step); !strings.Contains(why, "Its vendor "+`searched the web for "high tide": 1 page. That was allowed by user/search.`) {
		t.Errorf("why %s: %s", step, why)
	}
	if called, exit := r.belay("tool", "call", "web_search", `{"query":"x"}`); exit == 0 || !strings.Contains(called, "SEARCH_NATIVE") {
		t.Errorf("called, exit %d: %s", exit, called)
	}
}
