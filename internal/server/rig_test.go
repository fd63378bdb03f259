package server

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/app/read"
	"github.com/belay-run/belay/internal/app/sessions"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/builtin"
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/config/agentfile"
	"github.com/belay-run/belay/internal/config/rulefile"
	"github.com/belay-run/belay/internal/core/session"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/effect"
	"github.com/belay-run/belay/internal/effect/history"
	"github.com/belay-run/belay/internal/engine"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/scripted"
	"github.com/belay-run/belay/internal/model/tokens"
	"github.com/belay-run/belay/internal/policy"
	"github.com/belay-run/belay/internal/secret"
	"github.com/belay-run/belay/internal/store"
	"github.com/belay-run/belay/internal/testkit/memory"
	"github.com/belay-run/belay/internal/tool"
	"github.com/belay-run/belay/internal/view"
	"github.com/belay-run/belay/internal/view/feed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// once is a model that ends every turn at once.
const once = "steps:\n  - calls:\n      - {tool: complete_task, args: {summary: Done.}}\n  - calls:\n      - {tool: complete_task, args: {summary: Done again.}}\n  - calls:\n      - {tool: complete_task, args: {summary: Done once more.}}\n"

// asks is a model that asks a person.
const asks = "steps:\n  - calls:\n      - {tool: ask_user, args: {question: 'Which colour?'}}\n  - calls:\n      - {tool: complete_task, args: {summary: Done.}}\n"

// bell is a tool that is asked for.
type bell struct{}

