package script

import (
	"bufio"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/belay-run/belay/internal/cli"
	"github.com/belay-run/belay/internal/cli/term"
)

// issuer is an authorization server with an MCP server that trusts it. Its switches say
// how it is wrong.
type issuer struct {
	t        *testing.T
	own, mcp *httptest.Server

	mu         sync.Mutex
	noClients  bool   // it registers none
	state, iss string // it sends back instead of the right ones
	noRenewal  bool   // it refuses to renew a token
	short      bool   // tokens expire at once
	revokes    bool   // the server takes back the token of each first call
	more       string // a scope that calls want
	n          int
	redirects  map[string]string // of clients
	codes      map[string]url.Values
	live       map[string]string // access tokens that count, with their scopes
	renewals   []string          // refresh tokens that count
	issued     []string          // all secrets that were given out
	renewed    int
}

func newIssuer(t *testing.T) *issuer {
	i := &issuer{t: t, redirects: map[string]string{}, codes: map[string]url.Values{}, live: map[string]string{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		i.json(w, 200, map[string]any{"issuer": i.own.URL, "authorization_endpoint": i.own.URL + "/authorize", "token_endpoint": i.own.URL + "/token", "registration_endpoint": i.own.URL + "/register",
			"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"}, "authorization_response_iss_parameter_supported": true})
	})
	mux.HandleFunc("POST /register", i.register)
	mux.HandleFunc("GET /authorize", i.authorize)
	mux.HandleFunc("POST /token", i.token)
	i.own = httptest.NewServer(mux)
	served := http.NewServeMux()
	served.HandleFunc("GET /.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, _ *http.Request) {
		i.json(w, 200, map[string]any{"resource": i.mcp.URL + "/mcp", "authorization_servers": []string{i.own.URL}, "scopes_supported": []string{"read"}})
	})
	served.Handle("/mcp", i.guard(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return goodServer("well") }, nil)))
	i.mcp = httptest.NewServer(served)
	t.Cleanup(func() {
		i.mcp.CloseClientConnections()
		i.mcp.Close()
		i.own.Close()
	})
	return i
}

func (i *issuer) json(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(v); err != nil {
		i.t.Error(err)
	}
}

