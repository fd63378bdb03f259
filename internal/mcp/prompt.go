package mcp

import (
	"context"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/belay-run/belay/internal/config/manifest"
	"github.com/belay-run/belay/internal/tool"
)

// kindPrompt is the kind of a prompt: a text that a server makes of arguments.
const kindPrompt = "prompt"

// Prompts are the prompts among definitions.
func Prompts(defs []Definition) (all []Definition) {
	for _, d := range defs {
		if d.Kind == kindPrompt {
			all = append(all, d)
		}
	}
	return all
}

// maxArguments bounds the arguments of a prompt.
const maxArguments = 50

// readPrompt takes what a server says of a prompt. why is what makes it unusable.
func readPrompt(p *sdk.Prompt) (d Definition, why string) {
	if p == nil {
		return d, "there is nothing in its place"
	}
	d = Definition{Kind: kindPrompt, Name: p.Name, Title: visible(p.Title), Description: visible(p.Description)}
	for _, a := range p.Arguments {
		if a != nil {
			d.Arguments = append(d.Arguments, Argument{a.Name, visible(a.Description), a.Required})
		}
	}
	switch {
	case d.Name == "" || len(d.Name) > maxName || d.Name != visible(d.Name):
		return d, "a prompt can't have this name"
	case len(d.Arguments) > maxArguments:
		return d, "the prompt has too many arguments"
	case len(d.Description) > maxText:
		return d, "the prompt's description is too long"
	}
	for _, a := range d.Arguments {
		if a.Name == "" || len(a.Name) > maxName || a.Name != visible(a.Name) || len(a.Description) > maxText {
			return d, "an argument of the prompt can't be used"
		}
	}
	return d, ""
}

// Part is a piece of what a server gave: a text, or content that isn't one.
type Part struct {
	Name    string // of a resource: its address
	Text    string
	Content []byte // nil: it is a text
}

// ReadResource reads a resource for a person: it starts the server outside of all
// sessions, within the boundary that box makes, and ends it.
func (p *Pool) ReadResource(ctx context.Context, s *manifest.Server, workspace string, box Boxing, uri string) (all []Part, err error) {
	err = p.visit(ctx, s, workspace, box, new(Looked), func(ctx context.Context, n *connection) error {
		got, err := n.client.ReadResource(ctx, &sdk.ReadResourceParams{URI: uri})
		if err != nil {
			return n.refusal(ctx, err)
		}
		if got.NeedsInput() {
			return asksBack(s)
		}
		all = parts(s.Name, contents(got))
		return nil
	})
	return all, err
}

// ReadPrompt has a server make a prompt, as ReadResource reads a resource. The text is what
// the person says; what the prompt brings besides it comes as parts.
func (p *Pool) ReadPrompt(ctx context.Context, s *manifest.Server, workspace string, box Boxing, is Definition, args map[string]string) (text string, more []Part, err error) {
	err = p.visit(ctx, s, workspace, box, new(Looked), func(ctx context.Context, n *connection) error {
		if !n.has(&is) {
			return tool.Failf(tool.Conflict, CodeChanged, "MCP server %s has changed or taken away its prompt %s since it was accepted", s.Name, is.Name).
				WithHint("a person accepts the change with belay mcp trust %s", s.Name)
		}
		got, err := n.client.GetPrompt(ctx, &sdk.GetPromptParams{Name: is.Name, Arguments: args})
		if err != nil {
			return n.refusal(ctx, err)
		}
		if got.NeedsInput() {
			return asksBack(s)
		}
		var said []string
		for _, m := range got.Messages {
			if m == nil {
				continue
			}
			for _, p := range parts(s.Name, []sdk.Content{m.Content}) {
				switch {
				case p.Name != "" || p.Content != nil:
					more = append(more, p)
				case m.Role == "user":
					said = append(said, p.Text)
				default:
					said = append(said, "["+string(m.Role)+"]\n"+p.Text)
				}
			}
		}
		text = strings.TrimSpace(visible(strings.Join(said, "\n\n")))
		return nil
	})
	return text, more, err
}

// asksBack is the error of a request outside of sessions that a person would have to
// answer.
func asksBack(s *manifest.Server) error {
	return tool.Failf(tool.Conflict, CodeRefused, "MCP server %s asks something before it gives that", s.Name).WithHint("have an agent do it: a server's question belongs to a call")
}

// parts are pieces of what a server gave.
func parts(server string, all []sdk.Content) (out []Part) {
	for _, c := range all {
		switch p := c.(type) {
		case *sdk.ImageContent:
			out = append(out, Part{Content: p.Data})
		case *sdk.EmbeddedResource:
			if p.Resource == nil {
				continue
			}
			one := Part{Name: visible(p.Resource.URI), Text: framed("MCP server "+server, p.Resource.Text)}
			if p.Resource.Text == "" && len(p.Resource.Blob) > 0 {
				one.Text, one.Content = "", p.Resource.Blob
			}
			out = append(out, one)
		default:
			if text := partText(c); text != "" {
				out = append(out, Part{Text: text})
			}
		}
	}
	return out
}
