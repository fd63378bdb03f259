package policy

import (
	"cmp"
	"slices"

	"github.com/belay-run/belay"
)

// Narrows reports whether a mode allows no more than another one; empty is the default.
func Narrows(m, than belay.Mode) bool {
	return slices.Contains(wider(m), cmp.Or(than, belay.ModeDefault))
}

// Narrower is a mode in place of another, if it allows no more; else it is that other.
func Narrower(m, than belay.Mode) belay.Mode {
	if m != "" && Narrows(m, than) {
		return m
	}
	return than
}

// wider lists the modes that allow at least as much as one. Modes of which neither
// is in the other's list can't be compared.
func wider(m belay.Mode) []belay.Mode {
	onFailure := []belay.Mode{belay.ModeOnFailure, belay.ModeBypass}
	onRequest := append([]belay.Mode{belay.ModeOnRequest}, onFailure...)
	usual := append([]belay.Mode{belay.ModeDefault, belay.ModeAcceptEdits, belay.ModeAuto}, onRequest...)
	switch m {
	case belay.ModePlan:
		return belay.Modes
	case belay.ModeNever, belay.ModeUntrusted:
		return append(usual, m)
	case belay.ModeDefault:
		return usual
	case belay.ModeAcceptEdits:
		return usual[1:]
	case belay.ModeOnRequest:
		return onRequest
	case belay.ModeOnFailure:
		return onFailure
	case belay.ModeAuto, belay.ModeBypass:
		return []belay.Mode{m, belay.ModeBypass}
	}
	return nil
}
