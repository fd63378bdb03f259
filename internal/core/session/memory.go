package session

import (
	"fmt"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/policy"
)

// declared is the memory that the agents declare that have a place.
func (s *State) declared() (sum int64) {
	for i := range s.Family {
		if c := &s.Family[i]; s.works(c) {
			sum += c.Memory.Declared
		}
	}
	for i := range s.Plan {
		if p := &s.Plan[i]; p.Begun && !p.ended() && p.Agent == nil { // others are children
			sum += p.Memory.Declared
		}
	}
	return sum
}

// beyond reports whether an agent declares more memory than all may.
func beyond(l belay.AgentLimits, m belay.MemoryNeed) bool {
	most := l.MemoryLimit(m.Machine)
	return most > 0 && m.Declared > most
}

func tooBig(l belay.AgentLimits, m belay.MemoryNeed) string {
	return fmt.Sprintf("agents-memory is %s, and this agent declares %s", policy.SizeText(l.MemoryLimit(m.Machine)), policy.SizeText(m.Declared))
}

// crowded says why an agent that declares memory waits for some; empty: it needn't.
func (s *State) crowded(m belay.MemoryNeed) string {
	most := s.Settings.Agents.MemoryLimit(m.Machine)
	if m.Declared == 0 || most == 0 || s.declared()+m.Declared <= most {
		return ""
	}
	return "memory: " + tooBig(s.Settings.Agents, m) + "; others have the rest"
}
