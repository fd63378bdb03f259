package openai

import (
	"context"
	"strings"
	"testing"

	"github.com/belay-run/belay"
)

// TestAPictureOfAResultFollowsTheResults as what the user says: the vendor's results
// are texts.
func TestAPictureOfAResultFollowsTheResults(t *testing.T) {
	read := func(context.Context, belay.Digest) ([]byte, error) { return []byte("abc"), nil }
	m := &belay.Message{Role: belay.RoleTool, Parts: []belay.Part{
		{Result: &belay.ToolResult{ID: "call_1", Text: "one"}}, {Result: &belay.ToolResult{ID: "call_2", Text: "two"}},
		{Text: "[belay] web_fetch returned: a.png"}, {Image: &belay.Attachment{Name: "a.png", Ref: belay.Ref{Media: "image/png"}}},
	}}
	chat, err := chatMessage(t.Context(), nil, m, read)
	if want := `,{"role":"tool","content":"one","tool_call_id":"call_1"},{"role":"tool","content":"two","tool_call_id":"call_2"},{"role":"user","content":[{"type":"text","text":"[belay] web_fetch returned: a.png"},{"type":"image_url","image_url":{"url":"data:image/png;base64,YWJj"}}]}`; err != nil || string(chat) != want {
		t.Errorf("%s, %v", chat, err)
	}
	items, err := appendItems(t.Context(), nil, m, "", read)
	if want := `{"type":"input_image","image_url":"data:image/png;base64,YWJj"}`; err != nil || !strings.Contains(string(items), want) || strings.Count(string(items), `"function_call_output"`) != 2 {
		t.Errorf("%s, %v", items, err)
	}
	m.Parts = m.Parts[:2]
	if items, err = appendItems(t.Context(), nil, m, "", read); err != nil || strings.Contains(string(items), "user") {
		t.Errorf("results alone: %s, %v", items, err)
	}
}
