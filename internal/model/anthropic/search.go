package anthropic

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"

	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/wire"
)

// The vendor's own search. Source:
// https://platform.claude.com/docs/en/agents-and-tools/tool-use/web-search-tool, November 2026.
const (
	searchTool  = "web_search_20250305"
	searchName  = "web_search"
	maxSearches = 5 // of one answer: each is paid for
)

// The blocks of a search. They go back as they came, both or none: the vendor refuses
// one without the other.
type (
	searchBlock struct {
		Type  string          `json:"type"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}
	foundBlock struct {
		Type    string          `json:"type"`
		CallID  string          `json:"tool_use_id"`
		Content json.RawMessage `json:"content"`
	}
)

// searched takes the result of a search: a list of pages, or an object with the code of
// an error.
func (d *decoder) searched(p *part) {
	asked := d.asked[p.callID]
	if asked == nil {
		return
	}
	delete(d.asked, p.callID)
	input := json.RawMessage(cmp.Or(strings.TrimSpace(asked.text.String()), "{}"))
	var in struct {
		Query string `json:"query"`
	}
	var pages []struct {
		Title string `json:"title"`
		URL   string `json:"url"`
	}
	var failure struct {
		Code string `json:"error_code"`
	}
	if json.Unmarshal(input, &in) != nil || json.Unmarshal(p.content, &pages) != nil && json.Unmarshal(p.content, &failure) != nil {
		d.Broken("GARBAGE", "a search in the answer can't be read")
		return
	}
	s := model.Search{Query: in.Query, Problem: failure.Code}
	for _, f := range pages {
		s.Found = append(s.Found, model.Page{Title: f.Title, URL: f.URL})
	}
	use, err := wire.JSON(searchBlock{asked.kind, asked.id, asked.name, input})
	if err != nil {
		d.Fail(err)
		return
	}
	found, err := wire.JSON(foundBlock{p.kind, p.callID, p.content})
	if err != nil {
		d.Fail(err)
		return
	}
	d.keep(use, found)
	d.Say(model.Chunk{Search: &s})
}

// isThinking reports whether a block is one of thinking.
func isThinking(block json.RawMessage) bool {
	return bytes.HasPrefix(block, []byte(`{"type":"thinking"`)) || bytes.HasPrefix(block, []byte(`{"type":"redacted_thinking"`))
}
