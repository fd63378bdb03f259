package server

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/read"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/builtin"
)

// ownCommands is how many rows of the table aren't the standard's.
const ownCommands = 51

// readModels are the rows of reads that are read models of the standard.
func readModels() []app.Read {
	return slices.DeleteFunc(builtin.Reads(), func(r app.Read) bool { return r.Of == "" })
}

// waiting for what: the commands whose subsystem isn't here yet. Whoever makes
// one work takes it out.
var notHere = map[string]string{
	"export_evidence": "evidence", "export_review": "evidence", "export_replay": "replay",
	"create_job": "jobs", "get_job": "jobs", "cancel_job": "jobs", "list_jobs": "jobs",
	"start_benchmark_trial": "benchmarks", "record_benchmark_reward": "benchmarks", "export_benchmark_trial": "benchmarks", "compare_benchmark_runs": "benchmarks",
}

// TestWhatIsUnavailableIsListed holds the list against what the server answers:
// in both directions.
// Guarantee: V10.
func TestWhatIsUnavailableIsListed(t *testing.T) {
	r := newRig(t, once)
	seen := map[string]bool{}
	for _, c := range builtin.Commands() {
		if seen[c.Name] {
			t.Errorf("%s is in the table twice", c.Name)
		}
		seen[c.Name] = true
		a := r.command(c.Name, r.token(auth.Owner, auth.DefaultTenant), "{}") // sign_out ends it
		refused := a.Code == belay.CodeUnavailable && a.status == http.StatusNotImplemented
		switch why, listed := notHere[c.Name]; {
		case listed && !refused:
			t.Errorf("%s is listed as unavailable and answers %d %s", c.Name, a.status, a.body)
		case !listed && refused:
			t.Errorf("%s is unavailable and not listed", c.Name)
		case listed && !strings.Contains(a.Detail, why):
			t.Errorf("%s waits for %q, and says %q", c.Name, why, a.Detail)
		}
	}
	for name := range notHere {
		if !seen[name] {
			t.Errorf("%s is listed and not in the table", name)
		}
	}
	if len(builtin.Commands())-ownCommands != 47 {
		t.Errorf("%d commands besides our own; the standard's contract and specification name 47", len(builtin.Commands())-ownCommands)
	}
}

// states are the ways in which a request can bring a token.
var states = []struct {
	name string
	good bool
	send func(r *rig, method, path, token, body string) answer
}{
	{"good", true, func(r *rig, m, p, token, body string) answer { return r.do(m, p, token, body) }},
	{"none", false, func(r *rig, m, p, _, body string) answer { return r.do(m, p, "", body) }},
	{"another", false, func(r *rig, m, p, token, body string) answer {
		return r.do(m, p, token[:len(token)-4]+"AAAA", body)
	}},
	{"in the query", false, func(r *rig, m, p, token, body string) answer {
		return r.do(m, p+"?access_token="+token+"&token="+token, "", body)
	}},
	{"in a cookie", false, func(r *rig, m, p, token, body string) answer {
		return r.do(m, p, "", body, "Cookie", "token="+token)
	}},
	{"as basic", false, func(r *rig, m, p, token, body string) answer {
		return r.do(m, p, "", body, "Authorization", "Basic "+token)
	}},
	{"twice", false, func(r *rig, m, p, token, body string) answer {
		return r.do(m, p, token, body, "Authorization", "Bearer "+token)
	}},
	{"with a space", false, func(r *rig, m, p, token, body string) answer {
		return r.do(m, p, "", body, "Authorization", "Bearer  "+token)
	}},
}

// target is something that needs a scope.
type target struct {
	method, path, body string
	scope              auth.Scope
}

