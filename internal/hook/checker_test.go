//go:build unix

package hook_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/hook"
	"github.com/belay-run/belay/internal/lib/netdial"
	"github.com/belay-run/belay/internal/policy"
)

// Guarantee: G26.
func TestProgramsAnswer(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mine"), []byte("#!/bin/sh\necho '{\"decision\":\"ask\"}'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	r := &hook.Runner{}
	for _, c := range []struct {
		argv []string
		tier policy.Tier
		want string // the answer, or a part of the error
	}{
		{[]string{"/bin/sh", "-c", `grep -q '"tool":"x"' && echo '{"decision":"deny","reason":"no x"}'`}, policy.TierUser, "deny no x"},
		{[]string{"sh", "-c", `echo '{"decision":"allow","code":"FINE"}'`}, policy.TierUser, "allow FINE"},
		{[]string{"./mine"}, policy.TierWorkspace, "ask"},
		{[]string{"./mine"}, policy.TierUser, "neither an absolute path nor a name"},
		{[]string{"../mine"}, policy.TierWorkspace, "neither an absolute path nor a name"},
		{[]string{"no-such-program-here"}, policy.TierUser, "not found"},
		{[]string{"sh", "-c", "exit 3"}, policy.TierUser, "exit 3"},
		{[]string{"sh", "-c", "echo yes"}, policy.TierUser, "isn't the JSON"},
		{[]string{"sh", "-c", `echo '{"decision":"maybe"}'`}, policy.TierUser, "none of allow"},
		{[]string{"sh", "-c", `echo '{"decision":"allow","approved":true}'`}, policy.TierUser, "unknown field"},
		{[]string{"sh", "-c", `echo '{"decision":"allow"}{"decision":"deny"}'`}, policy.TierUser, "more follows"},
		{[]string{"sh", "-c", "head -c 100000 /dev/zero"}, policy.TierUser, "more than"},
		{[]string{"sh", "-c", "sleep 100"}, policy.TierUser, "no answer within 300ms"},
	} {
		got, err := r.Ask(t.Context(), policy.Checker{ID: "c", Kind: "process", Tier: c.tier, Argv: c.argv, Timeout: belay.Duration(300 * time.Millisecond)}, dir, []byte(`{"tool":"x"}`))
		said := strings.TrimSpace(fmt.Sprint(got.Decision, " ", got.Reason, got.Code))
		if err != nil {
			said = err.Error()
		}
		if !strings.Contains(said, c.want) {
			t.Errorf("%q: got %q, want %q", c.argv, said, c.want)
		}
	}
}

// Guarantee: G26.
func TestServersAnswer(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		switch q.URL.Path {
		case "/ok":
			if string(body) == `{"tool":"x"}` && q.Header.Get("Content-Type") == "application/json" {
				fmt.Fprint(w, `{"decision":"ask","reason":"look"}`)
			}
		case "/moved":
			http.Redirect(w, q, "/ok", http.StatusFound)
		case "/long":
			fmt.Fprint(w, strings.Repeat(" ", policy.MaxAnswer+1))
		case "/never":
			<-q.Context().Done()
		default:
			http.Error(w, "no", http.StatusInternalServerError)
		}
	}))
	defer srv.Close()
	ask := func(client *http.Client, url string) string {
		r := &hook.Runner{Client: client}
		got, err := r.Ask(t.Context(), policy.Checker{ID: "c", Kind: "http", URL: url, Timeout: belay.Duration(500 * time.Millisecond)}, "/", []byte(`{"tool":"x"}`))
		if err != nil {
			return err.Error()
		}
		return string(got.Decision) + " " + got.Reason
	}
	local := netdial.Client(netdial.Rules{Loopback: true})
	defer local.CloseIdleConnections()
	for path, want := range map[string]string{"/ok": "ask look", "/moved": "status 302", "/long": "more than", "/never": "no answer within", "/x": "status 500"} {
		if got := ask(local, srv.URL+path); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	if got := ask(netdial.Client(netdial.Rules{}), srv.URL+"/ok"); !strings.Contains(got, "can't be reached") {
		t.Errorf("this machine is reached without leave: %q", got)
	}
}
