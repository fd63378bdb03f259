// Package transfer has the use cases that take sessions out of a store and bring them
// into one. It promises that a file is checked to its end before anything of it is
// kept, and that a session from outside can't act without a question unless that was
// said.
package transfer

import (
	"github.com/belay-run/belay/internal/app"
	"github.com/belay-run/belay/internal/app/read"
	"github.com/belay-run/belay/internal/auth"
)

// maxImport bounds the body of import_session, in bytes.
const maxImport = 64 << 20

// Commands are the rows of this feature.
func Commands() []app.Command {
	c := app.Define("import_session", auth.Own, true, "Bring in a session: one that was exported, or a transcript of another agent.", importSession)
	c.MaxBody = maxImport
	return []app.Command{c}
}

// Reads are the rows of this feature.
func Reads() []app.Read {
	return []app.Read{
		app.DefineDocument(app.Read{Name: "exportSession", Path: "/v1/sessions/{id}/export", Tag: "reads", Doc: "Export a session: a bundle of everything, its messages, or the standard's forms.", ID: "The session.",
			Query: []read.Param{{Name: "format", Doc: "bundle (default): everything, for import_session. transcript: its messages. events, snapshot: the standard's.", OneOf: []string{Bundle, Transcript, Events, Snapshot}}}}, exportSession),
	}
}
