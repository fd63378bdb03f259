package anthropic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/model"
	"github.com/belay-run/belay/internal/model/modeltest"
	"github.com/belay-run/belay/internal/model/wire"
	"github.com/belay-run/belay/internal/testkit/modelserver"
)

// sent is a request's body.
func sent(t *testing.T, p *Messages, r model.Request) string {
	t.Helper()
	b, err := p.body(t.Context(), r)
	return modeltest.Sent(t, b, err)
}

func TestThinkingByModel(t *testing.T) {
	p := far(t, func(http.ResponseWriter, *http.Request) {})
	for _, c := range []struct {
		model, effort, force string
		want                 string
	}{
		{"claude-3-haiku-20240307", "high", "", ``},
		{"claude-3-7-sonnet-20250219", "low", "", `"thinking":{"type":"enabled","budget_tokens":4096}`},
		{"claude-haiku-4-5-20251001", "high", "", `"thinking":{"type":"enabled","budget_tokens":16000}`},
		{"claude-sonnet-4-5@20250929", "medium", "", `"thinking":{"type":"enabled","budget_tokens":10240}`},
		{"claude-opus-4-20250514", "", "", ``},
		{"claude-opus-4-5", "high", "t", `"tool_choice":{"type":"tool","name":"t"}`},
		{"claude-opus-4-6", "", "", ``},
		{"us.anthropic.claude-opus-4-6-v1", "high", "", `"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"high"}`},
		{"claude-opus-4.8", "low", "t", `"tool_choice":{"type":"tool","name":"t"},"output_config":{"effort":"low"}`},
		{"claude-opus-5", "", "", `"thinking":{"type":"adaptive","display":"summarized"}`},
		{"claude-sonnet-5", "low", "t", `"tool_choice":{"type":"tool","name":"t"},"thinking":{"type":"disabled"},"output_config":{"effort":"low"}`},
		{"claude-opus-5-5", "high", "t", `"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"high"}`},
		{"claude-sonnet-5-5", "", "t", `"thinking":{"type":"adaptive","display":"summarized"}`},
		{"claude-fable-5", "", "t", `"thinking":{"type":"adaptive","display":"summarized"}`},
		{"claude-mythos-preview", "", "t", `"thinking":{"type":"adaptive","display":"summarized"}`},
		{"local", "high", "t", `"tool_choice":{"type":"tool","name":"t"}`},
	} {
		_, tail, _ := strings.Cut(sent(t, p, model.Request{Model: c.model, Effort: c.effort, ForceTool: c.force}), `"cache_control":{"type":"ephemeral"}`)
		if got := strings.TrimPrefix(strings.TrimSuffix(tail, "}"), ","); got != c.want {
			t.Errorf("%s %s %s: %s, want %s", c.model, c.effort, c.force, got, c.want)
		}
	}
	if got := sent(t, p, model.Request{Model: "claude-opus-5-5", ForceTool: "done"}); !strings.Contains(got, `"text":"Call the tool done now`) {
		t.Errorf("a model that can't be forced isn't told: %s", got)
	}
	if got := sent(t, p, model.Request{Model: "claude-haiku-4-5", Effort: "high", MaxOutput: 1500}); strings.Contains(got, "thinking") {
		t.Errorf("there is no room to think: %s", got)
	}
}

func TestOutputByModelAndSchema(t *testing.T) {
	p := far(t, func(http.ResponseWriter, *http.Request) {})
	closed := `{"type":"object","properties":{"a":{"type":["string","null"]},"b":{"type":"array","items":{"type":"object","additionalProperties":false}}},"required":["a"],"additionalProperties":false}`
	for _, c := range []struct {
		model, schema string
		held          bool
	}{
		{"claude-sonnet-4-5", closed, true},
		{"claude-opus-4-1", closed, true},
		{"claude-opus-4", closed, false},
		{"local", closed, false},
		{"claude-sonnet-4-5", `{"type":"object","properties":{"a":{"type":"string","minLength":1}},"additionalProperties":false}`, false},
		{"claude-sonnet-4-5", `{"type":"object","properties":{"a":{"type":"string"}}}`, false},
		{"claude-sonnet-4-5", `{"anyOf":[{"type":"object"}]}`, false},
		{"claude-sonnet-4-5", `{"type":"array","items":{"type":"object"}}`, false},
	} {
		r := model.Request{Model: c.model, Output: json.RawMessage(c.schema), Messages: []belay.Message{belay.Text(belay.RoleUser, "go")}}
		body := sent(t, p, r)
		held := strings.Contains(body, `"output_config":{"format":{"type":"json_schema","schema":`+c.schema+`}}`)
		said := strings.Contains(body, "fits this JSON Schema")
		if held != c.held || said == held {
			t.Errorf("%s %s: held %v, said %v", c.model, c.schema, held, said)
		}
	}
}

