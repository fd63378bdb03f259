package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"google.golang.org/genai"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/lib/lru"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/google"
	"github.com/belay-run/belay/internal/model/wire"
)

// gemini is a model that wants its signatures back.
const gemini = "gemini-3-flash"

var googleGemini = oracle{
	name: "google", model: gemini, path: "/v1beta",
	adapter: func(e wire.Endpoint) model.Provider {
		return &google.Gemini{Service: wire.Service{Endpoint: e, Prefixes: wire.NewPrefixes(lru.New(1 << 20)), Images: google.TakesImages, Files: google.TakesFiles}}
	},
	ask:   askGemini,
	again: againGemini,
	spell: func(v map[string]any) { // no arguments are none
		if args, ok := v["args"].(map[string]any); ok && len(args) == 0 {
			delete(v, "args")
		}
	},
	plain: true,
	call:  &belay.Echo{By: "google/gemini-3-flash", Data: json.RawMessage(`{"signature":"c2lnbmVk"}`)},
}

func askGemini(ctx context.Context, base string, full bool) said {
	client, err := genai.NewClient(ctx, &genai.ClientConfig{APIKey: key, Backend: genai.BackendGeminiAPI,
		HTTPOptions: genai.HTTPOptions{BaseURL: base, APIVersion: "v1beta", RetryOptions: &genai.HTTPRetryOptions{Attempts: new(int32(1))}}})
	if err != nil {
		return said{Failed: true, Text: err.Error()}
	}
	contents, config := []*genai.Content{genai.NewContentFromText("go", genai.RoleUser)}, &genai.GenerateContentConfig{}
	if full {
		config.SystemInstruction = genai.NewContentFromText("be <brief>", genai.RoleUser)
		config.MaxOutputTokens = 500
		config.ToolConfig = &genai.ToolConfig{FunctionCallingConfig: &genai.FunctionCallingConfig{Mode: genai.FunctionCallingConfigModeAny, AllowedFunctionNames: []string{"read"}}}
		config.Tools = []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{{Name: "read", Description: "reads", ParametersJsonSchema: parameters}, {Name: "list", Description: "lists", ParametersJsonSchema: parameters}}}}
		first := genai.NewPartFromFunctionCall("read", map[string]any{"path": "a"})
		first.ThoughtSignature = []byte("signed")
		contents = []*genai.Content{
			genai.NewContentFromParts([]*genai.Part{genai.NewPartFromText("see & tell"), genai.NewPartFromBytes([]byte("png"), "image/png")}, genai.RoleUser),
			genai.NewContentFromParts([]*genai.Part{genai.NewPartFromText("I look."), first, genai.NewPartFromFunctionCall("list", map[string]any{})}, genai.RoleModel),
			genai.NewContentFromParts([]*genai.Part{genai.NewPartFromFunctionResponseWithParts("read", map[string]any{"output": "A"}, []*genai.FunctionResponsePart{genai.NewFunctionResponsePartFromBytes([]byte("png"), "image/png")}), genai.NewPartFromFunctionResponse("list", map[string]any{"error": "bad"})}, genai.RoleUser),
			genai.NewContentFromText("go on", genai.RoleUser),
		}
	}
	var out said
	for r, err := range client.Models.GenerateContentStream(ctx, gemini, contents, config) {
		if err != nil {
			out.Failed = true
			if e, ok := errors.AsType[genai.APIError](err); ok && e.Code == 429 {
				out.Status = e.Code
			}
			return out
		}
		heardOf(&out, r)
	}
	if len(out.Calls) > 0 && out.Stop == "stop" {
		out.Stop = "tool_calls"
	}
	return out
}

// heardOf adds a piece of an answer.
func heardOf(out *said, r *genai.GenerateContentResponse) {
	if u := r.UsageMetadata; u != nil {
		out.Input, out.Output, out.Cached = int64(u.PromptTokenCount), int64(u.CandidatesTokenCount+u.ThoughtsTokenCount), int64(u.CachedContentTokenCount)
	}
	for _, c := range r.Candidates {
		if c.Content != nil {
			for _, p := range c.Content.Parts {
				if !p.Thought {
					out.Text += p.Text
				}
				if f := p.FunctionCall; f != nil {
					args, _ := json.Marshal(f.Args) // it came as JSON
					out.Calls = append(out.Calls, call{f.Name, compact(string(args))})
				}
			}
		}
		if c.FinishReason != "" {
			out.Stop = map[genai.FinishReason]string{genai.FinishReasonStop: "stop", genai.FinishReasonMaxTokens: "length", genai.FinishReasonSafety: "refused"}[c.FinishReason]
		}
	}
}

// againGemini reads the request into the library's types; what they don't know
// is an error.
func againGemini(body []byte) ([]byte, error) {
	var q struct {
		System     *genai.Content          `json:"systemInstruction,omitempty"`
		Tools      []*genai.Tool           `json:"tools,omitempty"`
		Contents   []*genai.Content        `json:"contents"`
		ToolConfig *genai.ToolConfig       `json:"toolConfig,omitempty"`
		Generation *genai.GenerationConfig `json:"generationConfig,omitempty"`
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&q); err != nil {
		return nil, err
	}
	return json.Marshal(q)
}
