package wire

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// tooLong are the words by which vendors and servers refuse a request that is longer
// than the model's context, in lower case. They have no common code for it. Where
// the refusal names the limit, after says behind which words its number stands.
type tooLong struct{ says, after string }

func tooLongTexts() []tooLong {
	return []tooLong{
		{"exceed context limit", ">"},                                        // Anthropic: input length and `max_tokens` exceed context limit: A + B > C
		{"prompt is too long", ">"},                                          // Anthropic: N tokens > M maximum
		{"input is too long for requested model", ""},                        // Bedrock
		{"exceeds the context window", ""},                                   // OpenAI Responses
		{"maximum context length", "maximum context length"},                 // OpenAI Chat, vLLM, OpenRouter
		{"input token count", "maximum number of tokens allowed"},            // Gemini
		{"maximum prompt length is", "maximum prompt length is"},             // xAI
		{exceedsLimit, exceedsLimit},                                         // Copilot: prompt token count of N exceeds the limit of M
		{"reduce the length of the messages", ""},                            // Groq
		{"exceeds the available context size", "the available context size"}, // llama.cpp
		{"greater than the context length", ""},                              // LM Studio
		{"longer than the model's context length", "context length"},         // SGLang
		{"exceeded model token limit", "exceeded model token limit"},         // Moonshot
		{"context window exceeds limit", ""},                                 // MiniMax; the number behind it is a code
		{"context length exceeded", ""},
	}
}

// exceedsLimit are words that errors about other limits have as well.
const exceedsLimit = "exceeds the limit of"

// leastContext is the smallest context, in tokens, that is believed of a server.
const leastContext = 256

// overflow reports whether a failure means that the conversation is too long for the
// model, and the model's context in tokens if the refusal says it.
func overflow(status int, code, text string, body []byte) (limit int64, is bool) {
	lower := strings.ToLower(text)
	for _, t := range tooLongTexts() {
		if !strings.Contains(lower, t.says) {
			continue
		}
		if t.after != "" {
			_, rest, _ := strings.Cut(lower, t.after)
			limit = tokensIn(rest)
		}
		if t.says != exceedsLimit || limit > 0 {
			is = true
			break
		}
	}
	switch code {
	case "context_length_exceeded", "exceed_context_size_error", "request_too_large":
		is = true
	}
	if is = is || status == http.StatusRequestEntityTooLarge; is && limit == 0 {
		limit = windowIn(body)
	}
	return limit, is
}

// tokensIn is the number of tokens that a text begins with, after a few words or
// signs; 0 if it begins with something else, or the number counts something else.
func tokensIn(s string) int64 {
	const digits = "0123456789"
	i := strings.IndexAny(s, digits)
	if i < 0 || i > len(" is: (") {
		return 0
	}
	number := s[i : len(s)-len(strings.TrimLeft(s[i:], digits+","))]
	n, err := strconv.ParseInt(strings.ReplaceAll(number, ",", ""), 10, 64)
	if err != nil || n < leastContext || n > 1<<40 {
		return 0
	}
	unit, _, _ := strings.Cut(strings.TrimLeft(s[i+len(number):], " "), " ")
	switch strings.TrimRight(unit, "s.,;)") {
	case "byte", "character", "char", "kb", "mb", "image", "file", "message", "tool", "request":
		return 0
	}
	return n
}

// windowIn is the context that llama.cpp names in a field of its refusal.
func windowIn(body []byte) int64 {
	var shape struct {
		Error struct {
			Window int64 `json:"n_ctx"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &shape) != nil || shape.Error.Window < leastContext {
		return 0
	}
	return shape.Error.Window
}
