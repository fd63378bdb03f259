package server

import (
	"net/http"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/auth"
)

func withPage(c *Config) {
	c.Console = fstest.MapFS{"index.html": {Data: []byte("<!doctype html><title>the page</title>")}, "app.js": {Data: []byte("1")}}
}

// TestThePageNeedsNoTokenAndHasNoData looks at every address of the page and every file,
// and at what lies beside them.
// Guarantee: V46.
func TestThePageNeedsNoTokenAndHasNoData(t *testing.T) {
	r := newRig(t, once, withPage)
	all := map[string]string{"/app.js": "text/javascript; charset=utf-8"}
	for _, p := range pages {
		all[strings.NewReplacer("{$}", "", "{id}", "x_1").Replace(p)] = "text/html; charset=utf-8"
	}
	for path, kind := range all {
		a := r.do("GET", path, "", "")
		if a.status != http.StatusOK || a.header.Get("Content-Type") != kind {
			t.Errorf("%s: %d %v", path, a.status, a.header)
		}
		for name, want := range map[string]string{"Content-Security-Policy": pagePolicy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-cache", "Cross-Origin-Resource-Policy": "same-origin"} {
			if a.header.Get(name) != want {
				t.Errorf("%s: %s is %q", path, name, a.header.Get(name))
			}
		}
		if a := r.do("GET", path, "", "", "If-None-Match", a.header.Get("ETag")); a.status != http.StatusNotModified || len(a.body) != 0 {
			t.Errorf("%s, for one who has it: %d %s", path, a.status, a.body)
		}
		if a := r.do("POST", path, "", "{}"); a.status != http.StatusMethodNotAllowed && a.status != http.StatusUnauthorized {
			t.Errorf("POST %s: %d %s", path, a.status, a.body)
		}
	}
	for _, path := range []string{"/v1/sessions", "/v1/caller", "/metrics", "/sessions/a/b", "/nothing", "/index.htm", "/../go.mod", "/v1/content/%2e%2e%2f%2e%2e%2fsessions", "/v1/sessions/x%2f..%2f..%2f..%2fapprovals", "/v1/x%2f..%2f..%2fapp.js"} {
		if a := r.do("GET", path, "", ""); a.status != http.StatusUnauthorized || a.header.Get("Content-Security-Policy") == pagePolicy || a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s without a token: %d %v", path, a.status, a.header)
		}
	}
	without := newRig(t, once)
	if a := without.do("GET", "/", "", ""); a.status != http.StatusUnauthorized {
		t.Errorf("a server without the page: %d %s", a.status, a.body)
	}
}

// TestALinkLeadsToThePageFromAnywhere: following a link is let in where there is no data,
// and nothing else is that another site sends.
// Guarantee: V46, V3.
func TestALinkLeadsToThePageFromAnywhere(t *testing.T) {
	r := newRig(t, once, withPage)
	token := r.token(auth.Owner, auth.DefaultTenant)
	link := []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}
	if a := r.do("GET", "/approvals/act_1", "", "", link...); a.status != http.StatusOK {
		t.Errorf("a followed link: %d %s", a.status, a.body)
	}
	for name, x := range map[string]struct {
		path   string
		header []string
	}{
		"a frame":            {"/", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}},
		"a script":           {"/app.js", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "script"}},
		"a fetch":            {"/", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty"}},
		"a link to data":     {"/v1/sessions", link},
		"another origin":     {"/", append([]string{"Origin", "https://attacker.example"}, link...)},
		"a link to the door": {"/v1/login", link},
	} {
		if a := r.do("GET", x.path, token, "", x.header...); a.status != http.StatusForbidden || a.Code != belay.CodeOrigin {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
}

// TestACodeIsTradedForAToken, for one that says who it is and ends itself.
// Guarantee: V45.
func TestACodeIsTradedForAToken(t *testing.T) {
	r := newRig(t, once)
	code, _, err := r.tokens.CreateCode("console on desk", auth.Viewer)
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string]string{"wrong": `{"code":"` + strings.Repeat("A", 22) + `"}`, "none": `{}`, "more": `{"code":"x","role":"owner"}`} {
		if a := r.do("POST", "/v1/login", "", body); a.status < 400 || a.status >= 500 {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	a := r.do("POST", "/v1/login", "", `{"code":"`+code+`"}`)
	_, rest, _ := strings.Cut(string(a.body), `"token":"`)
	token, _, _ := strings.Cut(rest, `"`)
	if a.status != http.StatusOK || !strings.HasPrefix(token, "belay_") || a.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if a := r.do("POST", "/v1/login", "", `{"code":"`+code+`"}`); a.status != http.StatusUnauthorized {
		t.Errorf("again: %d %s", a.status, a.body)
	}
	if a := r.do("GET", "/v1/caller", token, ""); !strings.Contains(string(a.body), `"name":"console on desk","role":"viewer","tenant":"default","scopes":["read"]`) {
		t.Errorf("who asks: %s", a.body)
	}
	if a := r.command("sign_out", token, "{}"); a.status != http.StatusOK {
		t.Errorf("signing out: %d %s", a.status, a.body)
	}
	if a := r.do("GET", "/v1/caller", token, ""); a.status != http.StatusUnauthorized {
		t.Errorf("the token counts yet: %d %s", a.status, a.body)
	}
}

// TestCodesCantBeTriedOften: they are as strangers are.
// Guarantee: V45.
func TestCodesCantBeTriedOften(t *testing.T) {
	r := newRig(t, once)
	r.s.strangers = newRates(1, 5)
	last := 0
	for range 8 {
		last = r.do("POST", "/v1/login", "", `{"code":"AAAAAAAAAAAAAAAAAAAAAA"}`).status
	}
	if last != http.StatusTooManyRequests {
		t.Errorf("the eighth try: %d", last)
	}
}
