// Package processes has the use cases about programs in the background.
package processes

import (
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/auth"
)

// Commands are the rows of this feature.
func Commands() []app.Command {
	return []app.Command{
		app.Define("write_process_stdin", auth.Work, true, "Give a program in the background input.", Write),
		app.Define("terminate_process", auth.Work, true, "End a program in the background, with all it started.", Terminate),
	}
}
