package app

import (
	"encoding/json"

	"github.com/belay-run/belay"
)

// Server is an MCP server of a workspace.
type Server struct {
	Name    string       `json:"name"`
	Type    string       `json:"type"` // stdio, http, sse
	Where   string       `json:"where"`
	Text    string       `json:"text"`   // its command line or address, as the file says it
	Status  string       `json:"status"` // accepted; unseen: it was never started; changed: some tools wait for a person; unusable
	Problem string       `json:"problem,omitempty"`
	Changed []string     `json:"changed,omitempty"` // tools that are defined otherwise than was accepted, or gone
	Tools   []ServerTool `json:"tools"`
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
	Name     string       `json:"name"`
	Text     string       `json:"text"`            // its command line or address, as the file says it
	Calls    string       `json:"calls,omitempty"` // what it calls itself
	Version  string       `json:"version,omitempty"`
	Protocol string       `json:"protocol,omitempty"`
	Offers   []string     `json:"offers,omitempty"` // tools, resources, prompts, …
	Tools    []ServerTool `json:"tools"`
	Refused  []string     `json:"refused,omitempty"` // tools that can't be used, and why
	Boundary string       `json:"boundary,omitempty"`
	Network  string       `json:"network,omitempty"` // of the boundary: none, hosts, full
	Level    string       `json:"level,omitempty"`
	Stopped  string       `json:"stopped,omitempty"` // what the boundary stopped
	Printed  string       `json:"printed,omitempty"` // the end of what it printed besides its messages
	Problem  string       `json:"problem,omitempty"` // why it can't be used; empty: it can
	Hint     string       `json:"hint,omitempty"`    // what to do about it
}
