package view

import (
	"time"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// Programs are figures of programs that have ended: what they took of the
// machine, as far as the system told.
type Programs struct {
	Ended     int            `json:"ended"`
	CPU       belay.Duration `json:"cpu,omitempty"`          // of processors
	Time      belay.Duration `json:"time,omitempty"`         // from their starts to their ends
	Written   int64          `json:"writtenBytes,omitempty"` // to disks
	Peak      int64          `json:"peakBytes,omitempty"`    // memory of the one that had most
	Processes int            `json:"processes,omitempty"`    // and threads of one at a time, at most; where that is counted
	Throttled belay.Duration `json:"throttled,omitempty"`    // that they waited for their share of the processors
	Limited   int            `json:"limited,omitempty"`      // that met a limit

	// Limit is what the boundary that was decided on last gives all of them: of a
	// thread its total_… limits, of a session its session_… limits. Zero is none.
	Limit belay.ProgramUse `json:"limit,omitzero"`
}

// bounded notes what a boundary gives the programs of a session and of a thread.
func bounded(session, thread *Programs, f event.Payload) {
	if p, ok := f.(event.PermissionEvaluated); ok && p.Bounds != nil {
		l := p.Bounds.Limits
		session.Limit = belay.ProgramUse{CPU: l.SessionCPU, Time: l.SessionTime, Written: l.SessionWritten}
		thread.Limit = belay.ProgramUse{CPU: l.TotalCPU, Time: l.TotalTime, Written: l.TotalWritten}
	}
}

// add counts a program that ended by the fact.
func (p *Programs) add(f event.Payload) {
	use, ms, ok := event.UseOf(f)
	if !ok {
		return
	}
	p.Ended++
	p.CPU += millis(use.CPU)
	p.Time += millis(ms)
	p.Written += use.Written
	p.Peak = max(p.Peak, use.Peak, use.Together)
	p.Processes = max(p.Processes, use.Processes)
	p.Throttled += millis(use.Throttled)
	if use.Limit != "" {
		p.Limited++
	}
}

func millis(n int64) belay.Duration { return belay.Duration(time.Duration(n) * time.Millisecond) }
