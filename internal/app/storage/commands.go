// Package storage has the use cases about a store as a whole: the outputs that it keeps,
// what it lets go, backups, the check of its files; and the machine that it is on. The check and the backups are of
// the driver that keeps a store in files, so they don't go through the contract.
package storage

import (
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/auth"
)

// Commands are the rows of this feature.
func Commands() []app.Command {
	return []app.Command{
		app.DefineLook("list_outputs", auth.Read, "List what programs and tools printed that is kept beside the log.", listOutputs),
		app.DefineLook("show_settings", auth.Read, "Show the settings of a new session, and where each comes from; of keys only whether they are set.", showSettings),
		app.DefineLook("doctor", auth.Work, "Say what the machine gives and what is missing.", doctor),
	}
}
