package event

import (
	"reflect"
	"time"

	"github.com/belay-run/belay"
)

// OutputSpilled reports that an output was too large for the log, and where it
// is.
type OutputSpilled struct {
	fact
	Owner string     `json:"owner"` // tool, process, model, hook
	Bytes int64      `json:"bytes"`
	Ref   *belay.Ref `json:"ref,omitempty" output:"ref"`
}

// OutputTruncated reports how much of a large output the model was shown.
type OutputTruncated struct {
	fact
	Bytes int64      `json:"bytes"`
	Shown int64      `json:"shown"` // bytes the model was shown
	Ref   *belay.Ref `json:"ref,omitempty" output:"ref"`
}

// OutputRedacted says that something was taken out of an output before it was
// kept. It never says what.
type OutputRedacted struct {
	fact
	Count int        `json:"count"`                      // places
	Rules []string   `json:"rules,omitempty"`            // the known forms that were found; registered: a value that was registered
	Ref   *belay.Ref `json:"ref,omitempty" output:"ref"` // what is left
}

// OutputExpired records that a stored output is given up. Nothing reads it any
// more and its bytes are removed once nothing else needs them; the part that a
// model was shown stays.
type OutputExpired struct {
	fact
	Digest belay.Digest `json:"digest" output:"digest"`
	Bytes  int64        `json:"bytes"`
	Owner  string       `json:"owner,omitempty"` // tool, process
	Reason string       `json:"reason"`          // retention, asked
	Why    string       `json:"why,omitempty"`   // the retention limit, or a person's reason
	By     string       `json:"by,omitempty"`    // principal; empty: retention
	Since  time.Time    `json:"since,omitzero"`  // when it was last recorded
}

// Reasons for which an output expires.
const (
	ExpiredByRetention = "retention"
	ExpiredAsked       = "asked"
)

// An output is content of which the facts hold what the model was shown: it may
// expire. A field with the tag output names one, or is the digest of one that is
// compared and never read.

// NamesOutputs reports whether facts of a type can name outputs.
func NamesOutputs(name string) bool {
	t := byName[name]
	return t != nil && len(outputFields(t.goType)) > 0
}

func outputFields(t reflect.Type) (fields []int) {
	for i := range t.NumField() {
		if t.Field(i).Tag.Get("output") != "" {
			fields = append(fields, i)
		}
	}
	return fields
}

// WithoutOutputs lists the outputs that a fact names, and returns the payload
// without them: what is left names what has to stay.
func WithoutOutputs(p Payload) (rest Payload, outputs []belay.Ref) {
	without := reflect.New(reflect.TypeOf(p)).Elem()
	without.Set(reflect.ValueOf(p))
	for _, i := range outputFields(without.Type()) {
		f := without.Field(i)
		if ref, _ := f.Interface().(*belay.Ref); ref != nil {
			outputs = append(outputs, *ref)
		}
		f.SetZero()
	}
	return without.Interface().(Payload), outputs
}
