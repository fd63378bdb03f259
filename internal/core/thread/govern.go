package thread

import (
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
	"github.com/belay-run/belay/internal/core"
)

// govern records, before anything else of a turn, that other rules took effect
// than those the thread knows. Rules of people are named; none are the built-in.
func govern(s *State, r *Rules, now time.Time, rd *core.Ready) bool {
	var digest belay.Digest
	if r.Policy != nil {
		digest = r.Policy.Digest
	}
	if digest == s.Policy {
		return false
	}
	rd.Decided = append(rd.Decided, s.fact(event.PolicyChanged{Kind: "rules", Op: "loaded", Digest: r.Policy}))
	return true
}

// governed folds that rules took effect.
func (s *State) governed(p event.PolicyChanged) {
	s.Policy = ""
	if p.Digest != nil {
		s.Policy = p.Digest.Digest
	}
}
