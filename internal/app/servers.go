package app

import (
	"encoding/json"

	"github.com/belay-run/belay"
)

// Server is an MCP server of a workspace.
type Server struct {
	Name     string         `json:"name"`
	Type     string         `json:"type"` // stdio, http, sse
	Where    string         `json:"where"`
	Text     string         `json:"text"`   // its command line or address, as the file says it
	Status   string         `json:"status"` // accepted; unseen: it was never started; changed: some tools wait for a person; unusable; needs_login: it wants a login that there isn't, or that is over
	LoggedIn bool           `json:"loggedIn,omitempty"`
	Problem  string         `json:"problem,omitempty"`
	Changed  []string       `json:"changed,omitempty"` // tools that are defined otherwise than was accepted, or gone
	Tools    []ServerTool   `json:"tools"`
	Prompts  []ServerPrompt `json:"prompts,omitempty"`
}

// ServerPrompt is a prompt that a server offers.
type ServerPrompt struct {
	Name        string   `json:"name"` // of the template: SERVER:PROMPT
	Description string   `json:"description,omitempty"`
	Variables   []string `json:"variables,omitempty"`
}

// ServerTool is a tool that a server offers.
type ServerTool struct {
	Name     string            `json:"name"`
	Doc      string            `json:"doc"`
	Input    json.RawMessage   `json:"input"`
	Effect   belay.EffectClass `json:"effect"`
	ReadOnly bool              `json:"readOnly,omitempty"`
}

// ServerTest is what a trial of a server came to.
type ServerTest struct {
	Name     string         `json:"name"`
	Text     string         `json:"text"`            // its command line or address, as the file says it
	Calls    string         `json:"calls,omitempty"` // what it calls itself
	Version  string         `json:"version,omitempty"`
	Protocol string         `json:"protocol,omitempty"`
	Offers   []string       `json:"offers,omitempty"` // tools, resources, prompts, …
	Tools    []ServerTool   `json:"tools"`
	Prompts  []ServerPrompt `json:"prompts,omitempty"`
	Refused  []string       `json:"refused,omitempty"` // tools that can't be used, and why
	Boundary string         `json:"boundary,omitempty"`
	Network  string         `json:"network,omitempty"` // of the boundary: none, hosts, full
	Level    string         `json:"level,omitempty"`
	Stopped  string         `json:"stopped,omitempty"` // what the boundary stopped
	Printed  string         `json:"printed,omitempty"` // the end of what it printed besides its messages
	Problem  string         `json:"problem,omitempty"` // why it can't be used; empty: it can
	Hint     string         `json:"hint,omitempty"`    // what to do about it
}

// LoginAsked asks for a login to an MCP server.
type LoginAsked struct {
	Workspace string   `json:"workspace,omitempty" jsonschema:"the folder whose server it is; the server's own when it is left out"`
	Server    string   `json:"server" jsonschema:"the MCP server"`
	Redirect  string   `json:"redirect" jsonschema:"the address of the caller's machine that the browser is sent back to, such as http://127.0.0.1:4261/callback; nothing needs to answer there"`
	Scopes    []string `json:"scopes,omitempty" jsonschema:"rights to ask for besides those that the server names"`
	Client    string   `json:"clientId,omitempty" jsonschema:"a client that is registered with the issuer, or the https address of its description; one is registered when it is left out"`
	Secret    string   `json:"clientSecret,omitempty" jsonschema:"where the client's secret is: secret:NAME or env:NAME"`
}

// LoginBegun is a login that waits for a person.
type LoginBegun struct {
	Login   string `json:"login"` // its id
	Server  string `json:"server"`
	Address string `json:"address"` // where the person logs in
}

// Subject is what records of the command are about.
func (l *LoginBegun) Subject() string { return "MCP server " + l.Server }
