package thread

import (
	"slices"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// Bounds of what is pinned.
const (
	maxPins   = 16
	maxPinned = 8 << 10 // bytes of all texts
)

// pin is a text that stays in the conversation.
type pin struct {
	event.PinChange
	Told bool `json:"told,omitempty"` // a request had it
}

func (w *windowState) applyPin(p event.PinChange) {
	w.Pins = slices.DeleteFunc(w.Pins, func(have pin) bool { return have.ID == p.ID })
	if p.Text != "" {
		w.Pins = append(w.Pins, pin{PinChange: p})
	}
}

// pinNote tells the model what was pinned since its last request.
func (w *windowState) pinNote() string {
	var notes []string
	for _, p := range w.Pins {
		if !p.Told {
			notes = append(notes, "A person pinned this. It stays in the conversation word for word:\n"+p.Text)
		}
	}
	return joinNotes(notes...)
}

// pin keeps a text in the conversation.
func (h *handler) pin(c belay.PinContext) error {
	size := event.TextLen(c.Text)
	for _, p := range h.Pins {
		if p.ID == c.Pin {
			if p.Text == c.Text {
				return nil
			}
			return belay.Errorf(belay.CodeIDConflict, "pin %s has another text", c.Pin).At(string(h.Session))
		}
		size += event.TextLen(p.Text)
	}
	switch {
	case !h.Open:
		return belay.Errorf(belay.CodeBadState, "the thread isn't open")
	case strings.TrimSpace(c.Text) == "":
		return belay.Errorf(belay.CodeBadCommand, "there is no text to pin")
	case size > maxPinned:
		return belay.Errorf(belay.CodeTooLarge, "pinned texts would have %d bytes; at most %d are kept", size, maxPinned).At(string(h.Session)).
			WithHint("put it into a file and name the file, or take another pin out: belay unpin --session %s PIN", h.Session)
	case len(h.Pins) >= maxPins:
		return belay.Errorf(belay.CodeTooMany, "%d texts are pinned already", maxPins).At(string(h.Session)).WithHint("belay unpin --session %s PIN", h.Session)
	}
	h.record(h.threadFact(event.ThreadUpdated{Pin: &event.PinChange{ID: c.Pin, Text: c.Text, By: h.order.Principal}}))
	return nil
}

// unpin takes a text out of the conversation's pins.
func (h *handler) unpin(c belay.UnpinContext) error {
	if !slices.ContainsFunc(h.Pins, func(p pin) bool { return p.ID == c.Pin }) {
		return belay.Errorf(belay.CodeNotFound, "there is no pin %q", c.Pin).At(string(h.Session)).WithHint("belay context %s lists them", h.Session)
	}
	h.record(h.threadFact(event.ThreadUpdated{Pin: &event.PinChange{ID: c.Pin, By: h.order.Principal}}))
	return nil
}
