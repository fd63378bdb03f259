package cli

import (
	"net/http/httptest"
	"regexp"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/config/manifest"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/modeltest"
	"github.com/belay-run/belay/internal/testkit/modelserver"
)

// TestATrialSaysWhatWorks: over every protocol, and for each thing that may not.
func TestATrialSaysWhatWorks(t *testing.T) {
	works := modeltest.Scene{Text: "I am there, and I say it in pieces.", Parts: 5, Stop: "tool_calls", Usage: &belay.Usage{Input: 40, Output: 12},
		Calls: []model.Call{{ID: "call_1", Name: "report", Args: `{"word":"belay"}`}}}
	for name, c := range map[string]struct {
		scene func(s *modelserver.Scene)
		exit  int
		want  []string
	}{
		"all": {func(*modelserver.Scene) {}, 0, []string{
			`^ok +provider +\S+ http://127\S+, model m$`, `^ok +reachable +its answer began after \d+ ms$`, `^ok +key `,
			`^ok +streaming +[2-9] pieces of text in \d+(\.\d)? m?s$`, `^ok +tools +it called the tool`, `^ok +usage +40 tokens read, 12 written$`}},
		"no tools": {func(s *modelserver.Scene) { s.Calls, s.Stop = nil, "stop" }, 1, []string{
			`^ok +streaming `, `^failed +tools +it answered without calling the tool$`, `try: name a model that calls tools`}},
		"another call": {func(s *modelserver.Scene) { s.Calls = []model.Call{{ID: "c", Name: "report", Args: `{"word":"else"}`}} }, 1, []string{
			`^failed +tools +it called report \{"word": ?"else"\} instead of report`}},
		"no usage": {func(s *modelserver.Scene) { s.Usage = nil }, 0, []string{`^ok +tools `, `^note +usage +it reports no tokens`}},
		"no key": {func(s *modelserver.Scene) { s.Fault = modelserver.Fault{Status: 401, Class: "auth"} }, 1, []string{
			`^ok +reachable +it answers$`, `^failed +key +auth: \S+: 401 it failed$`, `try: set another \w+_API_KEY, or unset it and belay login `}},
		"no such model": {func(s *modelserver.Scene) { s.Fault = modelserver.Fault{Status: 404, Class: "bad_request"} }, 1, []string{
			`^failed +request +bad_request: \S+: 404 it failed$`, `try: check --model and --base-url`}},
		"a page": {func(s *modelserver.Scene) {
			s.Fault = modelserver.Fault{Status: 200, Body: "<html>Welcome", Header: map[string]string{"Content-Type": "text/html"}}
		}, 1, []string{`^failed +request +.*text/html.*<html>Welcome`}},
		"too many": {func(s *modelserver.Scene) { s.Fault = modelserver.Fault{Status: 429, Class: "rate_limited"} }, 1, []string{`^failed +limits `, `try: wait`}},
		"cut off":  {func(s *modelserver.Scene) { s.Cut, s.Calls = true, nil }, 1, []string{`^failed +reachable +transient: `}},
	} {
		for _, p := range config.Protocols() {
			t.Run(name+"/"+p, func(t *testing.T) {
				t.Parallel()
				s := modelserver.Scene{Scene: works}
				c.scene(&s)
				far := modelserver.New(func(modelserver.Asked) modelserver.Scene { return s })
				srv := httptest.NewServer(far)
				defer srv.Close()
				v := config.ServiceOf(manifest.Provider{Name: p})
				out, _ := runHere(t, c.exit, []string{v.Keys[0] + "=sk-tester"}, "models", "test", "--provider", p, "--base-url", srv.URL+"/v1", "--model", "m")
				for _, want := range c.want {
					if !regexp.MustCompile("(?m)" + want).MatchString(out) {
						t.Errorf("nothing like %s in\n%s", want, out)
					}
				}
				if n := len(far.Heard()); n != 1 {
					t.Errorf("%d requests, want 1", n)
				}
			})
		}
	}
}

func TestATrialOfAServerThatIsDown(t *testing.T) {
	srv := httptest.NewServer(nil)
	srv.Close()
	out, _ := runHere(t, 1, nil, "--json", "models", "test", "--provider", "ollama", "--base-url", srv.URL+"/v1", "--model", "m")
	if !regexp.MustCompile(`(?m)^\{"name":"reachable","state":"failed","what":"transient: ollama: .*refused","try":"check --base-url and the network`).MatchString(out) {
		t.Errorf("printed:\n%s", out)
	}
	if out, _ = runHere(t, 2, nil, "models", "test", "--provider", "ollama"); out != "" {
		t.Errorf("without a model: %s", out)
	}
}
