package mcpserve

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/chat"
)

// addTools offers what the client may use.
func (s *server) addTools() {
	changes, open := true, true
	if s.May(auth.Work) {
		tool := func(name, title, doc string) *sdk.Tool {
			return &sdk.Tool{Name: name, Description: doc, Annotations: &sdk.ToolAnnotations{Title: title, DestructiveHint: &changes, OpenWorldHint: &open}}
		}
		sdk.AddTool(s.sdk, tool("run", "Run an agent", "Give an agent something to do and wait for its answer. It works in a session of its own, or goes on in the one that is named."), s.run)
		sdk.AddTool(s.sdk, tool("session_send", "Send to a session", "Give a session something to do, without waiting for the answer."), s.send)
		sdk.AddTool(s.sdk, tool("session_interrupt", "Interrupt a session", "End what a session does now. Its partial text is kept."), s.interrupt)
	}
	if s.May(auth.Read) {
		tool := func(name, title, doc string) *sdk.Tool {
			return &sdk.Tool{Name: name, Description: doc, Annotations: &sdk.ToolAnnotations{Title: title, ReadOnlyHint: true}}
		}
		sdk.AddTool(s.sdk, tool("session_list", "List sessions", "List sessions, the one that changed last first."), s.list)
		sdk.AddTool(s.sdk, tool("session_read", "Read a session", "Show what happened last in a session: texts, calls and their ends, questions."), s.read)
		sdk.AddTool(s.sdk, tool("search", "Search sessions", "Find sessions in which all of some words were said."), s.search)
		sdk.AddTool(s.sdk, tool("why", "Explain", "Say from the recorded facts why something happened: a turn ended, a call was denied, a session waits."), s.why)
		sdk.AddTool(s.sdk, tool("approvals_list", "List questions", "List what agents ask a person and nobody answered yet."), s.approvals)
	}
	if s.Approver && s.May(auth.Answer) {
		sdk.AddTool(s.sdk, &sdk.Tool{Name: "approval_answer", Description: "Answer what an agent asks, on behalf of a person who decided it. approvals_list has the id and the version.",
			Annotations: &sdk.ToolAnnotations{Title: "Answer a question", DestructiveHint: &changes}}, do[answer](s, "respond_action"))
	}
}

// raw is an answer of the tables, as it is.
type raw = json.RawMessage

// do makes a tool of a command that takes what the client gives.
func do[In any](s *server, command string) sdk.ToolHandlerFor[In, any] {
	return func(ctx context.Context, _ *sdk.CallToolRequest, in In) (*sdk.CallToolResult, any, error) {
		var out raw
		if err := s.Runtime.Do(ctx, command, in, &out); err != nil {
			return nil, nil, told(err)
		}
		return nil, out, nil
	}
}

// look answers with a read.
func (s *server) look(ctx context.Context, read string, q chat.Query) (*sdk.CallToolResult, any, error) {
	var out raw
	if err := s.Runtime.Read(ctx, read, q, &out); err != nil {
		return nil, nil, told(err)
	}
	return nil, out, nil
}

type send struct {
	Session belay.SessionID `json:"sessionId,omitempty" jsonschema:"the session; without it, a new one"`
	Text    string          `json:"text" jsonschema:"what to do"`
	Queue   string          `json:"queue,omitempty" jsonschema:"while it works on something else: enqueue (wait for its end), steer (tell it now), interrupt (end that)"`
}

func (s *server) send(ctx context.Context, _ *sdk.CallToolRequest, in send) (*sdk.CallToolResult, any, error) {
	begun, err := s.submit(ctx, in)
	if err != nil {
		return nil, nil, err
	}
	return nil, begun, nil
}

// submit gives a session work. A new one is a conversation: an answer ends its turn.
func (s *server) submit(ctx context.Context, in send) (*app.Result, error) {
	type submitted struct {
		send
		Settings map[string]any `json:"settings,omitempty"`
	}
	all := submitted{send: in}
	if in.Session == "" {
		all.Settings = map[string]any{"completion": belay.CompletionConversational}
	}
	begun := new(app.Result)
	if err := s.Runtime.Do(ctx, "submit_turn", all, begun); err != nil {
		return nil, told(err)
	}
	return begun, nil
}