// converse sends what came as the message before the next request, as the engine
// does, and tells what the far end got back.
func converse(t *testing.T, p *Messages, r model.Request) (belay.Message, error) {
	t.Helper()
	m := belay.Message{Role: belay.RoleAssistant}
	var rest []belay.Part
	text := ""
	_, chunks, err := modeltest.Heard(t, p, r)
	for _, c := range chunks {
		text += c.Text
		if c.Echo != nil {
			m.Parts = append(m.Parts, belay.Part{Echo: c.Echo})
		}
		if c.Call != nil {
			rest = append(rest, belay.Part{Call: &belay.ToolCall{ID: belay.CallID("id_" + c.Call.ID), Name: c.Call.Name, Args: json.RawMessage(c.Call.Args), Echo: c.Call.Echo}})
		}
	}
	if text != "" {
		m.Parts = append(m.Parts, belay.Part{Text: text})
	}
	m.Parts = append(m.Parts, rest...)
	return m, err
}

// Guarantee: M10.
func TestThinkingGoesBackAsItCame(t *testing.T) {
	srv := modelserver.New(func(modelserver.Asked) modelserver.Scene {
		return modelserver.Scene{Scene: modeltest.Scene{Reasoning: "hm", Text: "I look.", Calls: []model.Call{{Name: "read", Args: `{}`}, {Name: "read", Args: `{"k":1}`}}, Stop: "tool_calls"}}
	})
	p := far(t, srv.ServeHTTP)
	r := model.Request{Model: "claude-opus-4-5", Effort: "high", Messages: []belay.Message{belay.Text(belay.RoleUser, "go")}}
	for range 3 {
		m, err := converse(t, p, r)
		if err != nil {
			t.Fatal(err)
		}
		results := belay.Message{Role: belay.RoleTool}
		for _, c := range m.Calls() {
			c.ID += belay.CallID(fmt.Sprint("_", len(r.Messages)))
			results.Parts = append(results.Parts, belay.Part{Result: &belay.ToolResult{ID: c.ID, Text: "ok"}})
		}
		r.Messages = append(r.Messages, m, results)
	}
	last := srv.Heard()[2]
	if !slices.Equal(last.Echoes, []string{"signed", "signed"}) || !bytes.Contains(last.Body, []byte(`"thinking":{"type":"enabled"`)) {
		t.Errorf("the far end got back %q: %s", last.Echoes, last.Body)
	}
	// Another model's thinking stays away, and then a budget can't be given.
	r.Model = "claude-haiku-4-5"
	if _, err := converse(t, p, r); err != nil {
		t.Fatal(err)
	}
	if last := srv.Heard()[3]; len(last.Echoes) != 0 || bytes.Contains(last.Body, []byte(`"thinking"`)) {
		t.Errorf("another model got %s", last.Body)
	}
}

// A vendor that doesn't take thinking back, because the conversation before it is
// another one by now, is asked once more without; what is thought later goes back.
func TestThinkingThatIsBoundElsewhereStaysAway(t *testing.T) {
	scene := modelserver.Scene{Scene: modeltest.Scene{Reasoning: "hm", Text: "so", Stop: "stop"}}
	refuse := 0
	srv := modelserver.New(func(a modelserver.Asked) modelserver.Scene {
		if len(a.Echoes) > 0 && refuse > 0 {
			refuse--
			return modelserver.Scene{Fault: modelserver.Fault{Status: 400, Body: `{"type":"error","error":{"type":"invalid_request_error","message":"Invalid ` + "`signature` in `thinking`" + ` block. The block is bound to a different conversation."}}`}}
		}
		return scene
	})
	p := far(t, srv.ServeHTTP)
	r := model.Request{Model: "claude-opus-5-5"}
	say := func() (echoes []int) {
		t.Helper()
		before := len(srv.Heard())
		r.Messages = append(r.Messages, belay.Text(belay.RoleUser, "go"))
		m, err := converse(t, p, r)
		if err != nil {
			t.Fatal(err)
		}
		r.Messages = append(r.Messages, m)
		for _, a := range srv.Heard()[before:] {
			echoes = append(echoes, len(a.Echoes))
		}
		return echoes
	}
	for i, want := range [][]int{{0}, {1}, {2, 0}, {1}, {2}} {
		refuse = 0
		if i == 2 {
			refuse = 1
		}
		if got := say(); !slices.Equal(got, want) {
			t.Errorf("request %d was sent with %v thoughts, want %v", i+1, got, want)
		}
	}
	refuse = 1 << 10 // one that refuses everything is asked twice, not for ever
	r.Messages = append(r.Messages, belay.Text(belay.RoleUser, "go"))
	p.unbound.add(r.Messages)
	before := len(srv.Heard())
	scene = modelserver.Scene{Fault: modelserver.Fault{Status: 400, Body: `{"error":{"message":"the signature of thinking"}}`}}
	if _, err := converse(t, p, r); model.AsError(err).Class != "bad_request" || len(srv.Heard())-before != 1 {
		t.Errorf("%d requests, %v", len(srv.Heard())-before, err)
	}
}

