package conformance

import (
	"context"
	"encoding/json"
	"errors"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/lru"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/anthropic"
	"github.com/belay-run/belay/internal/model/wire"
)

// claude is a model that thinks within a budget.
const claude = "claude-opus-4-5"

var anthropicMessages = oracle{
	name: "anthropic", model: claude, path: "/v1",
	adapter: func(e wire.Endpoint) model.Provider {
		return &anthropic.Messages{Service: wire.Service{Endpoint: e, Prefixes: wire.NewPrefixes(lru.New(1 << 20)), Images: anthropic.TakesImages, Files: anthropic.TakesFiles}}
	},
	ask:   askMessages,
	again: againMessages,
	spell: func(v map[string]any) { // a text stands for a list of one
		if text, ok := v["content"].(string); ok && v["type"] == "tool_result" {
			v["content"] = []any{map[string]any{"type": "text", "text": text}}
		}
	},
	before: &belay.Echo{By: "anthropic/claude-opus-4-5", Data: json.RawMessage(`{"blocks":[{"type":"thinking","thinking":"hm","signature":"signed"}]}`)},
}

func askMessages(ctx context.Context, base string, shared bool) said {
	client := sdk.NewClient(option.WithBaseURL(base), option.WithAPIKey(key), option.WithMaxRetries(0))
	p := sdk.MessageNewParams{Model: claude, MaxTokens: 500, Messages: []sdk.MessageParam{sdk.NewUserMessage(sdk.NewTextBlock("go"))}}
	if shared {
		p.System = []sdk.TextBlockParam{{Text: "be <brief>"}}
		p.ToolChoice = sdk.ToolChoiceParamOfTool("read")
		schema := sdk.ToolInputSchemaParam{Properties: map[string]any{"path": map[string]any{"type": "string"}}}
		p.Tools = []sdk.ToolUnionParam{sdk.ToolUnionParamOfTool(schema, "read"), sdk.ToolUnionParamOfTool(schema, "list")}
		read := sdk.NewToolResultBlock("call_1", "A", false)
		read.OfToolResult.Content = append(read.OfToolResult.Content, sdk.ToolResultBlockParamContentUnion{OfImage: sdk.NewImageBlockBase64("image/png", "cG5n").OfImage})
		p.Messages = []sdk.MessageParam{
			sdk.NewUserMessage(sdk.NewTextBlock("see & tell"), sdk.NewImageBlockBase64("image/png", "cG5n")),
			sdk.NewAssistantMessage(sdk.NewThinkingBlock("signed", "hm"), sdk.NewTextBlock("I look."),
				sdk.NewToolUseBlock("call_1", map[string]any{"path": "a"}, "read"), sdk.NewToolUseBlock("call_2", map[string]any{}, "list")),
			sdk.NewUserMessage(read, sdk.NewToolResultBlock("call_2", "bad", true), sdk.NewTextBlock("go on")),
		}
	}
	stream := client.Messages.NewStreaming(ctx, p)
	defer stream.Close() //nolint:errcheck // it was read
	var m sdk.Message
	var out said
	for stream.Next() {
		ev := stream.Current()
		if err := m.Accumulate(ev); err != nil {
			return said{Failed: true, Text: err.Error()}
		}
		if d := ev.Delta; ev.Type == "content_block_delta" && d.Type == "text_delta" {
			out.Text += d.Text
		}
	}
	if err := stream.Err(); err != nil {
		out.Failed = true
		if e, ok := errors.AsType[*sdk.Error](err); ok && e.StatusCode >= 400 {
			out.Status = e.StatusCode
		}
		return out
	}
	for _, b := range m.Content {
		if b.Type == "tool_use" {
			out.Calls = append(out.Calls, call{b.Name, compact(string(b.Input))})
		}
	}
	u := m.Usage
	out.Input, out.Output, out.Cached = u.InputTokens+u.CacheReadInputTokens+u.CacheCreationInputTokens, u.OutputTokens, u.CacheReadInputTokens
	out.Stop = map[sdk.StopReason]string{sdk.StopReasonEndTurn: "stop", sdk.StopReasonToolUse: "tool_calls", sdk.StopReasonMaxTokens: "length", sdk.StopReasonRefusal: "refused"}[m.StopReason]
	return out
}

func againMessages(body []byte) ([]byte, error) {
	var p sdk.MessageNewParams
	if err := json.Unmarshal(body, &p); err != nil {
		return nil, err
	}
	return streaming(json.Marshal(p))
}