func (bell) Spec() tool.Spec {
	return tool.Spec{Name: "ring", Doc: "Ring the bell.", Input: json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`), Effect: belay.AtMostOnce, Access: belay.Write}
}

func (bell) Run(context.Context, tool.Call) (tool.Result, error) {
	return tool.Result{Text: "it rang"}, nil
}

// rig is a server on a real listener, with a store in memory for each tenant.
type rig struct {
	t      *testing.T
	s      *Server
	url    string
	client *http.Client
	tokens *auth.Tokens
	stores map[string]*memory.Data
	stop   func()

	mu     sync.Mutex
	opened map[string]store.Store
}

// world is what survives a server.
type world struct {
	dir    string
	stores map[string]*memory.Data
	tools  []tool.Tool                     // besides the usual ones
	writes bool                            // its sessions may change their workspaces
	listen func(net.Listener) net.Listener // around the server's; nil is none
}

func newWorld(t *testing.T) *world {
	return &world{dir: t.TempDir(), stores: map[string]*memory.Data{auth.DefaultTenant: memory.New(), "other": memory.New()}}
}

func newRig(t *testing.T, script string, change ...func(*Config)) *rig {
	return newWorld(t).serve(t, script, change...)
}

// serve starts a server in a world.
func (w *world) serve(t *testing.T, script string, change ...func(*Config)) *rig {
	t.Helper()
	sc, err := scripted.Parse("test.yaml", []byte(script))
	if err != nil {
		t.Fatal(err)
	}
	set, err := tool.NewSet(append(append(tool.TurnTools(), bell{}), w.tools...)...)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, tokens: auth.OpenTokens(w.dir, nil), stores: w.stores, opened: map[string]store.Store{}}
	c := Config{Commands: builtin.Commands(), Reads: builtin.Reads(), Tokens: r.tokens, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Drain: 5 * time.Second, Rate: 100_000}
	c.Open = func(_ context.Context, tenant string) (TenantConfig, error) {
		data := w.stores[tenant]
		if data == nil {
			return TenantConfig{}, belay.Errorf(belay.CodeNotFound, "no such tenant")
		}
		owner := store.ThisProcess()
		st := data.Open(memory.Options{})
		views := view.NewFollower(st)
		hub, err := feed.New(t.Context(), st, feed.Options{Snapshot: read.Snapshot(st, views)})
		if err != nil {
			return TenantConfig{}, err
		}
		p, err := effect.New(effect.Config{Store: st, Tools: set, Live: hub.Show, Provider: func(context.Context, string, belay.Settings) (model.Provider, error) { return scripted.New(sc), nil }})
		if err != nil {
			return TenantConfig{}, err
		}
		e, err := engine.New(engine.Config{Store: st, Owner: owner, Performers: p})
		if err != nil {
			return TenantConfig{}, err
		}
		r.mu.Lock()
		r.opened[tenant] = st
		r.mu.Unlock()
		return TenantConfig{Runtime: &app.Runtime{Store: st, Engine: e, Attachable: p.Attachable, Workspaces: &plainWiring{st: st, set: set, ws: w.dir, writes: w.writes}, Reads: read.New(st, hub, views), Doctor: func(context.Context) []app.Finding { return nil }}, Close: st.Close}, nil
	}
	for _, f := range change {
		f(&c)
	}
	if r.s, err = New(c); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.url = "http://" + l.Addr().String()
	if w.listen != nil {
		l = w.listen(l)
	}
	r.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- r.s.Run(ctx, l, func() { close(ready) }) }()
	select {
	case <-ready:
	case err := <-ended:
		t.Fatal(err)
	}
	var one sync.Once
	r.stop = func() {
		one.Do(func() {
			r.client.CloseIdleConnections()
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("the server ended with %v", err)
			}
		})
	}
	t.Cleanup(r.stop)
	return r
}

// token makes a token.
func (r *rig) token(role auth.Role, tenant string) string {
	r.t.Helper()
	text, _, err := r.tokens.Create("", role, tenant, time.Time{})
	if err != nil {
		r.t.Fatal(err)
	}
	return text
}

// answer is what a request was answered with.
type answer struct {
	status int
	header http.Header
	body   []byte
	input.Problem
}

func (a answer) told(t *testing.T) app.Result {
	t.Helper()
	var out app.Result
	if err := json.Unmarshal(a.body, &out); err != nil || a.status != http.StatusOK {
		t.Fatalf("status %d: %s (%v)", a.status, a.body, err)
	}
	return out
}

// do sends a request. Header are pairs; an empty value removes what is usual.
func (r *rig) do(method, path, token, body string, header ...string) answer {
	r.t.Helper()
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.url+path, in)
	if err != nil {
		r.t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		switch {
		case header[i] == "Host":
			req.Host = header[i+1]
		case header[i+1] == "":
			req.Header.Del(header[i])
		default:
			req.Header.Add(header[i], header[i+1])
		}
	}
	resp, err := r.client.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	a := answer{status: resp.StatusCode, header: resp.Header}
	if a.body, err = io.ReadAll(resp.Body); err != nil {
		r.t.Fatal(err)
	}
	if resp.StatusCode >= 400 && resp.Header.Get("Content-Type") == input.ProblemMedia {
		if err := json.Unmarshal(a.body, &a.Problem); err != nil {
			r.t.Fatalf("%s: %v", a.body, err)
		}
		if shellFlag.MatchString(a.Hint) {
			r.t.Errorf("%s %s: the hint is for a terminal: %s", method, path, a.Hint)
		}
	}
	return a
}

// shellFlag is a flag of the command line, which who asks over HTTP has none of. A command
// of belay that a hint names whole may have flags.
var shellFlag = regexp.MustCompile(`(^|[;,:] |or )--[a-z]`)

// command sends a command.
func (r *rig) command(name, token, body string, header ...string) answer {
	r.t.Helper()
	return r.do("POST", "/v1/commands/"+name, token, body, header...)
}

// until asks for a run until it has the status.
func (r *rig) until(token string, run belay.RunID, status string) sessions.RunShown {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	st := r.opened[auth.DefaultTenant]
	for {
		changed := st.Changed(ctx)
		var out sessions.RunShown
		a := r.do("GET", "/v1/runs/"+string(run), token, "")
		if a.status == http.StatusOK {
			if err := json.Unmarshal(a.body, &out); err != nil {
				r.t.Fatal(err)
			}
			if out.Status == status {
				return out
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			r.t.Fatalf("run %s is %s, not %s", run, out.Status, status)
		}
	}
}

// plainWiring has fixed settings and the tools of a set.
type plainWiring struct {
	st  store.Store
	set *tool.Set
	ws  string

	writes bool
}

func (*plainWiring) PrepareChild(_ context.Context, parent belay.Ref, _ tool.SpawnArgs, _ belay.Limits, _ int, c *belay.SpawnSubagent) error {
	c.Rules, c.Agent = parent, "general"
	return nil
}

func (w *plainWiring) Workspace(_ context.Context, dir string) (string, error) {
	switch {
	case dir == "", dir == w.ws, dir == w.ws+"/.":
		return w.ws, nil
	case filepath.Dir(dir) == w.ws:
		return dir, nil
	}
	return "", belay.Errorf(belay.CodeForbidden, "not there")
}

func (w *plainWiring) Settings(_ context.Context, _ string, have *belay.Settings, c app.SettingsInput) (belay.Settings, error) {
	s := belay.Settings{Provider: "scripted", Mode: belay.ModeDefault, Approvals: belay.ApprovalsWait, Completion: belay.CompletionRequired, Limits: belay.DefaultLimits}
	if have != nil {
		s = *have
	}
	if c.Mode != "" {
		if !slices.Contains(belay.Modes, belay.Mode(c.Mode)) {
			return s, input.At("settings.mode", belay.Errorf(belay.CodeUsage, "no such mode"))
		}
		s.Mode = belay.Mode(c.Mode)
	}
	if len(c.Allow) > 0 {
		s.Allow = c.Allow
	}
	return s, nil
}

func (*plainWiring) SettingRows(context.Context, string) ([]app.SettingRow, []app.IgnoredRow, error) {
	return []app.SettingRow{{Name: "mode", Value: "default", Source: "default"}}, nil, nil
}

func (w *plainWiring) KeepRules(_ context.Context, name string, content []byte, ready func() error) (string, bool, error) {
	path := filepath.Join(w.ws, name+".yaml")
	if _, err := os.Stat(path); err == nil {
		return path, true, nil
	}
	if err := ready(); err != nil {
		return "", false, err
	}
	return path, false, os.WriteFile(path, content, 0o600)
}

func (w *plainWiring) Rules(ctx context.Context, by, ws string, s belay.Settings) (belay.Ref, error) {
	raw, err := json.Marshal(thread.Rules{Settings: s, Tools: w.set.Specs(), System: "You test.", Workspace: ws})
	if err != nil {
		return belay.Ref{}, err
	}
	return w.st.Put(ctx, raw, "application/json")
}

func (w *plainWiring) CompletionRules(ctx context.Context, by, ws string, s belay.Settings) (belay.Ref, error) {
	return w.Rules(ctx, by, ws, s)
}

func (w *plainWiring) MayChange(context.Context, *session.State, []policy.Grant) (bool, error) {
	return w.writes, nil
}

func (*plainWiring) Quotas(context.Context, string) ([]belay.Quota, error) { return nil, nil }

func (*plainWiring) Counts(context.Context, string, belay.Settings) tokens.Profile {
	return tokens.Profile{}
}

func (w *plainWiring) Tools(context.Context, string, belay.Settings) ([]belay.ToolSpec, error) {
	return w.set.Specs(), nil
}

func (w *plainWiring) Ground(_ context.Context, ws string) (*app.Ground, error) {
	return &app.Ground{Workspace: ws, Tools: w.set, Level: "L0", Rules: func(_ context.Context, instead rulefile.Instead) (*policy.Set, error) {
		l := &rulefile.Layers{}
		if err := l.Place(instead); err != nil || l.Empty() {
			return policy.Builtin(), err
		}
		return l.Set(nil)
	}}, nil
}

func (w *plainWiring) Root(ws string) string { return ws }

func (w *plainWiring) Planner(ws string) (history.Planner, error) {
	root, err := os.OpenRoot(ws)
	return history.Planner{Root: root, Dir: ws, Secrets: &secret.Scrubber{}}, err
}

func (w *plainWiring) RemoveWorktree(context.Context, belay.Worktree, bool) (bool, error) {
	return false, nil
}

func (w *plainWiring) Secrets() *secret.Scrubber {
	s := &secret.Scrubber{}
	s.Add("TEST_SECRET", "s3cr3t-of-a-test")
	return s
}

func (*plainWiring) Agents(context.Context, string) (*agentfile.Catalog, error) {
	return &agentfile.Catalog{}, nil
}

func (*plainWiring) AgentRecords(context.Context) (*config.TrustBook, map[string]view.AgentRuns, error) {
	return nil, nil, nil
}

func (*plainWiring) CheckHealth(context.Context, string, *agentfile.Agent) (string, error) {
	return "", nil
}

func (*plainWiring) WatchAgents(context.Context) error { return nil }

func (*plainWiring) Skills(context.Context, string) (*agentfile.Skills, error) {
	return &agentfile.Skills{}, nil
}

func (*plainWiring) Mentioned(context.Context, string, *app.Given) error { return nil }

func (*plainWiring) Servers(context.Context, string) ([]app.Server, error) { return nil, nil }

func (*plainWiring) TestServer(context.Context, string, string, bool) (*app.ServerTest, error) {
	return nil, belay.Errorf(belay.CodeNotFound, "there are no MCP servers")
}

func (*plainWiring) LoginServer(context.Context, *app.LoginAsked) (*app.LoginBegun, error) {
	return nil, belay.Errorf(belay.CodeNotFound, "there are no MCP servers")
}

func (*plainWiring) FinishLogin(context.Context, string, string) (*app.ServerTest, error) {
	return nil, belay.Errorf(belay.CodeNotFound, "no login waits")
}

func (*plainWiring) LogoutServer(context.Context, string, string) (bool, error) {
	return false, belay.Errorf(belay.CodeNotFound, "there are no MCP servers")
}