// Thinking may stand between pieces of text and between calls.
// Guarantee: M10.
func TestThinkingKeepsItsPlace(t *testing.T) {
	thought := func(i int, s string) []string {
		return []string{begun(i, `{"type":"thinking","thinking":"`+s+`"}`), piece(i, `{"type":"signature_delta","signature":"sig `+s+`"}`), ended(i)}
	}
	events := slices.Concat(thought(0, "one"), []string{begun(1, `{"type":"text","text":"Über "}`), ended(1)}, thought(2, "two"), []string{begun(3, hi), ended(3)},
		[]string{begun(4, `{"type":"redacted_thinking","data":"dark"}`), ended(4), begun(5, read), ended(5)}, thought(6, "three"),
		[]string{begun(7, `{"type":"tool_use","id":"b","name":"list","input":{}}`), ended(7), begun(8, `{"type":"thinking","thinking":"unsigned"}`), ended(8), stopped("tool_use"), over})
	p := far(t, func(w http.ResponseWriter, r *http.Request) { stream(w, events...) })
	r := model.Request{Model: "claude-opus-5-5", Messages: []belay.Message{belay.Text(belay.RoleUser, "go")}}
	m, err := converse(t, p, r)
	if err != nil {
		t.Fatal(err)
	}
	again := func() string {
		e := encoder{ctx: t.Context(), by: dialect(r.Model), msgs: []belay.Message{m}}
		b, err := e.add(nil, &e.msgs[0])
		if err != nil {
			t.Fatal(err)
		}
		_, content, _ := strings.Cut(string(b), `"role":"assistant","content":[`)
		return content
	}
	calls := `{"type":"tool_use","id":"id_a","name":"read","input":{}},{"type":"thinking","thinking":"three","signature":"sig three"},{"type":"tool_use","id":"id_b","name":"list","input":{}}`
	want := `{"type":"thinking","thinking":"one","signature":"sig one"},{"type":"text","text":"Über "},{"type":"thinking","thinking":"two","signature":"sig two"},{"type":"text","text":"hi"},{"type":"redacted_thinking","data":"dark"},` + calls
	if got := again(); got != want {
		t.Errorf("\n%s\n%s", got, want)
	}
	// A text that became shorter keeps the order and stays valid.
	for i := range m.Parts {
		if m.Parts[i].Text != "" {
			m.Parts[i].Text = "Ü"
		}
	}
	want = `{"type":"thinking","thinking":"one","signature":"sig one"},{"type":"text","text":"Ü"},{"type":"thinking","thinking":"two","signature":"sig two"},{"type":"redacted_thinking","data":"dark"},` + calls
	if got := again(); got != want {
		t.Errorf("\n%s\n%s", got, want)
	}
}

func TestWhatModelsTake(t *testing.T) {
	for name, want := range map[string]model.Abilities{
		"claude-opus-5-5": {Images: true, Files: true}, "claude-mythos-preview": {Images: true, Files: true}, "claude-3-5-haiku-20241022": {Images: true, Files: true},
		"claude-3-haiku-20240307": {Images: true}, "claude-2.1": {}, "claude-instant-1.2": {}, "local": {},
	} {
		want.Search = true
		if got := (&Messages{Service: wire.Service{Images: TakesImages, Files: TakesFiles}}).Abilities(name); got != want {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := (&Messages{}).Abilities("claude-opus-5-5"); got != (model.Abilities{Search: true}) {
		t.Errorf("nobody said so: %+v", got)
	}
}
