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
		{"GET /v1/sessions", "Sessions, the one that changed last first.", false, answered(v.sessions)},
		{"GET /v1/sessions/{id}", "A session's shell: everything but its history.", false, answered(v.session)},
		{"GET /v1/sessions/{id}/snapshot", "The standard's snapshot of a session.", false, answered(v.snapshot)},
		{"GET /v1/sessions/{id}/tasks", "The tasks of a session, the newest last.", false, answered(v.tasks)},
		{"GET /v1/sessions/{id}/events", "A window of a session's facts.", false, v.events(v.ofSession)},
		{"GET /v1/sessions/{id}/story", "A window of a session's facts, told as items.", false, v.story(v.ofSession)},
		{"GET /v1/search", "Sessions that have all words of a question.", false, answered(v.search)},
		{"GET /v1/threads/{id}", "A thread: its turn, its queue, its open questions.", false, answered(v.thread)},
		{"GET /v1/threads/{id}/events", "A window of a thread's facts.", false, v.events(v.ofThread)},
		{"GET /v1/threads/{id}/items", "A window of a thread's facts, told as items.", false, v.story(v.ofThread)},
	}
}
