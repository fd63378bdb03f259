package server

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/auth"
)

// bearing sends a token with each request.
type bearing struct {
	token string
	next  http.RoundTripper
}

func (b bearing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(r)
}

// mcpVersions are versions of the protocol with sessions, and without.
var mcpVersions = []string{"2025-06-18", "2025-11-25", "2026-07-28"}

// editor connects an MCP client to the rig's server.
func (r *rig) editor(token, protocol string, o *sdk.ClientOptions) (*sdk.ClientSession, error) {
	c := sdk.NewClient(&sdk.Implementation{Name: "editor", Version: "1"}, o)
	return c.Connect(r.t.Context(), &sdk.StreamableClientTransport{Endpoint: r.url + "/mcp", HTTPClient: &http.Client{Transport: bearing{token, r.client.Transport}}, MaxRetries: -1}, &sdk.ClientSessionOptions{ProtocolVersion: protocol})
}

func (r *rig) mustEdit(role auth.Role, protocol string, o *sdk.ClientOptions) *sdk.ClientSession {
	r.t.Helper()
	c, err := r.editor(r.token(role, auth.DefaultTenant), protocol, o)
	if err != nil {
		r.t.Fatal(err)
	}
	if got := c.InitializeResult().ProtocolVersion; got != protocol {
		r.t.Fatalf("protocol %s, want %s", got, protocol)
	}
	r.t.Cleanup(func() { c.Close() }) //nolint:errcheck // the server may be gone
	return c
}

// toolNames are the tools that a client is offered.
func toolNames(t *testing.T, c *sdk.ClientSession) (names []string) {
	t.Helper()
	for tool, err := range c.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	return names
}

// use calls a tool; out gets its structured answer.
func use(t *testing.T, c *sdk.ClientSession, name string, args map[string]any, out any) *sdk.CallToolResult {
	t.Helper()
	p := &sdk.CallToolParams{Name: name, Arguments: args}
	p.SetProgressToken("p-" + name)
	res, err := c.CallTool(t.Context(), p)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	b, err := json.Marshal(res.StructuredContent)
	if err == nil && out != nil {
		err = json.Unmarshal(b, out)
	}
	if err != nil {
		t.Fatalf("%s answers %s: %v", name, b, err)
	}
	return res
}

// TestEachRoleHasItsToolsOverMCP lists the tools that clients are offered, and calls
// one that isn't.
// Guarantee: X8.
func TestEachRoleHasItsToolsOverMCP(t *testing.T) {
	reads := []string{"approvals_list", "search", "session_list", "session_read", "why"}
	work := []string{"run", "session_interrupt", "session_send"}
	for _, approver := range []bool{false, true} {
		r := newRig(t, once, func(c *Config) { c.MCPApprover = approver })
		for _, role := range auth.Roles {
			want := slices.Clone(reads)
			if role.May(auth.Work) {
				want = append(want, work...)
			}
			if approver && role.May(auth.Answer) {
				want = append(want, "approval_answer")
			}
			slices.Sort(want)
			c := r.mustEdit(role, mcpVersions[len(role)%len(mcpVersions)], nil)
			if got := toolNames(t, c); !slices.Equal(got, want) {
				t.Errorf("approver %t, role %s: %v, want %v", approver, role, got, want)
			}
			if role.May(auth.Work) {
				continue
			}
			if res, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "run", Arguments: map[string]any{"text": "x"}}); err == nil && !res.IsError {
				t.Errorf("role %s ran something", role)
			}
		}
	}
}

// TestAClientOfMCPWorksWithSessions runs one, follows it by progress, reads it, finds it
// and asks why.
func TestAClientOfMCPWorksWithSessions(t *testing.T) {
	for _, protocol := range mcpVersions {
		t.Run(protocol, func(t *testing.T) { worksOverMCP(t, protocol) })
	}
}