// targets are all commands and routes that need a token.
func targets() []target {
	var out []target
	for _, c := range builtin.Commands() {
		out = append(out, target{"POST", "/v1/commands/" + c.Name, "{}", c.Scope})
	}
	for _, p := range slices.Concat(plainRoutes, endlessRoutes) {
		if p.open {
			continue
		}
		method, path, _ := strings.Cut(p.pattern, " ")
		x := target{method, strings.NewReplacer("{id}", "x", "{process}", "x", "{name...}", "").Replace(path), "", p.scope}
		if method == "POST" {
			x.body = "{}"
		}
		out = append(out, x)
	}
	for _, m := range builtin.Reads() {
		out = append(out, target{"GET", strings.ReplaceAll(m.Route(), "{id}", "x"), "", auth.Read})
	}
	for _, r := range (&read.Reads{}).Routes() {
		method, path, _ := strings.Cut(r.Pattern, " ")
		if strings.Contains(path, "{id}") { // the stream of everything has no end to wait for
			out = append(out, target{method, strings.ReplaceAll(path, "{id}", "x"), "", auth.Read})
		}
	}
	return out
}

// TestEveryCommandAndReadNeedsTheScope asks for everything with every role, in
// both tenants, with every kind of token.
// Guarantee: X8, V1, V2.
func TestEveryCommandAndReadNeedsTheScope(t *testing.T) {
	r := newRig(t, once, func(c *Config) { c.Rate = 1_000_000 })
	r.s.strangers = newRates(1_000_000, 1_000_000)
	asked := 0
	for _, tenant := range []string{auth.DefaultTenant, "other"} {
		for _, role := range auth.Roles {
			token := r.token(role, tenant)
			for _, x := range targets() {
				token := token
				if strings.HasSuffix(x.path, "/sign_out") { // it ends the token that asks
					token = r.token(role, tenant)
				}
				for _, state := range states {
					a := state.send(r, x.method, x.path, token, x.body)
					asked++
					for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'"} {
						if have := a.header.Get(name); have != want {
							t.Errorf("%s %s, token %s: %s is %q", x.method, x.path, state.name, name, have)
						}
					}
					want := "neither 401 nor 403"
					ok := a.status != http.StatusUnauthorized && a.status != http.StatusForbidden
					switch {
					case !state.good:
						want, ok = "401 unauthorized", a.status == http.StatusUnauthorized && a.Code == belay.CodeUnauthorized
					case !role.May(x.scope), x.scope == auth.Admin && tenant != auth.DefaultTenant:
						want, ok = "403 forbidden", a.status == http.StatusForbidden && a.Code == belay.CodeForbidden
					}
					if !ok {
						t.Errorf("%s %s as %s of %s, token %s: %d %s; want %s", x.method, x.path, role, tenant, state.name, a.status, a.Code, want)
					}
				}
			}
		}
	}
	if want := 2 * len(auth.Roles) * len(targets()) * len(states); asked != want || asked < 3000 {
		t.Errorf("%d questions, want %d", asked, want)
	}
}

