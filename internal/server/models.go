package server

import (
	"cmp"
	"context"
	"net/http"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/belay-run/belay"
	"github.com/belay-run/belay/internal/auth"
	"github.com/belay-run/belay/internal/problem"
	"github.com/belay-run/belay/internal/read"
	"github.com/belay-run/belay/internal/view"
)

// Model is a line of the table of read models: what the standard wants to be
// shown of the log without reading it.
type Model struct {
	Name  string // in the standard
	Of    string // whose: sessions, threads
	View  string // what it is read from: the views that fold it, or the source that answers
	Later string // what it waits for; empty: it is served
	Doc   string

	out  reflect.Type
	read func(ctx context.Context, r *request, h *http.Request) (any, error)
}

// Path is the route that answers it.
func (m Model) Path() string { return "/v1/" + m.Of + "/{id}/read/" + m.Name }

// Views that read models are made of.
const (
	standings  = "standings" // a session's fold, kept up to where it was read last
	rowAndFold = "sessions, standings"
)

// Models are the standard's read models, in its order.
var Models = []Model{
	folded("session_snapshot", "sessions", standings, "A session's snapshot: threads with their last turns, tasks, figures, cursors.", (*read.Reads).SessionSnapshot),
	folded("thread_read_model", "threads", standings, "What happens in a thread now: its turn, what waits, what it asks, incidents.", (*read.Reads).ThreadRead),
	asked("tool_inventory_snapshot", "the workspace's rules", "The tools that a session's next turn has.", toolInventory),
	folded("queue_snapshot", "sessions", standings, "The turns that wait, in order, and how each thread takes them.", (*read.Reads).QueueSnapshot),
	folded("task_snapshot", "sessions", standings, "Tasks with their attempts, counted by status.", (*read.Reads).TaskSnapshot),
	folded("context_boundary_snapshot", "sessions", standings, "What models are given besides the conversation, what was left out, taint, compaction.", (*read.Reads).ContextBoundary),
	folded("artifact_checkpoint_summary", "sessions", rowAndFold, "Artifacts, changed files and large outputs, with digests and sizes.", (*read.Reads).ArtifactCheckpoints),
	awaited("evidence_summary", "evidence", "Evidence packs and what they verify."),
	folded("permission_sandbox_summary", "sessions", standings, "Mode, grants, verdicts, open questions, boundary and what it stopped.", (*read.Reads).PermissionSandbox),
	folded("execution_environment_snapshot", "sessions", standings, "Where programs run, within which limits, and which run.", (*read.Reads).ExecutionEnvironment),
	folded("routing_limit_summary", "sessions", standings, "Which model is asked and why, usage, cost, limits.", (*read.Reads).RoutingLimits),
	awaited("subagent_job_summary", "sub-agents and jobs", "Children and jobs."),
	awaited("benchmark_summary", "benchmarks", "Trials and their rewards."),
	asked("channel_summary", "sessions (channels)", "The peers that follow a session, or everything: how far they are, what was forwarded to them.", channelSummary),
}

// folded is a line of a read model that follows from a session's facts.
func folded[T any](name, of, views, doc string, f func(*read.Reads, context.Context, *http.Request) (*T, error)) Model {
	return Model{Name: name, Of: of, View: views, Doc: doc, out: reflect.TypeFor[T](), read: func(ctx context.Context, r *request, h *http.Request) (any, error) {
		return f(r.Reads, ctx, h)
	}}
}

// asked is a line of a read model for which more than a session's facts are asked.
func asked[T any](name, of, doc string, f func(context.Context, *request, Fresh, belay.SessionID) (*T, error)) Model {
	return Model{Name: name, Of: "sessions", View: of, Doc: doc, out: reflect.TypeFor[T](), read: func(ctx context.Context, r *request, h *http.Request) (any, error) {
		id := h.PathValue("id")
		if err := named("path id", id); err != nil {
			return nil, err
		}
		after, err := position(h)
		if err != nil {
			return nil, err
		}
		fresh, err := r.fresh(ctx, after)
		if err != nil {
			return nil, err
		}
		if s, err := r.session(ctx, belay.SessionID(id)); err != nil || s.Session == "" {
			return nil, problem.At("path id", cmp.Or[error](err, noSession(belay.SessionID(id))))
		}
		return f(ctx, r, fresh, belay.SessionID(id))
	}}
}

// awaited is a line of a read model whose subsystem isn't here yet.
func awaited(name, subsystem, doc string) Model {
	return Model{Name: name, Of: "sessions", Later: subsystem, Doc: doc, read: func(context.Context, *request, *http.Request) (any, error) {
		return nil, belay.Errorf(belay.CodeUnavailable, "this build has no %s: there is no %s", subsystem, name).WithHint("GET /v1/openapi.json says what is served")
	}}
}

// model answers a line of the table.
func (s *Server) model(m Model) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		out, err := s.readModel(m, r)
		if err != nil {
			problem.Write(w, r, err)
			return
		}
		writeJSON(w, http.StatusOK, out)
	}
}

func (s *Server) readModel(m Model, r *http.Request) (any, error) {
	p, _ := auth.From(r.Context())
	t, err := s.tenant(r.Context(), p.Tenant)
	if err != nil {
		return nil, err
	}
	return m.read(r.Context(), &request{tenant: t, by: p, server: s}, r)
}

// ToolInventory is the tool_inventory_snapshot.
type ToolInventory struct {
	ToolsShown
	Session belay.SessionID `json:"sessionId"`
}

func toolInventory(ctx context.Context, r *request, f Fresh, id belay.SessionID) (*ToolInventory, error) {
	out, err := getToolInventory(ctx, r, &GetToolInventory{Session: id})
	if err != nil {
		return nil, err
	}
	out.Fresh = f
	return &ToolInventory{*out, id}, nil
}

// ChannelSummary is the channel_summary.
type ChannelSummary struct {
	Fresh
	Session   belay.SessionID `json:"sessionId"`
	Channels  []ChannelShown  `json:"channels"`  // in the order in which they came
	Connected int             `json:"connected"` // that no fact says left
	Pending   int             `json:"pending"`   // questions that went to them and didn't return
}

func channelSummary(ctx context.Context, r *request, f Fresh, id belay.SessionID) (*ChannelSummary, error) {
	all, err := view.Channels(ctx, r.Store)
	if err != nil {
		return nil, err
	}
	out := &ChannelSummary{Fresh: f, Session: id, Channels: []ChannelShown{}}
	for _, c := range all {
		if c.Follows != "" && c.Follows != id {
			continue
		}
		out.Channels = append(out.Channels, ChannelShown{c, r.peers.following(c.ID)})
		out.Pending += len(c.Pending)
		if c.Connected {
			out.Connected++
		}
	}
	return out, nil
}

// models describes the table of read models.
func (b *apiBuilder) models() error {
	for _, m := range Models {
		if m.Later != "" {
			b.doc.Unavailable[m.Name] = m.Later
			continue
		}
		op, err := b.operation(m.Name, "reads", m.Doc, string(auth.Read), m.out)
		if err != nil {
			return err
		}
		op.Parameters = []apiParameter{{Name: "id", In: "path", Required: true, Description: "Whose.", Schema: &jsonschema.Schema{Type: "string"}}, queryParameter(read.After)}
		b.doc.Paths[m.Path()] = &apiPath{Get: op}
	}
	return nil
}
