package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// newFixtures is a server with all that the suites ask for, by the names they know.
func newFixtures() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "belay-conformance", Version: "1"}, &sdk.ServerOptions{
		CompletionHandler: func(context.Context, *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
			return &sdk.CompleteResult{Completion: sdk.CompletionResultDetails{Values: []string{}}}, nil
		},
		SubscribeHandler:   func(context.Context, *sdk.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *sdk.UnsubscribeRequest) error { return nil },
	})
	addContents(s)
	addResources(s)
	addPrompts(s)
	addForms(s)
	addRounds(s)
	return s
}

// fixture adds a tool without arguments of its own.
func fixture(s *sdk.Server, name string, f func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error)) {
	sdk.AddTool(s, &sdk.Tool{Name: name, Description: name}, func(ctx context.Context, r *sdk.CallToolRequest, _ map[string]any) (*sdk.CallToolResult, any, error) {
		res, err := f(ctx, r)
		return res, nil, err
	})
}

// says adds a tool that always gives the same.
func says(s *sdk.Server, name string, content ...sdk.Content) {
	fixture(s, name, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: content}, nil
	})
}

func text(format string, args ...any) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprintf(format, args...)}}}
}

func decoded(s string) []byte {
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		panic(err) // a constant
	}
	return b
}

var (
	picture = decoded("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==") // a red dot
	sound   = decoded("UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=")                                     // silence
)

// schema202012 has what JSON Schema 2020-12 brought: it has to arrive as it is.
const schema202012 = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
"$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},
"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},"contactMethod":{"type":"string","enum":["phone","email"]},"phone":{"type":"string"},"email":{"type":"string"}},
"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],
"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},"then":{"required":["phone"]},"else":{"required":["email"]},
"additionalProperties":false}`

// addContents adds tools by what their results are.
func addContents(s *sdk.Server) {
	embedded := func(uri string) sdk.Content {
		return &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: uri, MIMEType: "text/plain", Text: "This is an embedded resource"}}
	}
	image := &sdk.ImageContent{Data: picture, MIMEType: "image/png"}
	says(s, "test_simple_text", &sdk.TextContent{Text: "This is a simple text response for testing."})
	says(s, "test_image_content", image)
	says(s, "test_audio_content", &sdk.AudioContent{Data: sound, MIMEType: "audio/wav"})
	says(s, "test_embedded_resource", embedded("test://embedded-resource"))
	says(s, "test_multiple_content_types", &sdk.TextContent{Text: "This is text content"}, image, embedded("test://embedded-in-multiple"))
	says(s, "test_streaming_elicitation", &sdk.TextContent{Text: "nothing is asked on the stream of an answer"})
	says(s, "test_logging_tool", &sdk.TextContent{Text: "nothing is logged to a client that doesn't want it"})
	fixture(s, "test_error_handling", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return nil, errors.New("This tool intentionally returns an error for testing")
	})
	fixture(s, "test_tool_with_progress", func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		token := r.Params.GetProgressToken()
		for _, done := range []float64{0, 50, 100} {
			if err := r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: done, Total: 100}); err != nil {
				return nil, err
			}
			time.Sleep(20 * time.Millisecond) // the suite wants them apart
		}
		return text("%v", token), nil
	})
	fixture(s, "test_reconnection", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if r.Extra != nil && r.Extra.CloseSSEStream != nil {
			r.Extra.CloseSSEStream(sdk.CloseSSEStreamArgs{RetryAfter: 10 * time.Millisecond})
		}
		time.Sleep(100 * time.Millisecond) // the client comes back meanwhile
		return text("the client came back"), nil
	})
	fixture(s, "test_missing_capability", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if caps := r.ClientCapabilities(); caps != nil && caps.Sampling != nil {
			return text("the client can do it"), nil
		}
		return nil, &jsonrpc.Error{Code: sdk.CodeMissingRequiredClientCapabilities, Message: "the client can't give completions", Data: json.RawMessage(`{"requiredCapabilities":{"sampling":{}}}`)}
	})
	fixture(s, "test_trigger_tool_change", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		says(s, "passing_tool", &sdk.TextContent{Text: "nothing"})
		return text("the tools changed"), nil
	})
	fixture(s, "test_trigger_prompt_change", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		prompt(s, "passing_prompt", nil, func(map[string]string) []*sdk.PromptMessage { return nil })
		return text("the prompts changed"), nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "json_schema_2020_12_tool", Description: "Has a schema of the newest kind.", InputSchema: json.RawMessage(schema202012)},
		func(_ context.Context, _ *sdk.CallToolRequest, in json.RawMessage) (*sdk.CallToolResult, any, error) {
			return text("called with %s", in), nil, nil
		})
	type header struct {
		Region string `json:"region,omitempty"`
		Level  int    `json:"level,omitempty"`
	}
	sdk.AddTool(s, &sdk.Tool{Name: "test_x_mcp_header", Description: "Has an argument that a header repeats.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"level":{"type":"integer"}}}`)},
		func(_ context.Context, _ *sdk.CallToolRequest, in header) (*sdk.CallToolResult, any, error) {
			return text("region=%s", in.Region), nil, nil
		})
}