func (i *issuer) register(w http.ResponseWriter, r *http.Request) {
	var c struct {
		Redirects []string `json:"redirect_uris"`
	}
	if err := json.NewDecoder(r.Body).Decode(&c); err != nil || len(c.Redirects) != 1 {
		i.t.Errorf("registers %v: %v", c, err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.noClients {
		i.json(w, 403, map[string]string{"error": "access_denied", "secret": "never-shown-to-anyone"})
		return
	}
	i.n++
	id := fmt.Sprint("client-", i.n)
	i.redirects[id] = c.Redirects[0]
	i.json(w, 201, map[string]any{"client_id": id, "redirect_uris": c.Redirects, "token_endpoint_auth_method": "none"})
}

func (i *issuer) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.redirects[q.Get("client_id")] != q.Get("redirect_uri") || q.Get("code_challenge_method") != "S256" || q.Get("resource") != i.mcp.URL+"/mcp" {
		http.Error(w, "bad request", 400)
		return
	}
	i.n++
	code := fmt.Sprint("code-", i.n)
	i.codes[code] = q
	back := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {i.own.URL}}
	if i.state != "" {
		back.Set("state", i.state)
	}
	if i.iss != "" {
		back.Set("iss", i.iss)
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (i *issuer) token(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		i.t.Error(err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	scopes := "read"
	switch r.Form.Get("grant_type") {
	case "authorization_code":
		asked := i.codes[r.Form.Get("code")]
		delete(i.codes, r.Form.Get("code"))
		sum := sha256.Sum256([]byte(r.Form.Get("code_verifier")))
		if asked == nil || base64.RawURLEncoding.EncodeToString(sum[:]) != asked.Get("code_challenge") {
			i.json(w, 400, map[string]string{"error": "invalid_grant"})
			return
		}
		scopes = asked.Get("scope")
	case "refresh_token":
		at := slices.Index(i.renewals, r.Form.Get("refresh_token"))
		if at < 0 || i.noRenewal {
			i.json(w, 400, map[string]string{"error": "invalid_grant", "error_description": "it was taken back"})
			return
		}
		i.renewals = slices.Delete(i.renewals, at, at+1) // each counts once
		i.renewed++
	}
	i.n++
	access, renewal := fmt.Sprintf("access-token-number-%d", i.n), fmt.Sprintf("renewal-token-number-%d", i.n)
	i.live[access], i.renewals, i.issued = scopes, append(i.renewals, renewal), append(i.issued, access, renewal)
	seconds := 3600
	if i.short {
		seconds, i.short = 1, false
	}
	i.json(w, 200, map[string]any{"access_token": access, "refresh_token": renewal, "token_type": "Bearer", "expires_in": seconds})
}

// guard lets those in who have a token.
func (i *issuer) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		body, err := io.ReadAll(r.Body)
		if err != nil {
			i.t.Log(err) // the client has gone
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		call := strings.Contains(string(body), `"tools/call"`)
		i.mu.Lock()
		scopes, ok := i.live[token]
		lacks := call && i.more != "" && !slices.Contains(strings.Fields(scopes), i.more)
		if ok && call && i.revokes {
			i.revokes = false
			delete(i.live, token)
		}
		i.mu.Unlock()
		challenge := fmt.Sprintf("Bearer resource_metadata=%q", i.mcp.URL+"/.well-known/oauth-protected-resource/mcp")
		switch {
		case !ok:
			w.Header().Set("WWW-Authenticate", challenge)
			w.WriteHeader(http.StatusUnauthorized)
		case lacks:
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`%s, error="insufficient_scope", scope="read %s $(rm)"`, challenge, i.more))
			w.WriteHeader(http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// loginRun is a project with the server of an issuer.
type loginRun struct {
	*docsRun
	i *issuer
}

func newLoginRun(t *testing.T) *loginRun {
	r := &loginRun{newDocsRun(t), newIssuer(t)}
	if err := os.MkdirAll(r.config(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.config(), "belay.yaml"), []byte("mcp-servers:\n  docs: {url: "+r.i.mcp.URL+"/mcp}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.write("calls.yaml", `steps:
  - calls: [{tool: mcp__docs__echo, args: {text: one}}, {tool: mcp__docs__echo, args: {text: two}}]
  - calls: [{tool: complete_task, args: {summary: "the turn went on"}}]
`)
	return r
}

func (r *loginRun) config() string { return filepath.Join(filepath.Dir(r.dir), "config", "belay") }

// login logs in. come gets the address, and where a pasted line goes.
func (r *loginRun) login(come func(address string, paste io.Writer), args ...string) (string, int) {
	r.t.Helper()
	in, paste := io.Pipe()
	read, errs := io.Pipe()
	var out strings.Builder
	said := make(chan string)
	go func() {
		var all strings.Builder
		for lines := bufio.NewScanner(read); lines.Scan(); {
			all.WriteString(lines.Text() + "\n")
			if strings.Contains(lines.Text(), "/authorize?") {
				go come(lines.Text(), paste)
			}
		}
		said <- all.String()
	}()
	exit := cli.Main(r.t.Context(), append([]string{"mcp", "login", "docs", "--no-browser"}, args...), cli.Sys{Env: term.Env{In: in, Out: &out, Err: errs, Environ: r.env}, Dir: r.dir})
	errs.Close()
	in.Close()
	return out.String() + <-said, exit
}

// browser goes where the issuer sends it, as far as this machine.
func (r *loginRun) browser(address string, _ io.Writer) {
	a, err := http.Get(address)
	if err != nil {
		r.t.Error(err)
		return
	}
	a.Body.Close()
}

// elsewhere is a browser of another machine: its last address is pasted.
func (r *loginRun) elsewhere(address string, paste io.Writer) {
	c := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	a, err := c.Get(address)
	if err != nil {
		r.t.Error(err)
		return
	}
	a.Body.Close()
	fmt.Fprintln(paste, a.Header.Get("Location"))
}

// expect holds an output against patterns, and against all secrets.
func (r *loginRun) expect(what, out string, patterns ...string) {
	r.t.Helper()
	for _, p := range patterns {
		if !regexp.MustCompile("(?m)" + p).MatchString(out) {
			r.t.Errorf("%s: %q is missing in\n%s", what, p, out)
		}
	}
	r.i.mu.Lock()
	defer r.i.mu.Unlock()
	for _, s := range append(slices.Clone(r.i.issued), "never-shown-to-anyone") {
		if strings.Contains(out, s) {
			r.t.Errorf("%s shows the secret %s:\n%s", what, s, out)
		}
	}
}

// calls has a scripted agent call the server twice.
func (r *loginRun) calls() string {
	r.t.Helper()
	out, exit := r.belay("run", "--json", "--allow", "mcp__docs__echo", "--script", "calls.yaml", "call")
	if exit != 0 {
		r.t.Errorf("the turn doesn't go on: exit %d\n%s", exit, out)
	}
	return out
}

// set changes how the issuer is wrong.
func (r *loginRun) set(f func(*issuer)) {
	r.i.mu.Lock()
	defer r.i.mu.Unlock()
	f(r.i)
}

// TestALoginFromTheFirstRefusalToItsEnd: a server that wants a login says so, once; a
// browser of this machine logs in, and a token that expired, or that was refused in a
// session, is renewed without a word. What can't be renewed needs a login again.
func TestALoginFromTheFirstRefusalToItsEnd(t *testing.T) {
	r := newLoginRun(t)
	out, exit := r.belay("mcp", "test", "docs")
	r.expect("test", out, `^failed   MCP server docs needs a login$`, `^try      belay mcp login docs$`)
	if exit != 1 {
		t.Errorf("exit %d", exit)
	}
	r.write("none.yaml", "steps:\n  - calls: [{tool: complete_task, args: {summary: done}}]\n")
	out, _ = r.belay("run", "--script", "none.yaml", "nothing")
	r.expect("run", out, `server docs is ignored: MCP server docs needs a login; belay mcp login docs$`)
	if strings.Count(out, "needs a login") != 1 {
		t.Errorf("it isn't said once:\n%s", out)
	}

	r.set(func(i *issuer) { i.short = true })
	out, exit = r.login(r.browser)
	r.expect("login", out, `^docs: logged in$`, `^tool     mcp__docs__echo `)
	if exit != 0 || r.i.renewed != 1 {
		t.Errorf("exit %d; the token that expired at once was renewed %d times", exit, r.i.renewed)
	}
	out, _ = r.belay("--json", "mcp", "list")
	r.expect("list", out, `"status":"accepted".*"loggedIn":true`)
	kept, err := os.ReadFile(filepath.Join(r.config(), "secrets.age"))
	if err != nil {
		t.Fatal(err)
	}
	r.expect("the file", string(kept))

	r.set(func(i *issuer) { i.revokes = true })
	r.expect("a token that was refused", r.calls(), `you said: one`, `you said: two`)
	if r.i.renewed != 2 {
		t.Errorf("the token that the server took back was renewed %d times", r.i.renewed)
	}

	r.set(func(i *issuer) { i.revokes, i.noRenewal = true, true })
	out = r.calls()
	r.expect("no renewal", out, `you said: one`, `"code":"MCP_NEEDS_LOGIN".*the login to MCP server docs is over`, `belay mcp login docs`, `the turn went on`)
	out, _ = r.belay("mcp", "list")
	r.expect("list", out, `^docs +http +needs_login `)

	r.set(func(i *issuer) { i.noRenewal, i.more = false, "write" })
	if out, exit = r.login(r.elsewhere); exit != 0 {
		t.Errorf("a pasted address: exit %d\n%s", exit, out)
	}
	r.expect("a scope", r.calls(), `"code":"MCP_NEEDS_LOGIN".*wants more than the login to it allows: read write`, `belay mcp login docs --scope read --scope write"`)
	if out, exit = r.login(r.browser, "--scope", "write"); exit != 0 {
		t.Errorf("a scope: exit %d\n%s", exit, out)
	}
	r.expect("a scope", r.calls(), `you said: one`, `you said: two`)

	out, _ = r.belay("mcp", "logout", "docs")
	r.expect("logout", out, `docs: the login is forgotten`)
	out, exit = r.belay("mcp", "logout", "docs")
	r.expect("logout", out, `there is no login to MCP server docs`)
	if exit != 2 {
		t.Errorf("exit %d", exit)
	}
	var again []string
	for i := range 6 {
		again = append(again, fmt.Sprintf("{tool: mcp__docs__echo, args: {text: again %d}}", i))
	}
	r.write("calls.yaml", "steps:\n  - calls: ["+strings.Join(again, ", ")+"]\n  - calls: [{tool: complete_task, args: {summary: done}}]\n")
	if out := r.calls(); strings.Count(out, `"code":"MCP_NEEDS_LOGIN","message":"MCP server docs needs a login"`) != 6 {
		t.Errorf("a login is not what each call wants:\n%s", out)
	}
	out, _ = r.belay("secret", "list")
	if strings.Contains(out, "mcp.") {
		t.Errorf("a secret is left:\n%s", out)
	}
}

// TestALoginThatIsWrongIsRefused: nothing is kept of it, and what is wrong is said.
func TestALoginThatIsWrongIsRefused(t *testing.T) {
	r := newLoginRun(t)
	refused := func(what string, code string, set func(*issuer), come func(string, io.Writer), patterns ...string) {
		t.Helper()
		was := [...]any{r.i.noClients, r.i.state, r.i.iss}
		r.set(set)
		out, exit := r.login(come)
		r.expect(what, out, append(patterns, "^code: "+code+"$")...)
		if exit == 0 {
			t.Errorf("%s: logged in\n%s", what, out)
		}
		if out, _ := r.belay("secret", "list"); strings.Contains(out, "mcp.") {
			t.Errorf("%s: something is kept:\n%s", what, out)
		}
		r.set(func(i *issuer) { i.noClients, i.state, i.iss = was[0].(bool), was[1].(string), was[2].(string) })
	}
	refused("another state", "login_state", func(i *issuer) { i.state = "made-up" }, r.elsewhere, `another state`)
	refused("another issuer", "login_issuer", func(i *issuer) { i.iss = "https://issuer.example" }, r.elsewhere, `not the issuer that MCP server docs names`)
	refused("another issuer, by a browser", "login_issuer", func(i *issuer) { i.iss = "https://issuer.example" }, r.browser)
	refused("no client", "login_refused", func(i *issuer) { i.noClients = true }, r.browser, `registers no client: .*/register answers 403`, `--client-id`)
	refused("another address", "usage", func(*issuer) {}, func(_ string, paste io.Writer) { fmt.Fprintln(paste, "https://example.com/callback?code=1") }, `isn't the address`)
	refused("refused by the person", "login_refused", func(*issuer) {}, func(address string, paste io.Writer) {
		q, err := url.Parse(address)
		if err != nil {
			t.Error(err)
		}
		fmt.Fprintln(paste, q.Query().Get("redirect_uri")+"?error=access_denied&state="+q.Query().Get("state"))
	}, `the issuer refuses the login: access_denied`)

	// A browser that comes with another state may have been sent by another page: the
	// right one is waited for.
	out, exit := r.login(func(address string, _ io.Writer) {
		q, err := url.Parse(address)
		if err != nil {
			t.Error(err)
		}
		r.browser(q.Query().Get("redirect_uri")+"?code=1&state=2", nil)
		r.browser(address, nil)
	})
	if r.expect("the right one after it", out, `another state`, `^docs: logged in$`); exit != 0 {
		t.Errorf("exit %d", exit)
	}

	// A token goes to the address it was given for, and nowhere else.
	other := newIssuer(t)
	other.live, other.issued = r.i.live, r.i.issued
	if err := os.WriteFile(filepath.Join(r.config(), "belay.yaml"), []byte("mcp-servers:\n  docs: {url: "+other.mcp.URL+"/mcp}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _ = r.belay("mcp", "test", "docs")
	r.expect("another address", out, `MCP server docs needs a login`)
}
