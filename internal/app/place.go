package app

import (
	"github.com/belay-run/belay/internal/config"
	"github.com/belay-run/belay/internal/core/thread"
	"github.com/belay-run/belay/internal/tool"
)

// Place is a workspace as this process works in it: what counts there, and the
// tools that are made of it.
type Place struct {
	*config.Workspace
	Tools *tool.Set
	Own   []tool.Tool // of Tools, those that no MCP server has
}

// Draft is what a turn is to be decided by, before it is kept, and what it was made
// under.
type Draft struct {
	Rules *thread.Rules
	Under *config.Rules
	Place *Place
}