func worksOverMCP(t *testing.T, protocol string) {
	r := newRig(t, once)
	said := make(chan string, 100)
	c := r.mustEdit(auth.Operator, protocol, &sdk.ClientOptions{ProgressNotificationHandler: func(_ context.Context, q *sdk.ProgressNotificationClientRequest) {
		said <- q.Params.Message
	}})
	var ran struct {
		Session belay.SessionID `json:"sessionId"`
		Outcome belay.Outcome   `json:"outcome"`
		Answer  string          `json:"answer"`
	}
	use(t, c, "run", map[string]any{"text": "Count the windmills."}, &ran)
	if ran.Outcome != belay.Completed || ran.Answer != "Done." {
		t.Errorf("run answers %+v", ran)
	}
	var again app.Result
	use(t, c, "session_send", map[string]any{"sessionId": ran.Session, "text": "And the mills."}, &again)
	if again.Session != ran.Session || again.Turn == "" {
		t.Errorf("session_send answers %+v", again)
	}
	for name, args := range map[string]map[string]any{
		"session_list": {}, "session_read": {"sessionId": ran.Session}, "search": {"words": "windmills"}, "why": {"id": ran.Session},
	} {
		if res := use(t, c, name, args, nil); res.IsError || !strings.Contains(res.Content[0].(*sdk.TextContent).Text, string(ran.Session)) {
			t.Errorf("%s doesn't name the session: %+v", name, res.Content[0])
		}
	}
	if res := use(t, c, "session_read", map[string]any{"sessionId": "sess_none"}, nil); !res.IsError || !strings.Contains(res.Content[0].(*sdk.TextContent).Text, "not_found") {
		t.Errorf("a session that there isn't: %+v", res.Content[0])
	}
	page, err := c.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "belay://sessions/" + string(ran.Session)})
	if err != nil || len(page.Contents) != 1 || !strings.Contains(page.Contents[0].Text, "windmills") {
		t.Errorf("the resource is %+v, %v", page, err)
	}
	if _, err := c.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "belay://sessions/sess_none"}); err == nil {
		t.Error("a resource that there isn't was read")
	}
	if text := <-said; text == "" { // it may come behind the answer
		t.Error("the progress of run has no text")
	}
}

// TestAClientOfMCPAsksItsPerson has an agent ask, and the client show it: a role that may
// answer gets it answered, another one learns that it waits.
// Guarantee: X8.
func TestAClientOfMCPAsksItsPerson(t *testing.T) {
	for _, protocol := range mcpVersions {
		t.Run(protocol, func(t *testing.T) { asksOverMCP(t, protocol) })
	}
}

func asksOverMCP(t *testing.T, protocol string) {
	r := newRig(t, asks)
	var ran struct {
		Session belay.SessionID `json:"sessionId"`
		Outcome belay.Outcome   `json:"outcome"`
		Waiting []app.Action    `json:"waiting"`
	}
	asked := make(chan string, 4)
	o := &sdk.ClientOptions{ElicitationHandler: func(_ context.Context, q *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
		asked <- q.Params.Message
		return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"answer": "blue"}}, nil
	}}
	use(t, r.mustEdit(auth.Owner, protocol, o), "run", map[string]any{"text": "Paint it."}, &ran)
	if ran.Outcome != belay.Completed || len(asked) != 1 {
		t.Fatalf("answered: %+v, asked %d times", ran, len(asked))
	}
	if q := <-asked; !strings.Contains(q, "Which colour?") {
		t.Errorf("asked %q", q)
	}
	ran.Outcome = ""
	operator := r.mustEdit(auth.Operator, protocol, o)
	use(t, operator, "run", map[string]any{"text": "Paint it."}, &ran)
	if ran.Outcome != "" || len(ran.Waiting) != 1 || len(asked) != 0 {
		t.Errorf("an operator's turn: %+v, asked %d times", ran, len(asked))
	}
	use(t, operator, "session_interrupt", map[string]any{"sessionId": ran.Session}, nil)
}

// TestASessionOfMCPBelongsToItsToken has another token use a session's id.
// Guarantee: X8.
func TestASessionOfMCPBelongsToItsToken(t *testing.T) {
	r := newRig(t, once)
	hello := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	send := func(token, id, body string) *http.Response {
		q, err := http.NewRequestWithContext(t.Context(), "POST", r.url+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Accept", "application/json, text/event-stream")
		q.Header.Set("Authorization", "Bearer "+token)
		if id != "" {
			q.Header.Set("Mcp-Session-Id", id)
		}
		a, err := r.client.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
		return a
	}
	owner, other := r.token(auth.Owner, auth.DefaultTenant), r.token(auth.Owner, auth.DefaultTenant)
	id := send(owner, "", hello).Header.Get("Mcp-Session-Id")
	if id == "" {
		t.Fatal("there is no session")
	}
	if a := send(owner, id, `{"jsonrpc":"2.0","method":"notifications/initialized"}`); a.StatusCode != http.StatusAccepted {
		t.Errorf("its own token gets %d", a.StatusCode)
	}
	if a := send(other, id, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`); a.StatusCode != http.StatusForbidden {
		t.Errorf("another token gets %d", a.StatusCode)
	}
}
