package providers

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay/internal/config"
)

// TestServersOfThisMachineAreFound: those that list their models, and of an address
// elsewhere nothing is asked.
func TestServersOfThisMachineAreFound(t *testing.T) {
	answer := `{"data":[{"id":"bad name; rm"},{"id":"qwen3:8b"},{"id":"llama3.3"}]}`
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/models" {
			w.WriteHeader(http.StatusNotFound)
		}
		fmt.Fprint(w, answer)
	}))
	defer srv.Close()
	ollama := func(host string) (found []config.Candidate) {
		m := &Providers{Env: config.Env{Vars: []string{"OLLAMA_HOST=" + host}}, Now: time.Now}
		for _, c := range m.Local(t.Context()) {
			if c.Name == "ollama" {
				found = append(found, c)
			}
		}
		return found
	}
	here := strings.TrimPrefix(srv.URL, "http://")
	got := ollama(here)
	for range 100 { // a machine that is busy may need longer than the look takes
		if len(got) == 0 {
			got = ollama(here)
		}
	}
	if len(got) != 1 || got[0].Model != "qwen3:8b" || got[0].Try != "belay run --provider ollama --model qwen3:8b TEXT" || got[0].What != "ollama: it answers at http://"+here+"/v1 and has qwen3:8b and 1 more" {
		t.Errorf("found %+v", got)
	}
	for _, s := range (config.Env{Vars: []string{"OLLAMA_HOST=models.example.org"}}).LocalServers() {
		if s.Name == "ollama" {
			t.Errorf("%s isn't on this machine", s.Base)
		}
	}
	for _, text := range []string{`{"data":[]}`, `hello`, `{"data":[{"id":"a b"}]}`} {
		if answer = text; len(ollama(here)) > 0 {
			t.Errorf("%s: taken for a server of models", text)
		}
	}
}
