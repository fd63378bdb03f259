package anthropic

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/modeltest"
)

// The events of an answer with two searches, as the vendor documents them: one that found
// pages, one that was refused, and a call after the second.
var searched = []string{
	begun(0, `{"type":"text","text":""}`), piece(0, `{"type":"text_delta","text":"I look. "}`), ended(0),
	begun(1, `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}`),
	piece(1, `{"type":"input_json_delta","partial_json":"{\"query\":\"high"}`), piece(1, `{"type":"input_json_delta","partial_json":" tide\"}"}`), ended(1),
	begun(2, found), ended(2),
	begun(3, `{"type":"text","text":""}`), piece(3, `{"type":"text_delta","text":"At nine. "}`),
	piece(3, `{"type":"citations_delta","citation":{"type":"web_search_result_location","url":"https://tide.example/1","title":"Tides","encrypted_index":"Eo8","cited_text":"nine"}}`), ended(3),
	begun(4, `{"type":"tool_use","id":"toolu_1","name":"read","input":{}}`), ended(4),
	begun(5, `{"type":"server_tool_use","id":"srvtoolu_2","name":"web_search","input":{"query":"low tide"}}`), ended(5),
	begun(6, refused), ended(6),
	begun(7, `{"type":"tool_use","id":"toolu_2","name":"read","input":{"path":"a"}}`), ended(7),
	`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"input_tokens":900,"output_tokens":40,"server_tool_use":{"web_search_requests":1}}}`, over,
}

const (
	found   = `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://tide.example/1","title":"Tides","encrypted_content":"EqgfCi==","page_age":"April 30, 2026"},{"type":"web_search_result","url":"https://tide.example/2","title":"","encrypted_content":"Eqh","page_age":null}]}`
	refused = `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_2","content":{"type":"web_search_tool_result_error","error_code":"max_uses_exceeded"}}`
)

// TestTheVendorsSearchIsAskedForHeardAndSentBack: as a tool of the vendor's, with what it
// found, and with the very blocks in their places.
// Guarantee: M10.
func TestTheVendorsSearchIsAskedForHeardAndSentBack(t *testing.T) {
	var bodies []string
	p := far(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(b))
		stream(w, searched...)
	})
	r := model.Request{Model: "claude-opus-5-5", Tools: []model.ToolDef{{Name: "web_search", Doc: "ours", Schema: []byte(`{}`), Native: true}}, Messages: []belay.Message{belay.Text(belay.RoleUser, "when?")}}
	said, chunks, err := modeltest.Heard(t, p, r)
	if err != nil || said != `I look. At nine. ;toolu_1 read {};toolu_2 read {"path":"a"};tool_calls` {
		t.Errorf("%q, %v", said, err)
	}
	var got []model.Search
	for _, c := range chunks {
		if c.Search != nil {
			got = append(got, *c.Search)
		}
	}
	want := []model.Search{{Query: "high tide", Found: []model.Page{{Title: "Tides", URL: "https://tide.example/1"}, {URL: "https://tide.example/2"}}}, {Query: "low tide", Problem: "max_uses_exceeded"}}
	if len(got) != 2 || got[0].Query != want[0].Query || !slices.Equal(got[0].Found, want[0].Found) || got[0].Problem != "" ||
		got[1].Query != want[1].Query || len(got[1].Found) != 0 || got[1].Problem != want[1].Problem {
		t.Errorf("%+v", got)
	}
	m, err := converse(t, p, r)
	if err != nil {
		t.Fatal(err)
	}
	r.Messages = append(r.Messages, m)
	if _, err := converse(t, p, r); err != nil {
		t.Fatal(err)
	}
	last := bodies[len(bodies)-1]
	for _, part := range []string{
		`"tools":[{"type":"web_search_20250305","name":"web_search","max_uses":5,"cache_control":{"type":"ephemeral"}}]`,
		`{"type":"text","text":"I look. "},{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"high tide"}},` + found + `,{"type":"text","text":"At nine. "}`,
		`{"type":"tool_use","id":"id_toolu_1","name":"read","input":{}},{"type":"server_tool_use","id":"srvtoolu_2","name":"web_search","input":{"query":"low tide"}},` + refused + `,{"type":"tool_use","id":"id_toolu_2","name":"read","input":{"path":"a"}}`,
	} {
		if !strings.Contains(last, part) {
			t.Errorf("there is no\n%s\nin\n%s", part, last)
		}
	}
}

// TestHalfASearchIsNotSentBack: the vendor refuses one without its result, and a result
// without its search; what can't be read is no answer.
func TestHalfASearchIsNotSentBack(t *testing.T) {
	asked := []string{begun(1, `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"q"}}`), ended(1)}
	end := []string{begun(9, hi), ended(9), stopped("end_turn"), over}
	for name, c := range map[string]struct {
		events []string
		want   string
		broken bool
	}{
		"no result":           {slices.Concat(asked, end), "hi;stop", false},
		"no search":           {slices.Concat([]string{begun(2, found), ended(2)}, end), "hi;stop", false},
		"another tool's":      {slices.Concat([]string{begun(1, `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_fetch","input":{}}`), ended(1), begun(2, found), ended(2)}, end), "hi;stop", false},
		"a result of no kind": {slices.Concat(asked, []string{begun(2, `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":"x"}`), ended(2)}, end), "", true},
	} {
		p := far(t, func(w http.ResponseWriter, _ *http.Request) { stream(w, c.events...) })
		said, chunks, err := modeltest.Heard(t, p, model.Request{Model: "m"})
		if (err != nil) != c.broken || !c.broken && said != c.want {
			t.Errorf("%s: %q, %v", name, said, err)
		}
		if slices.ContainsFunc(chunks, func(c model.Chunk) bool { return c.Search != nil || c.Echo != nil }) {
			t.Errorf("%s: %+v", name, chunks)
		}
	}
}
