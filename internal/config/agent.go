package config

import (
	"context"
	"path/filepath"

	"github.com/belay-run/belay/internal/config/agentfile"
)

// agentDirs are the folders of agents: in a workspace, and the second also in a person's
// home.
var agentDirs = []string{".belay/agents", ".claude/agents"}

// Agents reads the agents that are kept as files, the strongest place first. given is a
// folder that a person named, or empty.
func (w *Workspace) Agents(ctx context.Context, given string) (*agentfile.Catalog, error) {
	var places []agentfile.Place
	if given != "" {
		places = append(places, agentfile.Place{Dir: given, Origin: agentfile.Given})
	}
	var failed error
	whole := w.layers != nil && w.in.trustsFolder(w.layers.Trusted())
	trusts := func(rel string, content []byte) bool {
		if whole {
			return true
		}
		s, err := w.in.standing(ctx, rel, content)
		if err != nil {
			failed = err
		}
		return s == Trusted
	}
	if w.in.Workspace != "" {
		for _, dir := range agentDirs {
			places = append(places, agentfile.Place{Dir: w.in.Workspace, Below: dir, Origin: agentfile.Workspace, Trusts: trusts})
		}
	}
	if dir := w.in.ConfigDir(); dir != "" {
		places = append(places, agentfile.Place{Dir: dir, Below: "agents", Origin: agentfile.User})
	}
	if home := w.in.Get("HOME"); filepath.IsAbs(home) && home != w.in.Workspace {
		places = append(places, agentfile.Place{Dir: home, Below: agentDirs[1], Origin: agentfile.User})
	}
	places = append(places, agentfile.Place{Dir: systemDir, Below: "agents", Origin: agentfile.System})
	c := agentfile.Open(places)
	c.HoldAgainst(w.Specs())
	return c, failed
}
