package event

import (
	"time"

	"github.com/belay-run/belay"
)

// ChannelConnected says that a peer can be reached.
type ChannelConnected struct {
	fact
	Transport    string   `json:"transport"`          // websocket, sse, json_rpc, grpc, http_json, stdio, in_process
	Peer         string   `json:"peer"`               // client, host, worker, remote_runtime, peer_agent, tool_server
	Protocol     string   `json:"protocol,omitempty"` // a2a, mcp, …
	Account      string   `json:"account,omitempty"`
	Capabilities []string `json:"capabilities,omitempty"`

	Follows belay.SessionID `json:"follows,omitempty"`        // the session that the peer follows; empty: everything
	Resume  belay.Digest    `json:"resumeTokenRef,omitempty"` // digest of the token by which the peer comes back
}

// ChannelDisconnected says that a peer left or fell silent.
type ChannelDisconnected struct {
	fact
	Reason   string    `json:"reason"` // closed, heartbeat, refused, failed
	LastSeen time.Time `json:"lastSeen,omitzero"`
}

// ChannelResumed says that a peer is back and where it continues.
type ChannelResumed struct {
	fact
	After int64 `json:"after"`         // the last position it has acknowledged
	Gap   bool  `json:"gap,omitempty"` // what follows can't be replayed; a snapshot fills in
}

// ChannelMessage is input of a channel that is not a turn: an audit entry (a
// refused command, a login) or a peer's message.
type ChannelMessage struct {
	fact
	Kind      string    `json:"kind"` // audit, task, notice, ack
	Principal string    `json:"principal,omitempty"`
	Command   string    `json:"command,omitempty"`
	Code      string    `json:"code,omitempty"`
	Message   string    `json:"message,omitempty"`
	Peer      *PeerTask `json:"peer,omitempty"` // the other side's task, when the message is about one
	Hint      string    `json:"hint,omitempty"`
	Count     int       `json:"count,omitempty"` // of an audit entry: number of like requests it stands for (default 1)

	Acknowledged int64 `json:"acknowledged,omitempty"` // the peer has everything up to this position
}

// PeerTask names a task at a peer. It never replaces the task's own id.
type PeerTask struct {
	Protocol string `json:"protocol"` // a2a, …
	Task     string `json:"task"`     // the peer's id of it
	Context  string `json:"context,omitempty"`
	Agent    string `json:"agent,omitempty"`    // card or address of the peer
	Status   string `json:"status,omitempty"`   // in the peer's words
	Delivery string `json:"delivery,omitempty"` // polling, streaming, subscription, push
}

// ChannelPermissionForwarded says that a question of the gate went to a peer.
type ChannelPermissionForwarded struct {
	fact
	Peer     string       `json:"peer"`
	Tool     string       `json:"tool,omitempty"`
	ArgsHash belay.Digest `json:"argsHash,omitempty"`
	Until    time.Time    `json:"until,omitzero"`
}

// ChannelPermissionReturned is what came back.
type ChannelPermissionReturned struct {
	fact
	Peer     string `json:"peer"`
	Decision string `json:"decision"` // allow, deny, timeout, failed
	By       string `json:"by"`
	Scope    string `json:"scope,omitempty"`
	Reason   string `json:"reason,omitempty"`
}