// TestWhatRunsWithTheRightsOfTheProcessIsTheOwners: who only gives work has programs run
// within boundaries, after the gate.
func TestWhatRunsWithTheRightsOfTheProcessIsTheOwners(t *testing.T) {
	for _, name := range []string{"check_agent", "test_mcp_server", "trust_mcp_server", "login_mcp_server", "trust_file"} {
		if c := app.Find(builtin.Commands(), name); c == nil || auth.Operator.May(c.Scope) {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// Guarantee: V1.
func TestATokenThatWasGoodIsNotAnyMore(t *testing.T) {
	r := newRig(t, once)
	text, made, err := r.tokens.Create("", auth.Owner, auth.DefaultTenant, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if a := r.do("GET", "/v1/actions", text, ""); a.status != http.StatusOK {
		t.Fatalf("a good token: %d %s", a.status, a.body)
	}
	if _, err := r.tokens.Revoke(made.ID); err != nil {
		t.Fatal(err)
	}
	if a := r.do("GET", "/v1/actions", text, ""); a.status != http.StatusUnauthorized {
		t.Errorf("a revoked token: %d %s", a.status, a.body)
	}
	late, _, err := r.tokens.Create("", auth.Owner, auth.DefaultTenant, time.Now().Add(-time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if a := r.do("GET", "/v1/actions", late, ""); a.status != http.StatusUnauthorized {
		t.Errorf("an expired token: %d %s", a.status, a.body)
	}
}

// TestAStreamEndsWithItsToken: what was opened with a token that was good doesn't go on
// without one.
// Guarantee: V1.
func TestAStreamEndsWithItsToken(t *testing.T) {
	r := newRig(t, once)
	r.s.pace.beat = 10 * time.Millisecond
	text, made, err := r.tokens.Create("", auth.Viewer, auth.DefaultTenant, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, "GET", r.url+"/v1/stream?since=start", nil)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+text)
	a, err := r.client.Do(q)
	if err != nil || a.StatusCode != http.StatusOK {
		t.Fatalf("%v %v", a, err)
	}
	defer a.Body.Close()
	if _, err := r.tokens.Revoke(made.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, a.Body); err != nil {
		t.Errorf("it doesn't end: %v", err)
	}
}

// TestNoTenantSeesAnother gives each tenant a session and asks the other for it.
// Guarantee: V2.
func TestNoTenantSeesAnother(t *testing.T) {
	r := newRig(t, asks)
	mine, theirs := r.token(auth.Owner, auth.DefaultTenant), r.token(auth.Owner, "other")
	told := r.command("submit_turn", mine, `{"text":"go","sessionId":"s1","turnId":"t1"}`).told(t)
	r.until(mine, told.Run, "waiting")
	for _, x := range []struct{ name, body string }{
		{"get_session", `{"sessionId":"s1"}`}, {"get_thread_read", `{"sessionId":"s1"}`}, {"list_tasks", `{"sessionId":"s1"}`},
		{"get_task", fmt.Sprintf(`{"sessionId":"s1","taskId":%q}`, told.Task)}, {"interrupt_turn", `{"sessionId":"s1"}`},
		{"list_grants", `{"sessionId":"s1"}`}, {"evaluate_permission", `{"sessionId":"s1","tool":"todo"}`},
		{"get_execution_environment", `{"sessionId":"s1"}`}, {"cancel_task", fmt.Sprintf(`{"sessionId":"s1","taskId":%q}`, told.Task)},
	} {
		if a := r.command(x.name, theirs, x.body); a.status != http.StatusNotFound {
			t.Errorf("%s of another tenant's: %d %s", x.name, a.status, a.body)
		}
		if a := r.command(x.name, mine, x.body); a.status == http.StatusNotFound {
			t.Errorf("%s of the own: %d %s", x.name, a.status, a.body)
		}
	}
	if a := r.do("GET", "/v1/runs/"+string(told.Run), theirs, ""); a.status != http.StatusNotFound {
		t.Errorf("another tenant's run: %d %s", a.status, a.body)
	}
	if a := r.do("GET", "/v1/actions", theirs, ""); strings.Contains(string(a.body), "act_") {
		t.Errorf("another tenant's questions: %s", a.body)
	}
	// The same ids are free in the other tenant.
	if again := r.command("submit_turn", theirs, `{"text":"go","sessionId":"s1","turnId":"t1"}`).told(t); again.Repeated {
		t.Errorf("the turn is known in another tenant: %+v", again)
	}
}

// TestPagesOfOtherSitesAreRefused sends what a browser sends for a page that
// isn't this server's, with a good token.
// Guarantee: V3, V42.
func TestPagesOfOtherSitesAreRefused(t *testing.T) {
	r := newRig(t, once, func(c *Config) {
		c.Origins, c.Hosts = []string{"https://console.example.org"}, []string{"belay.example.org:443"}
	})
	token := r.token(auth.Owner, auth.DefaultTenant)
	own := strings.TrimPrefix(r.url, "http://")
	port := own[strings.LastIndex(own, ":"):]
	for _, c := range []struct {
		name   string
		header []string
		want   int
		code   belay.Code
	}{
		{"no page", nil, 200, ""},
		{"the own page", []string{"Origin", r.url, "Sec-Fetch-Site", "same-origin"}, 200, ""},
		{"the own page by name", []string{"Host", "localhost" + port, "Origin", "http://localhost" + port}, 200, ""},
		{"a page that is named", []string{"Origin", "https://console.example.org", "Sec-Fetch-Site", "cross-site"}, 200, ""},
		{"a host that is named", []string{"Host", "belay.example.org:443"}, 200, ""},
		{"typed in", []string{"Sec-Fetch-Site", "none"}, 200, ""},
		{"rebinding", []string{"Host", "attacker.example" + port}, 421, belay.CodeHost},
		{"rebinding, its own origin", []string{"Host", "attacker.example" + port, "Origin", "http://attacker.example" + port}, 421, belay.CodeHost},
		{"another port", []string{"Host", "127.0.0.1:1"}, 421, belay.CodeHost},
		{"the name as a prefix", []string{"Host", "localhost" + port + ".attacker.example"}, 421, belay.CodeHost},
		{"fetch of another site", []string{"Origin", "https://attacker.example", "Sec-Fetch-Site", "cross-site"}, 403, belay.CodeOrigin},
		{"fetch of another site, old browser", []string{"Origin", "https://attacker.example"}, 403, belay.CodeOrigin},
		{"a sandboxed frame", []string{"Origin", "null"}, 403, belay.CodeOrigin},
		{"another scheme", []string{"Origin", "https://" + own}, 403, belay.CodeOrigin},
		{"a named page as a prefix", []string{"Origin", "https://console.example.org.attacker.example"}, 403, belay.CodeOrigin},
		{"a tag, without origin", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, 403, belay.CodeOrigin},
		{"a neighbour", []string{"Sec-Fetch-Site", "same-site"}, 403, belay.CodeOrigin},
		{"a form", []string{"Content-Type", "", "Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin"}, 415, belay.CodeMedia},
		{"a form as text", []string{"Content-Type", "", "Content-Type", "text/plain"}, 415, belay.CodeMedia},
		{"a form with a file", []string{"Content-Type", "", "Content-Type", "multipart/form-data; boundary=x"}, 415, belay.CodeMedia},
	} {
		a := r.command("get_tool_inventory", token, "{}", c.header...)
		if a.status != c.want || a.Code != c.code {
			t.Errorf("%s: %d %s, want %d %s", c.name, a.status, a.body, c.want, c.code)
		}
		if slices.ContainsFunc([]string{"Access-Control-Allow-Origin", "Access-Control-Allow-Credentials", "Access-Control-Allow-Headers"}, func(h string) bool { return a.header.Get(h) != "" }) {
			t.Errorf("%s: a permissive header: %v", c.name, a.header)
		}
	}
	// What a page opens besides: a stream, and a connection of its own kind.
	for name, header := range map[string][]string{
		"a stream":    {"Accept", "text/event-stream"},
		"a WebSocket": {"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA=="},
	} {
		for _, path := range []string{"/v1/stream", "/v1/sessions/s1/stream", "/v1/runs/r1/stream", "/v1/actions"} {
			if a := r.do("GET", path, token, "", append(header, "Origin", "https://attacker.example")...); a.status != http.StatusForbidden || a.Code != belay.CodeOrigin {
				t.Errorf("%s of another site, %s: %d %s", name, path, a.status, a.body)
			}
			if a := r.do("GET", path, token, "", append(header, "Host", "attacker.example"+port)...); a.status != http.StatusMisdirectedRequest {
				t.Errorf("%s after a rebinding, %s: %d %s", name, path, a.status, a.body)
			}
		}
	}
	for _, path := range []string{"/v1/commands/get_session", "/v1/runs", "/v1/actions"} { // what a browser asks before a fetch
		if a := r.do("OPTIONS", path, "", "", "Origin", "https://attacker.example", "Access-Control-Request-Method", "POST"); a.status < 400 || a.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("a preflight of %s: %d %v", path, a.status, a.header)
		}
	}
}
