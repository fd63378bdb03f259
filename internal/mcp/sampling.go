package mcp

import (
	"context"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/config/manifest"
	"github.com/belay-run/belay/internal/tool"
)

// Sampling is deprecated as of protocol 2026-07-28; servers of older ones, and of that one
// while it lasts, have their client's model answer something if a person says yes.

// mayUseModel reports whether the server's settings let it ask for that at all.
func mayUseModel(s *manifest.Server) bool { return s.Sampling == "ask" }

func (t *serverTool) mayUseModel() bool { return mayUseModel(t.server) }

// sampling handles what a server asks while it works.
//
//lint:ignore SA1019 as above
func (n *connection) sampling(ctx context.Context, r *sdk.CreateMessageWithToolsRequest) (*sdk.CreateMessageWithToolsResult, error) {
	a, err := n.asks(ctx, r.Params)
	if err != nil {
		return nil, err
	}
	//lint:ignore SA1019 as above
	if got, ok := a.(*sdk.CreateMessageWithToolsResult); ok && got != nil {
		return got, nil
	}
	return nil, &jsonrpc.Error{Code: -1, Message: "the user rejected the request for a model's answer"}
}

// sampled is a model's answer as servers read it; nil: there is none.
func sampled(a *tool.ModelAnswer) sdk.InputResponse {
	if a == nil {
		return nil
	}
	stop := "endTurn"
	if a.Stop == "length" {
		stop = "maxTokens"
	}
	//lint:ignore SA1019 as above
	return &sdk.CreateMessageWithToolsResult{Role: "assistant", Model: a.Model, StopReason: stop, Content: []sdk.Content{&sdk.TextContent{Text: a.Text}}}
}

// unsampled is the end of a call whose server needs an answer that it doesn't get.
func (t *serverTool) unsampled() error {
	return tool.Failf(tool.Denied, CodeRefused, "MCP server %s wants a model's answer, and gets none: a person said no, or the model gave none", t.server.Name).
		WithHint("do without it")
}

// maxWished is how many bytes of a request for a model a person is shown.
const maxWished = 4 << 10

// needsModel is a server's wish for a model's answer. state is nil where the server waits.
func (t *serverTool) needsModel(of sdk.InputRequest, state []byte) error {
	//lint:ignore SA1019 as above
	p, ok := of.(*sdk.CreateMessageWithToolsParams)
	if !ok || p == nil {
		return t.refused(of)
	}
	r := &tool.ModelRequest{System: visible(p.SystemPrompt), MaxTokens: p.MaxTokens}
	var shown strings.Builder
	if r.System != "" {
		fmt.Fprintf(&shown, "\nsystem: %s", r.System)
	}
	for _, m := range p.Messages {
		if m == nil {
			continue
		}
		var texts []string
		for _, c := range m.Content {
			if text := partText(c); text != "" {
				texts = append(texts, text)
			}
		}
		role, text := belay.RoleUser, visible(strings.Join(texts, "\n"))
		if m.Role == "assistant" {
			role = belay.RoleAssistant
		}
		r.Messages = append(r.Messages, belay.Text(role, text))
		fmt.Fprintf(&shown, "\n%s: %s", role, text)
	}
	return &tool.NeedsInput{FormAsked: event.FormAsked{Server: t.server.Name}, State: state, Request: r,
		Text: fmt.Sprintf("MCP server %s wants your model to answer this, in at most %d tokens at your cost. Answer yes, or deny it.%s", t.server.Name, p.MaxTokens, event.CutText(shown.String(), maxWished))}
}