type answer struct {
	Action   belay.ActionID `json:"actionId" jsonschema:"the question"`
	Version  string         `json:"version" jsonschema:"of the question as it was seen"`
	Decision string         `json:"decision" jsonschema:"allow, deny, or answer for a question"`
	Message  string         `json:"message,omitempty" jsonschema:"the answer, or why it is denied"`
}

type ofSession struct {
	Session belay.SessionID `json:"sessionId" jsonschema:"the session"`
}

func (s *server) interrupt(ctx context.Context, _ *sdk.CallToolRequest, in ofSession) (*sdk.CallToolResult, any, error) {
	var out raw
	err := s.Runtime.Do(ctx, "interrupt_turn", map[string]any{"sessionId": in.Session}, &out)
	if err != nil {
		return nil, nil, told(err)
	}
	return nil, out, nil
}

type listed struct {
	Status    string `json:"status,omitempty" jsonschema:"only sessions whose turn is queued, running, waiting or ended"`
	Workspace string `json:"workspace,omitempty" jsonschema:"only sessions of this folder"`
	Limit     int    `json:"limit,omitempty" jsonschema:"how many at most; 20 when it is left out"`
}

func (s *server) list(ctx context.Context, _ *sdk.CallToolRequest, in listed) (*sdk.CallToolResult, any, error) {
	return s.look(ctx, "read_sessions", chat.Query{Values: values("status", in.Status, "workspace", in.Workspace, "limit", count(in.Limit))})
}

type readIn struct {
	Session belay.SessionID `json:"sessionId" jsonschema:"the session"`
	Last    int             `json:"last,omitempty" jsonschema:"how many of the newest facts it is told from; 200 when it is left out"`
}

// shown is what session_read answers.
type shown struct {
	Session raw `json:"session"`
	Story   raw `json:"story"`
}

func (s *server) read(ctx context.Context, _ *sdk.CallToolRequest, in readIn) (*sdk.CallToolResult, any, error) {
	var of, out shown
	err := s.Runtime.Read(ctx, "read_sessions_id", chat.Query{ID: string(in.Session)}, &of)
	if err == nil {
		last := ""
		if in.Last > 0 {
			last = strconv.Itoa(in.Last)
		}
		err = s.Runtime.Read(ctx, "read_sessions_id_story", chat.Query{ID: string(in.Session), Values: values("last", last)}, &out.Story)
	}
	if err != nil {
		return nil, nil, told(err)
	}
	out.Session = of.Session
	return nil, out, nil
}

type searched struct {
	Words string `json:"words" jsonschema:"words that a session must all have"`
	Limit int    `json:"limit,omitempty" jsonschema:"how many at most; 20 when it is left out"`
}

func (s *server) search(ctx context.Context, _ *sdk.CallToolRequest, in searched) (*sdk.CallToolResult, any, error) {
	return s.look(ctx, "read_search", chat.Query{Values: values("q", in.Words, "limit", count(in.Limit))})
}

type asked struct {
	ID string `json:"id" jsonschema:"a session, turn, step, call, question, task or run, or the beginning of its id"`
}

func (s *server) why(ctx context.Context, _ *sdk.CallToolRequest, in asked) (*sdk.CallToolResult, any, error) {
	return s.look(ctx, "why", chat.Query{ID: in.ID})
}

type ofSessions struct {
	Session belay.SessionID `json:"sessionId,omitempty" jsonschema:"only those of this session"`
}

func (s *server) approvals(ctx context.Context, _ *sdk.CallToolRequest, in ofSessions) (*sdk.CallToolResult, any, error) {
	return s.look(ctx, "listActions", chat.Query{Values: values("sessionId", string(in.Session))})
}

// open are the questions of a session that wait.
func (s *server) open(ctx context.Context, id belay.SessionID) ([]app.Action, error) {
	var all struct {
		Actions []app.Action `json:"actions"`
	}
	err := s.Runtime.Read(ctx, "listActions", chat.Query{Values: values("sessionId", string(id))}, &all)
	return all.Actions, err
}

// values are the parameters of a read that aren't empty.
func values(pairs ...string) url.Values {
	v := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			v.Set(pairs[i], pairs[i+1])
		}
	}
	return v
}

func count(n int) string {
	if n == 0 {
		n = 20
	}
	return strconv.Itoa(n)
}
