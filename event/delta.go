package event

import "github.com/belay-run/belay"

// Delta is what flows between two facts: a piece of a text as it streams, or the
// progress of a call. It has no sequence and is in no log; the facts after it have
// its text.
type Delta struct {
	Stream  belay.StreamID
	IDs     belay.IDs
	Kind    string // text, reasoning, progress
	Attempt int    // of the step's request, of the call for progress
	Offset  int64  // bytes of the attempt's text, or of what the call printed, before this; of that, pieces may be missing
	Text    string
}
