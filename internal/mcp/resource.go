package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/tool"
)

// kindResources is the kind of the tools that a server gets which has resources. They
// are the server's like those that it defines: what is decided, bounded and recorded of
// it counts for them too.
const kindResources = "resources"

// Names of the tools that show a server's resources.
const (
	listName = "resource_list"
	readName = "resource_read"
)

// Bounds of what a list of resources says.
const (
	maxResources = 500
	maxAbout     = 200 // bytes of what is said of one
)

type readArgs struct {
	URI string `json:"uri"`
}

// resourceTools are the definitions of those tools as they are pinned: what they say is
// the client's own and may change with it.
func resourceTools() []Definition {
	return []Definition{{Kind: kindResources, Name: listName, Hints: Hints{ReadOnly: true}}, {Kind: kindResources, Name: readName, Hints: Hints{ReadOnly: true}}}
}

// described is a definition with all that models read of it.
func (d Definition) described() Definition {
	switch {
	case d.Kind != kindResources:
	case d.Name == listName:
		d.Description, d.Input = "List the server's resources, and the patterns of the addresses of more.", json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)
	default:
		d.Description, d.Input = "Read a resource of the server.", json.RawMessage(`{"type":"object","properties":{"uri":{"type":"string","description":"its address"}},"required":["uri"],"additionalProperties":false}`)
	}
	return d
}

// request is what a call asks of its server.
type request func(ctx context.Context, n *connection, token string, r round) (*sdk.CallToolResult, error)

// request returns what a call of the tool asks of the server.
func (t *serverTool) request(c tool.Call) (request, error) {
	switch {
	case t.def.Kind != kindResources:
		return func(ctx context.Context, n *connection, token string, r round) (*sdk.CallToolResult, error) {
			p := &sdk.CallToolParams{Name: t.def.Name, Arguments: json.RawMessage(c.Args), InputResponses: r.Responses, RequestState: r.State}
			p.SetProgressToken(token)
			return n.client.CallTool(ctx, p)
		}, nil
	case t.def.Name == listName:
		return func(ctx context.Context, n *connection, _ string, _ round) (*sdk.CallToolResult, error) {
			text, err := n.resources(ctx)
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, err
		}, nil
	}
	var in readArgs
	if err := json.Unmarshal(c.Args, &in); err != nil {
		return nil, err
	}
	return func(ctx context.Context, n *connection, token string, r round) (*sdk.CallToolResult, error) {
		p := &sdk.ReadResourceParams{URI: in.URI, InputResponses: r.Responses, RequestState: r.State}
		p.SetProgressToken(token)
		got, err := n.client.ReadResource(ctx, p)
		if err != nil {
			return nil, err
		}
		return &sdk.CallToolResult{Content: contents(got), InputRequests: got.InputRequests, RequestState: got.RequestState}, nil
	}, nil
}

// contents are what a resource has, as the parts of a result.
func contents(r *sdk.ReadResourceResult) (all []sdk.Content) {
	for _, c := range r.Contents {
		all = append(all, &sdk.EmbeddedResource{Resource: c})
	}
	return all
}

// resources are a line for each resource of the server, and for each pattern of the
// addresses of more.
func (n *connection) resources(ctx context.Context) (string, error) {
	var b strings.Builder
	lines := 0
	add := func(address, media, name, description string, size int64) bool {
		if lines++; lines > maxResources {
			fmt.Fprintf(&b, "more than %d; the others aren't shown\n", maxResources)
			return false
		}
		b.WriteString(address)
		if media != "" {
			b.WriteString(" " + media)
		}
		if size > 0 {
			fmt.Fprintf(&b, " %d bytes", size)
		}
		if about := strings.TrimSpace(name + ". " + description); about != "." {
			b.WriteString(": " + event.CutText(strings.ReplaceAll(about, "\n", " "), maxAbout))
		}
		b.WriteByte('\n')
		return true
	}
	for r, err := range n.client.Resources(ctx, nil) {
		if err != nil {
			return "", err
		}
		if r != nil && !add(r.URI, r.MIMEType, r.Name, r.Description, r.Size) {
			return b.String(), nil
		}
	}
	for r, err := range n.client.ResourceTemplates(ctx, nil) {
		if err != nil {
			if unknownMethod(err) {
				break
			}
			return "", err
		}
		if r != nil && !add(r.URITemplate, r.MIMEType, r.Name, r.Description, 0) {
			break
		}
	}
	if b.Len() == 0 {
		return "the server has no resources", nil
	}
	return b.String(), nil
}
