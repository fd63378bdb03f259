package belay

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// The identities of the runtime. All of them are opaque strings to everyone
// but this file: edges mint UUIDv7 with a prefix, the core derives the rest.
type (
	RuntimeID  string // a store; made with it
	SessionID  string // durable container a person sees
	ThreadID   string // ordered execution context in a session
	TurnID     string // one submitted input, until it ends or waits
	TaskID     string // an objective with attempts
	RunID      string // one attempt of a task
	StepID     string // one model request and what follows from its answer
	CallID     string // one tool call
	ActionID   string // one decision asked of a person
	SubagentID string // a child thread with its own agent
	ProcessID  string // an operating-system process the runtime started
	JobID      string // a batch or a schedule
	ItemID     string // one item of a job
	EventID    string // one fact
	OutputID   string // one large output
	CommandID  string // one command; the request id of the facts it causes
)

// Prefixes of minted and derived ids.
const (
	PrefixRuntime  = "rt"
	PrefixSession  = "sess"
	PrefixThread   = "thr"
	PrefixTurn     = "turn"
	PrefixTask     = "task"
	PrefixRun      = "run"
	PrefixStep     = "step"
	PrefixCall     = "call"
	PrefixAction   = "act"
	PrefixSubagent = "sub"
	PrefixProcess  = "proc"
	PrefixJob      = "job"
	PrefixItem     = "item"
	PrefixFlow     = "flow"
	PrefixEvent    = "evt"
	PrefixOutput   = "out"
	PrefixCommand  = "cmd"
	PrefixArtifact = "art"
	PrefixChannel  = "chan"
)

// SystemSession holds the facts that belong to no other session.
const SystemSession SessionID = "sess_runtime"

// StreamID names one ordered stream of facts: "session/ID", "thread/ID" or
// "task/ID". The slash can't occur in an id, so the two parts never mix.
type StreamID string

// Stream kinds: one decider each.
const (
	KindSession = "session"
	KindThread  = "thread"
	KindTask    = "task"
	KindLedger  = "ledger"  // of quotas, in the system session
	KindProcess = "process" // a process's own stream in the system session
)

// Stream returns the stream of its facts.
func (id SessionID) Stream() StreamID { return StreamID(KindSession + "/" + string(id)) }

// Stream returns the stream of its facts.
func (id ThreadID) Stream() StreamID { return StreamID(KindThread + "/" + string(id)) }

// Stream returns the stream of its facts.
func (id TaskID) Stream() StreamID { return StreamID(KindTask + "/" + string(id)) }

// Kind is the part before the slash.
func (s StreamID) Kind() string { k, _, _ := strings.Cut(string(s), "/"); return k }

// ID is the part after the slash.
func (s StreamID) ID() string { _, id, _ := strings.Cut(string(s), "/"); return id }

// NewID mints a UUIDv7 with a prefix. Only edges call it: the core derives.
func NewID(prefix string) string {
	var b [16]byte
	rand.Read(b[:]) // never fails: crypto/rand aborts the program instead
	ms := uint64(time.Now().UnixMilli())
	b[0], b[1], b[2], b[3], b[4], b[5] = byte(ms>>40), byte(ms>>32), byte(ms>>24), byte(ms>>16), byte(ms>>8), byte(ms)
	b[6] = b[6]&0x0f | 0x70
	b[8] = b[8]&0x3f | 0x80
	return prefix + "_" + formatUUID(b)
}

// DeriveID makes the id of something that the event with the given sequence of
// a stream brings into being: the same on every node, after every crash. It is
// 128 bits of SHA-256 printed as a UUIDv8.
func DeriveID(prefix string, s StreamID, sequence int64, ordinal int) string {
	text := append(make([]byte, 0, 128), prefix...)
	text = append(append(text, 0), s...)
	text = append(text, 0)
	text = binary.BigEndian.AppendUint64(text, uint64(sequence))
	text = binary.BigEndian.AppendUint64(text, uint64(ordinal))
	sum := sha256.Sum256(text)
	b := [16]byte(sum[:16])
	b[6] = b[6]&0x0f | 0x80
	b[8] = b[8]&0x3f | 0x80
	return prefix + "_" + formatUUID(b)
}

// EventIDOf is the id of the event at a sequence of a stream.
func EventIDOf(s StreamID, sequence int64) EventID {
	return EventID(DeriveID(PrefixEvent, s, sequence, 0))
}

func formatUUID(b [16]byte) string {
	var out [36]byte
	hex.Encode(out[0:8], b[0:4])
	out[8] = '-'
	hex.Encode(out[9:13], b[4:6])
	out[13] = '-'
	hex.Encode(out[14:18], b[6:8])
	out[18] = '-'
	hex.Encode(out[19:23], b[8:10])
	out[23] = '-'
	hex.Encode(out[24:36], b[10:16])
	return string(out[:])
}

// CheckID reports whether a caller may bring this id: 1 to 128 characters of
// letters, digits, dot, underscore, colon and hyphen.
func CheckID(what, id string) error {
	if len(id) < 1 || len(id) > 128 {
		return Errorf(CodeBadID, "%s has %d characters; an id has 1 to 128", what, len(id)).
			WithHint("use letters, digits and . _ : -")
	}
	for i := range len(id) {
		c := id[i]
		ok := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._:-", c) >= 0
		if !ok {
			return Errorf(CodeBadID, "%s contains %s at character %d", what, strconv.QuoteRune(rune(c)), i+1).
				WithHint("use letters, digits and . _ : -")
		}
	}
	return nil
}

// IDs are the identities that a fact refers to: the standard's hierarchy, all
// optional here; the table in package event says which a type must carry.
type IDs struct {
	Session    SessionID  `json:"sessionId,omitempty"`
	Thread     ThreadID   `json:"threadId,omitempty"`
	Turn       TurnID     `json:"turnId,omitempty"`
	Task       TaskID     `json:"taskId,omitempty"`
	ParentTask TaskID     `json:"parentTaskId,omitempty"`
	Run        RunID      `json:"runId,omitempty"`
	Step       StepID     `json:"stepId,omitempty"`
	Call       CallID     `json:"toolCallId,omitempty"`
	Action     ActionID   `json:"actionId,omitempty"`
	Subagent   SubagentID `json:"subagentId,omitempty"`
	Process    ProcessID  `json:"processId,omitempty"`
	Job        JobID      `json:"jobId,omitempty"`
	Item       ItemID     `json:"jobItemId,omitempty"`
	Artifact   string     `json:"artifactId,omitempty"`
	Evidence   string     `json:"evidenceId,omitempty"`
	Channel    string     `json:"channelId,omitempty"`
	Output     OutputID   `json:"outputRef,omitempty"`
	Request    CommandID  `json:"requestId,omitempty"` // the command that caused the fact
}
