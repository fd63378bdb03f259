// Package event is the vocabulary of facts: the envelope, a typed payload for
// each of the 120 event types of the Agent Runtime standard, and one table that
// lists them. It promises that what it can't read it carries byte for byte, and
// that what it writes is valid under the standard's public event schema and its
// strict profile. It knows nothing of who emits or reads a fact.
package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/belay-run/belay"
)

// SchemaVersion is the standard's constant for the strict profile.
const SchemaVersion = "lime-profile-0.4.0"

// Payload is what one type of fact says. Only this package's types have it.
type Payload interface{ payload() }

type fact struct{}

func (fact) payload() {}

// Unknown is the payload of a type, or of a version, that this build doesn't
// know. Encode gives Raw back byte for byte; in the JSON of an envelope only
// space between tokens may differ.
type Unknown struct {
	Type string
	Raw  []byte
}

func (Unknown) payload() {}

// Envelope is one fact: where it stands, what it is about, what it says.
type Envelope struct {
	Stream   belay.StreamID // the stream it belongs to
	Seq      int64          // its place there, from 1
	Time     time.Time      // UTC, microseconds
	Runtime  belay.RuntimeID
	IDs      belay.IDs
	Refs     map[string]belay.Ref // blobs it names, keyed by role
	Version  int                  // payloadVersion; 0 is read as 1
	Requires int                  // a reader that doesn't know this level must not act on the stream
	Data     Payload

	raw []byte // see Keep
}

// Encoded is Encode of the payload, or what was kept of it.
func (e *Envelope) Encoded() ([]byte, error) {
	if e.raw != nil {
		return e.raw, nil
	}
	return Encode(e.Data)
}

// Keep saves Encoded the work: raw must be Encode of the payload, and neither
// of them may change any more.
func (e *Envelope) Keep(raw []byte) { e.raw = raw }

// ID is derived from stream and sequence.
func (e Envelope) ID() belay.EventID { return belay.EventIDOf(e.Stream, e.Seq) }

// Type is the name of the payload's type.
func (e Envelope) Type() string { return TypeOf(e.Data) }

// wire is the envelope in the standard's JSON. stream, payloadVersion and
// requires are additions of ours, which the schemas allow.
type wire struct {
	Type          string          `json:"type"`
	EventID       belay.EventID   `json:"eventId"` // follows from stream and sequence
	Timestamp     time.Time       `json:"timestamp"`
	Sequence      int64           `json:"sequence"` // place in the stream, from 1
	Stream        belay.StreamID  `json:"stream"`   // session/ID, thread/ID, task/ID or process/ID
	SchemaVersion string          `json:"schemaVersion"`
	RuntimeID     belay.RuntimeID `json:"runtimeId"`
	belay.IDs
	PayloadVersion int                  `json:"payloadVersion,omitempty"` // of the payload's fields; absent is 1
	Requires       int                  `json:"requires,omitempty"`       // a reader that doesn't know this level must not act on the stream
	Payload        json.RawMessage      `json:"payload"`
	Refs           map[string]belay.Ref `json:"refs,omitempty"` // blobs the fact names, by role
	Promoted
}

// version is the payloadVersion that Data encodes to.
func (e Envelope) version() int {
	if _, ok := e.Data.(Unknown); ok {
		return max(e.Version, 1)
	}
	return VersionOf(e.Data)
}

// MarshalJSON writes the standard's form. A known payload is written in the
// table's version whatever Version says, an unknown one as it was recorded.
func (e Envelope) MarshalJSON() ([]byte, error) {
	payload, err := e.Encoded()
	if err != nil {
		return nil, err
	}
	v := e.version()
	if v == 1 {
		v = 0 // the default is left out
	}
	return marshal(wire{
		Type: e.Type(), EventID: e.ID(), Timestamp: e.Time.UTC(), Sequence: e.Seq, Stream: e.Stream,
		SchemaVersion: SchemaVersion, RuntimeID: e.Runtime, IDs: e.IDs,
		PayloadVersion: v, Requires: e.Requires, Payload: payload, Refs: e.Refs, Promoted: promoted(e.Data),
	})
}

// UnmarshalJSON reads the standard's form. An event id that does not follow
// from stream and sequence is an error.
func (e *Envelope) UnmarshalJSON(b []byte) error {
	var w wire
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	data, err := Decode(w.Type, w.PayloadVersion, w.Payload)
	if err != nil {
		return err
	}
	*e = Envelope{Stream: w.Stream, Seq: w.Sequence, Time: w.Timestamp.UTC(), Runtime: w.RuntimeID, IDs: w.IDs,
		Refs: w.Refs, Version: w.PayloadVersion, Requires: w.Requires, Data: data}
	e.Version = e.version() // what was read is lifted by now
	if w.EventID != e.ID() {
		return fmt.Errorf("event %s: its id does not follow from stream %q and sequence %d", w.EventID, w.Stream, w.Sequence)
	}
	return nil
}

// Encode writes a payload as JSON in the table's version.
func Encode(p Payload) ([]byte, error) {
	if u, ok := p.(Unknown); ok {
		return u.Raw, nil
	}
	if byPayload(p) == nil {
		return nil, fmt.Errorf("encode %T: no type of the table has this payload", p)
	}
	b, err := marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", TypeOf(p), err)
	}
	return b, nil
}

// marshal is json.Marshal without the escapes that only HTML needs.
func marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// Decode reads the payload of a type in a version; 0 is read as 1. A type that
// isn't in the table becomes Unknown; so does a version newer than the table's.
// What isn't an object is no payload.
func Decode(name string, version int, raw []byte) (Payload, error) {
	if name == "" {
		return nil, errors.New("decode a fact: it has no type")
	}
	if rest := bytes.TrimLeft(raw, " \t\r\n"); len(rest) == 0 || rest[0] != '{' {
		return nil, fmt.Errorf("decode %s: the payload is not an object", name)
	}
	t, ok := byName[name]
	if !ok || version > t.Version {
		return Unknown{Type: name, Raw: bytes.Clone(raw)}, nil
	}
	return t.read(version, raw)
}

// TypeOf is the name of a payload's type; empty for a type that is in no table.
func TypeOf(p Payload) string {
	if u, ok := p.(Unknown); ok {
		return u.Type
	}
	if t := byPayload(p); t != nil {
		return t.Name
	}
	return ""
}
