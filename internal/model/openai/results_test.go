package openai

import (
	"context"
	"testing"

	"github.com/belay-run/belay"
)

// TestAPictureOfAResultIsSentAsTheProtocolWants: in the output of a call, or, where results
// are texts, behind all results as what the user says.
func TestAPictureOfAResultIsSentAsTheProtocolWants(t *testing.T) {
	read := func(context.Context, belay.Digest) ([]byte, error) { return []byte("abc"), nil }
	m := &belay.Message{Role: belay.RoleTool, Parts: []belay.Part{
		{Result: &belay.ToolResult{ID: "call_1", Name: "web_fetch", Text: "one", Parts: []belay.Part{{Image: &belay.Attachment{Name: "a.png", Ref: belay.Ref{Media: "image/png"}}}}}},
		{Result: &belay.ToolResult{ID: "call_2", Text: "two"}},
	}}
	chat, err := chatMessage(t.Context(), nil, m, read)
	if want := `,{"role":"tool","content":"one","tool_call_id":"call_1"},{"role":"tool","content":"two","tool_call_id":"call_2"},{"role":"user","content":[{"type":"text","text":"[belay] web_fetch returned: a.png"},{"type":"image_url","image_url":{"url":"data:image/png;base64,YWJj"}}]}`; err != nil || string(chat) != want {
		t.Errorf("%s, %v", chat, err)
	}
	items, err := appendItems(t.Context(), nil, m, "", read)
	if want := `,{"type":"function_call_output","call_id":"call_1","output":[{"type":"input_text","text":"one"},{"type":"input_image","image_url":"data:image/png;base64,YWJj"}]},{"type":"function_call_output","call_id":"call_2","output":"two"}`; err != nil || string(items) != want {
		t.Errorf("%s, %v", items, err)
	}
}
