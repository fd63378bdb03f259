package google

import (
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
func sent(t *testing.T, p *Gemini, r model.Request) string {
	t.Helper()
	b, err := p.body(t.Context(), r)
	return modeltest.Sent(t, b, err)
}

func TestThinkingByModel(t *testing.T) {
	p := far(t, func(http.ResponseWriter, *http.Request) {})
	for _, c := range []struct{ model, effort, want string }{
		{"gemini-2.0-flash", "high", ``},
		{"gemini-2.5-flash", "", ``},
		{"gemini-2.5-flash", "low", `"generationConfig":{"thinkingConfig":{"includeThoughts":true,"thinkingBudget":1024}}`},
		{"models/gemini-2.5-pro", "high", `"generationConfig":{"thinkingConfig":{"includeThoughts":true,"thinkingBudget":24576}}`},
		{"gemini-2.5-flash-image", "high", ``},
		{"gemini-3-pro-preview", "low", `"generationConfig":{"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"LOW"}}`},
		{"gemini-3-pro-preview", "medium", `"generationConfig":{"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"HIGH"}}`},
		{"gemini-3.1-pro-preview", "medium", `"generationConfig":{"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"MEDIUM"}}`},
		{"gemini-flash-latest", "medium", `"generationConfig":{"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"MEDIUM"}}`},
		{"gemini-3-flash", "a lot", ``},
		{"gemma-3-27b-it", "high", ``},
	} {
		_, tail, _ := strings.Cut(sent(t, p, model.Request{Model: c.model, Effort: c.effort}), `"contents":[]`)
		if got := strings.TrimPrefix(strings.TrimSuffix(tail, "}"), ","); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.model, c.effort, got, c.want)
		}
	}
}

func TestOutputByModel(t *testing.T) {
	p := far(t, func(http.ResponseWriter, *http.Request) {})
	schema := `{"type":"object","properties":{"a":{"type":"string","minLength":1}}}`
	tools := []model.ToolDef{{Name: "read", Schema: json.RawMessage(`{}`)}}
	for _, c := range []struct {
		model string
		tools []model.ToolDef
		force string
		held  bool
	}{
		{"gemini-2.5-flash", nil, "", true}, {"gemini-2.5-flash", tools, "", false}, {"gemini-3-flash", tools, "", true}, {"gemini-3-flash", tools, "read", false}, {"gemini-2.0-flash", nil, "", false},
	} {
		body := sent(t, p, model.Request{Model: c.model, Tools: c.tools, ForceTool: c.force, Output: json.RawMessage(schema), Messages: []belay.Message{belay.Text(belay.RoleUser, "go")}})
		held := strings.Contains(body, `"responseMimeType":"application/json","responseJsonSchema":`+schema)
		said := strings.Contains(body, "fits this JSON Schema")
		if held != c.held || said == held {
			t.Errorf("%s: held %v, said %v: %s", c.model, held, said, body)
		}
	}
}

// converse makes an answer the message before the next request, as the engine does.
func converse(t *testing.T, p *Gemini, r model.Request) belay.Message {
	t.Helper()
	m := belay.Message{Role: belay.RoleAssistant}
	var rest []belay.Part
	text := ""
	_, chunks, err := modeltest.Heard(t, p, r)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range chunks {
		text += c.Text
		if c.Echo != nil {
			m.Parts = append(m.Parts, belay.Part{Echo: c.Echo})
		}
		if c.Call != nil {
			id := belay.CallID(fmt.Sprint(len(r.Messages), c.Call.ID))
			rest = append(rest, belay.Part{Call: &belay.ToolCall{ID: id, Name: c.Call.Name, Args: json.RawMessage(c.Call.Args), Echo: c.Call.Echo}})
		}
	}
	m.Parts = append(m.Parts, belay.Part{Text: text})
	m.Parts = append(m.Parts, rest...)
	return m
}

