package snapshot

import (
	"github.com/belay-run/belay"
	"github.com/belay-run/belay/event"
)

// Environment is where the session's programs run.
type Environment struct {
	Status    string             `json:"status"` // available; unknown: the log doesn't say where the session works
	Workspace string             `json:"cwd,omitempty"`
	Roots     []string           `json:"workspaceRoots"`
	Use       belay.WorkspaceUse `json:"use,omitzero"`
	Worktree  *belay.Worktree    `json:"worktree,omitempty"`
	Limits    belay.Limits       `json:"limits"` // of a turn
	Programs  Programs           `json:"programs"`
}

// Programs counts what was started in the environment.
type Programs struct {
	Started int `json:"started"`
	Running int `json:"running"` // as facts say; threads list them
	Failed  int `json:"failed"`  // that could not start, or whose end is unknown
	Limited int `json:"limited"` // that met a limit
}

// environment folds where programs run.
func (f *Fold) environment(e event.Envelope) {
	s := &f.s.Environment
	switch p := e.Data.(type) {
	case event.SessionCreated:
		s.place(p.Workspace)
		s.Limits = p.Settings.Limits
	case event.SessionUpdated:
		if p.Settings != nil {
			s.Limits = p.Settings.Limits
		}
		if p.Use != nil {
			s.Use = *p.Use
		}
		if p.Worktree != nil {
			s.Worktree = p.Worktree
		}
	case event.ProcessStarted:
		s.Programs.Started++
	case event.ProcessFailed:
		s.Programs.Failed++
	}
	if use, _, ok := event.UseOf(e.Data); ok && use.Limit != "" {
		s.Programs.Limited++
	}
}

func (s *Environment) place(workspace string) {
	if s.Workspace = workspace; workspace != "" {
		s.Status, s.Roots = "available", []string{workspace}
	}
}
