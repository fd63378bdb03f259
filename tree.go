package belay

import "time"

// Ancestor is an agent on the way from a session's main thread to one below it.
type Ancestor struct {
	Subagent SubagentID `json:"subagentId,omitempty"` // empty: the main thread
	Agent    string     `json:"agent,omitempty"`      // name of its definition
	Name     string     `json:"name,omitempty"`
	Thread   ThreadID   `json:"threadId"`
	Task     TaskID     `json:"taskId,omitempty"`
}

// SharedGrant is what a person allowed to an agent, and with it to others of its tree.
type SharedGrant struct {
	Grant   EventID   `json:"grant"` // the fact that gave it
	Tool    string    `json:"tool"`
	Scope   string    `json:"scope"`          // session, prefix, count, until
	Only    bool      `json:"only,omitempty"` // for the agent and those below it, not for the whole tree
	By      string    `json:"by,omitempty"`
	Dialect string    `json:"dialect,omitempty"`
	Prefix  string    `json:"prefix,omitempty"`
	Worst   string    `json:"worst,omitempty"`
	Bound   Digest    `json:"bound,omitempty"`
	Within  Digest    `json:"within,omitempty"`
	Taint   []string  `json:"taint,omitempty"` // as of policy.changed
	Count   int       `json:"count,omitempty"` // calls that it covers, of all agents together; 0 counts none
	Until   time.Time `json:"until,omitzero"`

	Stands *ApprovalContext `json:"stands,omitempty"`
}

// GrantUse is a call that a counted grant covers.
type GrantUse struct {
	Grant EventID `json:"grant"`
	Call  CallID  `json:"call"`
	Over  bool    `json:"over,omitempty"` // it doesn't: no calls are left
}
