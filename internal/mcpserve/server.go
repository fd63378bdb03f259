// Package mcpserve is the runtime as an MCP server: editors and other agents give
// sessions work, follow it and read it through the Model Context Protocol. It promises
// that a client gets no tool that its role may not use, that every tool is a command or
// read of the tables of package app, and that no client answers what an agent asks a
// person, unless it was started for that.
package mcpserve

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/chat"
	"github.com/belay-run/belay/internal/config/template"
)

// Config is what a server is made of. Runtime and May must be set.
type Config struct {
	Runtime   chat.Runtime          // where the sessions are, as the client may use it
	May       func(auth.Scope) bool // what the client may do
	Approver  bool                  // the client may answer what agents ask, if May says so too
	Version   string                // of the program
	Templates *template.Catalog     // are offered as prompts; nil: there are none

	Joined func(*sdk.ServerSession) // is called when a client has greeted; nil: not
}

// server answers one client.
type server struct {
	Config
	sdk *sdk.Server
}

const instructions = `Belay runs agents whose steps are recorded, and asks a person before a tool call that no rule allows.
run gives an agent work and waits for its answer. session_send gives it work without waiting; session_read shows how far it is.
A session that waits for a person goes on when that person answers; approvals_list shows the questions.`

// schemas are those of the tools' arguments, made once: over HTTP there is a server for
// each request.
var schemas = sdk.NewSchemaCache()

// New makes the server of one client.
func New(c Config) *sdk.Server {
	o := &sdk.ServerOptions{Instructions: instructions, Capabilities: &sdk.ServerCapabilities{}, SchemaCache: schemas}
	if c.Joined != nil {
		o.InitializedHandler = func(_ context.Context, r *sdk.InitializedRequest) { c.Joined(r.Session) }
	}
	s := &server{c, sdk.NewServer(&sdk.Implementation{Name: "belay", Title: "Belay", Version: c.Version}, o)}
	s.addTools()
	s.addResources()
	s.addPrompts()
	return s.sdk
}

// told is an error with what can be done about it, for a client that sees only a text.
func told(err error) error {
	e, ok := errors.AsType[*belay.Error](err)
	if !ok {
		return err
	}
	text := fmt.Sprintf("%s: %s", e.Code, e.Error())
	if e.Hint != "" {
		text += "\n" + e.Hint
	}
	return errors.New(text)
}

// sessionURI begins the addresses of sessions.
const sessionURI = "belay://sessions/"

// addResources offers sessions.
func (s *server) addResources() {
	s.sdk.AddResourceTemplate(&sdk.ResourceTemplate{Name: "session", Title: "Session", URITemplate: sessionURI + "{id}", MIMEType: "application/jsonl",
		Description: "The messages of a session, one JSON object in a line. The tool session_list has the ids."}, s.readSession)
}

// readSession answers with the messages of a session.
func (s *server) readSession(ctx context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	id, ok := strings.CutPrefix(r.Params.URI, sessionURI)
	if !ok || id == "" {
		return nil, sdk.ResourceNotFoundError(r.Params.URI)
	}
	var text strings.Builder
	err := s.Runtime.Read(ctx, "exportSession", chat.Query{ID: id, Values: url.Values{"format": {"transcript"}}}, &text)
	if belay.CodeOf(err) == belay.CodeNotFound {
		return nil, sdk.ResourceNotFoundError(r.Params.URI)
	}
	if err != nil {
		return nil, told(err)
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, MIMEType: "application/jsonl", Text: text.String()}}}, nil
}

// addPrompts offers the templates that a client can fill. One whose variable names a
// file is left out: a client has no folder of its own here.
func (s *server) addPrompts() {
	if s.Templates == nil {
		return
	}
	offered := map[string]bool{}
	for _, t := range s.Templates.All {
		if offered[t.Name] || usesFiles(t) {
			continue
		}
		found, err := s.Templates.Find(t.Name) // the newest of several versions
		if err != nil {
			continue
		}
		offered[t.Name] = true
		p := &sdk.Prompt{Name: found.Name, Description: found.Description}
		for _, v := range found.Variables {
			p.Arguments = append(p.Arguments, &sdk.PromptArgument{Name: v.Name, Description: v.Description, Required: v.Required})
		}
		s.sdk.AddPrompt(p, func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			text, err := found.Render(r.Params.Arguments, func(string) bool { return false })
			if err != nil {
				return nil, told(err)
			}
			return &sdk.GetPromptResult{Description: found.Description, Messages: []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: text}}}}, nil
		})
	}
}

func usesFiles(t *template.Template) bool {
	for _, v := range t.Variables {
		if v.Type == template.Path {
			return true
		}
	}
	return false
}
