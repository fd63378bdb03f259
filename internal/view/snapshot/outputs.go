package snapshot

import (
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// Outputs are the large outputs of a session: what was kept beside the log, and
// what of it the model read.
type Outputs struct {
	Total     int       `json:"total"` // outputs, also those that aren't shown
	Shown     int       `json:"shown"`
	Bytes     int64     `json:"bytes"`     // kept beside the log
	Truncated int       `json:"truncated"` // that the model read in part
	Redacted  int       `json:"redacted"`  // places where something was taken out
	Expired   int       `json:"expired"`
	Outputs   []*Output `json:"outputs"` // the newest, the last one last
}

// Output is a large output of a call.
type Output struct {
	Status    string          `json:"status"` // kept, not_kept, expired
	ThreadID  belay.ThreadID  `json:"threadId,omitempty"`
	TurnID    belay.TurnID    `json:"turnId,omitempty"`
	CallID    belay.CallID    `json:"toolCallId,omitempty"`
	ProcessID belay.ProcessID `json:"processId,omitempty"`
	Owner     string          `json:"owner,omitempty"` // tool, process, model, hook
	Bytes     int64           `json:"bytes"`
	Read      int64           `json:"shownBytes"` // the model read so many of them
	Whole     bool            `json:"whole"`      // which were all
	Ref       *belay.Ref      `json:"ref,omitempty"`
	At        time.Time       `json:"at"`
}

// maxOutputs bounds the outputs that are shown.
const maxOutputs = 200

// output folds the outcome of large outputs.
func (f *Fold) output(e event.Envelope) {
	all := &f.s.Outputs
	switch p := e.Data.(type) {
	case event.OutputSpilled:
		o := f.outputOf(e, p.Ref)
		o.Owner, o.Bytes, o.Read = p.Owner, p.Bytes, p.Bytes
		all.Bytes += p.Bytes
	case event.OutputTruncated:
		o := f.outputOf(e, p.Ref)
		o.Bytes, o.Read, o.Whole = max(o.Bytes, p.Bytes), p.Shown, false
		all.Truncated++
	case event.OutputRedacted:
		all.Redacted += p.Count
	case event.OutputExpired:
		all.Expired++
		for _, o := range all.Outputs {
			if o.Ref != nil && o.Ref.Digest == p.Digest {
				o.Status = "expired"
			}
		}
	}
	all.Shown = len(all.Outputs)
}

// outputOf is the output that facts of one call speak of, the one with this
// content where they name it; else a new one.
func (f *Fold) outputOf(e event.Envelope, ref *belay.Ref) *Output {
	all := &f.s.Outputs
	if n := len(all.Outputs); n > 0 {
		o := all.Outputs[n-1]
		same := o.Ref == nil && ref == nil || o.Ref != nil && ref != nil && o.Ref.Digest == ref.Digest
		if same && o.ThreadID == e.IDs.Thread && o.CallID == e.IDs.Call && o.At.Equal(e.Time) {
			return o
		}
	}
	o := &Output{Status: "kept", ThreadID: e.IDs.Thread, TurnID: e.IDs.Turn, CallID: e.IDs.Call, ProcessID: e.IDs.Process, Ref: ref, Whole: true, At: e.Time}
	if ref == nil {
		o.Status = "not_kept"
	}
	all.Total++
	all.Outputs = last(append(all.Outputs, o), maxOutputs)
	return o
}
