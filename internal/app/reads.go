package app

import (
	"cmp"
	"context"
	"io"
	"reflect"
	"slices"
	"strconv"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/app/input"
	"github.com/belay-run/belay/internal/app/read"
	"github.com/belay-run/belay/internal/store"
)

// Query is what a read is asked: whose, and with which parameters.
type Query = read.Query

// Fresh is how far an answer has seen the log.
type Fresh = read.Fresh

// Read is a row of the table of reads: what can be looked at without a command.
type Read struct {
	Name  string // of the operation; the standard's, if it is a read model
	Path  string // with {id} where Query.ID stands; empty for a read model: Route has its own
	Of    string // of a read model: sessions or threads
	View  string // of a read model: the views that fold it, or the source that answers
	Tag   string // of what isn't a read model: the group of the description
	Later string // what it waits for; empty: it is served
	Doc   string
	ID    string       // what Query.ID names; empty: there is none
	Query []read.Param // parameters besides after

	Out  reflect.Type // nil: a Document
	read func(ctx context.Context, c *Call, q Query) (any, error)
}

// Route is the path that answers it.
func (r *Read) Route() string {
	if r.Of != "" {
		return "/v1/" + r.Of + "/{id}/read/" + r.Name
	}
	return r.Path
}

// Do answers a read.
func (r *Read) Do(ctx context.Context, c *Call, q Query) (any, error) {
	if err := read.Check(q.Values, append(slices.Clone(r.Query), read.After)); err != nil {
		return nil, err
	}
	return r.read(ctx, c, q)
}

// FindRead returns the read of a name: a row of the table, or one of the reads that
// package read answers by itself; nil if there is none.
func FindRead(table []Read, name string) *Read {
	if i := slices.IndexFunc(table, func(r Read) bool { return r.Name == name }); i >= 0 {
		return &table[i]
	}
	for i, route := range (&read.Reads{}).Routes() {
		if route.Name() == name && !route.Stream() {
			return &Read{Name: name, Path: route.Path(), Doc: route.Summary, Query: route.Query, read: func(ctx context.Context, c *Call, q Query) (any, error) {
				return c.Reads.Routes()[i].Read(ctx, q)
			}}
		}
	}
	return nil
}

// Views that read models are made of.
const (
	standings  = "standings" // a session's fold, kept up to where it was read last
	rowAndFold = "sessions, standings"
)

// Models are the standard's read models that follow from a session's facts alone.
var Models = []Read{
	folded("session_snapshot", "sessions", standings, "A session's snapshot: threads with their last turns, tasks, figures, cursors.", (*read.Reads).SessionSnapshot),
	folded("thread_read_model", "threads", standings, "What happens in a thread now: its turn, what waits, what it asks, incidents.", (*read.Reads).ThreadRead),
	folded("queue_snapshot", "sessions", standings, "The turns that wait, in order, and how each thread takes them.", read.OfFold(read.QueueOf)),
	folded("task_snapshot", "sessions", standings, "Tasks with their attempts, counted by status.", read.OfFold(read.TasksOf)),
	folded("context_boundary_snapshot", "sessions", standings, "What models are given besides the conversation, what was left out, taint, compaction.", read.OfFold(read.ContextOf)),
	folded("artifact_checkpoint_summary", "sessions", rowAndFold, "Artifacts, changed files and large outputs, with digests and sizes.", (*read.Reads).ArtifactCheckpoints),
	awaited("evidence_summary", "evidence", "Evidence packs and what they verify."),
	folded("permission_sandbox_summary", "sessions", standings, "Mode, grants, verdicts, open questions, boundary and what it stopped.", read.OfFold(read.PermissionsOf)),
	folded("execution_environment_snapshot", "sessions", standings, "Where programs run, within which limits, and which run.", read.OfFold(read.EnvironmentOf)),
	folded("subagent_job_summary", "sessions", standings, "The agents that agents started, with their parents, threads, tasks and ends; there are no jobs.", read.OfFold(read.SubagentsOf)),
	awaited("benchmark_summary", "benchmarks", "Trials and their rewards."),
}

// folded makes a row of a read model that follows from a session's facts.
func folded[T any](name, of, views, doc string, f read.Model[T]) Read {
	return Read{Name: name, Of: of, View: views, Doc: doc, Out: reflect.TypeFor[T](), read: func(ctx context.Context, c *Call, q Query) (any, error) {
		return f(c.Reads, ctx, q)
	}}
}

// SessionModel makes a row of a read model for which more than a session's facts are
// asked. source says what answers.
func SessionModel[T any](name, source, doc string, f func(context.Context, *Call, Fresh, belay.SessionID) (*T, error)) Read {
	return DefineRead(Read{Name: name, Of: "sessions", View: source, Doc: doc, ID: "Whose."}, func(ctx context.Context, c *Call, fresh Fresh, q Query) (*T, error) {
		id := belay.SessionID(q.ID)
		if s, err := c.Session(ctx, id); err != nil || s.Session == "" {
			return nil, input.At("path id", cmp.Or[error](err, NoSession(id)))
		}
		return f(ctx, c, fresh, id)
	})
}

// DefineRead makes a row of a function. r has everything but the types and the function.
func DefineRead[T any](r Read, f func(context.Context, *Call, Fresh, Query) (*T, error)) Read {
	r.Out = reflect.TypeFor[T]()
	r.read = func(ctx context.Context, c *Call, q Query) (any, error) {
		if r.ID != "" {
			if err := input.Named("path id", q.ID); err != nil {
				return nil, err
			}
		}
		fresh, err := c.freshFor(ctx, q)
		if err != nil {
			return nil, err
		}
		return f(ctx, c, fresh, q)
	}
	return r
}

// Document is an answer that isn't JSON of a type: it is written as it comes.
type Document struct {
	Media string
	Name  string // of a file that it could be kept in; empty: it is to be looked at
	Write func(ctx context.Context, w io.Writer) error
}

// DefineDocument makes a row of a function that answers with a document. r has
// everything but the function.
func DefineDocument(r Read, f func(context.Context, *Call, Fresh, Query) (*Document, error)) Read {
	r = DefineRead(r, f)
	r.Out = nil
	return r
}

// awaited makes a row of a read model whose subsystem isn't here yet.
func awaited(name, subsystem, doc string) Read {
	return Read{Name: name, Of: "sessions", Later: subsystem, Doc: doc, read: func(context.Context, *Call, Query) (any, error) {
		return nil, belay.Errorf(belay.CodeUnavailable, "this build has no %s: there is no %s", subsystem, name).WithHint("GET /v1/openapi.json says what is served")
	}}
}

// freshFor waits until the log, and the view of sessions, have come as far as the
// query's after.
func (r *Runtime) freshFor(ctx context.Context, q Query) (Fresh, error) {
	v := q.Values.Get("after")
	if v == "" {
		return r.Fresh(ctx, 0)
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 0 {
		return Fresh{}, input.At("query after", belay.Errorf(belay.CodeBadCursor, "%q is no position", input.Shown(v)).WithHint("a command's answer has one"))
	}
	return r.Fresh(ctx, store.Position(n))
}
