package openai

import (
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/model"
)

// Items of an answer with searches, as the vendor documents them.
const (
	searchItem = `{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"high tide","queries":["high tide"],"sources":[{"type":"url","url":"https://tide.example/1"},{"type":"api","name":"oai-weather"}]}}`
	openItem   = `{"id":"ws_2","type":"web_search_call","status":"completed","action":{"type":"open_page","url":"https://tide.example/2"}}`
	failedItem = `{"id":"ws_3","type":"web_search_call","status":"failed","action":{"type":"search","queries":["low tide"]}}`
	thinkItem  = `{"id":"r1","type":"reasoning","summary":[],"encrypted_content":"E1"}`
	saidItem   = `{"id":"m1","type":"message","content":[{"type":"output_text","text":"At nine.","annotations":[{"type":"url_citation","url":"https://tide.example/1","title":"Tides"}]}]}`
)

func done(index, item string) string {
	return `{"type":"response.output_item.done","output_index":` + index + `,"item":` + item + `}`
}

// TestTheVendorsSearchIsAskedForHeardAndSentBackByResponses: as a tool of the vendor's, with
// what it found, and with the very items, in front of what they led to.
// Guarantee: M10.
func TestTheVendorsSearchIsAskedForHeardAndSentBackByResponses(t *testing.T) {
	var bodies []string
	p := responses(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(b))
		stream(w, `{"type":"response.output_item.added","output_index":0,"item":{"id":"ws_1","type":"web_search_call","status":"in_progress"}}`,
			`{"type":"response.web_search_call.searching","output_index":0,"item_id":"ws_1"}`, done("0", searchItem), done("1", thinkItem), done("2", openItem), done("3", failedItem), done("4", saidItem),
			done("5", `{"id":"ws_9","type":"web_search_call","status":"completed","action":{"type":"search","query":"leads to nothing"}}`), completed)
	})
	r := model.Request{Model: "m", Tools: []model.ToolDef{{Name: "web_search", Doc: "ours", Schema: []byte(`{}`), Native: true}}, Messages: []belay.Message{belay.Text(belay.RoleUser, "when?")}}
	m, said := belay.Message{Role: belay.RoleAssistant}, ""
	var got []model.Search
	for c, err := range p.Stream(t.Context(), r) {
		switch {
		case err != nil:
			t.Fatal(err)
		case c.Search != nil:
			got = append(got, *c.Search)
		case c.Echo != nil:
			m.Parts = append(m.Parts, belay.Part{Echo: c.Echo})
		case c.Text != "":
			said += c.Text
		}
	}
	m.Parts = append(m.Parts, belay.Part{Text: said}) // behind what led to it, as the engine has it
	want := []model.Search{
		{Query: "high tide", Found: []model.Page{{URL: "https://tide.example/1"}, {URL: "oai-weather"}}},
		{Query: "https://tide.example/2", Found: []model.Page{{URL: "https://tide.example/2"}}},
		{Query: "low tide", Problem: "failed"},
		{Query: "leads to nothing"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	r.Messages = append(r.Messages, m)
	for _, err := range p.Stream(t.Context(), r) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, part := range []string{
		`"include":["reasoning.encrypted_content","web_search_call.action.sources"],"tools":[{"type":"web_search"}]`,
		searchItem + `,` + thinkItem + `,` + openItem + `,` + failedItem + `,{"type":"message","role":"assistant","content":"At nine."}`,
	} {
		if !strings.Contains(bodies[1], part) {
			t.Errorf("there is no\n%s\nin\n%s", part, bodies[1])
		}
	}
}
