package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"github.com/belay-run/belay/internal/lib/lru"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/openai"
	"github.com/belay-run/belay/internal/model/wire"
)

// gpt is a model that reasons and takes pictures.
const gpt = "gpt-5"

var openaiChat = oracle{
	name: "openai-chat", model: gpt, path: "/v1",
	adapter: func(e wire.Endpoint) model.Provider {
		return &openai.Chat{Service: wire.Service{Endpoint: e, Prefixes: wire.NewPrefixes(lru.New(1 << 20)), Images: openai.TakesImages}}
	},
	ask: askChat,
	again: func(body []byte) ([]byte, error) {
		var p sdk.ChatCompletionNewParams
		var forced struct { // the library can't tell the kinds of choices apart when it reads them
			Choice *sdk.ChatCompletionNamedToolChoiceParam `json:"tool_choice"`
		}
		if err := errors.Join(json.Unmarshal(body, &p), json.Unmarshal(body, &forced)); err != nil {
			return nil, err
		}
		p.ToolChoice = sdk.ChatCompletionToolChoiceOptionUnionParam{OfFunctionToolChoice: forced.Choice}
		return streaming(json.Marshal(p))
	},
}

var openaiResponses = oracle{
	name: "openai", model: gpt, path: "/v1",
	adapter: func(e wire.Endpoint) model.Provider {
		return &openai.Responses{Service: wire.Service{Endpoint: e, Prefixes: wire.NewPrefixes(lru.New(1 << 20)), Images: openai.TakesImages}}
	},
	ask: askResponses,
	again: func(body []byte) ([]byte, error) {
		var p responses.ResponseNewParams
		var forced struct {
			Choice *responses.ToolChoiceFunctionParam `json:"tool_choice"`
		}
		if err := errors.Join(json.Unmarshal(body, &p), json.Unmarshal(body, &forced)); err != nil {
			return nil, err
		}
		p.ToolChoice = responses.ResponseNewParamsToolChoiceUnion{OfFunctionTool: forced.Choice}
		return streaming(json.Marshal(p))
	},
}

// streaming adds what the libraries say outside of their types: that the answer
// is to be a stream.
func streaming(body []byte, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return append(bytes.TrimSuffix(body, []byte("}")), `,"stream":true}`...), nil
}

// parameters are those of the shared conversation's tools.
var parameters = map[string]any{"type": "object", "properties": map[string]any{"path": map[string]any{"type": "string"}}}

func askChat(ctx context.Context, base string, full bool) said {
	client := sdk.NewClient(option.WithBaseURL(base+"/v1"), option.WithAPIKey(key), option.WithMaxRetries(0))
	p := sdk.ChatCompletionNewParams{Model: gpt, Messages: []sdk.ChatCompletionMessageParamUnion{sdk.UserMessage("go")},
		StreamOptions: sdk.ChatCompletionStreamOptionsParam{IncludeUsage: sdk.Bool(true)}}
	if full {
		p.ToolChoice = sdk.ToolChoiceOptionFunctionToolChoice(sdk.ChatCompletionNamedToolChoiceFunctionParam{Name: "read"})
		p.Tools = []sdk.ChatCompletionToolUnionParam{
			sdk.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: "read", Parameters: parameters}),
			sdk.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: "list", Parameters: parameters})}
		answer := sdk.AssistantMessage("I look.")
		for _, c := range [][3]string{{"call_1", "read", `{"path":"a"}`}, {"call_2", "list", `{}`}} {
			answer.OfAssistant.ToolCalls = append(answer.OfAssistant.ToolCalls, sdk.ChatCompletionMessageToolCallUnionParam{OfFunction: &sdk.ChatCompletionMessageFunctionToolCallParam{
				ID: c[0], Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{Name: c[1], Arguments: c[2]}}})
		}
		p.Messages = []sdk.ChatCompletionMessageParamUnion{sdk.SystemMessage("be <brief>"),
			sdk.UserMessage([]sdk.ChatCompletionContentPartUnionParam{sdk.TextContentPart("see & tell"), sdk.ImageContentPart(sdk.ChatCompletionContentPartImageImageURLParam{URL: "data:image/png;base64,cG5n"})}),
			answer, sdk.ToolMessage("A", "call_1"), sdk.ToolMessage("bad", "call_2"),
			sdk.UserMessage([]sdk.ChatCompletionContentPartUnionParam{sdk.TextContentPart("[belay] read returned: a.png"), sdk.ImageContentPart(sdk.ChatCompletionContentPartImageImageURLParam{URL: "data:image/png;base64,cG5n"})}),
			sdk.UserMessage("go on")}
	}
	stream := client.Chat.Completions.NewStreaming(ctx, p)
	defer stream.Close() //nolint:errcheck // it was read
	var acc sdk.ChatCompletionAccumulator
	for stream.Next() {
		if !acc.AddChunk(stream.Current()) {
			return said{Failed: true, Text: "the chunks don't belong together"}
		}
	}
	var out said
	if len(acc.Choices) > 0 {
		out.Text = acc.Choices[0].Message.Content
	}
	if failed(&out, stream.Err()) {
		return out
	}
	for _, c := range acc.Choices[0].Message.ToolCalls {
		out.Calls = append(out.Calls, call{c.Function.Name, compact(c.Function.Arguments)})
	}
	out.Input, out.Output, out.Cached = acc.Usage.PromptTokens, acc.Usage.CompletionTokens, acc.Usage.PromptTokensDetails.CachedTokens
	if out.Stop = acc.Choices[0].FinishReason; out.Stop == "content_filter" {
		out.Stop = "refused"
	}
	return out
}

