package event

import (
	"reflect"
	"strings"
)

// What the documents and the filler look at from outside.
var WireType = reflect.TypeFor[wire]()

func GoType(t Type) reflect.Type { return t.goType }

// LibraryJSON is what encoding/json makes of an envelope.
func LibraryJSON(e Envelope) ([]byte, error) {
	raw, err := e.Encoded()
	if err != nil {
		return nil, err
	}
	v := e.version()
	if v <= 1 {
		v = 0
	}
	return marshal(wire{
		Type: e.Type(), EventID: e.ID(), Timestamp: e.Time.UTC(), Sequence: e.Seq, Stream: e.Stream,
		SchemaVersion: SchemaVersion, RuntimeID: e.Runtime, IDs: e.IDs,
		PayloadVersion: v, Requires: e.Requires, Payload: raw, Refs: e.Refs, Promoted: promoted(e.Data),
	})
}

// Family is the part of a type's name before the first dot.
func (t Type) Family() string { f, _, _ := strings.Cut(t.Name, "."); return f }
