package work

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// The messages of a turn, in the shapes in which Claude Code prints them: an object
// beside the message of Anthropic's Messages API.
type (
	initMessage struct {
		Type    string          `json:"type"`
		Subtype string          `json:"subtype"`
		Session belay.SessionID `json:"session_id"`
		Cwd     string          `json:"cwd"`
		Tools   []string        `json:"tools"`
		Model   string          `json:"model"`
		Mode    string          `json:"permissionMode"`
	}
	apiMessage struct {
		Type    string          `json:"type"` // assistant, user
		Message any             `json:"message"`
		Parent  *string         `json:"parent_tool_use_id"`
		Session belay.SessionID `json:"session_id"`
	}
	assistantContent struct {
		ID      belay.StepID `json:"id"`
		Type    string       `json:"type"`
		Role    string       `json:"role"`
		Model   string       `json:"model"`
		Content []any        `json:"content"`
		Stop    string       `json:"stop_reason"`
		Usage   *usage       `json:"usage"`
	}
	userContent struct {
		Role    string `json:"role"`
		Content []any  `json:"content"`
	}
	textBlock struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	toolUse struct {
		Type  string          `json:"type"`
		ID    belay.CallID    `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}
	toolResult struct {
		Type    string       `json:"type"`
		ID      belay.CallID `json:"tool_use_id"`
		Content string       `json:"content"`
		Error   bool         `json:"is_error,omitempty"`
	}
	usage struct {
		Input      int64 `json:"input_tokens"` // besides those that the cache has to do with
		Output     int64 `json:"output_tokens"`
		CacheWrite int64 `json:"cache_creation_input_tokens"`
		CacheRead  int64 `json:"cache_read_input_tokens"`
	}
)

// printed is the result of a turn.
type printed struct {
	Type     string          `json:"type"`
	Subtype  string          `json:"subtype"` // success, error_max_turns, error_max_budget_usd, error_during_execution
	IsError  bool            `json:"is_error"`
	Result   string          `json:"result"`
	Session  belay.SessionID `json:"session_id"`
	Turns    int             `json:"num_turns"` // steps
	Duration int64           `json:"duration_ms"`
	Cost     *float64        `json:"total_cost_usd"` // null: unknown
	Usage    *usage          `json:"usage"`          // null: unknown
	Denials  []denial        `json:"permission_denials"`
	Outcome  belay.Outcome   `json:"outcome"`
	Code     string          `json:"code,omitempty"`
	Reason   string          `json:"reason,omitempty"`
	Exit     int             `json:"exit_code"`
}

// denial is a call that was denied.
type denial struct {
	Tool  string          `json:"tool_name"`
	ID    belay.CallID    `json:"tool_use_id"`
	Input json.RawMessage `json:"tool_input"`
	hint  string
}

// denied says in one line which calls were denied, and what lets them run. The model's
// words may claim what they didn't do.
func (p *printed) denied() string {
	var names, hints []string
	for _, d := range p.Denials {
		if !slices.Contains(names, d.Tool) {
			names = append(names, d.Tool)
		}
		if d.hint != "" && !slices.Contains(hints, d.hint) {
			hints = append(hints, d.hint)
		}
	}
	said := fmt.Sprintf("%d of its calls was denied", len(p.Denials))
	if len(p.Denials) > 1 {
		said = fmt.Sprintf("%d of its calls were denied", len(p.Denials))
	}
	said += " (" + strings.Join(names, ", ") + ")"
	if len(hints) > 0 {
		said += ": " + strings.Join(hints, "; ")
	}
	return said
}

// why says why the turn didn't end well.
func (p *printed) why() string {
	if p.Reason == "" {
		return string(p.Outcome)
	}
	said := string(p.Outcome) + ": " + p.Reason
	if p.Code != "" {
		said += " (" + p.Code + ")"
	}
	return said
}

// messages makes messages of the facts of one turn.
type messages struct {
	session belay.SessionID
	mode    string
	model   string
	cwd     string
	load    func(ref belay.Ref, otherwise string) string
	line    func(any) // gets each message

	began   time.Time
	calls   map[belay.CallID]toolUse
	denials []denial
	result  *printed // nil as long as the turn hasn't ended
}

// take takes a fact of the turn.
func (m *messages) take(e event.Envelope) {
	if m.began.IsZero() {
		m.began = e.Time
	}
	switch p := e.Data.(type) {
	case event.ToolCatalogResolved:
		m.line(initMessage{"system", "init", m.session, m.cwd, p.Tools, m.model, m.mode})
	case event.ModelRequested:
		m.model = p.Model
	case event.ModelCompleted:
		m.answered(e.IDs.Step, p)
	case event.ToolResult:
		m.told(toolResult{"tool_result", e.IDs.Call, m.text(p.Output), p.Exit != 0})
	case event.ToolFailed:
		if p.Final || p.RetryAt.IsZero() && p.Input == nil {
			m.failed(e.IDs.Call, p)
		}
	case event.TurnCompleted:
		m.ended(e, belay.Completed, m.text(p.Summary), p.Stats)
	case event.TurnFailed:
		m.ended(e, p.Outcome, m.text(belay.Content{Text: p.Partial, Ref: p.PartialRef}), p.Stats)
		m.result.Code, m.result.Reason = p.Code, p.Reason
	}
}

func (m *messages) text(c belay.Content) string {
	if c.Ref == nil {
		return c.Text
	}
	return m.load(*c.Ref, c.Text)
}

func (m *messages) answered(step belay.StepID, p event.ModelCompleted) {
	if m.calls == nil {
		m.calls = map[belay.CallID]toolUse{}
	}
	content := []any{}
	if text := m.text(p.Text); text != "" {
		content = append(content, textBlock{"text", text})
	}
	stop := "end_turn"
	for _, c := range p.Calls {
		use := toolUse{"tool_use", c.ID, c.Name, c.Args}
		if c.ArgsRef != nil {
			use.Input = json.RawMessage(m.load(*c.ArgsRef, ""))
		}
		if !json.Valid(use.Input) {
			use.Input = json.RawMessage("{}")
		}
		m.calls[c.ID] = use
		content, stop = append(content, use), "tool_use"
	}
	if p.Stop == "length" {
		stop = "max_tokens"
	}
	m.line(apiMessage{"assistant", assistantContent{step, "message", "assistant", m.model, content, stop, usageOf(p.Usage)}, nil, m.session})
}

func (m *messages) failed(id belay.CallID, p event.ToolFailed) {
	said := p.Problem.Message
	if p.Problem.Hint != "" {
		said += "\n" + p.Problem.Hint
	}
	m.told(toolResult{"tool_result", id, said, true})
	if p.Problem.Class == "denied" {
		m.denials = append(m.denials, denial{p.Name, id, m.calls[id].Input, p.Problem.Hint})
	}
}

func (m *messages) told(r toolResult) {
	m.line(apiMessage{"user", userContent{"user", []any{r}}, nil, m.session})
}

func (m *messages) ended(e event.Envelope, o belay.Outcome, text string, stats event.TurnStats) {
	m.result = &printed{Type: "result", Subtype: "success", IsError: o != belay.Completed, Result: text, Session: m.session, Turns: stats.Steps,
		Duration: e.Time.Sub(m.began).Milliseconds(), Usage: usageOf(stats.Usage), Denials: append([]denial{}, m.denials...), Outcome: o, Exit: o.ExitCode()}
	if stats.Cost.State() != "unknown" {
		usd := float64(stats.Cost.MicroUSD) / 1e6
		m.result.Cost = &usd
	}
	switch p, _ := e.Data.(event.TurnFailed); {
	case p.Code == "STEP_LIMIT":
		m.result.Subtype = "error_max_turns"
	case o == belay.OverBudget:
		m.result.Subtype = "error_max_budget_usd"
	case o != belay.Completed:
		m.result.Subtype = "error_during_execution"
	}
}

// usageOf is a usage as the messages API has it; nil: it is unknown.
func usageOf(u belay.Usage) *usage {
	if !u.Reported {
		return nil
	}
	return &usage{max(0, u.Input-u.Cached-u.CacheWrite), u.Output, u.CacheWrite, u.Cached}
}
