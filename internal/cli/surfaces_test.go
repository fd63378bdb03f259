package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/cli/command"
	"github.com/belay-run/belay/internal/cli/serve"
	"github.com/belay-run/belay/internal/cli/term"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/modeltest"
	"github.com/belay-run/belay/internal/testkit/modelserver"
	"github.com/belay-run/belay/internal/testkit/secrets"
)

// shower is a model that says a text, and has each kind of tool print it.
func shower(text, page string) func(modelserver.Asked) modelserver.Scene {
	args := func(v any) string { b, _ := json.Marshal(v); return string(b) }
	return func(a modelserver.Asked) modelserver.Scene {
		s := modeltest.Scene{Text: "I say " + text, Parts: 60, Stop: "tool_calls"}
		if a.Results == 0 {
			s.Calls = []model.Call{
				{ID: "call_1", Name: "read", Args: args(map[string]string{"path": "planted.txt"})},
				{ID: "call_2", Name: "exec", Args: args(map[string]string{"command": "cat planted.txt"})},
				{ID: "call_3", Name: "show_planted", Args: "{}"},
				{ID: "call_4", Name: "exec", Args: args(map[string]string{"command": "cat planted.txt >&2; exit 3"})},
				{ID: "call_5", Name: "web_fetch", Args: args(map[string]string{"url": page})},
			}
		} else {
			s.Calls = []model.Call{{ID: "call_9", Name: "complete_task", Args: args(map[string]string{"summary": "Done."})}}
		}
		return modelserver.Scene{Scene: s}
	}
}

// show has a text told, printed and fetched in every way, at the terminal and by a
// server, and returns the results of the calls, as the model read them.
func (x *planting) show(text string) map[string]string {
	x.t.Helper()
	pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		io.WriteString(w, text) //nolint:errcheck // who reads it notices
	}))
	defer pages.Close()
	var mu sync.Mutex
	results := map[string]string{}
	answer := shower(text, pages.URL)
	far := httptest.NewServer(modelserver.New(func(a modelserver.Asked) modelserver.Scene {
		mu.Lock()
		defer mu.Unlock()
		if a.Results > 0 {
			for i, text := range a.Texts[len(a.Texts)-a.Results:] {
				results[fmt.Sprint("call_", i+1)] = text
			}
			results["prompt"] = a.Texts[0]
		}
		return answer(a)
	}))
	defer far.Close()
	x.configure(far.URL + "/v1")
	dir := filepath.Join(x.home, ".config", "belay")
	settings, err := os.ReadFile(filepath.Join(dir, "belay.yaml"))
	for name, content := range map[string]string{
		filepath.Join(dir, "belay.yaml"):         "web-reach: loopback\n" + string(settings),
		filepath.Join(dir, "tools", "show.yaml"): "name: show_planted\ndescription: Shows it.\nargv: [cat, planted.txt]\nread_only: true\neffect: pure\n",
		filepath.Join(x.ws, "planted.txt"):       text,
		filepath.Join(dir, "policy.yaml"):        "version: 1\nrules:\n  - {id: all, verdict: allow, when: {tool: [exec, show_planted, web_fetch], taint: [none, any]}}\n",
	} {
		if err == nil {
			err = os.MkdirAll(filepath.Dir(name), 0o700)
		}
		if err == nil {
			err = os.WriteFile(name, []byte(content), 0o600)
		}
	}
	if err != nil {
		x.t.Fatal(err)
	}
	x.run(0, "run", "--provider", "work", "look at "+text)
	x.serve(text)
	return results
}

// serve has a server do the same, and keeps what its stream and its log say.
func (x *planting) serve(text string) {
	x.t.Helper()
	ctx, stop := context.WithTimeout(x.t.Context(), 3*time.Minute)
	in, out := io.Pipe()
	var log bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- Main(ctx, []string{"--store", x.store, "--json", "serve", "--listen", "127.0.0.1:0"},
			command.Sys{Env: term.Env{In: strings.NewReader(""), Out: out, Err: &log, Environ: x.env}, Dir: x.ws})
		out.Close()
	}()
	defer func() {
		stop()
		<-ended
		x.shown.Write(log.Bytes())
	}()
	var at serve.Served
	if err := json.NewDecoder(in).Decode(&at); err != nil {
		x.t.Fatalf("%v; it says %s", err, &log)
	}
	go io.Copy(io.Discard, in) //nolint:errcheck // it ends with the server
	ask := func(method, path, body string) []byte {
		r, err := http.NewRequestWithContext(ctx, method, at.URL+path, strings.NewReader(body))
		if err != nil {
			x.t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+at.Token)
		r.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			x.t.Fatal(err)
		}
		defer answer.Body.Close()
		b, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK {
			x.t.Fatalf("%s: %d %v %.300s", path, answer.StatusCode, err, b)
		}
		return b
	}
	body, _ := json.Marshal(map[string]any{"text": "look at " + text, "settings": map[string]string{"provider": "work"}})
	var told app.Result
	if err := json.Unmarshal(ask("POST", "/v1/commands/submit_turn", string(body)), &told); err != nil {
		x.t.Fatal(err)
	}
	stream := ask("GET", "/v1/runs/"+string(told.Run)+"/stream", "")
	for _, want := range []string{"event: tool.result\n", "event: turn.completed\n"} { // text flows only while it comes
		if !bytes.Contains(stream, []byte(want)) {
			x.t.Errorf("the stream has no %q", want)
		}
	}
	x.shown.Write(stream)
}

// TestSecretsPassNoSurface: what nobody registered is hidden in a prompt, an answer, a
// file that is read, what programs and declared tools print, a page, errors, exports, a
// server's stream and its log, at the beginning, in the middle and at the end of a line.
// Guarantee: X22.
func TestSecretsPassNoSurface(t *testing.T) {
	t.Parallel()
	x := newPlanted(t, "openai-chat")
	var text strings.Builder
	for _, c := range secrets.All() {
		fmt.Fprintf(&text, "%s\nbefore %s after\n+%s\n%s\n", c.Text, c.Text, c.Text, visible)
	}
	results := x.show(text.String())
	if len(results) != 6 {
		t.Fatalf("%d results", len(results))
	}
	pieces := leaked()
	for name, result := range results {
		if !strings.Contains(result, visible) {
			t.Errorf("%s doesn't hold what was planted beside the secrets: %.300q", name, result)
		}
		x.look(name, []byte(result), pieces)
	}
	x.tellAll()
	x.search()
}

// TestLookalikesPassEverySurface: what only looks like a secret is read as it is.
// Guarantee: X22.
func TestLookalikesPassEverySurface(t *testing.T) {
	t.Parallel()
	x := newPlanted(t, "openai-chat")
	all := secrets.Lookalikes()
	var text strings.Builder
	for _, l := range all {
		fmt.Fprintf(&text, "%s\nbefore %s after\n", l, l)
	}
	for name, result := range x.show(text.String()) {
		touched := 0
		for _, l := range all {
			for _, want := range []string{l, "before " + l + " after"} {
				if name == "call_1" { // read numbers the lines
					want, _, _ = strings.Cut(want, "\n")
				}
				if !strings.Contains(result, want) {
					touched++
					t.Logf("%s: %.100q", name, want)
				}
			}
		}
		if touched > 2 || len(all) < 80 {
			t.Errorf("%s: %d of %d look-alikes are touched: %.500q", name, touched, len(all), result)
		}
	}
}
