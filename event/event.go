// Package event is the vocabulary of facts: the envelope, a typed payload for
// each of the 120 event types of the Agent Runtime standard, and one table that
// lists them. It promises that what it can't read it carries byte for byte, and
// that what it writes is valid under the standard's public event schema and its
// strict profile. It knows nothing of who emits or reads a fact.
package event

import (
	"bytes"
	"encoding/json"
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
// know. It re-encodes byte for byte.
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
}

// ID is derived from stream and sequence.
func (e Envelope) ID() belay.EventID { return belay.EventIDOf(e.Stream, e.Seq) }

// Type is the name of the payload's type.
func (e Envelope) Type() string { return TypeOf(e.Data) }

// wire is the envelope in the standard's JSON. stream, payloadVersion and
// requires are additions of ours, which the schemas allow.
type wire struct {
	Type          string          `json:"type"`
	EventID       belay.EventID   `json:"eventId"`
	Timestamp     time.Time       `json:"timestamp"`
	Sequence      int64           `json:"sequence"`
	Stream        belay.StreamID  `json:"stream"`
	SchemaVersion string          `json:"schemaVersion"`
	RuntimeID     belay.RuntimeID `json:"runtimeId"`
	belay.IDs
	PayloadVersion int                  `json:"payloadVersion,omitempty"`
	Requires       int                  `json:"requires,omitempty"`
	Payload        json.RawMessage      `json:"payload"`
	Refs           map[string]belay.Ref `json:"refs,omitempty"`
}

// MarshalJSON writes the standard's form.
func (e Envelope) MarshalJSON() ([]byte, error) {
	raw, err := Encode(e.Data)
	if err != nil {
		return nil, err
	}
	v := e.Version
	if v <= 1 {
		v = 0 // 1 is the default and is left out
	}
	return json.Marshal(wire{
		Type: e.Type(), EventID: e.ID(), Timestamp: e.Time, Sequence: e.Seq, Stream: e.Stream,
		SchemaVersion: SchemaVersion, RuntimeID: e.Runtime, IDs: e.IDs,
		PayloadVersion: v, Requires: e.Requires, Payload: raw, Refs: e.Refs,
	})
}

// UnmarshalJSON reads the standard's form. An event id that does not follow
// from stream and sequence is an error.
func (e *Envelope) UnmarshalJSON(b []byte) error {
	var w wire
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	data, err := Decode(w.Type, max(w.PayloadVersion, 1), w.Payload)
	if err != nil {
		return err
	}
	*e = Envelope{Stream: w.Stream, Seq: w.Sequence, Time: w.Timestamp, Runtime: w.RuntimeID, IDs: w.IDs,
		Refs: w.Refs, Version: w.PayloadVersion, Requires: w.Requires, Data: data}
	if w.EventID != e.ID() {
		return fmt.Errorf("event %s: its id does not follow from stream %q and sequence %d", w.EventID, w.Stream, w.Sequence)
	}
	return nil
}

// Encode writes a payload as JSON.
func Encode(p Payload) ([]byte, error) {
	if u, ok := p.(Unknown); ok {
		return u.Raw, nil
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(p); err != nil {
		return nil, fmt.Errorf("encode %s: %w", TypeOf(p), err)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// Decode reads the payload of a type in a version. A type that isn't in the
// table becomes Unknown; so does a version newer than the table's.
func Decode(name string, version int, raw []byte) (Payload, error) {
	t, ok := byName[name]
	if !ok || version > t.Version {
		return Unknown{Type: name, Raw: bytes.Clone(raw)}, nil
	}
	for v := version; v < t.Version; v++ {
		up, err := t.up[v](raw)
		if err != nil {
			return nil, fmt.Errorf("%s: from version %d: %w", name, v, err)
		}
		raw = up
	}
	p, err := t.decode(raw)
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", name, err)
	}
	return p, nil
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
