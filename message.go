package belay

import "encoding/json"

// Role says who speaks in a message.
type Role string

const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is one entry of a conversation as a model sees it.
type Message struct {
	Role  Role   `json:"role"`
	Parts []Part `json:"parts"`
}

// Part is one piece of a message: exactly one of its fields is set.
type Part struct {
	Text   string      `json:"text,omitempty"`
	Image  *Attachment `json:"image,omitempty"` // a picture, by the digest of its bytes
	Call   *ToolCall   `json:"call,omitempty"`
	Result *ToolResult `json:"result,omitempty"`
}

// ToolCall is a call as the model asked for it.
type ToolCall struct {
	ID   CallID          `json:"id"` // the runtime's id, not the provider's
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"` // an object, or a JSON string holding what could not be parsed
}

// ToolResult answers one call.
type ToolResult struct {
	ID    CallID `json:"id"`
	Name  string `json:"name,omitempty"`
	Text  string `json:"text"`
	Error bool   `json:"error,omitempty"` // the call failed, was denied or is lost
}

// Text is a message of one text part.
func Text(r Role, s string) Message { return Message{Role: r, Parts: []Part{{Text: s}}} }
