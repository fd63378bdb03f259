package read

import (
	"net/http"

	"github.com/belay-run/belay/internal/view/feed"
)

// Route is a path of the interface and who answers it.
type Route struct {
	Pattern string  // as http.ServeMux takes it, with a method
	Summary string  // in one line, for the interface's description
	Stream  bool    // its answer has no end: it may have no deadline
	Query   []Param // what its query may say
	Handle  http.HandlerFunc
}

// After is what every read takes that isn't a stream.
var After = Param{Name: "after", Doc: "A position that the answer must have seen; it waits up to two seconds for it.", Whole: true}

// What queries may say.
var (
	typesParam = Param{Name: "types", Doc: "Only facts of these types, separated by commas; model.* is a family."}
	limitParam = Param{Name: "limit", Doc: "How many at most.", Whole: true}

	freshParams  = []Param{After}
	streamParams = []Param{{Name: "since", Doc: "Where to begin: a cursor, a position, start or now."}, typesParam}
	listParams   = []Param{After, limitParam,
		{Name: "status", Doc: "Only sessions whose turn is queued, running, waiting or ended."},
		{Name: "workspace", Doc: "Only sessions of this folder, and of worktrees that were made of it."},
		{Name: "tag", Doc: "Only sessions that have this tag; said more than once, all of them.", Many: true},
		{Name: "archived", Doc: "true: only sessions that are archived; false: only others."}}
	searchParams = []Param{{Name: "q", Doc: "Words that a session must all have.", Required: true}, After, limitParam}
	pageParams   = []Param{After, typesParam,
		{Name: "first", Doc: "The oldest so many facts.", Whole: true},
		{Name: "last", Doc: "The newest so many; 200 when nothing is said.", Whole: true},
		{Name: "before", Doc: "Facts before a cursor, with limit."},
		{Name: "behind", Doc: "Facts behind a cursor, with limit."}, limitParam}
)

// Routes are all paths that this package answers. The caller that mounts them
// checks that the request may read, and that its query is one of Query, with
// Only.
func (v *Reads) Routes() []Route {
	return []Route{
		{"GET /v1/stream", "What happens in the store, as it happens.", true, streamParams, v.stream(wholeStore, feed.Now)},
		{"GET /v1/sessions/{id}/stream", "What happens in a session, from its first fact on.", true, streamParams, v.stream(v.ofSession, feed.Start)},
		{"GET /v1/threads/{id}/stream", "What happens in a thread, from its first fact on.", true, streamParams, v.stream(v.ofThread, feed.Start)},
		{"GET /v1/runs/{id}/stream", "What happens in a run, until it is over.", true, streamParams, v.stream(v.ofRun, feed.Start)},
		{"GET /v1/sessions", "Sessions, the one that changed last first.", false, listParams, answered(v.sessions)},
		{"GET /v1/sessions/{id}", "A session's shell: everything but its history.", false, freshParams, answered(v.session)},
		{"GET /v1/sessions/{id}/snapshot", "The standard's snapshot of a session.", false, freshParams, answered(v.snapshot)},
		{"GET /v1/sessions/{id}/tasks", "The tasks of a session, the newest last.", false, freshParams, answered(v.tasks)},
		{"GET /v1/sessions/{id}/events", "A window of a session's facts.", false, pageParams, v.events(v.ofSession)},
		{"GET /v1/sessions/{id}/story", "A window of a session's facts, told as items.", false, pageParams, v.story(v.ofSession)},
		{"GET /v1/search", "Sessions that have all words of a question.", false, searchParams, answered(v.search)},
		{"GET /v1/threads/{id}", "A thread: its turn, its queue, its open questions.", false, freshParams, answered(v.thread)},
		{"GET /v1/threads/{id}/events", "A window of a thread's facts.", false, pageParams, v.events(v.ofThread)},
		{"GET /v1/threads/{id}/items", "A window of a thread's facts, told as items.", false, pageParams, v.story(v.ofThread)},
	}
}
