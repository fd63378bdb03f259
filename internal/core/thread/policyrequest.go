package thread

import (
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/policy"
)

// CallOf is a call of the running step, or nil. The caller must not change it.
func (s *State) CallOf(id belay.CallID) *Call {
	if s.Turn == nil {
		return nil
	}
	return s.Turn.call(id)
}

// Asked is what the gate is asked about a call of the running step as the facts
// so far and a turn's rules say, at a time. args are the call's arguments when they are
// long. It is false when the step has no such call, or the rules no such tool.
func (s *State) Asked(r *Rules, id belay.CallID, args []byte, at time.Time) (policy.Request, bool) {
	c := s.CallOf(id)
	if c == nil {
		return policy.Request{}, false
	}
	spec, known := r.Tool(c.Name)
	if !known {
		return policy.Request{}, false
	}
	whole := *c
	if whole.ArgsRef != nil {
		whole.Args, whole.ArgsRef = args, nil
	}
	return s.policyRequest(r, spec, &whole, at), true
}
