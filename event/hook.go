package event

import "github.com/belay-run/belay"

// HookStarted says that a hook is about to run.
type HookStarted struct {
	fact
	Hook      string         `json:"hook"`             // its id in the configuration; checker/ID of the gate's checkers; sampling/N where an MCP server has a model answer something
	Point     string         `json:"point"`            // session_start, user_prompt_submit, pre_tool_use, permission_request, post_tool_use, post_tool_failure, post_sampling, stop, sampling
	Tier      string         `json:"tier,omitempty"`   // default, agent, workspace, user, admin
	Digest    belay.Digest   `json:"digest,omitempty"` // of its program
	InputHash belay.Digest   `json:"inputHash,omitempty"`
	Timeout   belay.Duration `json:"timeout,omitempty"`
	Provider  string         `json:"provider,omitempty"` // of a model that is asked
	Model     string         `json:"model,omitempty"`
}

// HookCompleted is a hook's answer.
type HookCompleted struct {
	fact
	Hook     string      `json:"hook"`
	Point    string      `json:"point"`
	Decision string      `json:"decision"` // continue, block, allow, deny, ask
	Reason   string      `json:"reason,omitempty"`
	Code     string      `json:"code,omitempty"` // stable name of the reason
	Input    *belay.Ref  `json:"updatedInput,omitempty"`
	Output   *belay.Ref  `json:"updatedToolOutput,omitempty"`
	Context  []belay.Ref `json:"additionalContext,omitempty"`
	Audit    []belay.Ref `json:"audit,omitempty"`
	Suppress bool        `json:"suppressOutput,omitempty"`
	Millis   int64       `json:"ms,omitempty"`
	Usage    belay.Usage `json:"usage,omitzero"` // of a model that was asked
}

// HookFailed is a hook without an answer, and the consequence.
type HookFailed struct {
	fact
	Hook    string      `json:"hook"`
	Point   string      `json:"point"`
	Problem Problem     `json:"problem"`
	Fails   string      `json:"fails"` // open: things go on; closed: what it guards is denied
	Millis  int64       `json:"ms,omitempty"`
	Usage   belay.Usage `json:"usage,omitzero"`   // of a model that was asked, if known
	Charge  Charge      `json:"charge,omitempty"` // what asking it takes all the same
}