// failed notes an error of a stream.
func failed(out *said, err error) bool {
	if e, ok := errors.AsType[*sdk.Error](err); ok && e.StatusCode >= 400 {
		out.Status = e.StatusCode
	}
	out.Failed = err != nil
	return out.Failed
}

// resultOf is a call's result.
func resultOf[T string | responses.ResponseFunctionCallOutputItemListParam](id string, output T) responses.ResponseInputItemUnionParam {
	v := responses.ResponseInputItemParamOfFunctionCallOutput(output)
	v.OfFunctionCallOutput.CallID = sdk.String(id)
	return v
}

func askResponses(ctx context.Context, base string, full bool) said {
	client := sdk.NewClient(option.WithBaseURL(base+"/v1"), option.WithAPIKey(key), option.WithMaxRetries(0))
	p := responses.ResponseNewParams{Model: gpt, Store: sdk.Bool(false)}
	p.Input.OfInputItemList = responses.ResponseInputParam{responses.ResponseInputItemParamOfMessage("go", "user")}
	if full {
		p.Instructions = sdk.String("be <brief>")
		p.ToolChoice.OfFunctionTool = &responses.ToolChoiceFunctionParam{Name: "read"}
		p.Tools = []responses.ToolUnionParam{responses.ToolParamOfFunction("read", parameters, false), responses.ToolParamOfFunction("list", parameters, false)}
		see := responses.ResponseInputMessageContentListParam{responses.ResponseInputContentParamOfInputText("see & tell"), responses.ResponseInputContentParamOfInputImage("auto")}
		see[1].OfInputImage.ImageURL = sdk.String("data:image/png;base64,cG5n")
		read := responses.ResponseFunctionCallOutputItemListParam{{OfInputText: &responses.ResponseInputTextContentParam{Text: "A"}}, {OfInputImage: &responses.ResponseInputImageContentParam{ImageURL: sdk.String("data:image/png;base64,cG5n")}}}
		p.Input.OfInputItemList = responses.ResponseInputParam{
			responses.ResponseInputItemParamOfMessage(see, "user"), responses.ResponseInputItemParamOfMessage("I look.", "assistant"),
			responses.ResponseInputItemParamOfFunctionCall(`{"path":"a"}`, "call_1", "read"), responses.ResponseInputItemParamOfFunctionCall(`{}`, "call_2", "list"),
			resultOf("call_1", read), resultOf("call_2", "bad"),
			responses.ResponseInputItemParamOfMessage("go on", "user")}
	}
	stream := client.Responses.NewStreaming(ctx, p)
	defer stream.Close() //nolint:errcheck // it was read
	var out said
	var last responses.Response
	for stream.Next() {
		switch ev := stream.Current(); ev.Type {
		case "response.output_text.delta", "response.refusal.delta":
			out.Text += ev.Delta
		case "response.completed", "response.incomplete", "response.failed":
			last = ev.Response
		}
	}
	if failed(&out, stream.Err()) || last.Status == "failed" || last.Status == "" {
		out.Failed = true
		return out
	}
	out.Stop = map[string]string{"": "stop", "max_output_tokens": "length", "content_filter": "refused"}[last.IncompleteDetails.Reason]
	for _, item := range last.Output {
		switch v := item.AsAny().(type) {
		case responses.ResponseFunctionToolCall:
			out.Calls = append(out.Calls, call{v.Name, compact(v.Arguments)})
			out.Stop = "tool_calls"
		case responses.ResponseOutputMessage:
			for _, c := range v.Content {
				if c.Type == "refusal" {
					out.Stop = "refused"
				}
			}
		}
	}
	out.Input, out.Output, out.Cached = last.Usage.InputTokens, last.Usage.OutputTokens, last.Usage.InputTokensDetails.CachedTokens
	return out
}
