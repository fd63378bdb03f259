package read

import (
	"context"
	"net/http"
	"reflect"
	"strings"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/view"
	"github.com/belay-run/belay/internal/view/feed"
)

// Route is a path of the interface and who answers it.
type Route struct {
	Pattern string  // as http.ServeMux takes it, with a method
	Summary string  // in one line, for the interface's description
	Query   []Param // what its query may say

	Read   func(ctx context.Context, q Query) (any, error) // its answer; nil for a stream, which has no end and may have no deadline
	Out    reflect.Type                                    // of the answer; nil for a stream
	Handle http.HandlerFunc
}

// Stream reports whether the answer has no end.
func (r Route) Stream() bool { return r.Read == nil }

// Path is the path without the method.
func (r Route) Path() string {
	_, path, _ := strings.Cut(r.Pattern, " ")
	return path
}

// Name is what the description of the interface calls the operation.
func (r Route) Name() string {
	words := strings.FieldsFunc(strings.TrimPrefix(r.Path(), "/v1/"), func(c rune) bool { return c == '/' || c == '{' || c == '}' })
	return "read_" + strings.Join(words, "_")
}

// streamed makes a route of a stream.
func streamed(pattern, summary string, h http.HandlerFunc) Route {
	return Route{Pattern: pattern, Summary: summary, Query: streamParams, Handle: h}
}

// answered makes a route of a function that reads.
func answered[T any](pattern, summary string, params []Param, f func(context.Context, Query) (*T, error)) Route {
	r := Route{Pattern: pattern, Summary: summary, Query: params, Out: reflect.TypeFor[T](), Read: func(ctx context.Context, q Query) (any, error) { return f(ctx, q) }}
	r.Handle = handler(r.Read)
	return r
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
		{Name: "status", Doc: "Only sessions with a turn like this.", OneOf: []string{view.Queued, view.Running, view.Waiting, view.Ended}},
		{Name: "workspace", Doc: "Only sessions of this folder, and of worktrees that were made of it."},
		{Name: "outcome", Doc: "Only sessions whose last turn ended so.", OneOf: outcomes()},
		{Name: "q", Doc: "Only sessions whose title, id or branch has this text, or that have all its words."},
		{Name: "before", Doc: "Those behind a place in the list: next of the answer before."},
		{Name: "tag", Doc: "Only sessions that have this tag; said more than once, all of them.", Many: true},
		{Name: "archived", Doc: "true: only sessions that are archived; false: only others.", OneOf: []string{"true", "false"}}}
	searchParams = []Param{{Name: "q", Doc: "Words that a session must all have.", Required: true}, After, limitParam}
	pageParams   = []Param{After, typesParam,
		{Name: "first", Doc: "The oldest so many facts.", Whole: true},
		{Name: "last", Doc: "The newest so many; 200 when nothing is said.", Whole: true},
		{Name: "before", Doc: "Facts before a cursor, with limit."},
		{Name: "behind", Doc: "Facts behind a cursor, with limit."}, limitParam,
		{Name: "about", Doc: "Only facts that carry this id: of a turn, step, call, question, program, …"},
		{Name: "q", Doc: "Only facts whose texts have all these words; at most 20,000 are looked at for a page."}}
)

// outcomes are the words for how a turn can end.
func outcomes() (all []string) {
	for _, o := range belay.Outcomes {
		all = append(all, string(o))
	}
	return all
}

// Routes are all paths that this package answers. The caller that mounts them
// checks that the request may read, and that its query is one of Query, with
// Only.
func (v *Reads) Routes() []Route {
	return []Route{
		streamed("GET /v1/stream", "What happens in the store, as it happens.", v.stream(wholeStore, feed.Now)),
		streamed("GET /v1/sessions/{id}/stream", "What happens in a session, from its first fact on.", v.stream(v.ofSession, feed.Start)),
		streamed("GET /v1/threads/{id}/stream", "What happens in a thread, from its first fact on.", v.stream(v.ofThread, feed.Start)),
		streamed("GET /v1/runs/{id}/stream", "What happens in a run, until it is over.", v.stream(v.ofRun, feed.Start)),
		answered("GET /v1/sessions", "Sessions, the one that changed last first.", listParams, v.sessions),
		answered("GET /v1/sessions/{id}", "A session's shell: everything but its history.", freshParams, v.session),
		answered("GET /v1/sessions/{id}/snapshot", "The standard's snapshot of a session.", freshParams, v.snapshot),
		answered("GET /v1/sessions/{id}/tasks", "The tasks of a session, the newest last.", freshParams, v.tasks),
		answered("GET /v1/sessions/{id}/events", "A window of a session's facts.", pageParams, v.events(v.ofSession)),
		answered("GET /v1/sessions/{id}/story", "A window of a session's facts, told as items.", pageParams, v.story(v.ofSession)),
		answered("GET /v1/search", "Sessions that have all words of a question.", searchParams, v.search),
		answered("GET /v1/threads/{id}", "A thread: its turn, its queue, its open questions.", freshParams, v.thread),
		answered("GET /v1/threads/{id}/events", "A window of a thread's facts.", pageParams, v.events(v.ofThread)),
		answered("GET /v1/threads/{id}/items", "A window of a thread's facts, told as items.", pageParams, v.story(v.ofThread)),
	}
}
