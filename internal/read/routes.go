package read

import (
	"net/http"

	"github.com/belay-run/belay/internal/live"
)

// Route is a path of the interface and who answers it.
type Route struct {
	Pattern string // as http.ServeMux takes it, with a method
	Summary string // in one line, for the interface's description
	Stream  bool   // its answer has no end: it may have no deadline
	Handle  http.HandlerFunc
}

// Routes are all paths that this package answers. Who mounts them lets only those
// through who may read.
func (v *Reads) Routes() []Route {
	return []Route{
		{"GET /v1/stream", "What happens in the store, as it happens.", true, v.stream(wholeStore, live.Now)},
		{"GET /v1/sessions/{id}/stream", "What happens in a session, from its first fact on.", true, v.stream(v.ofSession, live.Start)},
		{"GET /v1/threads/{id}/stream", "What happens in a thread, from its first fact on.", true, v.stream(v.ofThread, live.Start)},
		{"GET /v1/runs/{id}/stream", "What happens in a run, until it is over.", true, v.stream(v.ofRun, live.Start)},
	}
}
