package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// happening is one event of an answer. Events of types that aren't known are
// left alone: the protocol grows.
type happening struct {
	Type      string          `json:"type"`
	Seq       int64           `json:"sequence_number"`
	Output    int             `json:"output_index"`
	Part      int             `json:"content_index"`
	Summary   int             `json:"summary_index"`
	Delta     string          `json:"delta"`
	Text      string          `json:"text"`
	Refusal   string          `json:"refusal"`
	Arguments string          `json:"arguments"`
	Item      *outputItem     `json:"item"`
	Response  json.RawMessage `json:"response"`
	Error     json.RawMessage `json:"error"`
	Code      json.RawMessage `json:"code"`
	Message   string          `json:"message"`
}

// outputItem is an item of an answer as an event has it.
type outputItem struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Content   []outputPart    `json:"content"`
	Summary   []outputPart    `json:"summary"`
	Encrypted string          `json:"encrypted_content"`
	Result    string          `json:"result"` // a picture, in base64
	Format    string          `json:"output_format"`
	Action    *searchAction   `json:"action"` // of a search
	Status    string          `json:"status"`
	raw       json.RawMessage // the item as it came
}

type outputPart struct {
	Type    string `json:"type"`
	Text    string `json:"text"`
	Refusal string `json:"refusal"`
}

// UnmarshalJSON keeps the bytes of an item that goes back as it came.
func (o *outputItem) UnmarshalJSON(b []byte) error {
	type plain outputItem
	if err := json.Unmarshal(b, (*plain)(o)); err != nil {
		return err
	}
	if o.Type == "reasoning" || o.Type == "web_search_call" {
		o.raw = bytes.Clone(b)
	}
	return nil
}

// endOf is what the last event says of the whole answer.
type endOf struct {
	Status     string          `json:"status"`
	Output     []*outputItem   `json:"output"`
	Error      json.RawMessage `json:"error"`
	Incomplete struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Usage *struct {
		Input   int64 `json:"input_tokens"`
		Output  int64 `json:"output_tokens"`
		Details struct {
			Cached int64 `json:"cached_tokens"`
			Write  int64 `json:"cache_write_tokens"` // OpenRouter
		} `json:"input_tokens_details"`
		Out struct {
			Reasoning int64 `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
	} `json:"usage"`
}

// errorBody is the content of an error event; servers differ in whether its
// fields are in an object of their own.
func errorBody(h *happening) json.RawMessage {
	if len(h.Error) > 0 && string(h.Error) != "null" {
		return h.Error
	}
	b, err := json.Marshal(struct {
		Code    json.RawMessage `json:"code,omitempty"`
		Message string          `json:"message"`
	}{h.Code, h.Message})
	if err != nil {
		return nil // both came as JSON
	}
	return b
}

// problem is a failure that came inside the stream, after status 200.
func (d *decoder) problem(body json.RawMessage) error {
	var e struct {
		Code string `json:"code"`
	}
	json.Unmarshal(body, &e) //nolint:errcheck // a number or nothing: there is no code then
	return d.End.StreamFailure(statusFor(e.Code), fmt.Appendf(nil, `{"error":%s}`, cmp.Or(string(body), `""`)))
}

// statusFor is the status that a failure would have had before the stream began.
// Source: ResponseError in the API's description, November 2026.
func statusFor(code string) int {
	switch code {
	case "rate_limit_exceeded", "insufficient_quota":
		return http.StatusTooManyRequests
	case "invalid_api_key":
		return http.StatusUnauthorized
	case "invalid_prompt", "content_filter", "content_policy_violation", "context_length_exceeded", "bio_policy", "cyber_policy",
		"invalid_request_error", "image_content_policy_violation", "failed_to_download_image", "image_file_not_found", "empty_image_file":
		return http.StatusBadRequest
	}
	if strings.HasPrefix(code, "invalid_image") || strings.HasPrefix(code, "image_") || strings.HasPrefix(code, "unsupported_") {
		return http.StatusBadRequest
	}
	return http.StatusInternalServerError
}