// Guarantee: M10.
func TestSignaturesGoBackAsTheyCame(t *testing.T) {
	calls := []model.Call{{Name: "read", Args: `{}`}, {Name: "list", Args: `{"k":1}`}}
	srv := modelserver.New(func(a modelserver.Asked) modelserver.Scene {
		if a.N == 3 {
			calls = nil
		}
		return modelserver.Scene{Scene: modeltest.Scene{Reasoning: "hm", Text: "I look.", Calls: calls, Stop: "stop"}}
	})
	p := far(t, srv.ServeHTTP)
	r := model.Request{Model: "gemini-3-flash", Messages: []belay.Message{belay.Text(belay.RoleUser, "go")}}
	for range 3 {
		m := converse(t, p, r)
		r.Messages = append(r.Messages, m)
		results := belay.Message{Role: belay.RoleTool}
		for _, c := range m.Calls() {
			results.Parts = append(results.Parts, belay.Part{Result: &belay.ToolResult{ID: c.ID, Name: c.Name, Text: "ok"}})
		}
		if len(results.Parts) > 0 {
			r.Messages = append(r.Messages, results)
		}
	}
	r.Messages = append(r.Messages, belay.Text(belay.RoleUser, "and now"))
	converse(t, p, r)
	if got := srv.Heard()[3].Echoes; !slices.Equal(got, []string{"c2lnbmVk", "c2lnbmVk", "c2lnbmVk"}) {
		t.Errorf("the far end got back %q", got)
	}
	r.Model = "gemini-3.1-pro" // another model's signatures stay away
	converse(t, p, r)
	if got := srv.Heard()[4].Echoes; !slices.Equal(got, []string{unsigned, unsigned}) {
		t.Errorf("another model got %q", got)
	}
	r.Model = "gemini-2.5-pro" // and one that asks for none gets none
	converse(t, p, r)
	if got := srv.Heard()[5].Echoes; len(got) != 0 {
		t.Errorf("another model got %q", got)
	}
}

// Guarantee: M10.
func TestSignedTextKeepsItsPlace(t *testing.T) {
	events := []string{said("", `{"text":"Über "}`), said("", `{"text":"Nacht","thoughtSignature":"A"}`), said("", `{"text":"hm","thought":true,"thoughtSignature":"B"}`), said("STOP", `{"text":" da","thoughtSignature":"C"}`, `{"text":"","thoughtSignature":"D"}`)}
	p := far(t, func(w http.ResponseWriter, r *http.Request) { stream(w, events...) })
	r := model.Request{Model: "gemini-3-flash", Messages: []belay.Message{belay.Text(belay.RoleUser, "go")}}
	m := converse(t, p, r)
	again := func() string {
		e := encoder{ctx: t.Context(), by: dialect(r.Model), msgs: []belay.Message{belay.Text(belay.RoleUser, "go"), m}}
		b, err := e.add(nil, &e.msgs[1])
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if got, want := again(), `,{"role":"model","parts":[{"text":"Über "},{"text":"Nacht","thoughtSignature":"A"},{"text":"","thoughtSignature":"B"},{"text":" da","thoughtSignature":"C"},{"text":"","thoughtSignature":"D"}]}`; got != want {
		t.Errorf("\n%s\n%s", got, want)
	}
	for i := range m.Parts {
		if m.Parts[i].Text != "" {
			m.Parts[i].Text = "Über Nü"
		}
	}
	if got, want := again(), `,{"role":"model","parts":[{"text":"Über Nü"}]}`; got != want {
		t.Errorf("\n%s\n%s", got, want)
	}
}

func TestWhatModelsTake(t *testing.T) {
	p := &Gemini{Service: wire.Service{Images: TakesImages, Files: TakesFiles}}
	for name, want := range map[string]model.Abilities{"gemini-2.5-pro": {Images: true, Files: true}, "gemini-flash-latest": {Images: true, Files: true}, "gemma-2": {}, "local": {}} {
		if got := p.Abilities(name); got != want {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := (&Gemini{}).Abilities("gemini-2.5-pro"); got != (model.Abilities{}) {
		t.Errorf("nobody said so: %+v", got)
	}
}
