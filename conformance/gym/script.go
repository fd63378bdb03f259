package gym

import (
	"bytes"
	"encoding/json"
	"path"
	"strings"
)

// The script as package scripted reads it.
type (
	played struct {
		Name  string `json:"name"`
		Steps []step `json:"steps"`
	}
	step struct {
		Text   string `json:"text"`
		Calls  []call `json:"calls,omitempty"`
		Stop   string `json:"stop,omitempty"`
		Repeat int    `json:"repeat,omitempty"`
	}
	call struct {
		Tool string          `json:"tool"`
		Args json.RawMessage `json:"args,omitempty"`
		Raw  *string         `json:"raw,omitempty"`
	}
)

// Sizes of the end of a script.
const (
	blank     = "\n"  // an answer that says nothing; one without any text would count as broken off
	pastSteps = 1_000 // empty answers past the end, more than any scenario has turns
)

// script is the model's side: the responses in order; one that completes in the
// place of a last plain stop, where none does; and past the end the model stops
// without a word.
func (r *reader) script(f scenario) []byte {
	responses := f.Script.Responses
	completes := false
	for _, resp := range responses {
		for _, c := range resp.ToolCalls {
			completes = completes || strings.HasSuffix(c.Name, completionSuffix)
		}
	}
	out := played{Name: f.ID}
	if n := len(responses); !completes && n > 0 && responses[n-1].FinishReason == "stop" {
		responses = responses[:n-1]
	}
	for i, resp := range responses {
		st := step{Text: resp.Content}
		for k, c := range resp.ToolCalls {
			st.Calls = append(st.Calls, r.call([]any{"script", "responses", i, "toolCalls", k}, c.Name, c.Arguments))
		}
		if st.Text == "" && len(st.Calls) == 0 {
			st.Text = blank
		}
		out.Steps = append(out.Steps, st)
	}
	if !completes {
		args, _ := json.Marshal(map[string]string{"summary": f.ID + " is done."})
		out.Steps = append(out.Steps, step{Text: "Completing scenario.", Calls: []call{{Tool: "complete_task", Args: args}}})
	}
	out.Steps = append(out.Steps, step{Text: blank, Stop: "stop", Repeat: pastSteps})
	b, err := json.Marshal(out)
	if err != nil {
		r.fail([]any{"script"}, "it has no JSON form: %v", err)
	}
	return b
}

// call names paths relative to the workspace, as the gym resolves them against it.
func (r *reader) call(at []any, name string, args json.RawMessage) call {
	c := call{Tool: toolName(name)}
	if c.Tool == "" {
		r.fail(at, "a call without a tool")
	}
	var m map[string]json.RawMessage
	if len(bytes.TrimSpace(args)) == 0 || json.Unmarshal(args, &m) != nil {
		raw := string(args)
		c.Raw = &raw
		return c
	}
	for _, key := range []string{"path", "base_path"} {
		if v, ok := m[key]; ok {
			m[key] = cleaned(v)
		}
	}
	var list []json.RawMessage
	if v, ok := m["paths"]; ok && json.Unmarshal(v, &list) == nil && list != nil {
		for i := range list {
			list[i] = cleaned(list[i])
		}
		m["paths"], _ = json.Marshal(list)
	}
	var err error
	if c.Args, err = json.Marshal(m); err != nil {
		r.fail(at, "the arguments have no JSON form: %v", err)
	}
	return c
}

// cleaned is a path without detours; what is no text stays as it is.
func cleaned(v json.RawMessage) json.RawMessage {
	var p string
	if json.Unmarshal(v, &p) != nil || p == "" {
		return v
	}
	b, _ := json.Marshal(path.Clean(p))
	return b
}
