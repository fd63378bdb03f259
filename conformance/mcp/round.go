package main

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// form is what a person is asked for.
func form(message, schema string) *sdk.ElicitParams {
	return &sdk.ElicitParams{Mode: "form", Message: message, RequestedSchema: json.RawMessage(schema)}
}

const (
	nameForm  = `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`
	colorForm = `{"type":"object","properties":{"color":{"type":"string"}},"required":["color"]}`
	okForm    = `{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}`

	defaultsForm = `{"type":"object","properties":{"name":{"type":"string","default":"John Doe"},"age":{"type":"integer","default":30},"score":{"type":"number","default":95.5},
"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},"verified":{"type":"boolean","default":true}}}`
	choicesForm = `{"type":"object","properties":{
"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},
"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]},
"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},
"untitledMulti":{"type":"array","minItems":1,"maxItems":3,"items":{"type":"string","enum":["option1","option2","option3"]}},
"titledMulti":{"type":"array","minItems":1,"maxItems":3,"items":{"type":"string","anyOf":[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]}}}}`
)

// addForms adds tools that ask a person while they run, as older protocols have it.
func addForms(s *sdk.Server) {
	asks := func(name, message, schema string) {
		fixture(s, name, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			res, err := r.Session.Elicit(ctx, form(message, schema))
			if err != nil {
				return nil, err
			}
			return text("Elicitation result: action=%s, content=%v", res.Action, res.Content), nil
		})
	}
	asks("test_elicitation", "Which name?", `{"type":"object","properties":{"username":{"type":"string"}},"required":["username"]}`)
	asks("test_elicitation_sep1034_defaults", "With defaults", defaultsForm)
	asks("test_elicitation_sep1330_enums", "With choices", choicesForm)
}

// accepted is what a person filled in; nil: nothing.
func accepted(answers sdk.InputResponseMap, key string) map[string]any {
	if e, ok := answers[key].(*sdk.ElicitResult); ok && e.Action == "accept" {
		return e.Content
	}
	return nil
}

// asked ends a round with a question.
func asked(key string, f *sdk.ElicitParams, state string) *sdk.CallToolResult {
	return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{key: f}, RequestState: state}
}

// addRounds adds tools that ask between two rounds of a call, as protocol 2026-07-28 has it.
func addRounds(s *sdk.Server) {
	fixture(s, "test_input_required_result_elicitation", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if a := accepted(r.Params.InputResponses, "user_name"); a != nil {
			return text("Hello, %v!", a["name"]), nil
		}
		return asked("user_name", form("What is your name?", nameForm), ""), nil
	})
	confirms := func(name, good string) {
		fixture(s, name, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			state := r.Params.RequestState
			if state != "" && state != name {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the state was changed"}
			}
			if state != "" && accepted(r.Params.InputResponses, "confirm") != nil {
				return text("%s", good), nil
			}
			return asked("confirm", form("Please confirm", okForm), name), nil
		})
	}
	confirms("test_input_required_result_request_state", "state-ok: it came back as it was")
	confirms("test_input_required_result_tampered_state", "state-ok: it came back as it was")
	fixture(s, "test_input_required_result_multi_round", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		switch name, second := strings.CutPrefix(r.Params.RequestState, "2 "); {
		case second:
			return text("%s likes %v", name, accepted(r.Params.InputResponses, "step2")["color"]), nil
		case r.Params.RequestState == "1":
			name, _ := accepted(r.Params.InputResponses, "step1")["name"].(string)
			return asked("step2", form("Which colour?", colorForm), "2 "+name), nil
		}
		return asked("step1", form("Which name?", nameForm), "1"), nil
	})
	fixture(s, "test_input_required_result_capabilities", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		caps := r.ClientCapabilities()
		if len(r.Params.InputResponses) > 0 || caps == nil || caps.Elicitation == nil {
			return text("there is nothing to ask"), nil
		}
		return asked("user_name", form("What is your name?", nameForm), ""), nil
	})
	s.AddPrompt(&sdk.Prompt{Name: "test_input_required_result_prompt", Description: "Asks first."}, func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		if a := accepted(r.Params.InputResponses, "user_context"); a != nil {
			return &sdk.GetPromptResult{Messages: said(&sdk.TextContent{Text: text("Context: %v", a["context"]).Content[0].(*sdk.TextContent).Text})}, nil
		}
		return &sdk.GetPromptResult{InputRequests: sdk.InputRequestMap{"user_context": form("Which context?", `{"type":"object","properties":{"context":{"type":"string"}},"required":["context"]}`)}}, nil
	})
}