// addResources adds what can be read.
func addResources(s *sdk.Server) {
	add := func(name, media string, c sdk.ResourceContents) {
		c.URI, c.MIMEType = "test://"+name, media
		s.AddResource(&sdk.Resource{Name: name, Description: name, MIMEType: media, URI: c.URI}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{&c}}, nil
		})
	}
	add("static-text", "text/plain", sdk.ResourceContents{Text: "This is the content of the static text resource."})
	add("static-binary", "image/png", sdk.ResourceContents{Blob: picture})
	add("watched-resource", "text/plain", sdk.ResourceContents{Text: "Watched resource content"})
	s.AddResourceTemplate(&sdk.ResourceTemplate{Name: "template", Description: "A resource by its id.", MIMEType: "application/json", URITemplate: "test://template/{id}/data"},
		func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			id := strings.TrimSuffix(strings.TrimPrefix(r.Params.URI, "test://template/"), "/data")
			b, err := json.Marshal(map[string]any{"id": id, "templateTest": true, "data": "Data for ID: " + id})
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, MIMEType: "application/json", Text: string(b)}}}, err
		})
}

// prompt adds a prompt with required arguments.
func prompt(s *sdk.Server, name string, args []string, f func(map[string]string) []*sdk.PromptMessage) {
	p := &sdk.Prompt{Name: name, Description: name}
	for _, a := range args {
		p.Arguments = append(p.Arguments, &sdk.PromptArgument{Name: a, Description: a, Required: true})
	}
	s.AddPrompt(p, func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return &sdk.GetPromptResult{Description: name, Messages: f(r.Params.Arguments)}, nil
	})
}

func said(all ...sdk.Content) (messages []*sdk.PromptMessage) {
	for _, c := range all {
		messages = append(messages, &sdk.PromptMessage{Role: "user", Content: c})
	}
	return messages
}

func addPrompts(s *sdk.Server) {
	prompt(s, "test_simple_prompt", nil, func(map[string]string) []*sdk.PromptMessage {
		return said(&sdk.TextContent{Text: "This is a simple prompt for testing."})
	})
	prompt(s, "test_prompt_with_arguments", []string{"arg1", "arg2"}, func(args map[string]string) []*sdk.PromptMessage {
		return said(&sdk.TextContent{Text: fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", args["arg1"], args["arg2"])})
	})
	prompt(s, "test_prompt_with_embedded_resource", []string{"resourceUri"}, func(args map[string]string) []*sdk.PromptMessage {
		return said(&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: args["resourceUri"], MIMEType: "text/plain", Text: "Embedded resource content for testing."}}, &sdk.TextContent{Text: "Please process the embedded resource above."})
	})
	prompt(s, "test_prompt_with_image", nil, func(map[string]string) []*sdk.PromptMessage {
		return said(&sdk.ImageContent{Data: picture, MIMEType: "image/png"}, &sdk.TextContent{Text: "Please analyze the image above."})
	})
}
